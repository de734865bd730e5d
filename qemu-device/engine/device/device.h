/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, device: entry points, reset, registers, the way in for frames,
 * and the run loop.
 */
#ifndef QHCA_ENGINE_DEVICE_H
#define QHCA_ENGINE_DEVICE_H

#include "../driver/driver.h"
#include "../steering/steering.h"

/*
 * struct vhca_device - the device room
 * @clock_hi: latched by reading CLOCK_LO
 * @source: source of work whose turn it is
 * @timers_due: a deadline has passed
 * @link_wanted: carrier, fault rules left aside
 */
struct vhca_device {
    uint32_t clock_hi;
    unsigned source;
    bool timers_due;
    bool link_wanted;
};

/* ---- engine.c ---- */

/* Reset to power-on; no caller may hold on to an object. */
void vhca_reset(struct qhca_engine *e);
/* The rooms that have state, and NULL. */
extern const struct vhca_room *const vhca_rooms[];

/* ---- run.c ---- */

/* Set up the run loop of a new engine. */
void vhca_run_init(struct qhca_engine *e);
/* Run at the end of every entry point: do work, within the budget. */
void vhca_run(struct qhca_engine *e);
/*
 * In test builds: abort if the state violates what saving it checks, which
 * holds between two turns. Checks after every @vhca_verify_every turns, never
 * if 0.
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
/* Receive a frame from the network, within the budget of an entry point. */
void vhca_run_receive(struct qhca_engine *e, const uint8_t *frame, size_t len);
/*
 * Return when a timer is due or work that waits for its time can continue, or
 * UINT64_MAX. Without time left nothing can, not even timers that are due.
 */
uint64_t vhca_run_wake(const struct qhca_engine *e);
/* The main loop has had its turn: begin a new slice. */
void vhca_run_slice(struct qhca_engine *e);

/* ---- walk.c and, for its part, run.c ---- */

void vhca_device_walk(struct vhca_snap *s);
void vhca_run_walk(struct vhca_snap *s);

/* ---- regs.c ---- */

uint32_t vhca_reg_read(struct qhca_engine *e, unsigned off);
void vhca_reg_write(struct qhca_engine *e, unsigned off, uint32_t val);

/* ---- steer.c ---- */

/*
 * Hand a frame to the link or the Ethernet queue, or drop it. If @from is not
 * 0, that QP of the port sent it, and the address filter does not apply; 0: it
 * came from the network.
 */
void vhca_steer(struct qhca_engine *e, const uint8_t *frame, size_t len,
                uint32_t from);

#endif /* QHCA_ENGINE_DEVICE_H */
