/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each bound times each other one: the most that one call may do is not more
 * where several of them meet. The test tries all combinations of packets,
 * places, fault rules, numbers of receivers, addresses and shares of the CPU;
 * harness/bounds.c judges each call.
 */
#include <time.h>

#include "harness/budget.h"
#include "harness/flows.h"
#include "harness/keys.h"
#include "harness/odp.h"
#include "harness/snapshot.h"

#define PIECES  (VHCA_MAX_FAST_REG / 2)
#define SGES    QHCA_MAX_RECV_SGE
#define IOVA(i) (0x100000ull * ((i) + 1))
/* CPU time of a call, enough for sanitizers on a busy machine. */
#define LIMIT_NS    500000000u

/* Where received data go. */
enum { FLAT, BYTES, PAGES, NUM_PLACES };
static const char *const places[] = { "one region", "pieces", "pages" };

/* A source of packets, and how many QPs get them. */
struct source {
    const char *what;
    void (*go)(void);
    uint8_t type;
    unsigned receivers;
};

static const char *const rules[] = {
    "", "rx duplicate", "rx reorder", "rx delay=1us", "tx duplicate",
    "port order=adversarial",
};
static const unsigned shares[] = { 0, 1 };

static struct rc_qp many[QHCA_FLOW_MAX], kernel[2], sender;
static struct qhca_seg_le to[NUM_PLACES][SGES];
static struct eth_rx eth;
static uint8_t group[16];
static unsigned place, worst;
static uint64_t worst_ns;

/* ---- the machine ---- */

static void make_places(void)
{
    const size_t len = 2 * SGES * 4096;
    struct odp o = odp_create(g, node.pdn, guest_alloc(g, len, 4096), len);

    odp_set(&o, 0, 2 * SGES, ODP_ALL);
    for (unsigned i = 0; i < SGES; i++) {
        to[FLAT][i] = (struct qhca_seg_le) {
            node.mr.addr + i * 8192, PIECES, node.mr.key,
        };
        to[BYTES][i] = (struct qhca_seg_le) {
            IOVA(i), PIECES, fast_bytes(&kernel[0], IOVA(i), PIECES),
        };
        to[PAGES][i] = (struct qhca_seg_le) {
            o.base + i * 8192 + 4096 - 7, PIECES, o.key,
        };
    }
}

static void make_receivers(const struct source *s)
{
    struct rc_opts o = opts_of(s->type);
    struct qhca_flow r;

    o.sges = SGES;
    o.rq_log = 5;
    o.cq_log = 14;
    o.mtu = 5;
    o.timeout = 0;
    o.qp_flags = KERNEL_QP;
    for (unsigned i = 0; i < s->receivers; i++) {
        many[i] = i ? rc_create_shared(&many[0], &o) : rc_create(&node, &o);
        if (s->type == QHCA_QPT_RC) {
            sender = rc_create(&node, &o);
            rc_connect(&sender, &many[0]);
            continue;
        }
        rc_set_peer(&many[i], &far, 0x77);
        rc_bring_up(&many[i], QHCA_QPS_RTS);
        if (s->type == QHCA_QPT_RAW) {
            r = flow_rule(&many[i]);
            flow_add(g, &r);
        } else if (s->receivers > 1) {
            CHECK_EQ(rc_mcast(&many[i], QHCA_CMD_ATTACH_MCAST, group),
                     QHCA_OK);
        }
    }
    if (s->type != QHCA_QPT_RC) {
        o.sq_log = 4;
        sender = rc_create(&node, &o);
        rc_set_peer(&sender, &far, 0x77);
        rc_bring_up(&sender, QHCA_QPS_RTS);
    }
}

static void start(const struct source *s, bool ipv6)
{
    struct rc_opts o = RC_OPTS;

    start_gid(ipv6, ipv6 ? 7 : QHCA_NO_VLAN);
    memcpy(group, full_group, sizeof(group));
    if (ipv6) {
        memset(group, 0xff, 2);
        group[1] = 0x0e;
    }
    port_enable(g, test_mac, QHCA_PORT_ENABLE, 9000);
    o.qp_flags = KERNEL_QP;
    rc_pair(&node, &o, &kernel[0], &kernel[1]);
    make_places();
    make_receivers(s);
    if (s->type == QHCA_QPT_RAW) {
        eth = eth_rx_create_scatter(g, &node.comp, 0, 6, 512,
                                    QHCA_ETH_MAX_FRAGS);
    }
}

/* ---- what is sent ---- */

static struct rc_wr from_bytes(uint8_t opcode, unsigned regions)
{
    struct rc_wr wr = rc_wr(&sender, opcode, 0, 0);

    wr.num_sge = regions;
    memcpy(wr.sge, to[BYTES], regions * sizeof(wr.sge[0]));
    return wr;
}

static void inject(const uint8_t *gid)
{
    static const uint8_t data[4096];
    struct roce_packet p = peer_packet(&many[0], SVC_UD | RC_SEND_ONLY, 1);

    if (gid) {
        p = peer_to_group(&many[0], 1, gid);
    }
    peer_inject(&many[0], &p, data, sizeof(data));
}

static void multicast(void)
{
    inject(group);
}

static void datagram(void)
{
    inject(NULL);
}

static void multicast_here(void)
{
    struct rc_wr wr = from_bytes(QHCA_WR_SEND, 8);

    memcpy(wr.av.dgid, group, 16);
    vhca_group_mac(group, wr.av.dmac);
    wr.qpn = QHCA_QPN_MCAST;
    rc_post(&sender, &wr);
}

static struct frame to_all(size_t len)
{
    static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 };

    return udp_frame(all, 1, 2, 7, len - 28);
}

static void broadcast(void)
{
    struct frame f = to_all(9000);

    guest_rx(g, f.data, f.len);
}

static void broadcast_here(void)
{
    struct rc_wr wr = from_bytes(QHCA_WR_SEND, 8);
    struct frame f = to_all(PIECES);

    wr.sge[0] = (struct qhca_seg_le) { node.mr.addr, 64, node.mr.key };
    memcpy(guest_ptr(g, node.mr.addr, 64), f.data, 64);
    rc_post(&sender, &wr);
}

static void send_long(void)
{
    struct rc_wr wr = rc_wr(&sender, QHCA_WR_SEND, 0, SGES * PIECES);

    rc_post(&sender, &wr);
}

static void send_bytes(void)
{
    struct rc_wr wr = from_bytes(QHCA_WR_SEND, 8);

    rc_post(&sender, &wr);
}

/* A READ to local memory of the kind under test. */
static void read_to(uint64_t raddr, uint32_t rkey, uint32_t len)
{
    struct rc_wr wr = from_bytes(QHCA_WR_RDMA_READ, 8);

    memcpy(wr.sge, to[place], sizeof(wr.sge));
    for (unsigned i = 8; i-- > 0 && len < (i + 1) * PIECES;) {
        wr.num_sge = i;
    }
    wr.raddr = raddr;
    wr.rkey = rkey;
    rc_post(&sender, &wr);
}

static void read_long(void)
{
    read_to(node.mr.addr, node.mr.key, 8 * PIECES);
}

static void read_bytes(void)
{
    read_to(IOVA(0), to[BYTES][0].lkey, PIECES);
}

/* ---- the calls that follow ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note(uint64_t since)
{
    uint64_t ns = cpu_ns() - since;

    worst = MAX_OF(worst, (unsigned)g->cost.units);
    worst_ns = MAX_OF(worst_ns, ns);
}

/* Calls the engine until it has nothing to do. */
static void drain(void)
{
    for (unsigned calls = 0;; calls++) {
        uint64_t since = cpu_ns();

        REQUIRE(calls < 1000000);
        if (g->host.todo) {
            g->host.todo = 0;
            qhca_engine_run(g->e, *g->clock);
        } else if (g->host.deadline != UINT64_MAX) {
            *g->clock = MAX_OF(g->host.deadline, *g->clock);
            qhca_host_tick(&g->host, *g->clock);
        } else {
            break;
        }
        note(since);
    }
}

static uint64_t received(const struct source *s)
{
    return counter(g, s->type == QHCA_QPT_RAW ? QHCA_CNT_ETH_RX_PKTS :
                                                QHCA_CNT_RX_PKTS);
}

static void limit(unsigned share)
{
    g->e->share.cost = 0;
    limit_cpu(g, share);
    g->limited = false;
}

static void once(const struct source *s, const char *rule, unsigned share)
{
    uint64_t before = received(s), since;
    struct qhca_cqe cqe;
    size_t len;

    for (unsigned i = 0; i < s->receivers; i++) {
        for (unsigned n = 0; n < 2; n++) {
            rc_recv_raw(&many[i], n, SGES, to[place]);
        }
    }
    guest_settle(g);
    guest_set_faults(g, rule);
    guest_advance(g, 20000000000);
    limit(share);
    since = cpu_ns();
    s->go();
    note(since);
    CHECK(snapshot_save(g, &len));
    drain();
    CHECK(snapshot_save(g, &len));
    limit(0);
    guest_set_faults(g, "");
    guest_advance(g, 20000000000);
    drain();
    if (received(s) - before < s->receivers) {
        tap_note("%s, %s, \"%s\", %u percent: %u of %u", s->what, places[place],
                 rule, share, (unsigned)(received(s) - before),
                 s->receivers);
        tap_fail(__FILE__, __LINE__, "it did not reach all");
    }
    while (cq_poll(&many[0].rcq, &cqe) || cq_poll(&sender.scq, &cqe)) {
        CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
    }
    peer_drain(&many[0]);
    if (s->type == QHCA_QPT_RAW) {
        eth_rx_refill(&eth);
    }
}

static void multiply(const struct source *s)
{
    harness_verify(VERIFY_NEVER);
    worst = 0;
    worst_ns = 0;
    for (unsigned i = 0; i < 2; i++) {
        start(s, i);
        for (place = 0; place < NUM_PLACES; place++) {
            for (unsigned r = 0; r < ARRAY_SIZE(rules); r++) {
                for (unsigned k = 0; k < ARRAY_SIZE(shares); k++) {
                    once(s, rules[r], shares[k]);
                }
            }
        }
    }
    tap_note("%s: %u units, %u us of CPU time in one call", s->what, worst,
             (unsigned)(worst_ns / 1000));
    CHECK(worst_ns < LIMIT_NS);
    harness_verify(VERIFY_SOMETIMES);
}

#define SOURCE(name, text, type, num) \
    static void product_##name(void) \
    { \
        multiply(&(struct source) { text, name, type, num }); \
    }

SOURCE(multicast, "a datagram to a group", QHCA_QPT_UD, VHCA_MAX_MCAST_QP)
SOURCE(multicast_here, "one of the port", QHCA_QPT_UD, VHCA_MAX_MCAST_QP)
SOURCE(datagram, "a datagram to one", QHCA_QPT_UD, 1)
SOURCE(broadcast, "a frame for all rules", QHCA_QPT_RAW, QHCA_FLOW_MAX)
SOURCE(broadcast_here, "one of the port", QHCA_QPT_RAW, QHCA_FLOW_MAX)
SOURCE(send_long, "a long message", QHCA_QPT_RC, 1)
SOURCE(send_bytes, "a message of pieces", QHCA_QPT_RC, 1)
SOURCE(read_long, "a long READ", QHCA_QPT_RC, 1)
SOURCE(read_bytes, "a READ of pieces", QHCA_QPT_RC, 1)

static const struct test tests[] = {
    { "bounds times each other: a datagram to a group", product_multicast },
    { "bounds times each other: one of the port itself",
      product_multicast_here },
    { "bounds times each other: a datagram to one", product_datagram },
    { "bounds times each other: a frame for all rules", product_broadcast },
    { "bounds times each other: one of the port itself",
      product_broadcast_here },
    { "bounds times each other: a long message", product_send_long },
    { "bounds times each other: a message of pieces", product_send_bytes },
    { "bounds times each other: a long READ", product_read_long },
    { "bounds times each other: a READ of pieces", product_read_bytes },
};

TEST_MAIN(tests)
