/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: a machine with an HCA, by means of the engine's tests. */
#include "adapter.h"
#include "harness/rc.h"

#include <ctype.h>

#define START       1000000u    /* the clock of machines without a watcher */
#define BLOCK_SHIFT 16          /* of memory that stands for a whole region */
#define BLOCK       (1u << BLOCK_SHIFT)
#define SEED        1           /* of what messages carry */

struct adapter {
    const struct adapter_config *cfg;
    const struct adapter_ops *ops;
    void *opaque;
    struct node node;
    struct gmr from, to;
    uint64_t to_block;
    struct rc_qp *flow;
    struct adapter_end *other;
    unsigned num_flows, max_flows;
    uint32_t *by_qpn;           /* indices of flows, in order of QP numbers */
    uint64_t looked;            /* entries there were when all were empty */
};

static uint64_t clock_now = START;

static struct guest *enter(const struct adapter *a, uint64_t now)
{
    clock_now = START + now;
    return a->node.g;
}

static bool uplink(struct guest *g, const uint8_t *frame, size_t len)
{
    struct adapter *a = g->opaque;

    return a->ops->send(a->opaque, frame, len);
}

/*
 * In place of roce_icrc(): a frame that travels without its payload has none.
 */
static bool hollow;

uint32_t __real_roce_icrc(const uint8_t *ip, bool ipv4, size_t len);
uint32_t __wrap_roce_icrc(const uint8_t *ip, bool ipv4, size_t len);

uint32_t __wrap_roce_icrc(const uint8_t *ip, bool ipv4, size_t len)
{
    return hollow && ETH_LEN + len + ICRC_LEN > ADAPTER_SAMPLE ?
           0 : __real_roce_icrc(ip, ipv4, len);
}

/*
 * A region all of whose blocks are the same memory, so that a cluster's data
 * need no more memory than its adapters.
 */
static struct gmr folded(struct node *n, uint64_t block, uint32_t len)
{
    uint64_t page = guest_alloc(n->g, QHCA_PAGE_SIZE, QHCA_PAGE_SIZE);
    uint64_t *entry = guest_ptr(n->g, page, QHCA_PAGE_SIZE);
    uint32_t blocks = (len + BLOCK - 1) >> BLOCK_SHIFT;
    const struct qhca_buf buf = {
        .addr = htole64(page), .num_blocks = htole32(blocks),
        .block_shift = BLOCK_SHIFT, .depth = 1,
    };

    REQUIRE(blocks <= QHCA_TABLE_ENTRIES);
    for (uint32_t i = 0; i < blocks; i++) {
        entry[i] = htole64(block);
    }
    return mr_register(n->g, n->pdn, &buf, block, len,
                       QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE);
}

/* Set what @text names. Returns where it is wrong, or NULL. */
static const char *choose(struct qhca_congestion *c, const char *text)
{
    static const struct {
        const char *name;
        unsigned min, max;
    } known[] = {
#define QHCA_CC(id, name, min, max, initial) { name, min, max },
#include "qhca/congestion.def"
    };
    unsigned long value;
    size_t len, i;
    char *end;

    for (; *text; text = end + (*end == ',' && end[1])) {
        len = strcspn(text, "=");
        for (i = 0; i < ARRAY_SIZE(known); i++) {
            if (strlen(known[i].name) == len &&
                !memcmp(known[i].name, text, len)) {
                break;
            }
        }
        if (i == ARRAY_SIZE(known) || !isdigit((unsigned char)text[len + 1])) {
            return text;
        }
        value = strtoul(text + len + 1, &end, 10);
        if (value < known[i].min || value > known[i].max ||
            (*end && (*end != ',' || !end[1]))) {
            return text;
        }
        c->value[i] = htole32((uint32_t)value);
    }
    return NULL;
}

const char *adapter_wrong(const char *congestion)
{
    struct qhca_congestion c;

    return choose(&c, congestion);
}

static void control(struct guest *g, const struct adapter_config *cfg)
{
    struct qhca_congestion c = congestion_get(g);

    c.value[QHCA_CC_NP_ENABLE] = c.value[QHCA_CC_RP_ENABLE] = htole32(1);
    c.value[QHCA_CC_RP_MAX_RATE] = htole32(cfg->mbit);
    REQUIRE(!choose(&c, cfg->congestion));
    REQUIRE(congestion_set(g, &c) == QHCA_OK);
}

struct adapter *adapter_new(const struct adapter_config *cfg, unsigned host,
                            unsigned flows, const struct adapter_ops *ops,
                            void *opaque)
{
    struct adapter *a = calloc(1, sizeof(*a));
    struct guest *g = guest_new_seed(cfg->seed << 24 | host);
    uint64_t block;

    REQUIRE(a);
    a->cfg = cfg;
    a->ops = ops;
    a->opaque = opaque;
    a->max_flows = flows;
    a->flow = calloc(flows + 1, sizeof(*a->flow));
    a->other = calloc(flows + 1, sizeof(*a->other));
    a->by_qpn = calloc(flows + 1, sizeof(*a->by_qpn));
    REQUIRE(a->flow && a->other && a->by_qpn);
    g->clock = &clock_now;
    g->uplink = uplink;
    g->opaque = a;
    guest_enable(g, 5);
    a->node = node_on(g, host + 1);
    block = guest_alloc(g, BLOCK, BLOCK);
    if (flows) {
        guest_fill(g, block, BLOCK, SEED);
    }
    a->to_block = guest_alloc(g, BLOCK, BLOCK);
    if (cfg->hollow) {
        hollow = true;
        g->hollow_from = block;
        g->hollow_to = a->to_block + BLOCK;
    }
    a->from = folded(&a->node, block, cfg->message);
    a->to = folded(&a->node, a->to_block, cfg->message);
    if (cfg->dcqcn) {
        control(g, cfg);
    }
    return a;
}

void adapter_free(struct adapter *a)
{
    guest_free(a->node.g);
    free(a->flow);
    free(a->other);
    free(a->by_qpn);
    free(a);
}

/* ---- flows ---- */

static unsigned log_of(unsigned n)
{
    unsigned log = 0;

    while (1u << log < n) {
        log++;
    }
    return log;
}

static struct rc_opts options(const struct adapter *a)
{
    const struct adapter_config *cfg = a->cfg;
    struct rc_opts o = RC_OPTS;

    o.sges = 1;
    o.max_inline = 0;
    o.sq_log = o.rq_log = log_of(cfg->window);
    o.cq_log = log_of(cfg->window * (a->max_flows + 1));
    o.mtu = (uint8_t)cfg->mtu;
    o.timeout = (uint8_t)cfg->timeout;
    o.retry = (uint8_t)cfg->retries;
    return o;
}

static void receive(struct rc_qp *q)
{
    rc_recv_raw(q, 0, 0, NULL);
}

unsigned adapter_open(struct adapter *a, struct adapter_end *end)
{
    struct rc_opts o = options(a);
    unsigned flow = a->num_flows++, at = flow;
    struct rc_qp *q = &a->flow[flow];

    enter(a, clock_now - START);
    REQUIRE(flow < a->max_flows);
    *q = flow ? rc_create_shared(&a->flow[0], &o) : rc_create(&a->node, &o);
    *end = (struct adapter_end) { q->qpn, a->to.key, a->to.addr };
    for (; at > 0 && a->flow[a->by_qpn[at - 1]].qpn > q->qpn; at--) {
        a->by_qpn[at] = a->by_qpn[at - 1];
    }
    a->by_qpn[at] = flow;
    return flow;
}

void adapter_connect(struct adapter *a, unsigned flow, unsigned host,
                     const struct adapter_end *other, bool sends)
{
    const struct node far = { .host = host + 1 };
    struct rc_qp *q = &a->flow[flow];
    uint32_t psn = q->o.sq_psn;

    a->other[flow] = *other;
    rc_set_peer(q, &far, other->qpn);
    if (!sends) {
        q->o.sq_psn = q->o.rq_psn;
        q->o.rq_psn = psn;
    }
    rc_bring_up(q, QHCA_QPS_RTS);
    for (unsigned i = 0; !sends && i < a->cfg->window; i++) {
        receive(q);
    }
    guest_settle(a->node.g);
}

static unsigned flow_of(const struct adapter *a, uint32_t qpn)
{
    unsigned first = 0, end = a->num_flows;

    while (end - first > 1) {
        unsigned middle = (first + end) / 2;

        if (a->flow[a->by_qpn[middle]].qpn <= qpn) {
            first = middle;
        } else {
            end = middle;
        }
    }
    REQUIRE(a->flow[a->by_qpn[first]].qpn == qpn);
    return a->by_qpn[first];
}

/* ---- events ---- */

void adapter_write(struct adapter *a, uint64_t now, unsigned flow,
                   uint32_t bytes)
{
    struct guest *g = enter(a, now);
    struct rc_qp *q = &a->flow[flow];
    struct rc_wr wr = {
        .opcode = QHCA_WR_RDMA_WRITE_WITH_IMM, .flags = QHCA_WQE_SIGNALED,
        .num_sge = 1, .sge = { { a->from.addr, bytes, a->from.key } },
        .raddr = a->other[flow].addr, .rkey = a->other[flow].rkey,
    };

    rc_post(q, &wr);
    guest_settle(g);
}

void adapter_receive(struct adapter *a, uint64_t now, const uint8_t *frame,
                     size_t len)
{
    struct guest *g = enter(a, now);

    qhca_engine_rx_frame(g->e, clock_now, frame, len);
    guest_settle(g);
}

void adapter_ready(struct adapter *a, uint64_t now)
{
    struct guest *g = enter(a, now);

    qhca_engine_tx_ready(g->e, clock_now);
    guest_settle(g);
}

uint64_t adapter_deadline(const struct adapter *a)
{
    uint64_t at = a->node.g->host.deadline;

    return at == UINT64_MAX || at < START ? at : at - START;
}

void adapter_tick(struct adapter *a, uint64_t now)
{
    struct guest *g = enter(a, now);

    qhca_host_tick(&g->host, clock_now);
    guest_settle(g);
}

bool adapter_poll(struct adapter *a, uint64_t now, struct adapter_done *done)
{
    struct guest *g = enter(a, now);
    struct qhca_cqe cqe;

    if (!a->num_flows || a->looked == g->entries) {
        return false;
    }
    done->received = cq_poll(&a->flow[0].rcq, &cqe);
    if (!done->received && !cq_poll(&a->flow[0].scq, &cqe)) {
        a->looked = g->entries;
        return false;
    }
    done->flow = flow_of(a, le32toh(cqe.qpn));
    done->status = cqe.status;
    if (done->received && cqe.status == QHCA_WC_SUCCESS) {
        receive(&a->flow[done->flow]);
        guest_settle(g);
    }
    return true;
}

/* ---- questions ---- */

bool adapter_intact(const struct adapter *a, uint32_t bytes)
{
    const uint8_t *p = guest_ptr(a->node.g, a->to_block, BLOCK);
    uint32_t step = 128u << a->cfg->mtu;        /* of a packet */

    for (uint32_t i = 0; i < MIN_OF(bytes, BLOCK); i++) {
        if (p[i] != guest_pattern(i, SEED) &&
            (!a->cfg->hollow || i % step < HOLLOW_LEN)) {
            return false;
        }
    }
    return true;
}

uint64_t adapter_counter(const struct adapter *a, const char *name)
{
    for (unsigned i = 0; i < QHCA_CNT_MAX; i++) {
        if (!strcmp(qhca_counter_name(i), name)) {
            return counter(a->node.g, i);
        }
    }
    return UINT64_MAX;
}

void adapter_mark(uint8_t *frame)
{
    roce_set_ecn(frame + ETH_LEN, true, IP_ECN_CE);
}

unsigned adapter_failures(void)
{
    return tap_failures();
}
