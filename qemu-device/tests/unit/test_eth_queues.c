/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several Ethernet queues for sending: they take turns, and none waits for a
 * frame of another one that lacks its end.
 */
#include "harness/debug.h"
#include "harness/frames.h"
#include "harness/harness.h"
#include "harness/snapshot.h"

static struct guest *g;
static struct geq eq;
static struct eth_tx tx[VHCA_MAX_ETH_PAIRS];
static uint64_t mem[VHCA_MAX_ETH_PAIRS];

/* Each queue has a frame of its own to send, with its index as a source. */
static void start(void)
{
    struct frame f;

    g = guest_start();
    eq = eq_create(g, 1, 8, 0);
    for (unsigned i = 0; i < VHCA_MAX_ETH_PAIRS; i++) {
        tx[i] = eth_tx_create_at(g, &eq, i, 6);
        CHECK_EQ(tx[i].number, 2 * i + 1);
        mem[i] = guest_alloc(g, 20000, 64);
        f = udp_frame(test_mac, i, 2, 99, 200);
        memcpy(guest_ptr(g, mem[i], f.len), f.data, f.len);
    }
    port_enable(g, test_mac, 0, 1500);
}

/* Rings the doorbells of queues that have WQEs, then lets the device work. */
static void go(unsigned queues)
{
    g->net_blocked = true;
    for (unsigned i = 0; i < VHCA_MAX_ETH_PAIRS; i++) {
        if (queues >> i & 1) {
            ring(g, 0, QHCA_DB_ETH, tx[i].number, tx[i].pi);
        }
    }
    g->net_blocked = false;
    qhca_engine_tx_ready(g->e, *g->clock);
    guest_settle(g);
}

/* Which queue sent frame @n. */
static unsigned sender(unsigned n)
{
    REQUIRE(n < g->num_sent);
    return g->sent[n].data[29];
}

static void in_turn(void)
{
    start();
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned n = 0; n < 5; n++) {
            eth_tx_post(&tx[2 * i], mem[2 * i], 242, 0);
        }
    }
    go(0x15);
    REQUIRE(g->num_sent == 15);
    for (unsigned n = 3; n < 15; n++) {
        CHECK_EQ(sender(n), sender(n - 3));
    }
    CHECK(sender(0) != sender(1) && sender(1) != sender(2) &&
          sender(0) != sender(2));
    for (unsigned i = 0; i < 3; i++) {
        struct qhca_cqe cqe;

        for (unsigned n = 0; n < 5; n++) {
            REQUIRE(cq_poll(&tx[2 * i].cq, &cqe));
            CHECK_EQ(le32toh(cqe.wqe_index), n);
            CHECK_EQ(le32toh(cqe.qpn), tx[2 * i].number);
        }
        CHECK(!cq_poll(&tx[2 * i].cq, &cqe));
    }
    CHECK_EQ(counter(g, QHCA_CNT_ETH_TX_PKTS), 15);
    CHECK(!g->e->eth->tx_busy);
}

/* Frames of three queues, each in two parts: none disturbs another. */
static void unfinished(void)
{
    struct qhca_cqe cqe;

    start();
    for (unsigned i = 0; i < 3; i++) {
        eth_tx_post(&tx[i], mem[i], 100, QHCA_ETH_MORE);
        eth_tx_ring(&tx[i]);
    }
    CHECK_EQ(g->num_sent, 0);
    CHECK(!g->e->eth->tx_busy);
    snapshot_cycle(g);
    eth_tx_post(&tx[3], mem[3], 242, 0);
    eth_tx_ring(&tx[3]);
    CHECK_EQ(sender(0), 3);
    for (unsigned i = 0; i < 3; i++) {
        eth_tx_post(&tx[i], mem[i] + 100, 142, 0);
        eth_tx_ring(&tx[i]);
        CHECK_EQ(sender(1 + i), i);
        CHECK_EQ(g->sent[1 + i].len, 242);
        CHECK(!memcmp(g->sent[1 + i].data, guest_ptr(g, mem[i], 242), 242));
        CHECK(cq_poll(&tx[i].cq, &cqe));
        CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
    }
}

/* A large frame is sent in pieces, and other queues send between them. */
static void large_frame(void)
{
    struct frame f = udp_frame(test_mac, 7, 2, 99, 412);
    struct qhca_eth_wqe *w;
    struct qhca_cqe cqe;

    start();
    f.data[23] = 6;                     /* TCP, with a header of 20 bytes */
    f.data[46] = 0x50;
    memcpy(guest_ptr(g, mem[7], f.len), f.data, f.len);
    w = eth_tx_post(&tx[7], mem[7], (uint32_t)f.len, QHCA_ETH_TSO);
    w->csum_start = htole16(34);
    w->mss = htole16(100);
    for (unsigned n = 0; n < 4; n++) {
        eth_tx_post(&tx[1], mem[1], 242, 0);
    }
    go(0x82);
    REQUIRE(g->num_sent == 8);
    for (unsigned n = 1; n < 8; n++) {
        CHECK_EQ(sender(n) + sender(n - 1), 8);
    }
    REQUIRE(cq_poll(&tx[7].cq, &cqe));
    CHECK_EQ(le32toh(cqe.byte_len), 4 * 154);
    CHECK(!g->e->eth->tx_busy);
}

/* A queue that goes takes its unfinished frame along, and no other. */
static void destroyed(void)
{
    start();
    for (unsigned i = 0; i < 2; i++) {
        eth_tx_post(&tx[i], mem[i], 100, QHCA_ETH_MORE);
        eth_tx_ring(&tx[i]);
    }
    CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, tx[0].number), QHCA_OK);
    eth_tx_post(&tx[0], mem[0], 242, 0);
    eth_tx_ring(&tx[0]);
    CHECK_EQ(counter(g, QHCA_CNT_BAD_DOORBELL), 1);
    tx[0] = eth_tx_create_at(g, &eq, 0, 6);
    eth_tx_post(&tx[0], mem[0], 242, 0);
    eth_tx_ring(&tx[0]);
    CHECK_EQ(sender(0), 0);
    CHECK_EQ(g->sent[0].len, 242);
    eth_tx_post(&tx[1], mem[1] + 100, 142, 0);
    eth_tx_ring(&tx[1]);
    CHECK_EQ(sender(1), 1);
    CHECK_EQ(g->sent[1].len, 242);
}

/* Destroys queues while they have frames that the network does not take. */
static void destroyed_while_busy(void)
{
    start();
    g->net_blocked = true;
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned n = 0; n < 20; n++) {
            eth_tx_post(&tx[i], mem[i], 242, 0);
        }
        ring(g, 0, QHCA_DB_ETH, tx[i].number, tx[i].pi);
    }
    CHECK(g->e->eth->tx_busy);
    for (unsigned i = 0; i < 4; i += 2) {
        CHECK_EQ(guest_cmd_obj(g, QHCA_CMD_DESTROY_ETHQ, tx[i].number),
                 QHCA_OK);
        snapshot_cycle(g);
    }
    g->net_blocked = false;
    qhca_engine_tx_ready(g->e, *g->clock);
    guest_settle(g);
    CHECK(!g->e->eth->tx_busy);
    for (unsigned n = 0, last = 4; n < g->num_sent; n++) {
        if (sender(n) % 2) {
            CHECK(sender(n) != last);
            last = sender(n);
        }
    }
    CHECK(g->num_sent >= 40);
}

/* A queue whose CQ has failed does not stop the others. */
static void failed_cq(void)
{
    start();
    vhca_cq_get(g->e, tx[0].cq.cqn)->state = QHCA_CQ_ERROR;
    eth_tx_post(&tx[0], mem[0], 242, 0);
    eth_tx_post(&tx[1], mem[1], 242, 0);
    go(3);
    REQUIRE(g->num_sent == 1);
    CHECK_EQ(sender(0), 1);
    CHECK(!g->e->eth->tx_busy);
}

static const struct test tests[] = {
    { "queues take turns", in_turn },
    { "frames in parts", unfinished },
    { "a large frame", large_frame },
    { "destruction", destroyed },
    { "destruction while frames wait", destroyed_while_busy },
    { "a failed CQ", failed_cq },
};

TEST_MAIN(tests)
