/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the order in which the data of a READ leave memory. IBTA says
 * nothing about it. This device reads each packet when it is sent, unless a
 * fault rule asks for disorder: then it reads some pieces of the message early,
 * wherever they are, and all others some time later. A QP answers one READ at a
 * time, so it has one place for them.
 */
#include "responder.h"

#define WAIT_NS     20000u      /* at most; far less than any timeout */

/* Return the place with what has been read early for the QP, or NULL. */
static struct vhca_early *find(const struct qhca_engine *e, uint32_t qpn)
{
    for (unsigned i = 0; i < VHCA_RULE_EARLY; i++) {
        struct vhca_early *g = &e->rules->early[i];

        if (g->num && g->qpn == qpn) {
            return g;
        }
    }
    return NULL;
}

static void early_go_on(struct qhca_engine *e, struct vhca_early *g)
{
    struct vhca_qp *qp = vhca_qp_get(e, g->qpn);

    if (qp && qp->rsp.early_wait) {
        qp->rsp.early_wait = false;
        vhca_qp_schedule(e, qp);
    }
}

static void timeout(struct qhca_engine *e, struct vhca_timer *t)
{
    early_go_on(e, container_of(t, struct vhca_early, timer));
}

/*
 * Draw a piece of the response that begins and ends at multiples of the grain,
 * or where all of it does. The first byte of the response is at @at in memory.
 */
static bool draw_piece(struct vhca_rule *rule,
                       const struct vhca_response *r, uint64_t at,
                       uint32_t *off, uint32_t *len)
{
    uint32_t grain = (uint32_t)rule->grain;
    uint32_t from = (uint32_t)vhca_rule_draw(rule, r->length);
    uint32_t max = MIN_OF(r->length - from, VHCA_EARLY_BYTES);
    uint32_t to = from + 1 + (uint32_t)vhca_rule_draw(rule, max);
    uint32_t before = (uint32_t)((at + from) % grain);
    uint32_t after = (grain - (uint32_t)((at + to) % grain)) % grain;

    *off = from - MIN_OF(from, before);
    *len = to - *off + MIN_OF(r->length - to, after);
    return *len <= VHCA_EARLY_BYTES;
}

/* Read a piece of the response, somewhere. */
static void read_piece(struct qhca_engine *e, const struct vhca_mr *mr,
                       const struct vhca_response *r,
                       struct vhca_early *g)
{
    size_t run = 1;             /* only where it begins matters */
    uint32_t off, len;
    uint64_t at;

    vhca_spend(e, 1);
    if (vhca_mr_run(e, mr, r->va, &run, false, &at) &&
        draw_piece(e->rules->disorder, r, at, &off, &len) &&
        vhca_mr_read(e, mr, r->va + off, g->bytes[g->num], len) ==
        VHCA_MEM_OK) {
        g->off[g->num] = off;
        g->len[g->num++] = len;
    }
}

/* Read some pieces of the response, if its key is valid. */
static void read_pieces(struct qhca_engine *e, struct vhca_qp *qp,
                        const struct vhca_response *r,
                        struct vhca_early *g)
{
    const struct vhca_mr *mr;
    struct vhca_key_user user;

    mr = !vhca_xrc_user(e, qp, r->srqn, &user) ? NULL :
         vhca_mr_find(e, &user, r->rkey, r->va, r->length,
                      QHCA_ACCESS_REMOTE_READ);
    /* A response that may have to wait for a page waits in its turn. */
    if (!mr || (mr->window ? mr->region : mr)->type == QHCA_MR_ODP) {
        return;
    }
    for (unsigned n = 1 + (unsigned)vhca_rule_draw(e->rules->disorder,
                                                    VHCA_EARLY_PIECES);
         n > 0; n--) {
        read_piece(e, mr, r, g);
    }
}

/* Return a place that no response uses, or NULL. */
static struct vhca_early *take_place(struct qhca_engine *e)
{
    for (unsigned i = 0; i < VHCA_RULE_EARLY; i++) {
        unsigned *next = &e->rules->next_early;
        struct vhca_early *g = &e->rules->early[*next];

        *next = (*next + 1) % VHCA_RULE_EARLY;
        if (!g->timer.pos) {
            return g;
        }
    }
    return NULL;
}

bool vhca_early_begin(struct qhca_engine *e, struct vhca_qp *qp,
                       struct vhca_response *r)
{
    struct vhca_rule *rule = e->rules->disorder;
    struct vhca_early *g;

    if (!rule || r->early || r->done || !r->length) {
        return false;
    }
    r->early = true;
    g = find(e, qp->qpn);
    if (g) {
        g->num = 0;             /* that was for another READ */
    }
    g = take_place(e);
    if (!g) {
        return false;
    }
    g->qpn = qp->qpn;
    g->num = 0;
    read_pieces(e, qp, r, g);
    rule->hits++;
    qp->rsp.early_wait = true;
    g->timer.fn = timeout;
    vhca_timer_set(e, &g->timer, e->now + 1 +
                   vhca_rule_draw(rule, MIN_OF(rule->within, WAIT_NS)));
    return true;
}

void vhca_early_use(const struct qhca_engine *e, const struct vhca_qp *qp,
                     const struct vhca_response *r, uint8_t *payload,
                     uint32_t len)
{
    const struct vhca_early *g = r->early ? find(e, qp->qpn) : NULL;

    for (unsigned i = 0; g && i < g->num; i++) {
        uint32_t from = MAX_OF(g->off[i], r->done);
        uint32_t to = MIN_OF(g->off[i] + g->len[i], r->done + len);

        if (from < to) {
            memcpy(payload + (from - r->done), g->bytes[i] + (from - g->off[i]),
                   to - from);
        }
    }
}

void vhca_early_drop(struct qhca_engine *e)
{
    for (unsigned i = 0; e->rules->early && i < VHCA_RULE_EARLY; i++) {
        struct vhca_early *g = &e->rules->early[i];

        g->num = 0;
        if (g->timer.pos) {
            vhca_timer_cancel(e, &g->timer);
            early_go_on(e, g);
        }
    }
}
