/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet queues: sending, and their life.
 */
#include "harness/debug.h"
#include "harness/frames.h"
#include "harness/harness.h"

struct setup {
    struct guest *g;
    struct geq eq;
    struct eth_tx tx;
    struct eth_rx rx;
    uint64_t mem;               /* 64 KiB of pattern 1 */
};

static struct setup start(void)
{
    struct setup s = { .g = guest_start() };

    s.eq = eq_create(s.g, 1, 6, 0);
    s.tx = eth_tx_create(s.g, &s.eq, 6);
    s.rx = eth_rx_create(s.g, &s.eq, 4, 1600);
    s.mem = guest_alloc(s.g, 65536, 4096);
    guest_fill(s.g, s.mem, 65536, 1);
    port_enable(s.g, test_mac, 0, 1500);
    return s;
}

static void expect_tx(struct setup *s, unsigned status, uint32_t index)
{
    struct qhca_cqe cqe;

    if (!cq_poll(&s->tx.cq, &cqe)) {
        tap_fail(__FILE__, __LINE__, "no TX completion");
        return;
    }
    CHECK_EQ(cqe.status, status);
    CHECK_EQ(cqe.opcode, QHCA_CQE_ETH_TX);
    CHECK_EQ(le32toh(cqe.wqe_index), index);
    CHECK_EQ(le64toh(cqe.wr_id), index);
    CHECK_EQ(le32toh(cqe.qpn), s->tx.number);
}

static void simple_tx(void)
{
    struct setup s = start();
    unsigned i, round;

    for (round = 0; round < 10; round++) {
        for (i = 0; i < 40; i++) {
            eth_tx_post(&s.tx, s.mem + i * 8, 100 + i, 0);
        }
        eth_tx_ring(&s.tx);
        REQUIRE(s.g->num_sent == 40 * (round + 1));
        for (i = 0; i < 40; i++) {
            struct sent *f = &s.g->sent[40 * round + i];

            CHECK_EQ(f->len, 100 + i);
            CHECK(memcmp(f->data, guest_ptr(s.g, s.mem + i * 8, 100 + i),
                         100 + i) == 0);
            expect_tx(&s, QHCA_WC_SUCCESS, 40 * round + i);
        }
    }
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_TX_PKTS), 400);
}

/* A frame in fragments, over several doorbells, each read at its doorbell. */
static void fragments(void)
{
    struct setup s = start();
    unsigned i;

    for (i = 0; i < 20; i++) {
        eth_tx_post(&s.tx, s.mem + i * 50, 50, i < 19 ? QHCA_ETH_MORE : 0);
        eth_tx_ring(&s.tx);
        if (i < 19) {
            /* Fragments handed over may change afterwards. */
            memset(guest_ptr(s.g, gbuf_addr(&s.tx.ring, i * 32), 32), 0xff, 32);
        }
    }
    REQUIRE(s.g->num_sent == 1);
    CHECK_EQ(s.g->sent[0].len, 1000);
    CHECK(memcmp(s.g->sent[0].data, guest_ptr(s.g, s.mem, 1000), 1000) == 0);
    expect_tx(&s, QHCA_WC_SUCCESS, 19);
    eth_tx_post(&s.tx, s.mem, 30, QHCA_ETH_MORE);
    eth_tx_post(&s.tx, 1, 0, QHCA_ETH_MORE);        /* empty: skipped */
    eth_tx_post(&s.tx, s.mem + 30, 40, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 22);
    CHECK_EQ(s.g->sent[1].len, 70);
}

static void short_frames(void)
{
    struct setup s = start();
    unsigned i;

    eth_tx_post(&s.tx, s.mem, 14, 0);
    eth_tx_ring(&s.tx);
    REQUIRE(s.g->num_sent == 1);
    CHECK_EQ(s.g->sent[0].len, 60);
    for (i = 14; i < 60; i++) {
        CHECK_EQ(s.g->sent[0].data[i], 0);
    }
    expect_tx(&s, QHCA_WC_SUCCESS, 0);
    eth_tx_post(&s.tx, s.mem, 13, 0);
    eth_tx_post(&s.tx, s.mem, 0, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 1);
    expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 2);
    CHECK_EQ(s.g->num_sent, 1);
}

static void long_frames(void)
{
    struct setup s = start();
    uint8_t *p = guest_ptr(s.g, s.mem, 16);

    eth_tx_post(&s.tx, s.mem, 1514, 0);
    eth_tx_post(&s.tx, s.mem, 1515, 0);
    eth_tx_post(&s.tx, s.mem, 1514, QHCA_ETH_VLAN);
    eth_tx_post(&s.tx, s.mem, 65536, 0);
    eth_tx_post(&s.tx, s.mem, 0xffffffff, 0);
    eth_tx_post(&s.tx, s.mem, 9000, QHCA_ETH_MORE);
    eth_tx_post(&s.tx, s.mem, 0xffffff00, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 0);
    expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 1);
    expect_tx(&s, QHCA_WC_SUCCESS, 2);
    expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 3);
    expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 4);
    expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 6);
    p[12] = 0x81;
    p[13] = 0x00;
    eth_tx_post(&s.tx, s.mem, 1518, 0);
    eth_tx_post(&s.tx, s.mem, 1519, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 7);
    expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 8);
    port_enable(s.g, test_mac, 0, 9000);
    eth_tx_post(&s.tx, s.mem, 9018, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 9);
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_TX_ERR), 5);
}

/* Two tags of either type count as header, inserted by the device or not. */
static void stacked_tags(void)
{
    static const struct {
        uint16_t first, second;
        unsigned flags;
        uint32_t max;
    } rows[] = {
        { 0x88a8, 0x0800, 0, 1518 },
        { 0x88a8, 0x0800, QHCA_ETH_VLAN, 1518 },
        { 0x88a8, 0x8100, 0, 1522 },
        { 0x8100, 0x8100, 0, 1522 },
        { 0x88a8, 0x88a8, 0, 1522 },
        { 0x8100, 0x8100, QHCA_ETH_VLAN, 1518 },
        { 0x0800, 0x8100, 0, 1514 },
    };
    struct setup s = start();
    uint8_t *p = guest_ptr(s.g, s.mem, 32);

    for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
        p[12] = (uint8_t)(rows[i].first >> 8);
        p[13] = (uint8_t)rows[i].first;
        p[16] = (uint8_t)(rows[i].second >> 8);
        p[17] = (uint8_t)rows[i].second;
        p[20] = 0x81;           /* a third tag is payload */
        p[21] = 0x00;
        eth_tx_post(&s.tx, s.mem, rows[i].max, rows[i].flags);
        eth_tx_post(&s.tx, s.mem, rows[i].max + 1, rows[i].flags);
        eth_tx_ring(&s.tx);
        expect_tx(&s, QHCA_WC_SUCCESS, 2 * i);
        expect_tx(&s, QHCA_WC_LOC_LEN_ERR, 2 * i + 1);
    }
}

static void too_many_fragments(void)
{
    struct setup s = start();
    unsigned i;

    for (i = 0; i < 50; i++) {
        eth_tx_post(&s.tx, s.mem, 1, i < 49 ? QHCA_ETH_MORE : 0);
    }
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_LOC_QP_OP_ERR, 49);
    expect_tx(&s, QHCA_WC_SUCCESS, 50);
    CHECK_EQ(s.g->num_sent, 1);
}

static void bad_memory(void)
{
    struct setup s = start();

    eth_tx_post(&s.tx, 0x1000, 100, 0);
    eth_tx_post(&s.tx, s.mem, 100, QHCA_ETH_MORE);
    eth_tx_post(&s.tx, UINT64_MAX - 10, 100, QHCA_ETH_MORE);
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_LOC_PROT_ERR, 0);
    expect_tx(&s, QHCA_WC_LOC_PROT_ERR, 3);
    /* The ring itself. */
    guest_spoil(s.g, gbuf_addr(&s.tx.ring, 4 * 32), 32);
    eth_tx_post(&s.tx, s.mem, 100, QHCA_ETH_MORE);
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    struct qhca_cqe cqe;
    CHECK(cq_poll(&s.tx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_GENERAL_ERR);
    expect_tx(&s, QHCA_WC_SUCCESS, 5);
    CHECK_EQ(dev_state(s.g), QHCA_STATE_RUNNING);
}

static void checksum_offload(void)
{
    struct setup s = start();
    struct frame f = udp_frame(test_mac, 1, 2, 1234, 301);
    struct qhca_eth_wqe *w;
    uint16_t want;

    memcpy(&want, f.data + 40, 2);
    /* The checksum field has the pseudo header's sum, as drivers leave it. */
    uint32_t pseudo = vhca_csum_add(17 + 309, f.data + 26, 8);
    pseudo = (uint16_t)~vhca_csum_fold(pseudo);
    f.data[40] = (uint8_t)(pseudo >> 8);
    f.data[41] = (uint8_t)pseudo;
    memcpy(guest_ptr(s.g, s.mem, f.len), f.data, f.len);
    w = eth_tx_post(&s.tx, s.mem, 100, QHCA_ETH_MORE | QHCA_ETH_CSUM);
    w->csum_start = htole16(34);
    w->csum_offset = htole16(6);
    eth_tx_post(&s.tx, s.mem + 100, (uint32_t)f.len - 100, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 1);
    REQUIRE(s.g->num_sent == 1);
    CHECK(memcmp(s.g->sent[0].data + 40, &want, 2) == 0);
    CHECK(vhca_csum_verify(s.g->sent[0].data, s.g->sent[0].len, 14, 0x0800));

    w = eth_tx_post(&s.tx, s.mem, (uint32_t)f.len,
                    QHCA_ETH_CSUM | QHCA_ETH_VLAN);
    w->csum_start = htole16(34);
    w->csum_offset = htole16(6);
    w->vlan_tci = htole16(0x2005);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 2);
    CHECK_EQ(s.g->sent[1].len, f.len + 4);
    CHECK(memcmp(s.g->sent[1].data, f.data, 12) == 0);
    CHECK(memcmp(s.g->sent[1].data + 12, "\x81\x00\x20\x05\x08\x00", 6) == 0);
    CHECK(vhca_csum_verify(s.g->sent[1].data, s.g->sent[1].len, 18, 0x0800));

    /* The sum of these bytes is 0, which would say that there is none. */
    memset(guest_ptr(s.g, s.mem + 34, f.len - 34), 0, f.len - 34);
    memset(guest_ptr(s.g, s.mem + 42, 2), 0xff, 2);
    w = eth_tx_post(&s.tx, s.mem, (uint32_t)f.len, QHCA_ETH_CSUM);
    w->csum_start = htole16(34);
    w->csum_offset = htole16(6);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 3);
    CHECK(memcmp(s.g->sent[2].data + 40, "\xff\xff", 2) == 0);
}

static void bad_checksum_offsets(void)
{
    static const uint16_t at[][2] = {
        { 0xffff, 0xffff }, { 99, 0 }, { 0, 99 }, { 100, 0 }, { 0xffff, 0 },
    };
    struct setup s = start();
    struct qhca_eth_wqe *w;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(at); i++) {
        w = eth_tx_post(&s.tx, s.mem, 100, QHCA_ETH_CSUM);
        w->csum_start = htole16(at[i][0]);
        w->csum_offset = htole16(at[i][1]);
    }
    w = eth_tx_post(&s.tx, s.mem, 100, QHCA_ETH_CSUM);
    w->csum_start = htole16(98);
    eth_tx_ring(&s.tx);
    for (i = 0; i < ARRAY_SIZE(at); i++) {
        expect_tx(&s, QHCA_WC_LOC_QP_OP_ERR, i);
    }
    expect_tx(&s, QHCA_WC_SUCCESS, i);
    CHECK_EQ(s.g->num_sent, 1);
}

/* While the network is blocked, WQEs stay with the guest. */
static void back_pressure(void)
{
    struct setup s = start();
    unsigned i;

    s.g->net_blocked = true;
    for (i = 0; i < 60; i++) {
        eth_tx_post(&s.tx, s.mem, 60 + i, 0);
    }
    eth_tx_ring(&s.tx);
    CHECK_EQ(s.g->num_sent, 0);
    expect_tx(&s, QHCA_WC_SUCCESS, 0);      /* the one the device keeps */
    qhca_engine_tx_ready(s.g->e, 1);        /* still blocked */
    guest_settle(s.g);
    CHECK_EQ(s.g->num_sent, 0);
    guest_unblock(s.g);
    REQUIRE(s.g->num_sent == 60);
    for (i = 0; i < 60; i++) {
        CHECK_EQ(s.g->sent[i].len, 60 + i);
    }
    for (i = 1; i < 60; i++) {
        expect_tx(&s, QHCA_WC_SUCCESS, i);
    }
}

static void port_down(void)
{
    struct setup s = start();

    qhca_engine_set_link(s.g->e, 1, false);
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    expect_tx(&s, QHCA_WC_SUCCESS, 0);
    CHECK_EQ(s.g->num_sent, 0);
}

static void bad_doorbells(void)
{
    struct setup s = start();

    ring(s.g, 0, QHCA_DB_ETH, 0, 1);
    ring(s.g, 0, QHCA_DB_ETH, 3, 1);
    ring(s.g, 0, QHCA_DB_ETH, s.tx.number, 65);
    ring(s.g, 0, QHCA_DB_ETH, s.tx.number, 0xffffffff);
    CHECK_EQ(counter(s.g, QHCA_CNT_BAD_DOORBELL), 4);
    s.g->net_blocked = true;
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    ring(s.g, 0, QHCA_DB_ETH, s.tx.number, 2);      /* backwards */
    CHECK_EQ(counter(s.g, QHCA_CNT_BAD_DOORBELL), 5);
}

/* A failed CQ stops its queues: nothing is consumed unreported. */
static void failed_cq(void)
{
    struct setup s = start();
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500);
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) };

    vhca_cq_get(s.g->e, s.tx.cq.cqn)->state = QHCA_CQ_ERROR;
    vhca_cq_get(s.g->e, s.rx.cq.cqn)->state = QHCA_CQ_ERROR;
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    CHECK_EQ(s.g->num_sent, 0);
    CHECK(!qhca_engine_can_receive(s.g->e));
    guest_rx(s.g, f.data, f.len);
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_RX_NO_BUF), 1);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_ETHQ, s.tx.number), QHCA_OK);
    cmd.create_ethq.buf = s.tx.ring.desc;
    cmd.create_ethq.cqn = htole32(s.tx.cq.cqn);
    CHECK_EQ(guest_cmd(s.g, &cmd, NULL), QHCA_ERR_STATE);
}

static void creation(void)
{
    struct setup s = start();
    struct qhca_cmd good = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) }, cmd;

    good.create_ethq.buf = s.tx.ring.desc;
    good.create_ethq.cqn = htole32(s.tx.cq.cqn);
    good.create_ethq.log_size = 6;
#define TRY(change, status) \
    do { \
        cmd = good; \
        change; \
        CHECK_EQ(guest_cmd(s.g, &cmd, NULL), status); \
    } while (0)
    TRY((void)0, QHCA_ERR_NO_RESOURCE);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_CQ, s.tx.cq.cqn),
             QHCA_ERR_BUSY);
    eth_tx_post(&s.tx, s.mem, 100, QHCA_ETH_MORE);     /* freed with queue */
    eth_tx_ring(&s.tx);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_ETHQ, s.tx.number), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_ETHQ, s.tx.number),
             QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_ETHQ, 0), QHCA_ERR_OBJ);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_ETHQ, 3), QHCA_ERR_OBJ);
    TRY(cmd.create_ethq.dir = 2, QHCA_ERR_PARAM);
    TRY(cmd.create_ethq.index = VHCA_MAX_ETH_PAIRS, QHCA_ERR_LIMIT);
    TRY(cmd.create_ethq.index = 255, QHCA_ERR_LIMIT);
    TRY(cmd.create_ethq.log_size = 13, QHCA_ERR_LIMIT);
    TRY(cmd.create_ethq.log_size = 8, QHCA_ERR_PARAM);
    TRY(cmd.create_ethq.cqn = htole32(5), QHCA_ERR_OBJ);
    TRY((void)0, QHCA_OK);
#undef TRY
    s.tx.pi = 0;
    eth_tx_post(&s.tx, s.mem, 100, 0);
    eth_tx_ring(&s.tx);
    REQUIRE(s.g->num_sent == 1);
    CHECK_EQ(s.g->sent[0].len, 100);
}

static const struct test tests[] = {
    { "frames leave in order", simple_tx },
    { "fragments over several doorbells", fragments },
    { "short frames are padded", short_frames },
    { "long frames are refused", long_frames },
    { "stacked tags", stacked_tags },
    { "too many fragments", too_many_fragments },
    { "memory that cannot be read", bad_memory },
    { "checksum and VLAN offload", checksum_offload },
    { "bad checksum offsets", bad_checksum_offsets },
    { "back-pressure", back_pressure },
    { "with the port down", port_down },
    { "bad doorbells", bad_doorbells },
    { "queues of a failed CQ stop", failed_cq },
    { "creation, destruction, refusals", creation },
};

TEST_MAIN(tests)
