/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SET_RSS: received frames are spread over the Ethernet queues.
 */
#include "harness/debug.h"
#include "harness/fields.h"
#include "harness/frames.h"
#include "harness/harness.h"
#include "harness/snapshot.h"

#define QUEUES  4u
#define TYPES   0x3fu

static struct guest *g;
static struct geq eq;
static struct eth_rx rx[QUEUES];
static struct qhca_rss good;

/* Queue 3 is in the table only once, and queue 4 does not exist. */
static void start(void)
{
    g = guest_start();
    eq = eq_create(g, 1, 8, 0);
    for (unsigned i = 0; i < QUEUES; i++) {
        rx[i] = eth_rx_create_at(g, &eq, i, 6, 1600);
    }
    port_enable(g, test_mac, 0, 1500);
    good = eth_rss_even(3);
    good.queue[127] = 3;
}

/* The only queue with a CQE, which is taken; QUEUES if there is none. */
static unsigned arrived(struct qhca_cqe *cqe)
{
    unsigned at = QUEUES;
    struct qhca_cqe next;

    for (unsigned i = 0; i < QUEUES; i++) {
        if (cq_poll(&rx[i].cq, &next)) {
            *cqe = next;
            CHECK_EQ(at, QUEUES);
            CHECK_EQ(le32toh(cqe->qpn), rx[i].number);
            CHECK_EQ(cqe->status, QHCA_WC_SUCCESS);
            at = i;
            rx[i].cq.ci--;              /* refill polls again */
            eth_rx_refill(&rx[i]);
        }
    }
    return at;
}

/* Receives frame @n of UDP; returns its queue, which must be @rss's. */
static unsigned receive(const struct qhca_rss *rss, unsigned n)
{
    struct frame f = udp_frame(test_mac, 1, 2, 1000 + n, 100);
    struct qhca_cqe cqe = { 0 };
    unsigned type, at, want;
    uint32_t hash = 0;

    type = vhca_frame_hash(rss->key, TYPES, f.data, f.len, &hash);
    CHECK_EQ(type, QHCA_RSS_UDPV4);
    want = rss->queue[hash % ARRAY_SIZE(rss->queue)];
    guest_rx(g, f.data, f.len);
    at = arrived(&cqe);
    CHECK_EQ(at, want);
    CHECK_EQ(le32toh(cqe.hash), hash);
    CHECK_EQ(le16toh(cqe.flags), QHCA_CQE_CSUM_OK | QHCA_CQE_HASH |
                                 QHCA_CQE_HASH_L4);
    return at;
}

/* Frames are not spread, and have no hash. */
static void check_off(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 99, 100);
    struct qhca_cqe cqe = { 0 };

    for (unsigned i = 0; i < 10; i++) {
        f.data[37] = (uint8_t)i;
        guest_rx(g, f.data, f.len);
        CHECK_EQ(arrived(&cqe), 0);
        CHECK_EQ(le16toh(cqe.flags) & ~QHCA_CQE_CSUM_OK, 0);
        CHECK_EQ(cqe.hash, 0);
    }
}

static void spread(void)
{
    unsigned seen[QUEUES] = { 0 };

    start();
    check_off();
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    for (unsigned n = 0; n < 300; n++) {
        seen[receive(&good, n)]++;
    }
    for (unsigned i = 0; i < QUEUES; i++) {
        CHECK(seen[i]);
    }
    CHECK(seen[3] < seen[0]);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_PKTS), 310);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_NO_BUF), 0);
}

/* Another key, and another table: the next frame follows them. */
static void changes(void)
{
    struct qhca_rss next;

    start();
    next = good;
    next.key[0] ^= 1;
    memset(next.queue, 2, sizeof(next.queue));
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    receive(&good, 1);
    CHECK_EQ(eth_set_rss(g, TYPES, &next), QHCA_OK);
    for (unsigned n = 0; n < 20; n++) {
        CHECK_EQ(receive(&next, n), 2);
    }
    CHECK_EQ(eth_set_rss(g, 0, NULL), QHCA_OK);
    check_off();
}

static void addresses_only(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 99, 100);
    struct qhca_cqe cqe = { 0 };
    uint32_t hash;

    start();
    CHECK_EQ(eth_set_rss(g, QHCA_RSS_IPV4 | QHCA_RSS_TCPV4, &good), QHCA_OK);
    CHECK(vhca_frame_hash(good.key, QHCA_RSS_IPV4, f.data, f.len, &hash));
    guest_rx(g, f.data, f.len);
    CHECK_EQ(arrived(&cqe), good.queue[hash % 128]);
    CHECK_EQ(le32toh(cqe.hash), hash);
    CHECK_EQ(le16toh(cqe.flags), QHCA_CQE_CSUM_OK | QHCA_CQE_HASH);
}

/* A frame without a hash goes to queue 0, even if the table lacks it. */
static void without_hash(void)
{
    struct frame f = udp_frame(test_mac, 1, 2, 99, 100);
    struct qhca_cqe cqe = { 0 };

    start();
    memset(good.queue, 2, sizeof(good.queue));
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    f.data[12] = 0x08;
    f.data[13] = 0x06;
    guest_rx(g, f.data, f.len);
    CHECK_EQ(arrived(&cqe), 0);
    CHECK_EQ(le16toh(cqe.flags) & QHCA_CQE_HASH, 0);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, rx[0].number), QHCA_OK);
    guest_rx(g, f.data, f.len);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_NO_BUF), 1);
    CHECK(qhca_engine_can_receive(g->e));
    receive(&good, 5);
}

/* A table with any mistake leaves the old one as it is. */
static void hostile(void)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_SET_RSS) };
    struct qhca_rss bad;

    start();
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
#define TRY(types, change, status) \
    do { \
        bad = good; \
        change; \
        CHECK_EQ(eth_set_rss(g, types, &bad), status); \
        receive(&good, 7); \
    } while (0)
    TRY(0x40, (void)0, QHCA_ERR_PARAM);
    TRY(0x100, (void)0, QHCA_ERR_PARAM);
    TRY(0x8000003f, (void)0, QHCA_ERR_PARAM);
    TRY(TYPES, bad.queue[0] = QUEUES, QHCA_ERR_OBJ);
    TRY(TYPES, bad.queue[127] = QUEUES, QHCA_ERR_OBJ);
    TRY(TYPES, bad.queue[64] = VHCA_MAX_ETH_PAIRS, QHCA_ERR_OBJ);
    TRY(TYPES, bad.queue[1] = 255, QHCA_ERR_OBJ);
    TRY(TYPES, bad.rsvd[3] = 255, QHCA_OK);
#undef TRY
    cmd.set_rss.types = htole32(TYPES);
    cmd.mailbox = htole64(RAM_BASE + RAM_SIZE);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_DMA);
    receive(&good, 7);
}

static void one_queue(void)
{
    struct qhca_device_attr a;

    start();
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_DEVICE, 0, &a, sizeof(a)), QHCA_OK);
    CHECK_EQ(le32toh(a.max_ethq), 2 * VHCA_MAX_ETH_PAIRS);
    g = guest_start();
    g->e->cfg.eth_queues = 1;
    g->spare = NULL;
    CHECK_EQ(guest_query(g, QHCA_CMD_QUERY_DEVICE, 0, &a, sizeof(a)), QHCA_OK);
    CHECK_EQ(le32toh(a.max_ethq), 2);
    eq = eq_create(g, 1, 8, 0);
    rx[0] = eth_rx_create(g, &eq, 6, 1600);
    memset(good.queue, 0, sizeof(good.queue));
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_ERR_NOT_SUPPORTED);
    CHECK_EQ(eth_set_rss(g, 0, NULL), QHCA_ERR_NOT_SUPPORTED);
}

/* A queue in the table can be replaced, but not destroyed. */
static void destruction(void)
{
    struct eth_tx tx;
    struct eth_rx old;
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) };
    struct gcq cq;
    unsigned n = 0;

    start();
    tx = eth_tx_create_at(g, &eq, 3, 6);
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, rx[3].number),
             QHCA_ERR_BUSY);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, tx.number), QHCA_OK);
    while (receive(&good, n) != 3) {
        n++;
    }

    old = rx[3];
    cq = cq_create(g, &eq, 0, 6);
    cmd.create_ethq.buf = old.ring.desc;
    cmd.create_ethq.cqn = htole32(cq.cqn);
    cmd.create_ethq.log_size = 6;
    cmd.create_ethq.dir = QHCA_ETH_RX;
    cmd.create_ethq.index = 3;
    cmd.create_ethq.pi = htole32(20);
    CHECK_EQ(guest_cmd(g, &cmd, NULL), QHCA_ERR_NO_RESOURCE);
    cmd.create_ethq.flags = QHCA_ETHQ_REPLACE;
    CHECK_EQ(guest_create(g, &cmd), old.number);
    rx[3].cq = cq;
    rx[3].pi = 20;
    CHECK_EQ(receive(&good, n), 3);

    good.queue[127] = 0;
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, rx[3].number), QHCA_OK);
    CHECK_EQ(receive(&good, n), 0);
    good.queue[127] = 3;
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_ERR_OBJ);
    CHECK_EQ(eth_set_rss(g, 0, NULL), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, rx[1].number), QHCA_OK);
}

/* The network waits if any queue has no WQE; the others take what comes. */
static void empty_queue(void)
{
    struct frame f;
    struct qhca_cqe cqe;
    unsigned n;

    start();
    memset(good.queue, 0, sizeof(good.queue));
    good.queue[0] = 1;
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    CHECK(qhca_engine_can_receive(g->e));
    f = udp_frame(test_mac, 1, 2, 99, 100);
    f.data[12] = 0x88;                          /* to queue 0 */
    for (n = 0; qhca_engine_can_receive(g->e); n++) {
        guest_rx(g, f.data, f.len);
    }
    CHECK_EQ(n, 64);
    guest_rx(g, f.data, f.len);
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_NO_BUF), 1);
    memset(good.queue, 2, sizeof(good.queue));
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    f = udp_frame(test_mac, 1, 2, 99, 100);
    guest_rx(g, f.data, f.len);
    CHECK(cq_poll(&rx[2].cq, &cqe));
    CHECK_EQ(counter(g, QHCA_CNT_ETH_RX_NO_BUF), 1);
    eth_rx_refill(&rx[0]);
    CHECK(qhca_engine_can_receive(g->e));
}

static void reset(void)
{
    start();
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    reg_write(g, QHCA_REG_RESET, QHCA_RESET_KEY);
    CHECK_EQ(g->e->eth->rss[0].types, 0);
    CHECK_EQ(qhca_engine_num_objects(g->e), 0);
}

static void saved(void)
{
    start();
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    for (unsigned n = 0; n < 20; n++) {
        receive(&good, n);
        snapshot_cycle(g);
    }
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, rx[3].number),
             QHCA_ERR_BUSY);
    CHECK_EQ(eth_set_rss(g, 0, NULL), QHCA_OK);
    snapshot_cycle(g);
    check_off();
}

/* A state whose table names a queue that it does not have. */
static void saved_badly(void)
{
    struct field_edit edit = { .how = FIELD_SET };
    uint8_t *state;
    size_t len;

    start();
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    edit.which = fields_find(g, "eth", "types", 0);
    edit.value = 0x40;
    state = fields_save(g, &edit, 1, &len);
    CHECK(!snapshot_load(g, state, len));
    CHECK(strstr(snapshot_why(), "types"));

    start();
    CHECK_EQ(eth_set_rss(g, TYPES, &good), QHCA_OK);
    edit.which = fields_find(g, "eth", "queue", 0);
    edit.value = QUEUES;
    state = fields_save(g, &edit, 1, &len);
    CHECK(!snapshot_load(g, state, len));
    CHECK(strstr(snapshot_why(), "queue"));
    CHECK_EQ(g->e->eth->rss[0].types, 0);
}

static const struct test tests[] = {
    { "frames are spread by their hash", spread },
    { "another key, another table, none", changes },
    { "the hash of addresses only", addresses_only },
    { "frames without a hash", without_hash },
    { "hostile tables", hostile },
    { "a device with one queue", one_queue },
    { "destruction of queues in the table", destruction },
    { "a queue without WQEs", empty_queue },
    { "reset", reset },
    { "saved and loaded", saved },
    { "a bad table in a state", saved_badly },
};

TEST_MAIN(tests)
