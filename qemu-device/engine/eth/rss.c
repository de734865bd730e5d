/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: how received frames are spread over the Ethernet queues. */
#include "eth.h"
#include "../wire/wire.h"

bool vhca_rss_ok(const struct qhca_engine *e, const struct vhca_rss *rss,
                 unsigned n)
{
    for (unsigned i = 0; i < QHCA_RSS_ENTRIES; i++) {
        if (rss->queue[i] >= e->cfg.eth_queues ||
            (!n && !vhca_ethq_at(e, rss->queue[i], QHCA_ETH_RX)->used)) {
            return false;
        }
    }
    return true;
}

bool vhca_rss_uses(const struct qhca_engine *e, const struct vhca_ethq *q)
{
    const struct vhca_rss *rss = &e->eth->rss[0];
    unsigned i = (q->number - 1) / 2;

    return rss->types && q == vhca_ethq_at(e, i, QHCA_ETH_RX) &&
           memchr(rss->queue, (int)i, sizeof(rss->queue));
}

struct vhca_rss *vhca_rss_get(struct qhca_engine *e, uint32_t n)
{
    struct vhca_rss *rss = n <= QHCA_RSS_CONTEXTS ? &e->eth->rss[n] : NULL;

    return rss && (!n || rss->types) ? rss : NULL;
}

/* Return the index of the queue: @to gives it directly, or by a context. */
static unsigned spread(const struct vhca_rss *rss, const uint8_t *frame,
                       size_t len, struct vhca_eth_to to, struct qhca_cqe *cqe)
{
    unsigned type = 0;
    uint32_t hash = 0;

    if (rss->types) {
        type = vhca_frame_hash(rss->key, rss->types, frame, len, &hash);
    }
    if (!type) {
        return to.direct ? to.target : to.target ? rss->queue[0] : 0;
    }
    cqe->hash = htole32(hash);
    cqe->flags |= htole16(QHCA_CQE_HASH);
    if (type & ~(QHCA_RSS_IPV4 | QHCA_RSS_IPV6)) {
        cqe->flags |= htole16(QHCA_CQE_HASH_L4);
    }
    return to.direct ? to.target : rss->queue[hash % QHCA_RSS_ENTRIES];
}

struct vhca_ethq *vhca_rss_choose(struct qhca_engine *e, const uint8_t *frame,
                                  size_t len, struct vhca_eth_to to,
                                  struct qhca_cqe *cqe)
{
    const struct vhca_rss *rss = &e->eth->rss[to.direct ? 0 : to.target];

    return vhca_ethq_at(e, spread(rss, frame, len, to, cqe), QHCA_ETH_RX);
}

int vhca_do_set_rss(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    uint32_t types = le32toh(c->cmd->set_rss.types);
    uint32_t n = le32toh(c->cmd->set_rss.context);
    struct vhca_rss rss = { .types = (uint8_t)types };
    struct qhca_rss r;

    if (e->cfg.eth_queues == 1) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (types & ~VHCA_RSS_TYPES) {
        return QHCA_ERR_PARAM;
    }
    if (n > QHCA_RSS_CONTEXTS) {
        return QHCA_ERR_LIMIT;
    }
    if (types) {
        memcpy(&r, c->mbox, sizeof(r));
        memcpy(rss.key, r.key, sizeof(rss.key));
        memcpy(rss.queue, r.queue, sizeof(rss.queue));
        if (!vhca_rss_ok(e, &rss, n)) {
            return QHCA_ERR_OBJ;
        }
    } else if (n && e->eth->rss[n].users) {
        return QHCA_ERR_BUSY;
    }
    rss.users = e->eth->rss[n].users;
    e->eth->rss[n] = rss;
    return QHCA_OK;
}
