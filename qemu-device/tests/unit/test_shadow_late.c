/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: doorbells in memory that come late: many of them, many
 * pages, no time.
 */
#include "harness/budget.h"
#include "harness/fields.h"
#include "harness/shadow.h"
#include "harness/snapshot.h"

#define MANY    QHCA_SHADOW_SLOTS_MAX   /* too many for one call */

static struct shadow page;      /* of @qp and @peer */

/* Gives @page, which @qp rings in, @slots. */
static void start(unsigned slots)
{
    start_pair(&RC_OPTS);
    shadow_start(&page, g, qp.o.uar, slots);
}

static void flood(struct guest *guest, uint64_t addr)
{
    (void)guest;
    (void)addr;
    shadow_flood(&page);
}

/* A device that many pages ask, and that does not look, can be saved. */
static void many_ask(void)
{
    struct shadow s[9];

    start_node();
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        shadow_start(&s[i], g, i, SHADOW_SLOTS);
        shadow_ask(&s[i]);
    }
    snapshot_cycle(g);
    CHECK(shadow_look(g));
    CHECK(shadow_header(&s[0])->ask);
    CHECK(!shadow_header(&s[8])->ask);
}

static void half_ring(struct guest *guest, uint64_t addr)
{
    struct qhca_shadow *header = shadow_header(&page);

    if (addr == gbuf_addr(&page.buf, offsetof(struct qhca_shadow, rung))) {
        guest->on_cas = NULL;
        *shadow_slot(&page, 1) = htole64(shadow_doorbell(QHCA_DB_SQ, peer.qpn,
                                                         0));
        header->rung[0] |= htole64(2);
    }
}

/*
 * A thread that stops before it has set the bit in @look does not keep alive
 * what another one rang.
 */
static void half_rung(void)
{
    start(64);
    post_writes(&qp, 1, 8);
    shadow_ring_sq(&page, 0, &qp);
    g->on_cas = half_ring;
    shadow_ask(&page);
    all_done(0, 1, QHCA_WC_SUCCESS);
    CHECK(!g->on_cas);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);
    qp.sq_pi = 0;
    rc_bring_up(&qp, QHCA_QPS_RTS);
    shadow_header(&page)->look |= htole64(1);
    shadow_ask(&page);
    guest_settle(g);
    CHECK_EQ(rc_query(&qp).sq_pi, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
}

/* A doorbell in a page that is not looked at any more also comes first. */
static void before_commands_cold(void)
{
    struct shadow s[8];

    start(MANY);
    shadow_ask(&page);
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        shadow_start(&s[i], g, page.page + 1 + i, SHADOW_SLOTS);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(s) - 1; i++) {
        shadow_ask(&s[i]);
    }
    CHECK(shadow_look(g));
    CHECK(!shadow_header(&page)->ask);
    flood(g, 0);
    post_writes(&qp, 1, 8);
    CHECK(!shadow_ring_sq(&page, MANY - 1, &qp));
    shadow_ask(&s[7]);
    CHECK(shadow_header(&page)->ask);
    CHECK_EQ(rc_query(&qp).sq_pi, 1);
}

/* A command waits for what was rung before it, not for what is rung later. */
static void others_commands(void)
{
    const struct qhca_cmd first = {
        .opcode = htole16(QHCA_CMD_NOP), .token = htole32(0x1234),
    };
    const struct qhca_cmd other = { .opcode = htole16(QHCA_CMD_NOP) };
    uint32_t at;

    start(MANY);
    shadow_ask(&page);
    flood(g, 0);
    g->on_cas = flood;
    at = g->cmd_pi;
    guest_cmd_start(g, &first, 1);
    CHECK(guest_cmd_comp(g, at)->token != first.token);
    for (unsigned i = 0; i < 16; i++) {
        guest_cmd_start(g, &other, 1);
    }
    CHECK_EQ(guest_cmd_comp(g, at)->token, first.token);
    for (unsigned i = 0; i < 64; i++) {
        guest_run(g);
    }
    g->cmd_ci = g->cmd_pi;
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), QHCA_OK);
    g->on_cas = NULL;
    guest_settle(g);
}

/* Without time left the device neither finds work nor keeps its caller busy. */
static void no_time(void)
{
    start_limited(1, 0, &RC_OPTS);
    shadow_start(&page, g, qp.o.uar, SHADOW_SLOTS);
    shadow_ask(&page);
    guest_advance(g, 1000000000);
    CHECK(shadow_look(g));
    post_writes(&qp, 40, 65536);
    shadow_ring_sq(&page, 0, &qp);
    CHECK(shadow_look(g));
    CHECK(!qhca_engine_has_time(g->e, *g->clock));
    shadow_ring_sq(&page, 0, &qp);
    CHECK(!shadow_look(g));
    CHECK(qhca_engine_rest(g->e, *g->clock));
    CHECK(shadow_header(&page)->ask);
    CHECK(!shadow_look(g));
    CHECK(qhca_engine_rest(g->e, *g->clock));
    CHECK(g->host.deadline != UINT64_MAX);
    guest_advance(g, 1000000000);
    all_done(0, 40, QHCA_WC_SUCCESS);
    CHECK_EQ(shadow_header(&page)->look, 0);
}

/* Looking is work. */
static void look_is_paid(void)
{
    start_limited(1, 0, &RC_OPTS);
    shadow_start(&page, g, qp.o.uar, SHADOW_SLOTS);
    shadow_ask(&page);
    guest_advance(g, 1000000000);
    CHECK(shadow_look(g));
    for (unsigned i = 0; i < 100; i++) {
        shadow_look(g);
    }
    CHECK(!qhca_engine_has_time(g->e, *g->clock));
    CHECK(g->host.deadline != UINT64_MAX);
    post_writes(&qp, 1, 8);
    shadow_ring_sq(&page, 0, &qp);
    CHECK(!shadow_look(g));
    guest_advance(g, 100000000);
    CHECK(shadow_look(g));
    guest_advance(g, 100000000);
    all_done(0, 1, QHCA_WC_SUCCESS);
}

/* A state that is refused leaves nothing behind that commands wait for. */
static void not_loaded(void)
{
    struct qhca_cmd nop = { .opcode = htole16(QHCA_CMD_NOP) };
    struct field_edit edit = { .value = 0 };
    struct shadow first;
    uint8_t *state;
    size_t len;

    start(MANY);
    shadow_start(&first, g, 0, SHADOW_SLOTS);
    shadow_ask(&page);
    flood(g, 0);
    guest_cmd_start(g, &nop, 1);
    edit.which = fields_find(g, "device", "asks", 0);
    state = fields_save(g, &edit, 1, &len);
    CHECK(!snapshot_load(g, state, len));
    tap_note("%s", snapshot_why());
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_enable(g, 5);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_NOP, 0), QHCA_OK);
}

/* A command that has begun cannot be taken back. */
static void taken_back(void)
{
    const struct qhca_cmd nop = { .opcode = htole16(QHCA_CMD_NOP) };
    uint32_t ci;

    start(MANY);
    shadow_ask(&page);
    flood(g, 0);
    ci = g->cmd_pi;
    guest_cmd_start(g, (struct qhca_cmd[]) { nop, nop, nop }, 3);
    ring(g, 0, QHCA_DB_CMD, 0, ci + 1);
    guest_settle(g);
    CHECK_EQ(g->e->cmdq->ci, ci + 1);
    ring(g, 0, QHCA_DB_CMD, 0, ci + 3);
    CHECK_EQ(g->e->cmdq->ci, ci + 3);
    g->cmd_ci = g->cmd_pi;
}

/* The driver sees that the device is at work on what commands wait for. */
static void progress(void)
{
    const struct qhca_cmd nop = { .opcode = htole16(QHCA_CMD_NOP) };
    uint32_t before;

    snapshot_every(0);                  /* it starts anew in another device */
    start(MANY);
    shadow_ask(&page);
    flood(g, 0);
    g->on_cas = flood;
    guest_cmd_start(g, &nop, 1);
    before = reg_read(g, QHCA_REG_CMD_PROGRESS);
    guest_run(g);
    CHECK(reg_read(g, QHCA_REG_CMD_PROGRESS) != before);
    CHECK(g->e->shadows->owing > 0);
    g->on_cas = NULL;
    guest_settle(g);
}

static const struct test tests[] = {
    { "more pages that ask than are looked at", many_ask },
    { "a thread that stops while it rings", half_rung },
    { "commands and pages that are not looked at", before_commands_cold },
    { "commands do not wait for what is rung later", others_commands },
    { "no time left", no_time },
    { "a look is paid for", look_is_paid },
    { "a state that is refused", not_loaded },
    { "commands that are taken back", taken_back },
    { "progress of commands that wait", progress },
};

TEST_MAIN(tests)
