/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many senders to one receiver through a switch, as in the DCQCN paper: links
 * of 40 Gbit/s, marks from 5 KB of queue on, up to 1 % at 200 KB.
 */
#include "harness/fixture.h"
#include "harness/switch.h"

#define LINK        40000u      /* Mbit/s */
#define SENDERS     7
#define FLOWS       32
#define MS          1000000ull
#define MESSAGE     (64u << 10)

static struct net_switch sw;
static struct node at[SENDERS + 1];     /* the first receives */
static struct flow {
    struct rc_qp tx, rx;
    uint64_t bytes;             /* completed */
} flow[FLOWS];
static unsigned num_flows;

static void put(struct flow *f)
{
    struct rc_wr wr = rc_wr(&f->tx, QHCA_WR_RDMA_WRITE, 0, MESSAGE);

    rc_aim(&wr, &at[0], 0);
    rc_post(&f->tx, &wr);
}

/* Each flow has something to send all the time. */
static void refill(struct net *n)
{
    struct qhca_cqe cqe;

    (void)n;
    for (unsigned i = 0; i < num_flows; i++) {
        while (cq_poll(&flow[i].tx.scq, &cqe)) {
            REQUIRE(cqe.status == QHCA_WC_SUCCESS);
            flow[i].bytes += MESSAGE;
            put(&flow[i]);
        }
    }
}

static void enable(struct guest *guest, bool on)
{
    uint32_t *value = guest->e->congestion->value;

    value[QHCA_CC_NP_ENABLE] = value[QHCA_CC_RP_ENABLE] = on;
    value[QHCA_CC_RP_MAX_RATE] = LINK;
}

static void add_flow(void)
{
    struct rc_opts o = RC_OPTS;
    struct flow *f = &flow[num_flows];

    o.mtu = 5;
    o.timeout = 14;
    f->bytes = 0;
    f->tx = rc_create(&at[1 + num_flows % SENDERS], &o);
    f->rx = rc_create(&at[0], &o);
    rc_connect(&f->tx, &f->rx);
    num_flows++;
    for (unsigned i = 0; i < 4; i++) {
        put(f);
    }
}

static void start(unsigned flows, bool control)
{
    sw = (struct net_switch) {
        .mbit = LINK, .kmin = 5000, .kmax = 200000, .ppm = 10000,
        .limit = 12000000,
    };
    net = net_new(flows);
    net->switched = &sw;
    net->on_step = refill;
    for (unsigned i = 0; i <= SENDERS; i++) {
        at[i] = node_new(net, i + 1);
        enable(at[i].g, control);
    }
    num_flows = 0;
    while (num_flows < flows) {
        add_flow();
    }
}

/* struct result - what flows did in a while */
struct result {
    double goodput, jain;       /* share of the link; fairness */
    double queue;               /* KB, the mean */
    unsigned deepest;
};

static struct result run(uint64_t ns)
{
    uint64_t before[FLOWS];
    double sum = 0, squares = 0;
    struct result r;

    for (unsigned i = 0; i < num_flows; i++) {
        before[i] = flow[i].bytes;
    }
    sw.deepest = 0;
    sw.area = 0;
    net_advance(net, ns);
    for (unsigned i = 0; i < num_flows; i++) {
        double rate = (double)(flow[i].bytes - before[i]) * 8000 / (double)ns;

        sum += rate;
        squares += rate * rate;
    }
    r.goodput = sum / LINK;
    r.jain = sum * sum / (num_flows * squares);
    r.queue = (double)sw.area / (double)ns / 1000;
    r.deepest = sw.deepest / 1000;
    return r;
}

/*
 * After a start that no algorithm can foresee, the flows share the link, and
 * the queue stays below where a switch would pause them.
 */
static void test_fair(void)
{
    static const unsigned flows[] = { 2, 8 };

    for (unsigned i = 0; i < ARRAY_SIZE(flows); i++) {
        struct result r;

        start(flows[i], true);
        run(15 * MS);
        r = run(15 * MS);
        tap_note("%u flows: %.3f of the link, fairness %.3f, queue %.0f KB, at "
                 "most %u KB", flows[i], r.goodput, r.jain, r.queue, r.deepest);
        CHECK(r.goodput > 0.9 && r.jain > 0.95);
        CHECK(r.queue > 5 && r.queue < 200 && r.deepest < 400);
        CHECK_EQ(sw.lost, 0);
    }
}

/* Without control, windows of all flows stand in the queue all the time. */
static void test_without(void)
{
    struct result r;

    start(8, false);
    run(2 * MS);
    r = run(5 * MS);
    tap_note("%.3f of the link, queue %.0f KB, at most %u KB", r.goodput,
             r.queue, r.deepest);
    CHECK(r.queue > 1500);
    CHECK_EQ(sw.marked, 0);
}

static const struct test tests[] = {
    { "many to one", test_fair },
    { "many to one without control", test_without },
};

TEST_MAIN(tests)
