/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: doorbells in memory, in a saved state. */
#include "../save/save.h"
#include "driver.h"

static const struct vhca_snap_field shadow_fields[] = {
    VHCA_SNAP_FLAG(struct vhca_shadow, asks, asked),
    VHCA_SNAP_ANY(struct vhca_shadow, left, owed),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_shadow, 88);

static uint32_t shadow_number(const struct qhca_engine *e, const void *obj)
{
    const struct vhca_shadow *shadow = obj;

    (void)e;
    return shadow->page;
}

static void *shadow_find(struct qhca_engine *e, uint32_t page)
{
    return vhca_shadow_get(e, page);
}

static const struct vhca_snap_ref hot_ref = {
    "shadow", offsetof(struct vhca_shadow, hot), shadow_number, shadow_find,
    NULL
};
static const struct vhca_snap_ref busy_ref = {
    "shadow", offsetof(struct vhca_shadow, busy), shadow_number, shadow_find,
    NULL
};

/* Walk over the doorbells of the next page from @page on. Returns the page. */
static uint32_t walk_shadow(struct vhca_snap *s, uint32_t page)
{
    struct vhca_shadow **shadow = s->e->shadows->page;
    uint32_t slots;

    while (!s->load && !shadow[page]) {
        page++;
    }
    page = s->number = vhca_snap_u32(s, "page", page, s->e->cfg.num_uars - 1);
    slots = vhca_snap_u32(s, "slots", s->load ? 0 : shadow[page]->slots,
                          QHCA_SHADOW_SLOTS_MAX);
    if (!vhca_snap_check(s, slots && (!s->load || !shadow[page]), "slots")) {
        return page;
    }
    if (s->load && !vhca_shadow_new(s->e, page, slots)) {
        vhca_snap_refuse(s, "page", "has no memory");
        return page;
    }
    vhca_snap_fields(s, shadow_fields, shadow[page]);
    /* Now, because a state that is refused later is freed as any other. */
    s->e->shadows->owing += s->load && shadow[page]->owed;
    vhca_snap_mem(s, &shadow[page]->mem, vhca_shadow_bytes(slots));
    return page;
}

static void check_shadow(struct vhca_snap *s, const struct vhca_shadow *shadow)
{
    bool hot = !vhca_list_empty(&shadow->hot);
    unsigned words = vhca_shadow_words(shadow);

    s->number = shadow->page;
    vhca_snap_check(s, words == 64 || !(shadow->left >> words), "left");
    vhca_snap_check(s, !shadow->left || !vhca_list_empty(&shadow->busy),
                    "busy");
    vhca_snap_check(s, !(shadow->owed & ~shadow->left), "owed");
    vhca_snap_check(s, hot || shadow->asks, "asks");
    vhca_snap_check(s, !shadow->asked || (hot && shadow->asks), "asked");
}

void vhca_shadow_walk(struct vhca_snap *s)
{
    struct vhca_shadows *d = s->e->shadows;
    uint32_t page = 0, n;

    if (!d->page) {
        return;
    }
    s->kind = "shadow";
    n = vhca_snap_count(s, "number", vhca_shadow_count(s->e), 34);
    for (; n > 0 && !s->bad; n--) {
        page = walk_shadow(s, page) + 1;
    }
    vhca_snap_list(s, "hot", &d->hot, &hot_ref);
    vhca_snap_list(s, "busy", &d->busy, &busy_ref);
    if (s->load) {
        d->num_hot = vhca_list_length(&d->hot);
    }
    vhca_snap_check(s, d->num_hot <= VHCA_MAX_HOT, "hot");
    for (page = 0; page < s->e->cfg.num_uars && !s->bad; page++) {
        if (d->page[page]) {
            check_shadow(s, d->page[page]);
        }
    }
    s->kind = NULL;
}
