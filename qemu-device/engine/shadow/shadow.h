/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, shadow: doorbells in memory. The front end looks for them while
 * it is awake, qhca_engine_look(), and lets guests ask for that by a doorbell
 * in BAR2 before it sleeps, qhca_engine_rest(). What they ring is up to the
 * device room, which takes them from here.
 */
#ifndef QHCA_ENGINE_SHADOW_H
#define QHCA_ENGINE_SHADOW_H

#include "../core/core.h"

/* Pages whose memory is looked at without being asked: those used last. */
#define VHCA_MAX_HOT    8u

/*
 * struct vhca_shadow - doorbells of a page in memory
 * @asks: the guest has to ring QHCA_DB_SHADOW as well, and its memory says so
 * @asked: it has done so since @asks was set
 * @left: words of @rung that are to be read, a bit each
 * @owed: those of them that the next command has to wait for
 * @hot: node in the list of pages that are looked at
 * @busy: node in the list of pages that may have doorbells
 */
struct vhca_shadow {
    uint32_t page, slots;
    struct vhca_mem mem;
    bool asks, asked;
    uint64_t left, owed;
    struct vhca_list hot, busy;
};

/*
 * struct vhca_shadows - the shadow room
 * @page: doorbells in memory, by page; NULL if the device offers none
 * @hot, @num_hot: those that are looked at without being asked
 * @busy: those that may have been rung
 * @owing: how many have doorbells that the next command has to wait for
 */
struct vhca_shadows {
    struct vhca_shadow **page;
    struct vhca_list hot, busy;
    unsigned num_hot, owing;
};

/* Return how many words of @rung there are. */
static inline unsigned vhca_shadow_words(const struct vhca_shadow *s)
{
    return (s->slots + 63) / 64;
}

/* Whether there may be doorbells to take. */
static inline bool vhca_shadow_busy(const struct qhca_engine *e)
{
    return !vhca_list_empty(&e->shadows->busy);
}

/* Whether a command has to wait for doorbells. */
static inline bool vhca_shadow_owes(const struct qhca_engine *e)
{
    return e->shadows->owing > 0;
}

bool vhca_shadow_init(struct qhca_engine *e);
void vhca_shadow_reset(struct qhca_engine *e);
void vhca_shadow_fini(struct qhca_engine *e);
unsigned vhca_shadow_holdings(const struct qhca_engine *e,
                              struct qhca_holding *h);
/* Look, without being asked; returns whether there is work that can be done. */
bool vhca_shadow_look(struct qhca_engine *e);
/* Let guests ask from now on; returns whether no work can be done. */
bool vhca_shadow_rest(struct qhca_engine *e);
/* The guest asks to look at the page. */
bool vhca_shadow_doorbell(struct qhca_engine *e, const struct vhca_db *db);
/* Let the next command wait for what has been rung by now. */
void vhca_shadow_owe(struct qhca_engine *e);
/*
 * Take the doorbells of up to 64 slots of the page whose turn it is, when some
 * page is busy. Returns how many there are, with QHCA_DB_KIND, in @val.
 */
unsigned vhca_shadow_take(struct qhca_engine *e, uint32_t *page,
                          uint64_t val[64]);

/* ---- for snapshot.c ---- */

/* Return those of @page, a number which may come from anywhere, or NULL. */
struct vhca_shadow *vhca_shadow_get(const struct qhca_engine *e, uint32_t page);
/* Give @page, which has none, @slots doorbells; memory and lists are empty. */
struct vhca_shadow *vhca_shadow_new(struct qhca_engine *e, uint32_t page,
                                    uint32_t slots);
/* Return the bytes of a struct qhca_shadow. */
uint64_t vhca_shadow_bytes(uint32_t slots);
/* Return how many pages have doorbells in memory. */
uint32_t vhca_shadow_count(const struct qhca_engine *e);

/* ---- snapshot.c ---- */

void vhca_shadow_walk(struct vhca_snap *s);

#endif /* QHCA_ENGINE_SHADOW_H */
