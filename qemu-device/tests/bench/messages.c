/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between two QPs of one port, for callgrind to count the engine's
 * instructions: messages ROW COUNT. Guest memory costs nothing here, and no
 * payload is copied: nothing depends on the machine's memcpy().
 */
#include <stdio.h>

#include "harness/fixture.h"

static const struct row {
    const char *name;
    uint8_t opcode;
    uint32_t len;
} rows[] = {
    { "write-8", QHCA_WR_RDMA_WRITE, 8 },
    { "write-64k", QHCA_WR_RDMA_WRITE, 65536 },
    { "send-8", QHCA_WR_SEND, 8 },
    { "send-64k", QHCA_WR_SEND, 65536 },
    { "read-8", QHCA_WR_RDMA_READ, 8 },
    { "read-64k", QHCA_WR_RDMA_READ, 65536 },
};

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

static void start(struct qhca_engine_ops *ops)
{
    struct rc_opts o = RC_OPTS;

    o.mtu = 5;
    start_pair(&o);
    *ops = *g->e->ops;
    ops->dma_read = flat_read;
    ops->dma_write = flat_write;
    ops->dma_peek = flat_peek;
    ops->trace = no_trace;
    g->e->ops = ops;
}

static void send(const struct row *row)
{
    struct rc_wr wr = rc_wr(&qp, row->opcode, 0, row->len);

    rc_aim(&wr, &node, NODE_MEM / 2);
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
            start(&ops);
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
