/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, device: what the guest's driver talks to. Entry points, reset,
 * registers, doorbells, commands, the way in for frames, and the run loop.
 */
#ifndef QHCA_ENGINE_DEVICE_H
#define QHCA_ENGINE_DEVICE_H

#include "../eth/eth.h"
#include "../faults/faults.h"
#include "../transport/transport.h"

#define QHCA_CMD_LOG_MAX    8

struct qhca_cmdq {
    uint64_t sq, cq;
    uint8_t log_size;
    uint32_t pi, ci;            /* commands */
    uint32_t cq_pi;             /* completions */
    uint32_t steps;             /* calls of handlers; not in a saved state */
    bool stalled;               /* by a fault rule */
    bool active;                /* the one at ci is being executed: */
    bool judged;                /* by fault rules */
    struct qhca_cmd cmd;
    struct qhca_cmd_ctx ctx;
    _Alignas(8) uint8_t mbox[QHCA_PAGE_SIZE];
};

struct qhca_device {
    uint32_t clock_hi;          /* latched by reading CLOCK_LO */
    struct qhca_cmdq cmdq;
    struct qhca_pace slice;     /* units, until the main loop has its turn */
    struct qhca_pace share;     /* units, for as long as the machine runs */
    unsigned source;            /* of work, whose turn it is */
    bool timers_due;            /* there was a tick, and some may be */

    /*
     * Callbacks should not call back into the engine, but a guest can aim DMA
     * at the device's own BARs, and a network of the same process can answer a
     * frame before the call that sends it returns. What comes while @busy is
     * put here (or refused) and served when the entry point is about to return.
     */
    bool busy;
    bool link_changed, link_wanted, run_wanted, tx_wanted;
    struct qhca_fifo late;      /* frames that arrived meanwhile */
};

/* ---- engine.c ---- */

/* Back to power-on; the caller is at no place that holds an object. */
void qhca_reset(struct qhca_engine *e);
/* The rooms with state of their own, up to NULL. */
extern const struct qhca_room *const qhca_rooms[];

/* ---- run.c ---- */

/* Once. */
void qhca_run_init(struct qhca_engine *e);
/* The run loop, the tail of every entry point, as far as the budget goes. */
void qhca_run(struct qhca_engine *e);
/* Instead, where another entry follows at once: what was spent counts. */
void qhca_run_pay(struct qhca_engine *e);
/* When work that waits for its time can go on; UINT64_MAX: none does. */
uint64_t qhca_run_wake(const struct qhca_engine *e);
/* Whether the share of the host's CPU that the device may have is not spent. */
bool qhca_run_has_time(const struct qhca_engine *e, uint64_t now);
/* The caller has had its turn: what is spent in a slice counts from 0. */
void qhca_run_slice(struct qhca_engine *e);

/* ---- walk.c: what the room has in a saved state; run.c, cmdq.c: parts ---- */

void qhca_device_walk(struct qhca_snap *s);
void qhca_run_walk(struct qhca_snap *s);
/*
 * The command queue of a device in @state. A command that is being executed is
 * one that has not begun: what its handler had read goes, and is read again.
 */
void qhca_cmdq_walk(struct qhca_snap *s, uint8_t state);

/* ---- regs.c, doorbell.c ---- */

uint32_t qhca_reg_read(struct qhca_engine *e, unsigned off);
void qhca_reg_write(struct qhca_engine *e, unsigned off, uint32_t val);
void qhca_doorbell(struct qhca_engine *e, unsigned page, unsigned off,
                   uint64_t val);

/* ---- cmdq.c, query.c ---- */

/* Command doorbell. */
void qhca_cmdq_doorbell(struct qhca_engine *e, uint32_t pi);
/* Whether there is a command to execute, or to go on with. */
static inline bool qhca_cmdq_ready(const struct qhca_engine *e)
{
    return e->device->cmdq.ci != e->device->cmdq.pi &&
           !e->device->cmdq.stalled;
}

/* Executes commands, as far as the budget goes. */
void qhca_cmdq_work(struct qhca_engine *e);
/* Forgets everything. */
void qhca_cmdq_reset(struct qhca_engine *e);
/* Starts the queue that the base registers describe; false: they are wrong. */
bool qhca_cmdq_start(struct qhca_engine *e);
extern const struct qhca_command qhca_device_commands[];

/* ---- fault.c ---- */

/* Once. */
void qhca_faults_init(struct qhca_engine *e);
/*
 * What fault rules make of the command that has been read: QHCA_OK, a status
 * that it fails with, or QHCA_AGAIN: the queue stalls.
 */
int qhca_fault_cmd(struct qhca_engine *e);
/* What is under way ends with a reset. */
void qhca_faults_end(struct qhca_engine *e);

/* ---- steer.c ---- */

/*
 * Gives a frame to the transport, the Ethernet queue, or nobody. @from: the
 * port sent it to itself, for the QP of that number, and the address filter
 * does not apply; 0: it came from the network.
 */
void qhca_steer(struct qhca_engine *e, const uint8_t *frame, size_t len,
                uint32_t from);

#endif /* QHCA_ENGINE_DEVICE_H */
