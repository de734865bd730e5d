/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QHCA_ETHQ_SCATTER: a received frame is spread over several buffers.
 */
#include "harness/debug.h"
#include "harness/fields.h"
#include "harness/frames.h"
#include "harness/harness.h"
#include "harness/snapshot.h"

#define FRAGS   5u
#define LOG     4u
#define BUF     2000u

static struct guest *g;
static struct geq eq;
static struct eth_rx rx;

static void start(void)
{
    g = guest_start();
    eq = eq_create(g, 1, 6, 0);
    rx = eth_rx_create_scatter(g, &eq, 0, LOG, BUF, FRAGS);
    port_enable(g, test_mac, 0, 9000);
}

static struct qhca_eth_wqe *wqe(uint32_t index)
{
    uint64_t off = (index & ((1u << LOG) - 1)) * sizeof(struct qhca_eth_wqe);

    return guest_ptr(g, gbuf_addr(&rx.ring, off), sizeof(struct qhca_eth_wqe));
}

/* A frame of @len bytes, no two parts of which look alike. */
static struct frame some_frame(size_t len)
{
    struct frame f = udp_frame(test_mac, 1, 2, 99, len - 42);

    for (size_t i = 42; i < len; i++) {
        f.data[i] = (uint8_t)(i * 7 + (i >> 8) * 13);
    }
    REQUIRE(f.len == len);
    return f;
}

/* Checks that the WQEs from @first on have the frame; returns their number. */
static unsigned check_data(uint32_t first, const uint8_t *data, size_t len)
{
    unsigned n = 0;

    for (size_t at = 0; at < len; n++) {
        const struct qhca_eth_wqe *w = wqe(first + n);
        size_t part = MIN_OF(len - at, le32toh(w->length));

        CHECK(!part || !memcmp(guest_ptr(g, le64toh(w->addr), part), data + at,
                               part));
        at += part;
    }
    return n;
}

/* Receives @f, of which @want arrives from WQE @*at on. */
static void receive(uint32_t *at, const struct frame *f,
                    const struct frame *want)
{
    struct qhca_cqe cqe;

    guest_rx(g, f->data, f->len);
    REQUIRE(cq_poll(&rx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
    CHECK_EQ(cqe.opcode, QHCA_CQE_ETH_RX);
    CHECK_EQ(le32toh(cqe.byte_len), want->len);
    *at += check_data(*at, want->data, want->len);
    CHECK_EQ(le32toh(cqe.wqe_index), *at - 1);
    CHECK_EQ(cqe.wr_id, wqe(*at - 1)->wr_id);
    CHECK(!cq_poll(&rx.cq, &cqe));
    rx.cq.ci--;                     /* refill polls again */
    eth_rx_refill(&rx);
}

static void sizes(void)
{
    static const size_t len[] = {
        60, BUF - 1, BUF, BUF + 1, 2 * BUF, 2 * BUF + 1, 4 * BUF, 4 * BUF + 1,
        9014,
    };
    uint32_t at = 0;

    start();
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
            struct frame f = some_frame(len[i]);

            receive(&at, &f, &f);
        }
    }
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_PKTS), 4 * ARRAY_SIZE(len));
    CHECK_EQ(counter(g, QHCA_CNT_BAD_WQE), 0);
}

/* Buffers of all sizes, empty ones among them, also around the tag. */
static void odd_buffers(void)
{
    static const uint32_t first[] = { 0, 1, 11, 12, 13, 16, 500 };
    uint32_t at = 0;

    start();
    for (unsigned i = 0; i < ARRAY_SIZE(first); i++) {
        struct frame f = some_frame(1000), plain = f;

        for (unsigned tag = 0; tag < 2; tag++) {
            if (tag) {
                frame_add_vlan(&f, 0x6123);
            }
            wqe(at)->length = htole32(first[i]);
            wqe(at + 1)->length = htole32(1);
            wqe(at + 2)->length = 0;
            receive(&at, &f, &plain);
        }
    }
}

/* The largest frame, with two tags of which one goes. */
static void tags(void)
{
    struct frame f = some_frame(9014), want;
    uint32_t at = 0;

    start();
    frame_add_vlan(&f, 100);
    want = f;
    frame_add_vlan(&f, 200);
    want.data[12] = f.data[16] = 0x81;
    want.data[13] = f.data[17] = 0x00;
    receive(&at, &f, &want);
}

/* With too few WQEs for any frame not even a short one begins. */
static void few_buffers(void)
{
    struct frame f = some_frame(200);
    struct qhca_cqe cqe;
    unsigned n;

    start();
    for (n = 0; qhca_engine_can_receive(g->e); n++) {
        guest_rx(g, f.data, f.len);
    }
    CHECK_EQ(n, (1u << LOG) - FRAGS + 1);
    guest_rx(g, f.data, f.len);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_NO_BUF), 1);
    REQUIRE(cq_poll(&rx.cq, &cqe));
    rx.cq.ci--;
    eth_rx_refill(&rx);
    CHECK(qhca_engine_can_receive(g->e));
    guest_rx(g, f.data, f.len);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_PKTS), n + 1);
}

/* Receives a frame of 9014 bytes that must use up @n WQEs and fail. */
static void fails(unsigned n, unsigned status)
{
    static uint32_t errors;
    struct frame f = some_frame(9014);
    struct qhca_cqe cqe;

    errors = (uint32_t)counter(g, QHCA_CNT_BAD_WQE);
    guest_rx(g, f.data, f.len);
    REQUIRE(cq_poll(&rx.cq, &cqe));
    CHECK_EQ(cqe.status, status);
    CHECK_EQ(le32toh(cqe.wqe_index), n - 1);
    CHECK_EQ(cqe.wr_id, wqe(n - 1)->wr_id);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_WQE), errors + 1);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_PKTS), 0);
    CHECK_EQ(le32toh(cqe.qpn), rx.number);
    /* The next frame begins behind them. */
    f = some_frame(100);
    guest_rx(g, f.data, f.len);
    REQUIRE(cq_poll(&rx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
    CHECK_EQ(le32toh(cqe.wqe_index), n);
}

static void bad_buffers(void)
{
    start();
    wqe(3)->length = htole32(1013);             /* one byte short in all */
    fails(FRAGS, QHCA_WC_LOC_LEN_ERR);
    start();
    wqe(0)->length = wqe(1)->length = wqe(2)->length = 0;
    wqe(3)->length = wqe(4)->length = 0;
    fails(FRAGS, QHCA_WC_LOC_LEN_ERR);
    start();
    wqe(2)->addr = htole64(UINT64_MAX - 5);
    fails(FRAGS, QHCA_WC_LOC_PROT_ERR);
    start();
    wqe(4)->addr = htole64(RAM_BASE + RAM_SIZE - 100);
    fails(FRAGS, QHCA_WC_LOC_PROT_ERR);
    start();
    wqe(1)->length = htole32(UINT32_MAX);       /* room, but not memory */
    wqe(1)->addr = htole64(RAM_BASE + RAM_SIZE - 2000);
    fails(2, QHCA_WC_LOC_PROT_ERR);
}

static void creation(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) };
    struct gcq cq;

    start();
    cq = cq_create(g, &eq, 0, LOG);
    cmd.create_ethq.buf = rx.ring.desc;
    cmd.create_ethq.cqn = htole32(cq.cqn);
    cmd.create_ethq.log_size = LOG;
    cmd.create_ethq.index = 1;
#define TRY(d, f, n, status) \
    do { \
        cmd.create_ethq.dir = d; \
        cmd.create_ethq.flags = f; \
        cmd.create_ethq.frags = n; \
        CHECK_EQ(guest_cmd(g, &cmd, NULL), status); \
    } while (0)
    TRY(QHCA_ETH_RX, QHCA_ETHQ_SCATTER, 0, QHCA_ERR_PARAM);
    TRY(QHCA_ETH_RX, QHCA_ETHQ_SCATTER, 17, QHCA_ERR_PARAM);    /* of 16 */
    TRY(QHCA_ETH_RX, QHCA_ETHQ_SCATTER, 255, QHCA_ERR_PARAM);
    TRY(QHCA_ETH_TX, QHCA_ETHQ_SCATTER, 1, QHCA_ERR_PARAM);
    TRY(QHCA_ETH_TX, QHCA_ETHQ_SCATTER, 2, QHCA_ERR_PARAM);
    TRY(QHCA_ETH_RX, 4, 1, QHCA_ERR_PARAM);
    TRY(QHCA_ETH_RX, QHCA_ETHQ_SCATTER, 16, QHCA_OK);
    /* Without the flag the device ignores the number. */
    TRY(QHCA_ETH_RX, QHCA_ETHQ_REPLACE, 255, QHCA_OK);
    CHECK_EQ(vhca_ethq_at(g->e, 1, QHCA_ETH_RX)->frags, 1);
    TRY(QHCA_ETH_TX, 0, 255, QHCA_OK);
    CHECK_EQ(vhca_ethq_at(g->e, 1, QHCA_ETH_TX)->frags, 1);
    cmd.create_ethq.log_size = 5;
    rx.ring = guest_buf(g, sizeof(struct qhca_eth_wqe) << 5, 12, 1);
    cmd.create_ethq.buf = rx.ring.desc;
    cmd.create_ethq.index = 2;
    TRY(QHCA_ETH_RX, QHCA_ETHQ_SCATTER, QHCA_ETH_MAX_FRAGS + 1,
        QHCA_ERR_PARAM);
    TRY(QHCA_ETH_RX, QHCA_ETHQ_SCATTER, QHCA_ETH_MAX_FRAGS, QHCA_OK);
#undef TRY
}

/* As many WQEs as there may be, each with a few bytes. */
static void most(void)
{
    struct frame f = some_frame(QHCA_ETH_MAX_FRAGS * 50);
    struct qhca_cqe cqe;

    start();
    rx = eth_rx_create_scatter(g, &eq, 1, 5, 50, QHCA_ETH_MAX_FRAGS);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, 2), QHCA_OK);
    {
        struct qhca_rss rss = eth_rss_even(1);

        memset(rss.queue, 1, sizeof(rss.queue));
        CHECK_EQ(eth_set_rss(g, 0x3f, &rss), QHCA_OK);
    }
    for (unsigned n = 0; n < 3; n++) {
        guest_rx(g, f.data, f.len);
        REQUIRE(cq_poll(&rx.cq, &cqe));
        CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
        CHECK_EQ(le32toh(cqe.wqe_index), (n + 1) * QHCA_ETH_MAX_FRAGS - 1);
        rx.cq.ci--;
        eth_rx_refill(&rx);
    }
    f = some_frame(f.len + 1);
    guest_rx(g, f.data, f.len);
    REQUIRE(cq_poll(&rx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_LOC_LEN_ERR);
}

static void saved(void)
{
    struct frame f = some_frame(9014);
    uint32_t at = 0;

    start();
    for (unsigned n = 0; n < 5; n++) {
        receive(&at, &f, &f);
        snapshot_cycle(g);
    }
}

/* How many WQEs a frame may take is checked as when the queue is created. */
static void saved_badly(void)
{
    static const uint64_t bad[] = { 0, 17, 20, 21, 255 };
    struct field_edit edit = { .how = FIELD_SET };
    struct eth_tx tx;
    uint8_t *state;
    size_t len;

    for (unsigned i = 0; i <= ARRAY_SIZE(bad); i++) {
        start();
        tx = eth_tx_create_at(g, &eq, 0, 6);
        CHECK_EQ(tx.number, 1);
        edit.which = fields_find(g, "eth", "frags", i < ARRAY_SIZE(bad));
        edit.value = i < ARRAY_SIZE(bad) ? bad[i] : 2;      /* 2: to send */
        state = fields_save(g, &edit, 1, &len);
        CHECK(!snapshot_load(g, state, len));
        CHECK(strstr(snapshot_why(), bad[i % ARRAY_SIZE(bad)] > 20 ?
                     "frags" : "cqn or pi"));
    }
}

static const struct test tests[] = {
    { "frames of all sizes", sizes },
    { "buffers of all sizes, and a tag", odd_buffers },
    { "the largest frame, with tags", tags },
    { "too few WQEs for any frame", few_buffers },
    { "bad buffers", bad_buffers },
    { "creation", creation },
    { "as many WQEs as possible", most },
    { "saved and loaded", saved },
    { "a bad number of WQEs in a state", saved_badly },
};

TEST_MAIN(tests)
