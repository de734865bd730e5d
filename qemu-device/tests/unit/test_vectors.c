/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the wire format against vectors of a codec that shares
 * nothing with the engine's (oracle/): every opcode, frames that rdma_rxe has
 * sent (corpus/wire), and frames of other vendors' hardware.
 *
 * VECTORS: the file that oracle/vectors.py has written.
 */
#include "harness/harness.h"
#include "harness/vectors.h"

/* ---- judges ---- */

/* Ends the test case with the name of the vector. */
#define AGREE(v, cond) \
    do { \
        if (!(cond)) { \
            tap_note("vector %s", (v)->name); \
            REQUIRE(cond); \
        } \
    } while (0)

static unsigned exact[256];     /* vectors of each opcode */
static bool offered[256];

static const struct {
    const char *name;
    uint8_t op;
} ops[] = {
    { "SEND", OP_SEND }, { "RDMA_WRITE", OP_WRITE },
    { "RDMA_READ_REQUEST", OP_READ_REQ },
    { "RDMA_READ_RESPONSE", OP_READ_RESP }, { "ACKNOWLEDGE", OP_ACK },
    { "ATOMIC_ACKNOWLEDGE", OP_ATOMIC_ACK }, { "CMP_SWAP", OP_CAS },
    { "FETCH_ADD", OP_FAA }, { "FLUSH", OP_FLUSH },
    { "ATOMIC_WRITE", OP_ATOMIC_WRITE },
    { "CNP", OP_CNP },
};

static const struct {
    const char *name;
    uint16_t flags;
} flags[] = {
    { "FIRST", OPF_FIRST }, { "MIDDLE", 0 }, { "LAST", OPF_LAST },
    { "ONLY", OPF_FIRST | OPF_LAST }, { "reth", OPF_RETH },
    { "atomiceth", OPF_ATOMICETH }, { "aeth", OPF_AETH },
    { "atomicacketh", OPF_ATOMICACK }, { "immdt", OPF_IMM },
    { "deth", OPF_DETH }, { "ieth", OPF_IETH }, { "feth", OPF_FETH },
    { "xrceth", OPF_XRCETH },
};

static uint16_t flags_of(const char *name)
{
    size_t i = 0;

    while (strcmp(flags[i].name, name)) {
        REQUIRE(++i < ARRAY_SIZE(flags));
    }
    return flags[i].flags;
}

/* The engine's row must equal the one in the specification's table. */
static void judge_opcode(struct vector *v)
{
    const struct roce_opcode_info *info = roce_opcode(v->p.opcode);
    uint16_t want = flags_of(v->place);
    char headers[64], *save = NULL;
    size_t i = 0;

    if (!v->offered) {
        AGREE(v, info->op == OP_NONE && !info->flags);
        return;
    }
    offered[v->p.opcode] = true;
    REQUIRE(strlen(v->headers) < sizeof(headers));
    strcpy(headers, v->headers);
    for (char *h = strtok_r(headers, ",", &save); h;
         h = strtok_r(NULL, ",", &save)) {
        want |= flags_of(h);
    }
    want |= v->response ? OPF_RESPONSE : 0;
    want |= v->payload_allowed ? OPF_PAYLOAD : 0;
    while (strcmp(ops[i].name, v->op)) {
        REQUIRE(++i < ARRAY_SIZE(ops));
    }
    AGREE(v, info->op == ops[i].op);
    AGREE(v, info->flags == want);
}

/* Every field must be as in the vector, and absent fields 0. */
static void judge_read(struct vector *v)
{
    struct roce_packet p;
    const char *differs;

    AGREE(v, parse_copy(&p, v->frame, v->len) == ROCE_OK);
    differs = vector_differs(v, &p);
    if (differs) {
        tap_note("vector %s: %s", v->name, differs);
        REQUIRE(!"every field as in the vector");
    }
    AGREE(v, !memcmp(p.payload, v->payload, v->p.payload_len));
}

/* judge_read(); no shorter frame parses, and the fields produce this frame. */
static void judge_exact(struct vector *v)
{
    uint8_t frame[ROCE_MAX_FRAME];
    struct roce_packet p;
    size_t len, at = 0;

    judge_read(v);
    exact[v->p.opcode]++;
    for (len = 0; len < v->len; len++) {
        AGREE(v, parse_copy(&p, v->frame, len) == ROCE_MALFORMED);
    }
    memset(frame, 0xa5, sizeof(frame));
    memcpy(frame + roce_payload_offset(&v->p), v->payload, v->p.payload_len);
    len = roce_finish(&v->p, frame);
    AGREE(v, len == v->len);
    while (at < len && at < v->len && frame[at] == v->frame[at]) {
        at++;
    }
    if (at != v->len) {
        tap_note("vector %s: byte %zu", v->name, at);
        REQUIRE(!"the same bytes");
    }
}

static void judge_malformed(struct vector *v)
{
    struct roce_packet p;

    AGREE(v, parse_copy(&p, v->frame, v->len) == ROCE_MALFORMED);
}

static void judge_icrc(struct vector *v)
{
    struct roce_packet p;

    AGREE(v, parse_copy(&p, v->frame, v->len) == ROCE_BAD_ICRC);
}

static void judge_flips(struct vector *v)
{
    struct roce_packet p;

    for (size_t bit = 0; bit < v->len * 8; bit++) {
        uint8_t mask = (uint8_t)(1u << bit % 8);
        bool same = v->same[bit / 8] & mask;

        v->frame[bit / 8] ^= mask;
        if ((parse_copy(&p, v->frame, v->len) == ROCE_OK) != same) {
            tap_note("vector %s: bit %zu of byte %zu", v->name, bit % 8,
                     bit / 8);
            REQUIRE(!"flip judged correctly");
        }
        v->frame[bit / 8] ^= mask;
    }
}

/* ---- the file ---- */

typedef void judge_fn(struct vector *v);

static const struct {
    const char *kind, *what;
    judge_fn *judge;
} kinds[] = {
    { "opcode", "", judge_opcode }, { "flips", "", judge_flips },
    { "frame", "exact", judge_exact }, { "frame", "read", judge_read },
    { "frame", "malformed", judge_malformed }, { "frame", "icrc", judge_icrc },
};

static judge_fn *judge_of(const struct vector *v)
{
    size_t i = 0;

    while (strcmp(kinds[i].kind, v->kind) || strcmp(kinds[i].what, v->what)) {
        REQUIRE(++i < ARRAY_SIZE(kinds));
    }
    return kinds[i].judge;
}

/* Parses every line, and judges those that @judge is for. */
static void judge_all(judge_fn *judge)
{
    static struct vector v;
    unsigned judged = 0, lines = 0;
    FILE *file = fopen(VECTORS, "r");

    REQUIRE(file);
    for (vector_read(file, &v); strcmp(v.kind, "end"); vector_read(file, &v)) {
        lines++;
        if (judge_of(&v) == judge) {
            judge(&v);
            judged++;
        }
    }
    CHECK_EQ(v.count, lines);
    CHECK(judged > 0);
    fclose(file);
}

static void test_opcodes(void)
{
    judge_all(judge_opcode);
    for (unsigned op = 0; op < 256; op++) {
        CHECK_EQ(roce_opcode((uint8_t)op)->op != OP_NONE, offered[op]);
    }
}

static void test_exact(void)
{
    memset(exact, 0, sizeof(exact));
    judge_all(judge_exact);
    for (unsigned op = 0; op < 256; op++) {
        CHECK_EQ(exact[op] > 0, roce_opcode((uint8_t)op)->op != OP_NONE);
    }
}

static void test_read(void)
{
    judge_all(judge_read);
}

static void test_malformed(void)
{
    judge_all(judge_malformed);
}

static void test_icrc(void)
{
    judge_all(judge_icrc);
}

static void test_flips(void)
{
    judge_all(judge_flips);
}

static const struct test tests[] = {
    { "E-020 E-021 E-022 E-023 E-024 E-025 E-026 E-027 the table of opcodes",
      test_opcodes },
    { "E-001 E-002 E-003 E-004 E-005 E-006 E-007 E-008 E-009 E-010 "
      "E-030 E-032 E-033 E-046 every opcode, read, made and cut",
      test_exact },
    { "E-003 E-004 E-031 E-034 tolerated fields; frames of other vendors",
      test_read },
    { "E-002 E-045 E-046 invalid frames", test_malformed },
    { "E-032 E-033 E-034 ICRCs computed differently", test_icrc },
    { "E-033 E-034 every bit flipped", test_flips },
};

TEST_MAIN(tests)
