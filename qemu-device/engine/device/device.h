/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, device: what the guest's driver talks to. Entry points, reset,
 * registers, doorbells, the way in for frames, and the run loop.
 */
#ifndef QHCA_ENGINE_DEVICE_H
#define QHCA_ENGINE_DEVICE_H

#include "../cmd/cmd.h"
#include "../eth/eth.h"

struct vhca_device {
    uint32_t clock_hi;          /* latched by reading CLOCK_LO */
    struct vhca_pace slice;     /* units, until the main loop has its turn */
    struct vhca_pace share;     /* units, for as long as the machine runs */
    unsigned source;            /* of work, whose turn it is */
    bool timers_due;            /* there was a tick, and some may be */
    bool link_wanted;           /* by the network, whatever fault rules do */
};

/* ---- engine.c ---- */

/* Back to power-on; the caller is at no place that holds an object. */
void vhca_reset(struct qhca_engine *e);
/* The rooms with state of their own, up to NULL. */
extern const struct vhca_room *const vhca_rooms[];

/* ---- run.c ---- */

/* Once. */
void vhca_run_init(struct qhca_engine *e);
/* The run loop, the tail of every entry point, as far as the budget goes. */
void vhca_run(struct qhca_engine *e);
/*
 * In test builds: aborts unless the state holds what saving it checks, which it
 * does between two turns. vhca_verify_every: each so many turns only; 0: never.
 */
#ifdef QHCA_VERIFY
extern unsigned vhca_verify_every;
void vhca_verify_turn(struct qhca_engine *e);
#endif
static inline void vhca_verify(struct qhca_engine *e)
{
#ifdef QHCA_VERIFY
    if (vhca_verify_every) {
        vhca_verify_turn(e);
    }
#else
    (void)e;
#endif
}
/* Instead, where another entry follows at once: what was spent counts. */
void vhca_run_pay(struct qhca_engine *e);
/* What neighbours have done here counts as well: they have it run soon. */
void vhca_run_pay_visits(struct qhca_engine *e);
/* When work that waits for its time can go on; UINT64_MAX: none does. */
uint64_t vhca_run_wake(const struct qhca_engine *e);
/* Whether the share of the host's CPU that the device may have is not spent. */
bool vhca_run_has_time(const struct qhca_engine *e, uint64_t now);
/* The caller has had its turn: what is spent in a slice counts from 0. */
void vhca_run_slice(struct qhca_engine *e);

/* ---- walk.c: what the room has in a saved state; run.c: a part ---- */

void vhca_device_walk(struct vhca_snap *s);
void vhca_run_walk(struct vhca_snap *s);

/* ---- regs.c, doorbell.c ---- */

uint32_t vhca_reg_read(struct qhca_engine *e, unsigned off);
void vhca_reg_write(struct qhca_engine *e, unsigned off, uint32_t val);
void vhca_doorbell(struct qhca_engine *e, unsigned page, unsigned off,
                   uint64_t val);

/* ---- fault.c ---- */

/* Once. */
void vhca_faults_init(struct qhca_engine *e);
/* What is under way ends with a reset. */
void vhca_faults_end(struct qhca_engine *e);

/* ---- steer.c ---- */

/*
 * Gives a frame to the transport, the Ethernet queue, or nobody. @from: the
 * port sent it to itself, for the QP of that number, and the address filter
 * does not apply; 0: it came from the network.
 */
void vhca_steer(struct qhca_engine *e, const uint8_t *frame, size_t len,
                uint32_t from);

#endif /* QHCA_ENGINE_DEVICE_H */
