/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between two QPs of one port, or of two engines that hand each other
 * their frames, for callgrind to count the engines' instructions: messages ROW
 * COUNT. Guest memory costs nothing here, and no payload is copied: nothing
 * depends on the machine's memcpy().
 */
#include <stdio.h>

#include "harness/fixture.h"

static const struct row {
    const char *name;
    uint8_t opcode;
    uint32_t len;
    bool net;
} rows[] = {
    { "write-8", QHCA_WR_RDMA_WRITE, 8, false },
    { "write-64k", QHCA_WR_RDMA_WRITE, 65536, false },
    { "send-8", QHCA_WR_SEND, 8, false },
    { "send-64k", QHCA_WR_SEND, 65536, false },
    { "read-8", QHCA_WR_RDMA_READ, 8, false },
    { "read-64k", QHCA_WR_RDMA_READ, 65536, false },
    { "net-write-8", QHCA_WR_RDMA_WRITE, 8, true },
    { "net-write-64k", QHCA_WR_RDMA_WRITE, 65536, true },
    { "net-send-64k", QHCA_WR_SEND, 65536, true },
    { "net-read-64k", QHCA_WR_RDMA_READ, 65536, true },
};

static struct node b;           /* the peer's, if that is not on node */

#define QUEUE_ENTRY     128     /* no WQE or CQE is larger */

static bool flat_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    struct guest *m = opaque;

    if (len <= QUEUE_ENTRY) {
        memcpy(buf, m->ram + (addr - RAM_BASE), len);
    }
    return true;
}

static bool flat_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
    struct guest *m = opaque;

    if (len <= QUEUE_ENTRY) {
        memcpy(m->ram + (addr - RAM_BASE), buf, len);
    }
    return true;
}

/* As of a process whose pages are anywhere. */
static const void *flat_peek(void *opaque, uint64_t addr, size_t *len)
{
    struct guest *m = opaque;
    size_t page_left = 4096 - addr % 4096;

    *len = *len < page_left ? *len : page_left;
    return m->ram + (addr - RAM_BASE);
}

static void no_trace(void *opaque, enum qhca_trace_point point, uint64_t a,
                     uint64_t b, uint64_t c)
{
    (void)opaque;
    (void)point;
    (void)a;
    (void)b;
    (void)c;
}

/* What harness/bounds.c is around: it knows one engine at a time. */
unsigned __real_qhca_engine_rx_frame(struct qhca_engine *e, uint64_t now,
                                     const uint8_t *frame, size_t len);

/* It arrives before the sender goes on, as on a cable without delay. */
static bool hand_over(void *opaque, const uint8_t *frame, size_t len)
{
    struct guest *to = opaque == g ? b.g : g;

    __real_qhca_engine_rx_frame(to->e, *to->clock, frame, len);
    return true;
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

static void start(struct qhca_engine_ops *ops, bool net)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 5;
    if (net) {
        start_two(&o);
    } else {
        start_pair(&o);
        b = node;
    }
    *ops = *g->e->ops;
    ops->dma_read = flat_read;
    ops->dma_write = flat_write;
    ops->dma_peek = flat_peek;
    ops->send_frame = hand_over;
    ops->trace = no_trace;
    g->e->ops = b.g->e->ops = ops;
}

static void send(const struct row *row)
{
    struct rc_wr wr = rc_wr(&qp, row->opcode, 0, row->len);

    rc_aim(&wr, &b, NODE_MEM / 2);
    if (row->opcode == QHCA_WR_SEND) {
        rc_recv(&peer, 1, NODE_MEM / 2, row->len);
    }
    *g->clock += 100000;
    rc_post(&qp, &wr);
    rc_expect(&qp.scq, wr.wr_id, QHCA_WC_SUCCESS);
    if (row->opcode == QHCA_WR_SEND) {
        rc_expect(&peer.rcq, 1, QHCA_WC_SUCCESS);
    }
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    struct qhca_engine_ops ops;

    for (unsigned i = 0; argc > 1 && i < ARRAY_SIZE(rows); i++) {
        if (!strcmp(argv[1], rows[i].name)) {
            start(&ops, rows[i].net);
            while (count--) {
                send(&rows[i]);
            }
            harness_cleanup();
            return 0;
        }
    }
    fprintf(stderr, "usage: messages ROW COUNT\n");
    return 2;
}
