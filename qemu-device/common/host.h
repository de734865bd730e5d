/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca hosts: what each program around an engine does in the same way.
 *
 * A host is as passive as its engine: it has no lock, thread, clock or file.
 * The program serialises calls, passes the time, and acts on @todo, @irqs and
 * @deadline after a call has returned. The engine's opaque pointer is the
 * struct qhca_host.
 */
#ifndef QHCA_COMMON_HOST_H
#define QHCA_COMMON_HOST_H

#include "props.h"

/* Work that is left. QEMU saves some of these bits: they keep their places. */
enum {
    QHCA_TODO_RUN = 1 << 0,         /* qhca_engine_run() */
    QHCA_TODO_TX_READY = 1 << 1,    /* the network takes frames again */
    QHCA_TODO_RX = 1 << 2,          /* the network has frames for the device */
    QHCA_TODO_LINK = 1 << 3,        /* the carrier changed */
    QHCA_TODO_FATAL = 1 << 4,       /* the operator wants a fatal error */
    QHCA_TODO_RESET = 1 << 5,       /* a reset came while the engine ran */
    QHCA_TODO_SPEED = 1 << 6,       /* the bandwidth may be another one */
    QHCA_TODO_REMOVE = 1 << 7,      /* a fault rule removes the device */
};

/* How long frames wait for a buffer in the Ethernet ring. */
#define QHCA_RX_WAIT_NS     10000000u
/* Units of work on frames before others have a turn: an entry point's. */
#define QHCA_RX_BUDGET      2048u

/**
 * struct qhca_host_ops - what a host asks of its program; and functions for its
 * trace points, see trace.def
 * @guest_error: as in struct qhca_engine_ops
 * @drop_frames: drop frames that have not been sent or received: the device is
 *               being reset
 */
struct qhca_host_ops {
    void (*guest_error)(void *opaque, const char *msg);
    void (*drop_frames)(void *opaque);
#define VHCA_TRACE(name, params, args) void (*name)(void *opaque, params);
#include "trace.def"
};

/**
 * struct qhca_host - an engine, and what its program has yet to do for it
 * @engine: the engine
 * @props: what the operator has chosen; NULL if nothing depends on it
 * @ops: callbacks, or NULL
 * @todo: work that is left, QHCA_TODO_*
 * @deadline: when to call qhca_host_tick(); UINT64_MAX: never
 * @irqs: vectors raised, messages not yet sent
 * @give_up: frames do not wait for a buffer any more, from this time on; 0: it
 *           has passed, and no buffer has come since; UINT64_MAX: none waits
 * @rx_budget: units of work on frames that are left; the program refills it
 * @rng: state of the random numbers; 0: they are not the host's
 * @wrong: what was wrong with the last fault rules that were
 * @why: the same as a message
 * @up: the network has a carrier
 */
struct qhca_host {
    struct qhca_engine *engine;
    const struct qhca_props *props;
    const struct qhca_host_ops *ops;
    unsigned todo;
    uint64_t deadline, irqs, give_up;
    unsigned rx_budget;
    uint64_t rng;
    struct qhca_fault_error wrong;
    char why[224];
    bool up;
};

/**
 * qhca_host_init - make a host without an engine, with nothing left to do
 * @h: host
 * @props: see struct qhca_host
 * @ops: see struct qhca_host
 */
void qhca_host_init(struct qhca_host *h, const struct qhca_props *props,
                    const struct qhca_host_ops *ops);

/**
 * qhca_host_seed - make random numbers that can be predicted
 * @h: host
 * @seed: of these numbers
 */
void qhca_host_seed(struct qhca_host *h, uint64_t seed);

/**
 * qhca_host_start - make the engine that @props describe
 * @h: host that is initialised
 * @mac: permanent MAC address
 * @removable: see struct qhca_engine_config
 * @ops: callbacks of the engine
 *
 * Returns NULL, or why there is none.
 */
const char *qhca_host_start(struct qhca_host *h, const uint8_t mac[6],
                            bool removable, const struct qhca_engine_ops *ops);

/**
 * qhca_host_stop - free the engine, if there is one
 * @h: host
 */
void qhca_host_stop(struct qhca_host *h);

/**
 * qhca_random_next - return the next number of a sequence
 * @state: where the sequence is, which is never 0
 *
 * The upper half of the number is as good as random.
 */
uint64_t qhca_random_next(uint64_t *state);

/**
 * qhca_host_random - draw a number that can be predicted
 * @h: host
 * @bits: the number
 *
 * Returns false if none must be: without a seed.
 */
bool qhca_host_random(struct qhca_host *h, uint32_t *bits);

/* Callbacks of the engine, see struct qhca_engine_ops. */
void qhca_host_set_timer(void *opaque, uint64_t deadline);
void qhca_host_schedule(void *opaque);
void qhca_host_raise_irq(void *opaque, unsigned vector);

/**
 * qhca_host_next_irq - take an interrupt whose message is to be sent
 * @h: host, with some
 *
 * Returns its vector.
 */
unsigned qhca_host_next_irq(struct qhca_host *h);

/**
 * qhca_host_tick - let timers expire if the deadline has come
 * @h: host
 * @now: time
 */
void qhca_host_tick(struct qhca_host *h, uint64_t now);

/**
 * qhca_host_forget - drop interrupts, frames and work from before a reset
 * @h: host
 */
void qhca_host_forget(struct qhca_host *h);

/**
 * qhca_host_reset - reset the device
 * @h: host
 * @now: time
 */
void qhca_host_reset(struct qhca_host *h, uint64_t now);

/**
 * qhca_host_work - do work that is left
 * @h: host
 * @now: time
 * @todo: which of it; the rest stays. RX and REMOVE are the program's
 */
void qhca_host_work(struct qhca_host *h, uint64_t now, unsigned todo);

/**
 * qhca_host_takes - ask whether the device takes a frame
 * @h: host
 * @now: time
 * @again: if not, when to ask again, or UINT64_MAX: after the next call of the
 *         engine
 *
 * While the Ethernet ring is empty frames wait, but not for long: RoCE arrives
 * the same way, and works without the guest's kernel.
 */
bool qhca_host_takes(struct qhca_host *h, uint64_t now, uint64_t *again);

/**
 * qhca_host_receive - receive a frame that the device takes
 * @h: host
 * @now: time
 * @frame: frame without FCS
 * @len: bytes of it
 * @more: another one follows at once, or else QHCA_TODO_RUN
 */
void qhca_host_receive(struct qhca_host *h, uint64_t now, const uint8_t *frame,
                       size_t len, bool more);

/* ---- BARs ---- */

/*
 * Accesses to the BARs of registers and doorbells, of any size and alignment.
 * Those without a meaning are counted and reported, and read 0.
 */

/**
 * qhca_host_reg_read - read registers
 * @h: host
 * @now: time
 * @off: offset in the BAR
 * @size: bytes
 *
 * Returns what is there.
 */
uint32_t qhca_host_reg_read(struct qhca_host *h, uint64_t now, uint64_t off,
                            unsigned size);

/**
 * qhca_host_reg_write - write registers
 * @h: host
 * @now: time
 * @off: offset in the BAR
 * @size: bytes
 * @val: what to write
 */
void qhca_host_reg_write(struct qhca_host *h, uint64_t now, uint64_t off,
                         unsigned size, uint32_t val);

/**
 * qhca_host_db_read - count a read of doorbells, which cannot be read
 * @h: host
 * @off: offset in the BAR
 * @size: bytes
 */
void qhca_host_db_read(struct qhca_host *h, uint64_t off, unsigned size);

/**
 * qhca_host_db_write - ring a doorbell
 * @h: host
 * @now: time
 * @off: offset in the BAR
 * @size: bytes
 * @val: what to write
 */
void qhca_host_db_write(struct qhca_host *h, uint64_t now, uint64_t off,
                        unsigned size, uint64_t val);

/* ---- the operator ---- */

/**
 * qhca_host_set_faults - replace the rules by which the device misbehaves
 * @h: host
 * @now: time
 * @text: rules
 *
 * Returns NULL, or what is wrong with them, until the next call.
 */
const char *qhca_host_set_faults(struct qhca_host *h, uint64_t now,
                                 const char *text);

#endif /* QHCA_COMMON_HOST_H */
