/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between QPs of one port, or of two engines that hand each other
 * their frames, for callgrind to count the engines' instructions and cache
 * lines: messages ROW COUNT. Guest memory costs nothing here and no payload is
 * copied, so the result does not depend on the machine's memcpy().
 */
#include <stdio.h>

#include "harness/fixture.h"

enum { PORT, NET, MANY };

/* struct row - messages between two QPs, of one port or two, or many QPs */
static const struct row {
    const char *name;
    uint8_t opcode;
    uint32_t len;
    uint8_t where;
} rows[] = {
    { "write-8", QHCA_WR_RDMA_WRITE, 8, PORT },
    { "write-64k", QHCA_WR_RDMA_WRITE, 65536, PORT },
    { "send-8", QHCA_WR_SEND, 8, PORT },
    { "send-64k", QHCA_WR_SEND, 65536, PORT },
    { "read-8", QHCA_WR_RDMA_READ, 8, PORT },
    { "read-64k", QHCA_WR_RDMA_READ, 65536, PORT },
    { "net-write-8", QHCA_WR_RDMA_WRITE, 8, NET },
    { "net-write-64k", QHCA_WR_RDMA_WRITE, 65536, NET },
    { "net-send-64k", QHCA_WR_SEND, 65536, NET },
    { "net-read-64k", QHCA_WR_RDMA_READ, 65536, NET },
    { "many-qps", QHCA_WR_RDMA_WRITE, 8, MANY },
};

static struct node b;           /* the peer's machine, unless it is @node */

#define NUM_MANY        1000u
#define SOURCE          0u
#define TARGET          (NODE_MEM / 2)
#define QUEUE_ENTRY     128     /* no WQE or CQE is larger */

static struct rc_qp many[NUM_MANY];     /* pairs that use the CQs of @qp */

static bool flat_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct guest *m = opaque;

    if (len <= QUEUE_ENTRY) {
        memcpy(buf, m->ram + (addr - RAM_BASE), len);
    }
    return true;
}

/* Marks that the data has arrived: the peer can go on from here. */
static __attribute__((noinline)) void landed(void)
{
    __asm__ volatile("");
}

static bool flat_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    struct guest *m = opaque;

    if (addr == node.mr.addr + SOURCE || addr == node.mr.addr + TARGET) {
        landed();
    }
    if (len <= QUEUE_ENTRY) {
        memcpy(m->ram + (addr - RAM_BASE), buf, len);
    }
    return true;
}

/* One page at a time, as if the pages of a process were scattered. */
static const void *flat_peek(void *opaque, uint64_t addr, size_t *len)
{
    struct guest *m = opaque;
    size_t page_left = 4096 - addr % 4096;

    *len = *len < page_left ? *len : page_left;
    return m->ram + (addr - RAM_BASE);
}

/* Without the wrapper in harness/bounds.c, which knows one engine at a time. */
unsigned __real_qhca_engine_rx_frame(struct qhca_engine *e, uint64_t now,
                                     const uint8_t *frame, size_t len);

/* Frames back to the sender, whose engine is still in the call that sends. */
static struct {
    size_t len;
    uint8_t frame[ROCE_MAX_FRAME];
} back[64];
static unsigned num_back;

/* Delivers a frame before the sender goes on, like a cable without delay. */
static bool hand_over(void *opaque, const uint8_t *frame, size_t len)
{
    if (opaque == g) {
        __real_qhca_engine_rx_frame(b.g->e, *b.g->clock, frame, len);
    } else {
        REQUIRE(num_back < ARRAY_SIZE(back) && len <= ROCE_MAX_FRAME);
        memcpy(back[num_back].frame, frame, len);
        back[num_back++].len = len;
    }
    return true;
}

static __attribute__((noinline)) void come_back(void)
{
    for (unsigned i = 0; i < num_back; i++) {
        __real_qhca_engine_rx_frame(g->e, *g->clock, back[i].frame,
                                    back[i].len);
    }
    num_back = 0;
}

static void start_two(const struct rc_opts *o)
{
    start_node();
    b = node_new(NULL, 2);
    b.g->clock = g->clock;
    qp = rc_create(&node, o);
    peer = rc_create(&b, o);
    rc_connect(&qp, &peer);
}

static void start_many(const struct rc_opts *o)
{
    start_pair(o);
    for (unsigned i = 0; i < NUM_MANY; i += 2) {
        many[i] = rc_create_shared(&qp, o);
        many[i + 1] = rc_create_shared(&qp, o);
        rc_connect(&many[i], &many[i + 1]);
    }
}

static void start(struct qhca_engine_ops *ops, unsigned where)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 5;
    if (where == NET) {
        start_two(&o);
    } else if (where == MANY) {
        start_many(&o);
        b = node;
    } else {
        start_pair(&o);
        b = node;
    }
    *ops = *g->e->ops;
    ops->dma_read = flat_read;
    ops->dma_write = ops->dma_write_entry = flat_write;
    ops->dma_peek = flat_peek;
    ops->send_frame = hand_over;
    ops->trace = NULL;
    ops->neighbour = NULL;      /* as in QEMU */
    g->e->ops = b.g->e->ops = ops;
}

/* Posts a WR to @from, and a receive WR to the peer if the opcode needs it. */
static void send(const struct row *row, struct rc_qp *from)
{
    struct rc_wr wr = rc_wr(from, row->opcode, SOURCE, row->len);

    rc_aim(&wr, &b, TARGET);
    if (row->opcode == QHCA_WR_SEND) {
        rc_recv(&peer, 1, TARGET, row->len);
    }
    *g->clock += 100000;
    rc_post(from, &wr);
    come_back();
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    if (row->opcode == QHCA_WR_SEND) {
        rc_expect(&peer.rcq, 1, QHCA_WC_SUCCESS);
    }
}

/* With MANY, QPs take turns; two rounds warm up before callgrind counts. */
static void run(const struct row *row, unsigned count)
{
    bool turns = row->where == MANY;

    count += turns ? 2 * NUM_MANY : 0;
    for (unsigned i = 0; i < count; i++) {
        send(row, turns ? &many[i % NUM_MANY] : &qp);
    }
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    struct qhca_engine_ops ops;

    setenv("QHCA_TEST_DBREC", "1", 1);  /* receive queues as the drivers' */
    for (unsigned i = 0; argc > 1 && i < ARRAY_SIZE(rows); i++) {
        if (!strcmp(argv[1], rows[i].name)) {
            start(&ops, rows[i].where);
            run(&rows[i], count);
            harness_cleanup();
            return 0;
        }
    }
    fprintf(stderr, "usage: messages ROW COUNT\n");
    return 2;
}
