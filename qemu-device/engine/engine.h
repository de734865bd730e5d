/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the HCA itself, as plain C.
 *
 * The engine is passive. It never creates a thread, never blocks, never reads a
 * clock and knows nothing of QEMU: it is called with events and the time, and
 * calls back through struct qhca_engine_ops. The same objects are linked into
 * the QEMU device, the unit tests, the simulator and the fuzzers.
 *
 * Locking: the caller serialises all calls on one engine. No callback may call
 * the engine: whatever happens during a callback has to wait with the caller,
 * which knows what can wait and where. Test builds abort on such a call.
 *
 * Time: @now is nanoseconds on a clock of the caller's choice that never runs
 * backwards; every entry point that can start work takes it.
 */
#ifndef QHCA_ENGINE_H
#define QHCA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qhca/base.h"
#include "qhca/cmd.h"
#include "qhca/queues.h"
#include "qhca/regs.h"

struct qhca_engine;

#define VHCA_MAX_ETH_PAIRS      8u

/* The longest frame that the port sends, without FCS: it may have two tags. */
#define VHCA_VLAN_ROOM          4
#define VHCA_MAX_FRAME          (14 + 2 * VHCA_VLAN_ROOM + QHCA_ETH_MTU_MAX)

/**
 * struct qhca_engine_traces - functions for the trace points of the data path,
 * see trace.def
 */
struct qhca_engine_traces {
#define VHCA_TRACE(name, params, args) void (*name)(void *opaque, params);
#include "trace.def"
};

/**
 * struct qhca_long_frame - how to make frames of a TCP segment that is too long
 * for one
 * @hdr_len: bytes of headers
 * @mss: bytes that each frame has behind them, except perhaps the last one
 * @csum_start: where TCP's header begins
 * @csum_offset: where its checksum is in there; it contains the sum of the
 *               pseudo header for the segment as a whole
 * @ipv4: over IPv4, or over IPv6
 */
struct qhca_long_frame {
    uint16_t hdr_len, mss, csum_start, csum_offset;
    bool ipv4;
};

/* The structures by which the device tells its driver something. */
enum qhca_told {
    VHCA_TOLD_CMD,              /* struct qhca_cmd_comp */
    VHCA_TOLD_MBOX,             /* the answer in a mailbox */
    VHCA_TOLD_EQE,              /* struct qhca_eqe */
    VHCA_TOLD_CQE,              /* struct qhca_cqe */
    VHCA_TOLD_MAX
};

/**
 * struct qhca_engine_ops - what the engine needs from its caller
 * @dma_read: copy @len bytes of guest memory at DMA address @addr to @buf; true
 *            if all of it could be read
 * @dma_write: copy to guest memory; a write returns after the guest can see it,
 *             and writes are seen in the order of the calls. @buf may be memory
 *             that @dma_peek returned, and overlap the target
 * @dma_write_entry: @dma_write for a queue entry, aligned to its size @len: its
 *                   last byte is seen after the others
 * @dma_peek: return where guest memory at @addr can be read in place, until the
 *            entry point returns. @len: how much is wanted, and on return how
 *            much is there. NULL if it cannot be read in place, now or ever,
 *            or cannot be written: use @dma_read
 * @atomic_cas: compare-and-swap 8 little-endian bytes at the 8-byte aligned
 *              @addr, giving the value found in @old; atomic against the
 *              guest's CPUs where the host can do that
 * @atomic_add: fetch-and-add, with the same alignment and atomicity
 * @atomic_store: write 8 bytes to the 8-byte aligned @addr in one store; they
 *                are seen after all earlier writes
 * @send_frame: hand an Ethernet frame without FCS to the network; false means
 *              "not now": the engine keeps it and waits for
 *              qhca_engine_tx_ready()
 * @send_long: like @send_frame, for a TCP segment that the network cuts into
 *             frames if need be; false means that the engine has to cut it. May
 *             be NULL
 * @loop_frame: capture a frame that goes from the port to itself; or NULL
 * @raise_irq: raise MSI-X vector @vector
 * @set_timer: call qhca_engine_tick() at @deadline; replaces the deadline
 *             before; UINT64_MAX cancels
 * @schedule: work is left over; call qhca_engine_run() soon, not from here
 * @random: return 32 random bits that cannot be predicted from earlier ones:
 *          the numbers and keys that separate the guest's users are made of
 *          them
 * @neighbour: return the engine that frames from @smac to @dmac would reach
 *             now, or NULL.
 *             It must have its memory accessible from this thread and the same
 *             clock, no other caller until this entry point returns, time
 *             (qhca_engine_has_time()), and no frame on its way between the
 *             two. Packets of connected QPs are then handed over without
 *             becoming frames, and the other engine's ops->schedule is called.
 *             The callback may be NULL: there are no neighbours
 * @remove: take the device out of its slot, by surprise, but not from here;
 *          NULL unless the configuration says @removable
 * @enough: whether an entry point should return, for it has taken long enough;
 *          asked between turns of the run loop, after which @schedule is called
 *          for the rest. NULL: only units of work count
 * @guest_error: the guest did something a correct driver does not; @msg is one
 *               line
 * @trace: trace functions, or NULL
 * @tamper: in test builds that define QHCA_HOSTILE: may change what the device
 *          is about to tell its driver; or NULL
 */
struct qhca_engine_ops {
    bool (*dma_read)(void *opaque, uint64_t addr, void *buf, size_t len);
    bool (*dma_write)(void *opaque, uint64_t addr, const void *buf, size_t len);
    bool (*dma_write_entry)(void *opaque, uint64_t addr, const void *entry,
                            size_t len);
    const void *(*dma_peek)(void *opaque, uint64_t addr, size_t *len);
    bool (*atomic_cas)(void *opaque, uint64_t addr, uint64_t compare,
                       uint64_t swap, uint64_t *old);
    bool (*atomic_add)(void *opaque, uint64_t addr, uint64_t add,
                       uint64_t *old);
    bool (*atomic_store)(void *opaque, uint64_t addr, const uint8_t *bytes);
    bool (*send_frame)(void *opaque, const uint8_t *frame, size_t len);
    bool (*send_long)(void *opaque, const uint8_t *frame, size_t len,
                      const struct qhca_long_frame *how);
    void (*loop_frame)(void *opaque, const uint8_t *frame, size_t len);
    void (*raise_irq)(void *opaque, unsigned vector);
    void (*set_timer)(void *opaque, uint64_t deadline);
    void (*schedule)(void *opaque);
    uint32_t (*random)(void *opaque);
    struct qhca_engine *(*neighbour)(void *opaque, const uint8_t smac[6],
                                     const uint8_t dmac[6]);
    void (*remove)(void *opaque);
    bool (*enough)(void *opaque);
    void (*guest_error)(void *opaque, const char *msg);
    const struct qhca_engine_traces *trace;
#ifdef QHCA_HOSTILE
    void (*tamper)(void *opaque, enum qhca_told what, void *data, size_t len);
#endif
};

/**
 * struct qhca_engine_config - what the operator of the VM chooses
 * @mac: permanent MAC address
 * @num_vectors: MSI-X vectors, at least 2
 * @num_uars: doorbell pages, page 0 included
 * @log_db_stride: log2 of the bytes from one doorbell page to the next, which
 *                 the caller of qhca_engine_doorbell() splits addresses by
 * @max_qp: queue pairs that may exist
 * @eth_queues: Ethernet queues of each direction that may exist, a power of two
 *              up to VHCA_MAX_ETH_PAIRS; with 1 frames cannot be spread
 * @cmd_timeout_ms: value of the command timeout register
 * @cpu_share: percent of a host CPU's time that the device may work, reckoned
 *             in units of work, see Documentation/bounds.rst; 0: no limit
 * @bandwidth: Mbit/s of frames sent, to the network or looped back; 0: no
 *             limit. See qhca_engine_set_bandwidth()
 * @timer_slack: ns that ops->set_timer may be late: rates are held on average,
 *               and packets may leave earlier by that much
 * @frames: also packets between QPs of this port or a neighbour become frames;
 *          if not, they are copied directly where that is possible
 * @removable: the device is in a slot from which ops->remove can take it
 * @guest_faults: the guest, like the operator, may set fault rules
 * @shadow: guests may ring doorbells in memory
 */
struct qhca_engine_config {
    uint8_t mac[6];
    unsigned num_vectors;
    unsigned num_uars;
    unsigned log_db_stride;
    unsigned max_qp;
    unsigned eth_queues;
    unsigned cmd_timeout_ms;
    unsigned cpu_share;
    unsigned bandwidth;
    unsigned timer_slack;
    bool frames;
    bool removable;
    bool guest_faults;
    bool shadow;
};

/* Returns NULL if there is no memory or the configuration makes no sense. */
struct qhca_engine *qhca_engine_new(const struct qhca_engine_config *cfg,
                                    const struct qhca_engine_ops *ops,
                                    void *opaque);
void qhca_engine_free(struct qhca_engine *e);

/*
 * Return to power-on: all objects are gone, and no DMA, interrupt or frame
 * follows. Counters survive (they describe the machine's whole life).
 */
void qhca_engine_reset(struct qhca_engine *e, uint64_t now);

/* 32-bit register accesses; @off is within BAR0 and 4-byte aligned. */
uint32_t qhca_engine_reg_read(struct qhca_engine *e, uint64_t now,
                              unsigned off);
void qhca_engine_reg_write(struct qhca_engine *e, uint64_t now, unsigned off,
                           uint32_t val);

/*
 * Write @val, 64 bits, at @off of doorbell page @page, and do what it starts.
 */
void qhca_engine_doorbell(struct qhca_engine *e, uint64_t now, unsigned page,
                          unsigned off, uint64_t val);

/*
 * Look for doorbells in memory, and do what they start. Returns whether there
 * were any since the last call. A caller that calls this often spares guests
 * the doorbell by which they otherwise ask for it; from the first call that
 * returns true on they rely on it, until qhca_engine_rest().
 */
bool qhca_engine_look(struct qhca_engine *e, uint64_t now);
/*
 * Let guests ask from now on. Returns false if there are doorbells already: the
 * caller must not rest yet. Doorbells that have to wait for the device's share
 * of the CPU do not count: the timer is set for them.
 */
bool qhca_engine_rest(struct qhca_engine *e, uint64_t now);

/* Count a read, or a write of a wrong size, in the doorbell BAR. */
void qhca_engine_bad_doorbell(struct qhca_engine *e);

/*
 * Receive a frame (no FCS). Call it when qhca_engine_has_time(); otherwise the
 * frame may have to wait in the engine, which has room for a few. A caller with
 * many has to pause by itself. Returns the work done, in the units of
 * Documentation/bounds.rst.
 */
unsigned qhca_engine_rx_frame(struct qhca_engine *e, uint64_t now,
                              const uint8_t *frame, size_t len);
/*
 * qhca_engine_rx_frame() for a frame that has another one right behind it: the
 * engine leaves what both start, such as an ACK, to the call for the last one.
 * If none follows after all, the caller has to call qhca_engine_run().
 */
unsigned qhca_engine_rx_more(struct qhca_engine *e, uint64_t now,
                             const uint8_t *frame, size_t len);
/* Whether a received Ethernet frame would find a buffer now. */
bool qhca_engine_can_receive(struct qhca_engine *e);

/*
 * Whether there is time for a frame now, and the one before has been delivered;
 * if not, there will be after one of the next calls of qhca_engine_tick() or
 * qhca_engine_run().
 */
bool qhca_engine_has_time(const struct qhca_engine *e, uint64_t now);

/* Tell that the network takes frames again after send_frame returned false. */
void qhca_engine_tx_ready(struct qhca_engine *e, uint64_t now);

/* Tell that the deadline given to set_timer has come. */
void qhca_engine_tick(struct qhca_engine *e, uint64_t now);

/* Continue with work that was left over; see ops->schedule. */
void qhca_engine_run(struct qhca_engine *e, uint64_t now);

/*
 * Write to guest memory whatever a fault rule holds back (order=): it is about
 * to be copied, and what comes later would be lost.
 */
void qhca_engine_settle(struct qhca_engine *e);

/* Set the carrier of the port, which is up at first. */
void qhca_engine_set_link(struct qhca_engine *e, uint64_t now, bool up);

/*
 * Change @bandwidth of the configuration. The driver gets an event if it knows
 * another speed. Call this also after qhca_engine_load(), because the driver
 * may know another one then. Returns false if the value makes no sense.
 */
bool qhca_engine_set_bandwidth(struct qhca_engine *e, uint64_t now,
                               unsigned mbit);

/* Stop the device with QHCA_FATAL_INJECTED, for the operator. */
void qhca_engine_inject_fatal(struct qhca_engine *e, uint64_t now);

/**
 * struct qhca_fault_error - what is wrong with the text of fault rules
 * @line: line of the error, from 1 on
 * @column: column of the error, from 1 on
 * @what: description, without a newline
 */
struct qhca_fault_error {
    unsigned line, column;
    char what[160];
};

/*
 * Replace the rules by which the device misbehaves, see
 * Documentation/faults.rst; an empty text has none. They survive a reset.
 * Returns false if the text is wrong; then nothing has changed.
 */
bool qhca_engine_set_faults(struct qhca_engine *e, uint64_t now,
                            const char *text, struct qhca_fault_error *err);
/*
 * Print the rules, a line each that can be set again, with the number of hits.
 * Returns the length, as snprintf() does; VHCA_RULES_TEXT is always enough.
 */
size_t qhca_engine_get_faults(const struct qhca_engine *e, char *buf,
                              size_t size);
#define VHCA_RULES_TEXT    6144u

/*
 * Write the state of the device to @buf, so that another engine with the same
 * callbacks and guest memory can continue from it; not from a callback. Returns
 * how many bytes that takes, which may be more than @size, or 0 with a reason
 * in @why. The engine itself can continue as well.
 */
size_t qhca_engine_save(struct qhca_engine *e, uint64_t now, void *buf,
                        size_t size, char *why, size_t why_size);
/*
 * Load a state. @now can be on another clock: deadlines keep their distance.
 * Returns false if the state is damaged, or of a device with other properties;
 * then @why says where, and the device is as after a reset. Work that is in the
 * state continues with the next entry point, such as qhca_engine_run().
 */
bool qhca_engine_load(struct qhca_engine *e, uint64_t now, const void *buf,
                      size_t size, char *why, size_t why_size);

uint64_t qhca_engine_counter(const struct qhca_engine *e,
                             enum qhca_counter which);
/* Return the lower-case name of a counter, as the driver and QOM show it. */
const char *qhca_counter_name(enum qhca_counter which);

/* Return the number of live objects, for leak checks and monitoring. */
unsigned qhca_engine_num_objects(const struct qhca_engine *e);

/**
 * struct qhca_holding - host memory of one kind that an engine holds
 * @what: name of the kind
 * @object: they are objects, which commands create and destroy
 * @size: bytes of each
 * @max: how many there can be, whatever the guest does
 * @used: how many there are
 */
struct qhca_holding {
    const char *what;
    bool object;
    size_t size;
    uint32_t max, used;
};

#define VHCA_MAX_HOLDINGS   40

/*
 * List all memory of the engine, kind by kind; returns how many kinds there
 * are. Documentation/bounds.rst has the table.
 */
unsigned qhca_engine_holdings(const struct qhca_engine *e,
                              struct qhca_holding h[VHCA_MAX_HOLDINGS]);
/* Return the bytes held now; @max: the most that can be held. */
uint64_t qhca_engine_memory(const struct qhca_engine *e, uint64_t *max);

#endif /* QHCA_ENGINE_H */
