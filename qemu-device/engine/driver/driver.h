/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, driver: the ways in for the guest's driver: doorbells, in BAR2
 * and in memory, and the command queue. The handlers of commands are in the
 * rooms of their objects.
 */
#ifndef QHCA_ENGINE_DRIVER_H
#define QHCA_ENGINE_DRIVER_H

#include "../rules/rules.h"
#include "../verbs/verbs.h"
#include "../eth/eth.h"

#define VHCA_CMD_LOG_MAX    8
/* Pages whose memory is looked at without being asked: those used last. */
#define VHCA_MAX_HOT        8u

struct vhca_cmdq {
    uint64_t sq, cq;
    uint8_t log_size;
    uint32_t pi, ci;            /* commands that are executed now */
    uint32_t rung;              /* behind @pi: those that have to wait */
    uint32_t cq_pi;             /* completions */
    uint32_t steps;             /* calls of handlers; not in a saved state */
    bool stalled;               /* by a fault rule */
    bool active;                /* the command at ci is being executed */
    bool judged;                /* fault rules have judged it */
    struct qhca_cmd cmd;
    struct vhca_cmd_ctx ctx;
    _Alignas(8) uint8_t mbox[QHCA_PAGE_SIZE];
};

/*
 * struct vhca_shadow - doorbells of a page in memory
 * @asks: the guest has to ring QHCA_DB_SHADOW as well, and its memory says so
 * @asked: it has done so since @asks was set
 * @left: words of @rung that are to be read, a bit each
 * @owed: bits of @left that the next command has to wait for
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
 * struct vhca_shadows - doorbells in memory, which the front end looks for
 * while it is awake, qhca_engine_look(); before it sleeps it lets guests ask
 * for that by a doorbell in BAR2, qhca_engine_rest()
 * @page: array by number of the page; NULL if the device offers none
 * @hot, @num_hot: pages that are looked at without being asked
 * @busy: pages that may have doorbells
 * @owing: how many pages have doorbells that the next command has to wait for
 */
struct vhca_shadows {
    struct vhca_shadow **page;
    struct vhca_list hot, busy;
    unsigned num_hot, owing;
};

extern const struct vhca_room vhca_driver_room;

/* ---- doorbell.c ---- */

void vhca_doorbell(struct qhca_engine *e, unsigned page, unsigned off,
                   uint64_t val);
/* Ring what has been rung in memory, within the budget. */
void vhca_doorbells_in_memory(struct qhca_engine *e);

/* ---- shadow.c: doorbells in memory ---- */

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

/* Return how many words of @rung there are. */
static inline unsigned vhca_shadow_words(const struct vhca_shadow *s)
{
    return (s->slots + 63) / 64;
}

/* ---- snapshot.c, and of shadow.c for it ---- */

void vhca_shadow_walk(struct vhca_snap *s);
/* Return the doorbells of @page, which the guest may have chosen, or NULL. */
struct vhca_shadow *vhca_shadow_get(const struct qhca_engine *e, uint32_t page);
/* Give @page, which has none, @slots doorbells; memory and lists are empty. */
struct vhca_shadow *vhca_shadow_new(struct qhca_engine *e, uint32_t page,
                                    uint32_t slots);
/* Return the bytes of a struct qhca_shadow. */
uint64_t vhca_shadow_bytes(uint32_t slots);
/* Return how many pages have doorbells in memory. */
uint32_t vhca_shadow_count(const struct qhca_engine *e);

/* ---- cmdq.c ---- */

/* Ring the command doorbell. */
bool vhca_cmdq_doorbell(struct qhca_engine *e, const struct vhca_db *db);
/* Whether there is a command to execute or to continue. */
static inline bool vhca_cmdq_ready(const struct qhca_engine *e)
{
    return e->cmdq->ci != e->cmdq->pi && !e->cmdq->stalled &&
           !vhca_shadow_owes(e);
}

/* Execute commands, within the budget. */
void vhca_cmdq_work(struct qhca_engine *e);
/* Forget the queue and its commands. */
void vhca_cmdq_reset(struct qhca_engine *e);
/* Start the queue; returns false if the base registers are wrong. */
bool vhca_cmdq_start(struct qhca_engine *e);

/*
 * Walk over the command queue of a device in @state. A command being executed
 * is saved as one that has not begun; its handler reads everything again.
 */
void vhca_cmdq_walk(struct vhca_snap *s, uint8_t state);

#endif /* QHCA_ENGINE_DRIVER_H */
