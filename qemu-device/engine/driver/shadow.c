/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: doorbells in memory: looking for them, taking them.
 *
 * A process can write to the memory of its page whatever and whenever it likes.
 * So the engine takes each word once and judges it as any doorbell, and pages
 * take turns, with a unit of work for each doorbell.
 */
#include <stdlib.h>

#include "driver.h"

/* ---- memory ---- */

static bool read_word(struct qhca_engine *e, const struct vhca_shadow *s,
                      size_t off, uint64_t *word)
{
    uint64_t raw;

    vhca_spend(e, 1);
    if (!vhca_mem_read(e, &s->mem, off, &raw, sizeof(raw))) {
        return false;
    }
    *word = le64toh(raw);
    return true;
}

/*
 * Read a word of bits and clear it, even while the guest sets bits: a bit that
 * stays would be found once more, perhaps when its queue begins anew. A guest
 * can prevent this only by clearing bits as well.
 */
static uint64_t take_bits(struct qhca_engine *e, const struct vhca_shadow *s,
                          size_t off)
{
    uint64_t at = vhca_mem_addr(&s->mem, off), bits, old;
    unsigned tries = 64;

    if (!read_word(e, s, off, &old)) {
        return 0;
    }
    do {
        bits = old;
        if (!bits) {
            break;
        }
        vhca_spend(e, 1);
        if (!vhca_dma_counted(e, e->ops->atomic_cas(e->opaque, at, bits, 0,
                                                    &old))) {
            return 0;
        }
    } while (old != bits && tries-- > 0);
    return bits;
}

static void write_ask(struct qhca_engine *e, struct vhca_shadow *s, bool ask)
{
    uint32_t word = htole32(ask);

    s->asks = ask;
    s->asked = false;
    vhca_spend(e, 1);
    vhca_mem_write(e, &s->mem, offsetof(struct qhca_shadow, ask), &word,
                   sizeof(word));
}

/* ---- looking ---- */

static void make_busy(struct qhca_engine *e, struct vhca_shadow *s)
{
    if (vhca_list_empty(&s->busy)) {
        vhca_list_add_tail(&e->shadows->busy, &s->busy);
    }
}

/* Learn which words have bits. Returns whether there are any. */
static bool look(struct qhca_engine *e, struct vhca_shadow *s)
{
    s->left |= take_bits(e, s, offsetof(struct qhca_shadow, look)) &
               UINT64_MAX >> (64 - vhca_shadow_words(s));
    if (s->left) {
        make_busy(e, s);
    }
    return s->left;
}

/* Let the guest ask, and find what it wrote before it could know. */
static void cool(struct qhca_engine *e, struct vhca_shadow *s)
{
    uint64_t at = vhca_mem_addr(&s->mem, offsetof(struct qhca_shadow, look));
    uint64_t old;

    if (!s->asks) {
        write_ask(e, s, true);
        vhca_spend(e, 1);
        e->ops->atomic_cas(e->opaque, at, 0, 0, &old);      /* full barrier */
    }
    look(e, s);
}

static void heat(struct qhca_engine *e, struct vhca_shadow *s)
{
    struct vhca_shadows *d = e->shadows;
    struct vhca_shadow *oldest;

    if (!vhca_list_empty(&s->hot)) {
        return;
    }
    if (d->num_hot == VHCA_MAX_HOT) {
        oldest = container_of(d->hot.next, struct vhca_shadow, hot);
        vhca_list_del(&oldest->hot);
        oldest->asked = false;          /* it has to do so again */
        cool(e, oldest);
    } else {
        d->num_hot++;
    }
    vhca_list_add_tail(&d->hot, &s->hot);
}

bool vhca_shadow_look(struct qhca_engine *e)
{
    struct vhca_list *node;
    bool found = false;

    if (!vhca_running(e) || !vhca_has_time(e, e->now)) {
        return false;
    }
    vhca_list_each(&e->shadows->hot, node) {
        struct vhca_shadow *s = container_of(node, struct vhca_shadow, hot);

        if (look(e, s) || s->asked) {
            found = true;
            if (s->asks) {
                write_ask(e, s, false);
            }
        }
    }
    return found;
}

bool vhca_shadow_rest(struct qhca_engine *e)
{
    struct vhca_list *node;

    if (vhca_running(e)) {
        vhca_list_each(&e->shadows->hot, node) {
            cool(e, container_of(node, struct vhca_shadow, hot));
        }
    }
    return !vhca_running(e) || vhca_list_empty(&e->shadows->busy) ||
           !vhca_has_time(e, e->now);
}

bool vhca_shadow_doorbell(struct qhca_engine *e, const struct vhca_db *db)
{
    struct vhca_shadow *s = vhca_shadow_get(e, db->page);

    if (!s || db->obj) {
        return false;
    }
    heat(e, s);
    s->asked = s->asks;
    make_busy(e, s);
    return true;
}

void vhca_shadow_owe(struct qhca_engine *e)
{
    struct vhca_list *node;

    vhca_list_each(&e->shadows->hot, node) {
        look(e, container_of(node, struct vhca_shadow, hot));
    }
    /* Others have been looked at when they cooled. */
    vhca_list_each(&e->shadows->busy, node) {
        struct vhca_shadow *s = container_of(node, struct vhca_shadow, busy);

        e->shadows->owing -= s->owed != 0;
        s->owed = s->left;
        e->shadows->owing += s->owed != 0;
    }
}

/* ---- taking ---- */

/* Take the doorbells of a word of bits. */
static unsigned take_word(struct qhca_engine *e, const struct vhca_shadow *s,
                          unsigned word, uint64_t val[64])
{
    uint64_t bits = take_bits(e, s, offsetof(struct qhca_shadow, rung) +
                                    word * sizeof(uint64_t));
    unsigned slot, n = 0;

    for (; bits; bits &= bits - 1) {
        slot = word * 64 + (unsigned)__builtin_ctzll(bits);
        n += slot < s->slots &&
             read_word(e, s, offsetof(struct qhca_shadow, slot) +
                             slot * sizeof(uint64_t), &val[n]);
    }
    return n;
}

unsigned vhca_shadow_take(struct qhca_engine *e, uint32_t *page,
                          uint64_t val[64])
{
    struct vhca_shadows *d = e->shadows;
    struct vhca_shadow *s = container_of(d->busy.next, struct vhca_shadow,
                                         busy);
    unsigned word;

    *page = s->page;
    vhca_list_del(&s->busy);
    if (!s->left && !look(e, s)) {
        return 0;
    }
    word = (unsigned)__builtin_ctzll(s->left);
    s->left &= s->left - 1;
    if (s->owed >> word & 1) {
        s->owed &= ~(UINT64_C(1) << word);
        d->owing -= !s->owed;
    }
    make_busy(e, s);
    return take_word(e, s, word, val);
}

/* ---- life ---- */

struct vhca_shadow *vhca_shadow_get(const struct qhca_engine *e, uint32_t page)
{
    return e->shadows->page && page < e->cfg.num_uars ?
           e->shadows->page[page] : NULL;
}

struct vhca_shadow *vhca_shadow_new(struct qhca_engine *e, uint32_t page,
                                    uint32_t slots)
{
    struct vhca_shadow *s = calloc(1, sizeof(*s));

    if (s) {
        s->page = page;
        s->slots = slots;
        vhca_list_init(&s->hot);
        vhca_list_init(&s->busy);
        e->shadows->page[page] = s;
    }
    return s;
}

static void shadow_free(struct qhca_engine *e, uint32_t page)
{
    struct vhca_shadow *s = vhca_shadow_get(e, page);

    if (!s) {
        return;
    }
    e->shadows->num_hot -= !vhca_list_empty(&s->hot);
    e->shadows->owing -= s->owed != 0;
    vhca_list_del(&s->hot);
    vhca_list_del(&s->busy);
    vhca_mem_release(e, &s->mem);
    e->shadows->page[page] = NULL;
    free(s);
}

uint64_t vhca_shadow_bytes(uint32_t slots)
{
    return sizeof(struct qhca_shadow) + slots * sizeof(__le64);
}

int vhca_do_create_shadow(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_cmd_create_shadow *r = &c->cmd->create_shadow;
    uint32_t page = le32toh(r->uar), slots = le32toh(r->slots);
    struct vhca_shadow *s;
    int status;

    if (!e->shadows->page) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (page >= e->cfg.num_uars || !slots) {
        return QHCA_ERR_PARAM;
    }
    if (slots > QHCA_SHADOW_SLOTS_MAX) {
        return QHCA_ERR_LIMIT;
    }
    if (vhca_shadow_get(e, page)) {
        return QHCA_ERR_BUSY;
    }
    status = vhca_import(e, &c->import[0], &r->buf,
                         vhca_shadow_bytes(slots));
    if (status != QHCA_OK) {
        return status;
    }
    s = vhca_shadow_new(e, page, slots);
    if (!s) {
        return QHCA_ERR_NO_RESOURCE;
    }
    s->mem = vhca_import_take(&c->import[0]);
    write_ask(e, s, true);
    return QHCA_OK;
}

int vhca_do_destroy_shadow(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    uint32_t page = le32toh(c->cmd->obj.obj);

    if (!e->shadows->page) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (!vhca_shadow_get(e, page)) {
        return QHCA_ERR_OBJ;
    }
    shadow_free(e, page);
    return QHCA_OK;
}

static bool shadow_init(struct qhca_engine *e)
{
    struct vhca_shadows *d = e->shadows;

    vhca_list_init(&d->hot);
    vhca_list_init(&d->busy);
    if (e->cfg.shadow) {
        d->page = calloc(e->cfg.num_uars, sizeof(struct vhca_shadow *));
    }
    return d->page || !e->cfg.shadow;
}

static void driver_reset(struct qhca_engine *e)
{
    for (uint32_t i = 0; i < e->cfg.num_uars; i++) {
        shadow_free(e, i);
    }
    vhca_cmdq_reset(e);
}

static void shadow_fini(struct qhca_engine *e)
{
    free(e->shadows->page);
}

uint32_t vhca_shadow_count(const struct qhca_engine *e)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->cfg.num_uars; i++) {
        n += vhca_shadow_get(e, i) != NULL;
    }
    return n;
}

static unsigned shadow_holdings(const struct qhca_engine *e,
                                struct qhca_holding *h)
{
    const uint32_t max = e->shadows->page ? e->cfg.num_uars : 0;

    h[0] = (struct qhca_holding) {
        "shadow pages", false, sizeof(struct vhca_shadow *), max, max
    };
    h[1] = (struct qhca_holding) {
        "shadow", true, sizeof(struct vhca_shadow), max, vhca_shadow_count(e)
    };
    return 2;
}

/* The device room saves what there is, see vhca_device_walk(). */
const struct vhca_room vhca_driver_room = {
    .init = shadow_init, .reset = driver_reset, .fini = shadow_fini,
    .holdings = shadow_holdings,
};
