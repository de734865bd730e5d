/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a simulated machine around an engine. Memory is a flat
 * array, time is a variable, interrupts and frames are recorded or go to a
 * simulated network. A "guest" here is the driver that the tests play.
 */
#ifndef QHCA_TESTS_HARNESS_H
#define QHCA_TESTS_HARNESS_H

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/host.h"
#include "bounds.h"
#include "oom.h"
#include "tap.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif

#define RAM_BASE        0x40000000ull
#define RAM_SIZE        (1280u << 20)    /* only touched pages cost memory */
/* More memory, for one user of the device; no program can guess its address. */
#define BANK_BASE       0x5a5a5a000000ull
#define BANK_SIZE       (4u << 20)
#define MAX_FRAME       9100
#define NUM_VECTORS     8
#define NUM_UARS        16
#define HOLLOW_LEN      16u

struct net;

/* struct sent - a frame a guest without a network has sent */
struct sent {
    size_t len;
    uint8_t data[MAX_FRAME];
};

/* struct guest - one machine with one HCA */
struct guest {
    struct qhca_host host;      /* of @e; first: the callbacks get this */
    struct guest *next;
    struct qhca_engine *e;
    struct qhca_engine *spare;  /* loads what @e saves, see snapshot.h */
    struct heap heaps[2];       /* one for each of the two */
    uint8_t *ram;
    uint8_t *bank;
    uint64_t brk;               /* end of what guest_alloc() has given out */
    uint64_t bank_brk;
    bool in_bank;               /* guest_alloc() allocates from the bank */
    bool bank_closed;           /* accesses to the bank fail the test */
    uint64_t *clock;            /* own_clock, or the network's */
    uint64_t own_clock;
    uint64_t drawn;             /* the last two random numbers */
    unsigned irqs[NUM_VECTORS];
    unsigned removed;           /* calls of ops->remove */
    unsigned errors;            /* guest_error calls */
    char last_error[200];
    const char *failed_check;   /* why the last request was refused */
    uint64_t reads, writes;     /* calls for DMA */
    uint64_t entries;           /* of queues, written by the device */
    uint64_t stores;            /* calls of ops->atomic_store */
    uint64_t dma_after_stop;    /* accesses the device should not have made */
    struct heap *heap;          /* the engine's */
    struct call_cost cost;      /* of the call in progress, or the last one */
    unsigned depth;             /* nested calls in progress */
    unsigned strangers;         /* timers and events added by the test itself */

    bool limited;               /* CPU or bandwidth: commands may take time */
    bool lenient;               /* completions of commands may be overwritten */

    bool dbrecs;                /* receive queues have doorbell records */
    bool in_memory;             /* rings in memory where that is possible */
    bool looks_late;            /* the device looks when it does other work */
    bool look;                  /* it has not yet */
    unsigned rings;             /* in memory */
    struct shadow *shadows;

    /* Provocations. */
    uint64_t bad_from, bad_to;  /* DMA to [bad_from, bad_to) fails */
    /* Accesses to this memory move their first HOLLOW_LEN bytes only. */
    uint64_t hollow_from, hollow_to;
    bool no_peek;               /* memory cannot be read in place */
    bool net_blocked;           /* send_frame says "not now" */
    bool spoofchk;              /* its network loses frames of another MAC */
    unsigned refused;           /* how often it has said so */
    void (*on_dma)(struct guest *g, uint64_t addr, size_t len, bool write);
    void (*on_cas)(struct guest *g, uint64_t addr);     /* before the CAS */
    void (*on_send)(struct guest *g, const uint8_t *frame, size_t len);

    struct sniffer *sniffer;    /* see sniff.h; NULL: it has heard nothing */
    bool forged;                /* its state: the sniffer does not listen */
    void (*on_qp_state)(struct guest *g, uint32_t qpn, unsigned from,
                        unsigned to);

    /* Takes its frames, if it is set; false: not now. */
    bool (*uplink)(struct guest *g, const uint8_t *frame, size_t len);
    void *opaque;               /* for @uplink */
    /* Takes long frames; false, or NULL: they have to be cut. */
    bool (*take_long)(struct guest *g, const uint8_t *frame, size_t len,
                      const struct qhca_long_frame *how);

    struct net *net;
    unsigned net_port;
    struct sent *sent;          /* without a network: frames, oldest first */
    unsigned num_sent;

    uint64_t cmd_sq, cmd_cq, mbox;
    unsigned cmd_log;
    uint32_t cmd_pi, cmd_ci;
};

/* ---- life ---- */

struct guest *guest_new(void);
struct guest *guest_new_seed(uint64_t seed);
/* With the operator's limits, in percent and Mbit/s; 0: none. */
struct guest *guest_new_limited(uint64_t seed, unsigned cpu_share,
                                unsigned bandwidth);
/* Sets fault rules, which must be valid; NULL changes nothing. */
void guest_set_faults(struct guest *g, const char *text);
/* How often any of them has hit. */
uint64_t guest_fault_hits(const struct guest *g);
/* A guest whose command queue runs. */
struct guest *guest_start(void);
void guest_enable(struct guest *g, unsigned cmd_log);
/* Flags of CONTROL that guest_enable() sets beside ENABLE. */
extern uint32_t guest_control;
void guest_free(struct guest *g);
/* Frees all guests and networks; called after each test case. */
void harness_cleanup(void);
/* main() of a program with these test cases. */
#define TEST_MAIN(tests) \
    int main(int argc, char **argv) \
    { \
        return tap_main(argc, argv, tests, ARRAY_SIZE(tests), \
                        harness_cleanup); \
    }
/*
 * After how many turns the engine verifies its state: by default after each,
 * and never in fast builds. Schedules with very many turns would take minutes;
 * 31 is not in step with the sources of work.
 */
enum harness_verify { VERIFY_NEVER = 0, VERIFY_SOMETIMES = 31 };
void harness_verify(enum harness_verify how);

/* ---- memory ---- */

uint64_t guest_alloc(struct guest *g, size_t len, size_t align);
void *guest_ptr(struct guest *g, uint64_t addr, size_t len);
/* guest_ptr(), but NULL if there is no memory at @addr. */
uint8_t *guest_find(struct guest *g, uint64_t addr, size_t len);
void guest_fill(struct guest *g, uint64_t addr, size_t len, unsigned seed);
/* From now on DMA to @len bytes at @addr fails, and to no others. */
void guest_spoil(struct guest *g, uint64_t addr, uint64_t len);
/* Byte @i of the pattern. */
uint8_t guest_pattern(size_t i, unsigned seed);
bool guest_has_pattern(struct guest *g, uint64_t addr, size_t len,
                       unsigned seed);
/* guest_has_pattern(), with a note about the first wrong byte. */
bool guest_is_filled(struct guest *g, uint64_t addr, size_t len, unsigned seed);

/* struct gbuf - memory for the device, in blocks that may lie anywhere */
struct gbuf {
    struct qhca_buf desc;
    unsigned shift;
    uint32_t num_blocks;
    uint64_t *block;            /* addresses; freed after the test */
};
/* Room for @n addresses, freed after the test case. */
uint64_t *address_list(uint32_t n);
/* Depth 0: contiguous; else blocks in reverse order with gaps. */
struct gbuf guest_buf(struct guest *g, uint64_t len, unsigned shift,
                      unsigned depth);
uint64_t gbuf_addr(const struct gbuf *b, uint64_t off);
/* A receive ring of 2^@log bytes, with its doorbell record if there is one. */
struct gbuf rq_ring(struct guest *g, unsigned log, unsigned depth);
/* Writes @pi to the doorbell record, if any. True: a doorbell is needed. */
bool rq_posted(struct guest *g, const struct gbuf *ring, unsigned log,
               uint32_t pi);

/* ---- registers, doorbells, commands ---- */

uint32_t reg_read(struct guest *g, unsigned off);
void reg_write(struct guest *g, unsigned off, uint32_t val);
unsigned dev_state(struct guest *g);
void ring(struct guest *g, unsigned page, unsigned off, uint32_t obj,
          uint32_t index);
uint64_t counter(struct guest *g, enum qhca_counter which);

/* Runs @cmd with a new token; returns its status, or -1 without completion. */
int guest_cmd(struct guest *g, struct qhca_cmd *cmd, uint32_t *obj);
/* guest_cmd() with a mailbox: filled from @in before, copied to @out after. */
int guest_cmd_mbox(struct guest *g, struct qhca_cmd *cmd, const void *in,
                   size_t in_len, void *out, size_t out_len, uint32_t *obj);
int guest_cmd_obj(struct guest *g, unsigned opcode, uint32_t obj);
/* Runs a command that writes @len bytes about @obj to its mailbox, to @out. */
int guest_query(struct guest *g, unsigned opcode, uint32_t obj, void *out,
                size_t len);
/* QUERY_DEVICE: the limits of the device. */
struct qhca_device_attr device_attr(struct guest *g);
/* Puts @n commands in the ring and rings one doorbell, without waiting. */
void guest_cmd_start(struct guest *g, const struct qhca_cmd *cmd, unsigned n);
/* The completion of command @i since the queue was started. */
const struct qhca_cmd_comp *guest_cmd_comp(struct guest *g, uint32_t i);
/* Runs @cmd, requires that it succeeds, and returns the object's number. */
uint32_t guest_create(struct guest *g, struct qhca_cmd *cmd);

/* ---- objects ---- */

struct geq {
    struct guest *g;
    uint32_t eqn, ci;
    unsigned log;
    struct gbuf buf;
};
struct geq eq_create(struct guest *g, unsigned vector, unsigned log,
                     unsigned flags);
bool eq_next(struct geq *eq, struct qhca_eqe *eqe);
void eq_arm(struct geq *eq);
/* The next event must exist and match. */
void eq_expect(struct geq *eq, unsigned type, uint32_t obj);
void eq_expect_none(struct geq *eq);

struct gcq {
    struct guest *g;
    uint32_t cqn, uar, ci;
    uint32_t sn, any_sn;        /* of the last arm, and of that for any CQE */
    enum qhca_cq_arm armed;     /* the event owed; who takes it clears this */
    unsigned log;
    struct gbuf buf;
};
struct gcq cq_create(struct guest *g, const struct geq *eq, uint32_t uar,
                     unsigned log);
/* Takes the next CQE, if there is one; cq_peek() leaves it there. */
bool cq_poll(struct gcq *cq, struct qhca_cqe *cqe);
bool cq_peek(struct gcq *cq, struct qhca_cqe *cqe);
/* By a doorbell, or in the doorbell record. */
void cq_arm(struct gcq *cq, bool solicited);
/* Copies the arms of @cq to the record of its next ring, @ring of 2^@log. */
void cq_copy_arms(struct gcq *cq, const struct gbuf *ring, unsigned log);
struct qhca_cqc cq_query(struct gcq *cq);
/* MODIFY_CQ: events wait for @count CQEs or @period us. Returns its status. */
int cq_moderate(const struct gcq *cq, uint32_t count, uint32_t period);

uint32_t pd_create(struct guest *g);

struct gmr {
    struct guest *g;
    uint32_t key;
    uint64_t addr, len;         /* as WQEs name it; here iova == DMA address */
};
struct gmr mr_create(struct guest *g, uint32_t pdn, uint64_t len,
                     unsigned access);
/* A region over memory that exists; @addr: the address of its first byte. */
struct gmr mr_register(struct guest *g, uint32_t pdn,
                       const struct qhca_buf *buf, uint64_t addr, uint64_t len,
                       unsigned access);

/* ---- the port ---- */

extern const uint8_t test_mac[6];
void port_enable(struct guest *g, const uint8_t *mac, unsigned flags,
                 uint32_t mtu);
/* The parameters of congestion control, as they are. */
struct qhca_congestion congestion_get(const struct guest *g);
/* SET_CONGESTION; returns its status. */
int congestion_set(struct guest *g, const struct qhca_congestion *c);
/* The port answers marks with notifications, which slow its QPs down. */
void congestion_on(struct guest *g);
/* ALLOW_GID; returns its status. */
int gid_allow(struct guest *g, unsigned page, unsigned index, unsigned allow);
/* SET_GID; @gid NULL: the entry becomes invalid. Returns its status. */
int gid_set(struct guest *g, unsigned index, const uint8_t *gid,
            const uint8_t *mac, unsigned vlan);
/* Sets GID @index to ::ffff:10.0.0.@host. */
void gid_set_ipv4(struct guest *g, unsigned index, unsigned host,
                  const uint8_t *mac);
void guest_rx(struct guest *g, const uint8_t *frame, size_t len);
/* guest_rx() when another frame is right behind it. */
void guest_rx_more(struct guest *g, const uint8_t *frame, size_t len);

/* Does the work left over, and looks for doorbells in memory. */
void guest_run(struct guest *g);
/* Lets time pass on a guest without a network: timers, deferred work. */
void guest_settle(struct guest *g);
/* The network takes frames again. */
void guest_unblock(struct guest *g);
void guest_advance(struct guest *g, uint64_t ns);

#endif /* QHCA_TESTS_HARNESS_H */
