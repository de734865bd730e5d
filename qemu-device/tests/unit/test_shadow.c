/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: doorbells in memory. */
#include "harness/fixture.h"
#include "harness/shadow.h"
#include "harness/snapshot.h"

static struct shadow page;      /* of @qp and @peer */

static void start(void)
{
    start_pair(&RC_OPTS);
    shadow_start(&page, g, qp.o.uar, SHADOW_SLOTS);
}

/* ---- asking ---- */

static void asked(void)
{
    start();
    CHECK(shadow_header(&page)->ask);
    post_writes(&qp, 1, 8);
    CHECK(shadow_ring_sq(&page, 0, &qp));
    CHECK(!shadow_look(g));                     /* it has not been used yet */
    shadow_ask(&page);
    all_done(0, 1, QHCA_WC_SUCCESS);
    CHECK(shadow_header(&page)->ask);   /* no look so far */
    CHECK(shadow_look(g));
    CHECK(!shadow_header(&page)->ask);
    CHECK(!shadow_look(g));

    post_writes(&qp, 1, 8);
    CHECK(!shadow_ring_sq(&page, 0, &qp));
    CHECK(shadow_look(g));
    all_done(1, 2, QHCA_WC_SUCCESS);
    CHECK(!shadow_look(g));

    CHECK(qhca_engine_rest(g->e, *g->clock));
    CHECK(shadow_header(&page)->ask);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
}

/* The shadow of the last page counts as an object, as others do. */
static void counted(void)
{
    struct shadow last;
    unsigned before;

    start();
    before = qhca_engine_num_objects(g->e);
    shadow_start(&last, g, NUM_UARS - 1, SHADOW_SLOTS);
    CHECK_EQ(qhca_engine_num_objects(g->e), before + 1);
}

static void ring_late(struct guest *guest, uint64_t addr, size_t len,
                      bool write)
{
    (void)len;
    if (write && addr == gbuf_addr(&page.buf,
                                   offsetof(struct qhca_shadow, ask))) {
        guest->on_dma = NULL;
        /* and has read @ask before */
        shadow_ring_sq(&page, 0, &qp);
    }
}

/* The device finds a doorbell that is rung while it decides to rest. */
static void rest_race(void)
{
    start();
    shadow_ask(&page);
    post_writes(&qp, 1, 8);
    shadow_ring_sq(&page, 0, &qp);
    shadow_look(g);
    all_done(0, 1, QHCA_WC_SUCCESS);
    post_writes(&qp, 1, 8);
    g->on_dma = ring_late;
    CHECK(!qhca_engine_rest(g->e, *g->clock));
    guest_settle(g);
    all_done(1, 2, QHCA_WC_SUCCESS);
    CHECK(qhca_engine_rest(g->e, *g->clock));
}

/* Only the pages used last are looked at; the others ask again. */
static void many_pages(void)
{
    struct shadow s[9];

    start_node();
    for (unsigned i = 0; i < ARRAY_SIZE(s); i++) {
        shadow_start(&s[i], g, i, SHADOW_SLOTS);
        shadow_ask(&s[i]);
        shadow_write(&s[i], 0, shadow_doorbell(QHCA_DB_SQ, 0x77, 1));
        CHECK(shadow_look(g));
        CHECK(!shadow_header(&s[i])->ask);
    }
    CHECK(shadow_header(&s[0])->ask);
    CHECK(!shadow_header(&s[1])->ask);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), ARRAY_SIZE(s));
    shadow_write(&s[0], 0, shadow_doorbell(QHCA_DB_SQ, 0x77, 1));
    CHECK(!shadow_look(g));
    shadow_ask(&s[0]);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), ARRAY_SIZE(s) + 1);
    CHECK(shadow_header(&s[1])->ask);
}

/* ---- what is rung ---- */

static void last_counts(void)
{
    start();
    for (unsigned i = 0; i < 5; i++) {
        post_writes(&qp, 3, 8);
        shadow_ring_sq(&page, 383, &qp);                   /* the last slot */
    }
    shadow_ask(&page);
    all_done(0, 15, QHCA_WC_SUCCESS);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
}

static void refused(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_qp q, its_peer;
    unsigned bad = 0;

    start();
    o.uar = 2;
    rc_pair(&node, &o, &q, &its_peer);
    post_writes(&q, 1, 8);
    const uint64_t vals[] = {
        shadow_doorbell(QHCA_DB_SQ, q.qpn, q.sq_pi),   /* of another page */
        shadow_doorbell(QHCA_DB_SQ, qp.qpn, 100),      /* too far ahead */
        shadow_doorbell(QHCA_DB_CQ_ARM, qp.scq.cqn, 7),
        shadow_doorbell(QHCA_DB_SHADOW, 0, 0),
        shadow_doorbell(QHCA_DB_CMD, 0, g->cmd_pi),
        shadow_doorbell(QHCA_DB_EQ, node.comp.eqn, 0), /* of page 0 only */
        shadow_doorbell(0x3f8, 0, 0), 0, UINT64_MAX,
    };
    for (unsigned i = 0; i < ARRAY_SIZE(vals); i++) {
        shadow_write(&page, i, vals[i]);
        shadow_ask(&page);
        guest_settle(g);
        CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), ++bad);
    }
    CHECK_EQ(rc_query(&q).sq_pi, 0);
    CHECK_EQ(cq_query(&qp.scq).arm, QHCA_CQ_NOT_ARMED);
}

/* Bits without a slot mean nothing. */
static void beyond(void)
{
    struct qhca_shadow *header;

    start();
    header = shadow_header(&page);
    shadow_flood(&page);
    shadow_ask(&page);
    CHECK(shadow_look(g));
    CHECK_EQ(header->look, 0);
    for (unsigned i = 0; i < 64; i++) {
        CHECK_EQ(header->rung[i], i < 384 / 64 ? 0 : UINT64_MAX);
    }
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 384);
    CHECK(!shadow_look(g));
}

static void one_more(struct guest *guest, uint64_t addr)
{
    guest->on_cas = NULL;
    (void)addr;
    shadow_write(&page, 1, shadow_doorbell(QHCA_DB_SQ, peer.qpn, peer.sq_pi));
}

/* A bit that is set while the device takes the word is not lost. */
static void take_race(void)
{
    start();
    post_writes(&qp, 1, 8);
    post_writes(&peer, 1, 8);
    shadow_ring_sq(&page, 0, &qp);
    g->on_cas = one_more;
    shadow_ask(&page);
    guest_settle(g);
    all_done(0, 1, QHCA_WC_SUCCESS);
    rc_expect(&peer.scq, 0x1000, QHCA_WC_SUCCESS);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
}

/* ---- commands come after ---- */

static void before_commands(void)
{
    start();
    shadow_ask(&page);
    CHECK(shadow_look(g));
    post_writes(&qp, 2, 8);
    shadow_ring_sq(&page, 0, &qp);
    CHECK_EQ(rc_query(&qp).sq_pi, 2);
    all_done(0, 2, QHCA_WC_SUCCESS);

    /* A doorbell from before a reset does not start WRs posted after it. */
    rc_set_state(&peer, QHCA_QPS_ERR);
    post_writes(&qp, 1, 8);
    shadow_ring_sq(&page, 0, &qp);
    CHECK_EQ(rc_set_state(&qp, QHCA_QPS_RESET), QHCA_OK);
    CHECK(!shadow_look(g));
    qp.sq_pi = 0;
    rc_bring_up(&qp, QHCA_QPS_RTS);
    CHECK_EQ(rc_query(&qp).sq_pi, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 0);
}

static void flood(struct guest *guest, uint64_t addr)
{
    (void)guest;
    (void)addr;
    shadow_flood(&page);
}

/* A process that never stops ringing delays others by its turns only. */
static void endless(void)
{
    struct rc_opts o = RC_OPTS;
    struct rc_qp a, b;

    start();
    o.uar = 2;
    rc_pair(&node, &o, &a, &b);
    g->on_cas = flood;
    flood(g, 0);
    shadow_ask(&page);
    for (unsigned i = 0; i < 100; i++) {
        post_writes(&a, 1, 8);
        ring(g, 2, QHCA_DB_SQ, a.qpn, a.sq_pi);
        guest_run(g);
        rc_expect(&a.scq, 0x1000 + i, QHCA_WC_SUCCESS);
        CHECK_EQ(rc_state(&a), QHCA_QPS_RTS);       /* a command */
    }
    g->on_cas = NULL;
    guest_settle(g);
}

/* ---- commands for them ---- */

static int destroy(unsigned uar)
{
    return guest_cmd_obj(g, QHCA_CMD_DESTROY_SHADOW, uar);
}

static void commands(void)
{
    struct gbuf buf;

    start_node();
    buf = guest_buf(g, 3 * 4096, 12, 1);
    CHECK_EQ(shadow_create(g, &buf, 3, 1409), QHCA_ERR_PARAM);
    CHECK_EQ(shadow_create(g, &buf, 3, 0), QHCA_ERR_PARAM);
    CHECK_EQ(shadow_create(g, &buf, NUM_UARS, 1), QHCA_ERR_PARAM);
    CHECK_EQ(shadow_create(g, &buf, 3, QHCA_SHADOW_SLOTS_MAX + 1),
             QHCA_ERR_LIMIT);
    CHECK_EQ(destroy(3), QHCA_ERR_OBJ);
    CHECK_EQ(destroy(NUM_UARS), QHCA_ERR_OBJ);
    CHECK_EQ(shadow_create(g, &buf, 3, 1408), QHCA_OK);
    CHECK_EQ(shadow_create(g, &buf, 3, 1408), QHCA_ERR_BUSY);
    CHECK_EQ(destroy(3), QHCA_OK);
    CHECK_EQ(destroy(3), QHCA_ERR_OBJ);
    ring(g, 3, QHCA_DB_SHADOW, 0, 0);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 1);
    buf = guest_buf(g, 9 * 4096, 12, 2);
    CHECK_EQ(shadow_create(g, &buf, 3, QHCA_SHADOW_SLOTS_MAX), QHCA_OK);
}

static void gone(void)
{
    start();
    shadow_ask(&page);
    post_writes(&qp, 1, 8);
    CHECK_EQ(destroy(1), QHCA_OK);
    guest_spoil(g, gbuf_addr(&page.buf, 0), 4096);
    CHECK(!shadow_look(g));
    CHECK(qhca_engine_rest(g->e, *g->clock));
    CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), 0);

    start();                            /* also by a reset */
    shadow_ask(&page);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    guest_enable(g, 5);
    guest_spoil(g, gbuf_addr(&page.buf, 0), 4096);
    CHECK(!shadow_look(g));
    CHECK_EQ(counter(g, QHCA_CNT_DMA_ERR), 0);
}

/* Memory that cannot be read has no doorbells. */
static void unreadable(void)
{
    start();
    shadow_ask(&page);
    CHECK(shadow_look(g));
    post_writes(&qp, 1, 8);
    shadow_ring_sq(&page, 0, &qp);
    guest_spoil(g, gbuf_addr(&page.buf, 0), 4096);
    CHECK(!shadow_look(g));
    CHECK(qhca_engine_rest(g->e, *g->clock));
    CHECK(counter(g, QHCA_CNT_DMA_ERR) > 0);
    g->bad_to = 0;
    shadow_ask(&page);
    all_done(0, 1, QHCA_WC_SUCCESS);
}

static void saved(void)
{
    start();
    shadow_ask(&page);
    post_writes(&qp, 1, 8);
    shadow_ring_sq(&page, 7, &qp);
    shadow_look(g);
    all_done(0, 1, QHCA_WC_SUCCESS);
    post_writes(&qp, 1, 8);
    CHECK(!shadow_ring_sq(&page, 7, &qp));
    snapshot_cycle(g);
    CHECK(shadow_look(g));
    all_done(1, 2, QHCA_WC_SUCCESS);
    CHECK(!shadow_header(&page)->ask);
    CHECK(qhca_engine_rest(g->e, *g->clock));
    CHECK(shadow_header(&page)->ask);
}

static const struct test tests[] = {
    { "a guest asks until the device looks", asked },
    { "all pages count as objects", counted },
    { "rung while the device goes to rest", rest_race },
    { "the device looks at the pages used last", many_pages },
    { "the last doorbell of a queue stands for all", last_counts },
    { "doorbells that are refused", refused },
    { "bits without a slot", beyond },
    { "rung while the device takes", take_race },
    { "commands come after what was rung before", before_commands },
    { "a page that never stops ringing", endless },
    { "CREATE_SHADOW, DESTROY_SHADOW", commands },
    { "memory that is not used any more", gone },
    { "memory that cannot be read", unreadable },
    { "a device that is saved and loaded", saved },
};

TEST_MAIN(tests)
