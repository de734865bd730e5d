/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: the sniffer itself. It says nothing about packets that are
 * right, and notices each mistake that it has a rule for.
 */
#include "harness/fixture.h"
#include "harness/sniff.h"
#include "tables.h"

#define QPN     0x55u
#define MTU     1024u
#define BTH     (ETH_LEN + IPV4_LEN + UDP_LEN)

static struct sniffer *sniffer;
static struct sniff_qp from;
static uint8_t frame[ROCE_MAX_FRAME];
static uint8_t bytes[4096];

/* A packet of an RC QP, as it should be. */
static struct roce_packet packet(uint8_t opcode, uint32_t psn, size_t len)
{
    struct roce_packet p = {
        .vlan = QHCA_NO_VLAN, .ipv4 = true, .hop_limit = 64,
        .sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
        .dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
        .sport = 0xc123, .opcode = opcode, .pkey = PKEY_DEFAULT, .psn = psn,
        .dest_qp = 0x77, .syndrome = AETH_ACK, .dma_len = (uint32_t)len,
        .payload_len = len,
    };

    p.ackreq = !(opcode & SVC_MASK) &&
               opcode != RC_SEND_FIRST && opcode != RC_SEND_MIDDLE &&
               opcode != RC_WRITE_FIRST && opcode != RC_WRITE_MIDDLE &&
               !(opcode >= RC_READ_RESP_FIRST &&
                 opcode <= RC_ATOMIC_ACKNOWLEDGE);
    return p;
}

static size_t build(const struct roce_packet *p)
{
    memcpy(frame + roce_payload_offset(p), bytes, p->payload_len);
    return roce_finish(p, frame);
}

/* The first packet says where the QP's PSNs begin. */
static const char *next(const struct sniffed *s)
{
    if (from.sq_psn == UINT32_MAX) {
        from.sq_psn = s->psn;
    }
    return sniff_next(sniffer, &from, s);
}

/* Returns the sniffer's verdict on the packet as the QP's next one. */
static const char *hear(const struct roce_packet *p)
{
    struct sniffed s;
    const char *why = sniff_read(&s, frame, build(p), false);

    return why ? why : next(&s);
}

static const char *hear_new(uint8_t opcode, uint32_t psn, size_t len)
{
    struct roce_packet p = packet(opcode, psn, len);

    return hear(&p);
}

static void start(void)
{
    sniffer_free(sniffer);
    sniffer = sniffer_new();
    from = (struct sniff_qp) {
        .qpn = QPN, .mtu = MTU, .state = QHCA_QPS_RTS, .sq_psn = UINT32_MAX,
    };
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7 + 1);
    }
}

/* Nothing is said if @rule is NULL, else that rule is. */
static void says(const char *why, const char *rule)
{
    if (!rule != !why || (rule && !strstr(why, rule))) {
        tap_note("\"%s\" instead of \"%s\"", why ? why : "nothing",
                 rule ? rule : "nothing");
        tap_fail(__FILE__, __LINE__, "the sniffer");
    }
}

/* ---- one frame ---- */

/* A frame of @opcode in which the byte at @at has been changed. */
static const struct bad_byte {
    const char *rule;
    uint8_t opcode;
    unsigned at;
    uint8_t bits;
    bool icrc;                  /* made anew */
} bad_bytes[] = {
    { "E-001", RC_SEND_ONLY, 6, 1, true },
    { "E-001", RC_SEND_ONLY, 12, 1, true },
    { "E-039", RC_SEND_ONLY, 0, 1, true },
    { "E-002", RC_SEND_ONLY, ETH_LEN, 1, true },
    { "E-002", RC_SEND_ONLY, ETH_LEN + 3, 4, true },
    { "E-002", RC_SEND_ONLY, ETH_LEN + 6, 0x20, true },
    { "E-002", RC_SEND_ONLY, ETH_LEN + 10, 1, true },
    { "E-003", RC_SEND_ONLY, BTH - 8, 0x80, true },
    { "E-003", RC_SEND_ONLY, BTH - 5, 1, true },
    { "E-003", RC_SEND_ONLY, BTH - 3, 4, true },
    { "E-003", RC_SEND_ONLY, BTH - 1, 1, true },
    { "E-027", RC_SEND_ONLY, BTH, 0xc0, true },
    { "E-027", RC_READ_REQUEST, BTH, 0x20, true },
    { "E-031", RC_SEND_ONLY, BTH + 1, 0x40, true },
    { "E-031", RC_SEND_ONLY, BTH + 1, 1, true },
    { "E-030", RC_SEND_ONLY, BTH + 1, 0x10, true },
    { "D-082", RC_SEND_ONLY, BTH + 2, 1, true },
    { "E-031", RC_SEND_ONLY, BTH + 4, 0x40, true },
    { "E-031", RC_SEND_ONLY, BTH + 8, 1, true },
    { "E-045", RC_SEND_ONLY, BTH + 7, 0x77, true },
    { "E-032", RC_SEND_ONLY, BTH + 12, 1, false },
    { "B-045", RC_WRITE_ONLY, BTH + 1, 0x80, true },
    { "B-045", RC_READ_REQUEST, BTH + 1, 0x80, true },
    { "D-010", RC_SEND_ONLY, BTH + 8, 0x80, true },
    { "D-010", RC_READ_RESP_ONLY, BTH + 8, 0x80, true },
    { "D-010", RC_ACKNOWLEDGE, BTH + 8, 0x80, true },
    { "D-010", RC_ATOMIC_ACKNOWLEDGE, BTH + 8, 0x80, true },
    { "D-010", SVC_UC | RC_SEND_ONLY, BTH + 8, 0x80, true },
    { "D-017", RC_ACKNOWLEDGE, BTH + 12, 0x80, true },
    { "D-021", RC_READ_RESP_ONLY, BTH + 12, 0x7d, true },
    { "D-005", RC_WRITE_ONLY, BTH + 27, 1, true },
    { "B-074", RC_ATOMIC_WRITE, BTH + 27, 1, true },
};

static bool has_payload(uint8_t opcode)
{
    return opcode != RC_READ_REQUEST && opcode != RC_ACKNOWLEDGE &&
           opcode != RC_ATOMIC_ACKNOWLEDGE;
}

static void test_bytes(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_bytes); i++) {
        const struct bad_byte *b = &bad_bytes[i];
        struct roce_packet p = packet(b->opcode, 5,
                                      has_payload(b->opcode) ? 8 : 0);
        struct sniffed s;
        const char *why;
        size_t len;
        uint32_t crc;

        start();
        says(hear(&p), NULL);
        start();
        len = build(&p);
        frame[b->at] ^= b->bits;
        if (b->icrc) {
            crc = htole32(roce_icrc(frame + ETH_LEN, true,
                                    len - ETH_LEN - ICRC_LEN));
            memcpy(frame + len - ICRC_LEN, &crc, sizeof(crc));
        }
        why = sniff_read(&s, frame, len, false);
        says(why ? why : next(&s), b->rule);
    }
}

/* ---- several ---- */

static void say_all(const uint8_t *opcode, unsigned n, uint32_t psn)
{
    for (unsigned i = 0; i < n; i++) {
        struct roce_packet p = packet(opcode[i], (psn + i) & PSN_MASK, MTU);

        p.dma_len = n * MTU;
        says(hear(&p), NULL);
    }
}

static const uint8_t write3[] = {
    RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST_IMM,
};
static const uint8_t data3[] = {
    RC_READ_RESP_FIRST, RC_READ_RESP_MIDDLE, RC_READ_RESP_LAST,
};

static void test_psns(void)
{
    start();
    say_all(write3, 3, 0xfffffe);
    says(hear_new(RC_SEND_ONLY, 1, 0), NULL);
    says(hear_new(RC_SEND_ONLY, 3, 0), "D-001");
    start();
    says(hear_new(RC_SEND_ONLY, 1, 0), NULL);
    sniff_state(sniffer, QPN, QHCA_QPS_RTS, QHCA_QPS_RESET);
    says(hear_new(RC_SEND_ONLY, 3, 0), "D-001");
    sniff_state(sniffer, QPN, QHCA_QPS_RESET, QHCA_QPS_INIT);
    from.sq_psn = 3;
    says(hear_new(RC_SEND_ONLY, 3, 0), NULL);
    start();
    says(hear_new(RC_READ_REQUEST, 7, 0), NULL);
    says(hear_new(RC_SEND_ONLY, 8, 0), NULL);
}

static void test_places(void)
{
    struct roce_packet p;

    start();
    says(hear_new(RC_SEND_MIDDLE, 0, MTU), "D-061");
    start();
    says(hear_new(RC_SEND_FIRST, 0, MTU), NULL);
    says(hear_new(RC_WRITE_MIDDLE, 1, MTU), "D-061");
    start();
    says(hear_new(RC_SEND_FIRST, 0, MTU), NULL);
    says(hear_new(RC_SEND_ONLY, 1, 0), "D-061");
    start();
    says(hear_new(RC_SEND_FIRST, 0, MTU - 4), "D-004");
    says(hear_new(RC_SEND_ONLY, 0, MTU + 4), "D-004");
    says(hear_new(RC_SEND_LAST, 0, 0), "D-004");
    start();
    p = packet(RC_WRITE_FIRST, 0, MTU);
    p.dma_len = MTU + 4;
    says(hear(&p), NULL);
    says(hear_new(RC_WRITE_LAST, 1, 8), "D-005");
}

static void test_repeats(void)
{
    struct roce_packet p;

    start();
    say_all(write3, 3, 0);
    says(hear_new(RC_SEND_ONLY_IMM, 3, 100), NULL);
    says(hear_new(RC_SEND_ONLY_IMM, 3, 100), NULL);
    p = packet(RC_SEND_ONLY_IMM, 3, 100);
    p.imm = 1;
    says(hear(&p), "D-006");
    bytes[99]++;
    says(hear_new(RC_SEND_ONLY_IMM, 3, 100), "D-006");
    says(hear_new(RC_WRITE_MIDDLE, 1, MTU), "D-006");
    bytes[99]--;
    says(hear_new(RC_WRITE_MIDDLE, 1, MTU), NULL);
    p = packet(RC_WRITE_MIDDLE, 1, MTU);
    p.ackreq = true;
    says(hear(&p), NULL);
    says(hear_new(RC_SEND_ONLY, 4, 0), NULL);
    start();
    says(hear_new(RC_SEND_ONLY, 5, 0), NULL);
    says(hear_new(RC_SEND_ONLY, 4, 0), "D-006");
    sniff_moved(sniffer, QPN);
    says(hear_new(RC_SEND_ONLY, 9, 0), NULL);
    says(hear_new(RC_SEND_ONLY, 8, 0), NULL);
}

/* A READ of @len bytes from byte @off of the region on. */
static const char *hear_read(uint32_t psn, uint64_t off, uint32_t len)
{
    struct roce_packet p = packet(RC_READ_REQUEST, psn, 0);

    p.va = 0x10000 + off;
    p.dma_len = len;
    return hear(&p);
}

static void test_reads(void)
{
    start();
    says(hear_read(0, 0, 3 * MTU + 1), NULL);
    says(hear_read(4, 0, 1), NULL);
    says(hear_read(0, 0, 3 * MTU + 1), NULL);
    says(hear_read(2, 2 * MTU, MTU + 1), NULL);
    says(hear_read(2, 2 * MTU, MTU), "D-006");
    says(hear_read(2, MTU, MTU + 1), "D-006");
    says(hear_new(RC_SEND_ONLY, 2, 0), "D-006");
}

static void test_answers(void)
{
    struct roce_packet p;

    start();
    say_all(data3, 3, 0xffffff);
    says(hear_new(RC_READ_RESP_FIRST, 9, MTU), NULL);
    says(hear_new(RC_READ_RESP_LAST, 11, MTU), "D-002");
    start();
    says(hear_new(RC_READ_RESP_FIRST, 9, MTU), NULL);
    says(hear_new(RC_ACKNOWLEDGE, 8, 0), NULL);
    says(hear_new(RC_ACKNOWLEDGE, 12, 0), "D-013");
    start();
    p = packet(RC_READ_RESP_FIRST, 9, MTU);
    p.msn = 7;
    says(hear(&p), NULL);
    p = packet(RC_ACKNOWLEDGE, 10, 0);
    p.syndrome = AETH_NAK_ACCESS;
    p.msn = 7;
    says(hear(&p), NULL);
    says(hear_new(RC_READ_RESP_FIRST, 12, MTU), NULL);
    says(hear_new(RC_ACKNOWLEDGE, 14, 0), "D-013");
    says(hear_new(RC_READ_RESP_LAST, 13, MTU), NULL);
    says(hear_new(RC_ACKNOWLEDGE, 15, 0), NULL);
    p.psn = 16;
    p.syndrome = AETH_ACK;
    p.msn = 0xffffff;
    says(hear(&p), "D-016");
}

static void test_states(void)
{
    static const struct {
        const char *rule;
        uint8_t state, opcode, syndrome;
    } rows[] = {
        { "A-001", QHCA_QPS_RESET, RC_ACKNOWLEDGE, AETH_ACK },
        { "A-002", QHCA_QPS_INIT, RC_SEND_ONLY, 0 },
        { "A-003", QHCA_QPS_RTR, RC_SEND_ONLY, 0 },
        { NULL, QHCA_QPS_RTR, RC_ACKNOWLEDGE, AETH_ACK },
        { NULL, QHCA_QPS_SQD, RC_SEND_ONLY, 0 },
        { "A-006", QHCA_QPS_SQE, SVC_UC | RC_SEND_ONLY, 0 },
        { "A-007", QHCA_QPS_ERR, RC_SEND_ONLY, 0 },
        { "A-007", QHCA_QPS_ERR, RC_ACKNOWLEDGE, AETH_ACK },
        { NULL, QHCA_QPS_ERR, RC_ACKNOWLEDGE, AETH_NAK_ACCESS },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct roce_packet p = packet(rows[i].opcode, 5, 0);

        start();
        p.syndrome = rows[i].syndrome;
        from.state = rows[i].state;
        says(hear(&p), rows[i].rule);
    }
}

/* The sniffer hears packets between the engines of a test, frames or not. */
static void test_listens(void)
{
    for (unsigned i = 0; i < 2; i++) {
        struct sniff_qp of = { .mtu = MTU, .state = QHCA_QPS_RTS };
        struct sniffed s = { .service = SNIFF_RC, .kind = E2_SEND,
                             .first = true, .last = true,
                             .psn = RC_OPTS.sq_psn + 1, .bth = frame,
                             .header_len = BTH_LEN };
        struct sniffed ack = { .service = SNIFF_RC, .kind = E2_ACKNOWLEDGE,
                               .first = true, .last = true, .response = true,
                               .psn = RC_OPTS.sq_psn + 1 };

        if (i) {
            start_pair(&RC_OPTS);
        } else {
            start_net(&RC_OPTS, false);
        }
        rc_recv(&peer, 1, 0, 64);
        rc_send(&qp, 64);
        if (!i) {
            net_run(net, 1000000);
        }
        done(0, QHCA_WC_SUCCESS);
        REQUIRE(g->sniffer);
        of.qpn = qp.qpn;
        says(sniff_next(g->sniffer, &of, &s), NULL);
        s.psn += 2;
        says(sniff_next(g->sniffer, &of, &s), "D-001");
        /* The peer's ACK has had MSN 1. */
        of.qpn = peer.qpn;
        REQUIRE(peer.n->g->sniffer);
        says(sniff_next(peer.n->g->sniffer, &of, &ack), "D-016");
    }
}

static const struct test tests[] = {
    { "a byte of each header", test_bytes },
    { "PSNs", test_psns },
    { "FIRST, MIDDLE, LAST and their lengths", test_places },
    { "retransmissions", test_repeats },
    { "READs that are repeated, or their rest", test_reads },
    { "responses", test_answers },
    { "states of the QP", test_states },
    { "it hears packets with and without frames", test_listens },
};

int main(int argc, char **argv)
{
    int status = tap_main(argc, argv, tests, ARRAY_SIZE(tests),
                          harness_cleanup);

    sniffer_free(sniffer);
    return status;
}
