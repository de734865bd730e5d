/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: the simulator's model of what queue pairs must do. */
#ifndef QHCA_TESTS_SIM_H
#define QHCA_TESTS_SIM_H

#include "harness/odp.h"
#include "harness/seen.h"
#include "harness/srq.h"

#define SIM_MAX_NODES   3
#define SIM_MAX_PAIRS   4
#define SIM_MAX_WR      48

/* Kinds of schedules: each has a bad network, and something else. */
enum sim_kind {
    SIM_PLAIN,
    SIM_DRAIN,                  /* QPs go to SQD and back */
    SIM_PRESSURE,               /* the network is often blocked */
    SIM_CUT,                    /* the cable is pulled for good */
    SIM_TO_ERR,                 /* one QP is moved to ERR */
    SIM_TO_RESET,               /* one QP is moved to RESET */
    SIM_DESTROY,                /* one QP is destroyed */
    SIM_BAD_WR,                 /* some WRs are bad */
    SIM_UNBIND,                 /* windows are deallocated while in use */
    SIM_DRAIN_BAD,              /* errors while QPs go to SQD and back */
    SIM_KINDS
};

/* Events that schedules of some kinds must meet to deserve their titles. */
enum sim_event {
    SIM_SAW_SQD,                /* a QP enters SQD */
    SIM_SAW_DRAINING,           /* RTS is refused: the QP is still draining */
    SIM_SAW_DRAINED,            /* the QP raises SQ_DRAINED */
    SIM_SAW_RESUMED,            /* the QP returns to RTS */
    SIM_SAW_REFUSED,            /* the blocked network refuses a frame */
    SIM_SAW_STRIKE,             /* the kind's event happens before the end */
    SIM_SAW_UNBOUND,            /* a bound window is deallocated */
    SIM_SAW_ERROR,              /* a WR fails */
    SIM_SAW_FLUSH,              /* a WR is flushed */
    SIM_SAW_SQE,                /* a QP leaves SQE */
    SIM_SAW_BAD_RECV,           /* a message meets a bad receive WQE */
    SIM_SAW_COMP,               /* a CQE has raised an event */
    SIM_SAW_FAULT,              /* a page fault has been answered */
    SIM_SAW_GATE,               /* a QP waits because of its rate */
    SIM_SAW_SLOWED,             /* a notification has slowed a QP down */
    SIM_SAW_LATE,               /* a WRITE is complete before its data */
    SIM_SAW_GAP,                /* a packet is lost without a timer */
    SIM_SAW_CHANGE,             /* another request replaces one that waits */
    SIM_SAW_PAUSE,              /* classes of a port are paused */
    SIM_SAW_MOVE,               /* another engine takes over */
    SIM_EVENTS
};

#define SAW(event)      (1u << SIM_SAW_##event)

/* struct sim_wr - a send WR and its expected result */
struct sim_wr {
    struct rc_wr wr;
    uint32_t len;
    uint64_t local, remote;     /* addresses of the data */
    unsigned seed;              /* pattern of the data */
    uint64_t old;               /* atomic: what it must find */
    bool bad;                   /* must not succeed */
    bool doomed;                /* buffer deregistered: may fail or succeed */
    bool memop;                 /* has no data */
    bool refused;               /* RC: the receive WQE for it is bad */
    bool late;                  /* complete, and its data may not be there */
};

struct sim;
struct sim_qp;

#include "sim_features.h"

/* struct sim_held - a frame that goes on later, or not at all */
struct sim_held {
    uint32_t psn;
    size_t len;                 /* 0: none */
    uint8_t data[MAX_FRAME];
};

/* struct sim_model - what a transport service promises */
struct sim_model {
    /* Plans all WRs of @a; @b's receive WRs follow. */
    void (*plan)(struct sim *s, struct sim_qp *a, struct sim_qp *b);
    /* The next receive WR. */
    void (*put_recv)(struct sim *s, struct sim_qp *q);
    /* Check a CQE against the plan. */
    void (*judge_send)(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c);
    void (*judge_recv)(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c);
    /* Whether all expected completions have arrived. */
    bool (*complete)(const struct sim_qp *q);
    /* Check the memory at the end; may be NULL. */
    void (*check_memory)(struct sim *s, struct sim_qp *q);
};

extern const struct sim_model sim_rc, sim_uc, sim_ud, sim_srq;

/* struct sim_qp - a QP, what it sends and what its receive WRs get */
struct sim_qp {
    struct rc_qp q;
    const struct sim_model *model;
    struct sim_qp *peer;
    bool gone, may_fail;     /* destroyed or reset; may have errors */
    bool failed;                /* a CQE has reported an error */
    bool idle;                  /* left out: has no WRs */
    bool drained_owed, held;    /* expects SQ_DRAINED; is in SQD */
    struct sim_wr wr[SIM_MAX_WR];
    unsigned num_wr, posted, done, freed;
    /* The peer's WRs that use a receive WR of this QP, in order. */
    unsigned taker[SIM_MAX_WR], num_rr, rr_posted, rr_done;
    uint64_t rr_addr[SIM_MAX_WR];
    uint64_t word;              /* at the peer, for atomics */
    uint64_t store_word;        /* at the peer, for ATOMIC WRITE */
    /* UC: size of each receive WR; 1 + the message received last */
    uint32_t rr_room[SIM_MAX_WR];
    unsigned received;
    /* UD: copies received of each message, and which receive WRs got one */
    uint8_t copies[SIM_MAX_WR];
    bool rr_filled[SIM_MAX_WR];
    bool rr_bad[SIM_MAX_WR];    /* UC and UD: its WQE is bad */
    bool sqe;                   /* a WR has failed, later ones are flushed */
    unsigned flushed;           /* WRs before this one have been in SQE */
    uint32_t fast_key;          /* of its region of type FAST, 0: none */
    uint32_t key;               /* UC: for sending; may be deregistered */
    /* Without ACK timers: */
    struct sim_held held_back[2];   /* request, response; may be lost */
    struct sim_held twice;      /* another copy of a request */
    bool hurt;                  /* has lost a packet, */
    uint32_t whole_at;          /* until this PSN is the oldest */
};

/* struct sim_limits - what schedules omit, to reduce a failure */
struct sim_limits {
    unsigned pairs;             /* bit i: pair i has WRs */
    unsigned wr;                /* WRs of a QP */
    unsigned no_loss, no_corrupt, no_dup, no_reorder;   /* 1: none at all */
    unsigned without;           /* features, a bit each */
};

extern struct sim_limits sim_limits;
/* Fault rules of all devices. */
extern const char *sim_faults;
/* States are loaded into machines, which do not have the rules. */
extern bool sim_moves;

/* Properties of several kinds. */
static inline bool sim_drains(enum sim_kind kind)
{
    return kind == SIM_DRAIN || kind == SIM_DRAIN_BAD;
}

static inline bool sim_blocks(enum sim_kind kind)
{
    return kind == SIM_PRESSURE || kind == SIM_DRAIN_BAD;
}

static inline bool sim_errs(enum sim_kind kind)
{
    return kind == SIM_BAD_WR || kind == SIM_DRAIN_BAD;
}

/* SGEs of a receive WQE that is bad: more than any queue has. */
#define SIM_BAD_SGES    60u

/* Streams of random numbers: one may change without affecting the others. */
enum {
    SIM_STREAM_SETUP,
    SIM_STREAM_PLAY,
    SIM_STREAM_PAIR,            /* the first of SIM_MAX_PAIRS */
    SIM_STREAM_BOTH = SIM_STREAM_PAIR + SIM_MAX_PAIRS,
    SIM_STREAM_NODES,
    SIM_STREAM_PAGES,
    SIM_STREAM_RATES,           /* and one for each of SIM_MAX_NODES */
    SIM_STREAM_ORDER = SIM_STREAM_RATES + 1 + SIM_MAX_NODES,
    SIM_STREAM_GAPS,
    SIM_STREAM_MIND,
    SIM_STREAM_FEATURES,
    SIM_STREAM_MOVE,
};

#define SIM_MAX_KEYS    256
#define SIM_MAX_OWED    32
#define SIM_FAST_BLOCKS 20

/* struct sim_key - a window or region of type FAST that a schedule has made */
struct sim_key {
    struct guest *g;
    uint32_t key;
    struct sim_qp *user;        /* of a window: who accesses it */
};

/* struct sim_srq - an SRQ of a node, and which WRs are posted */
struct sim_srq {
    struct gsrq q;
    uint64_t id[16];            /* wr_id of each, 0: not posted */
    uint64_t addr[16];
    bool bad[16];               /* whether its WQE is a bad one */
    uint64_t last_id;
    unsigned out;
    unsigned users;             /* QPs that receive from it */
    bool armed;                 /* a limit is set */
};

/* struct sim_owed - a page fault that the driver has yet to answer */
struct sim_owed {
    unsigned node;
    uint32_t qpn;
};

struct sim {
    uint64_t seed, rng;
    enum sim_kind kind;
    unsigned has;               /* features, SIM_HAS() each */
    struct net *net;
    struct node node[SIM_MAX_NODES];
    struct sim_srq srq[SIM_MAX_NODES];
    struct sim_srq xsrq[SIM_MAX_NODES];     /* in domain xrcdn */
    uint32_t xrcdn[SIM_MAX_NODES];
    uint64_t used[SIM_MAX_NODES];   /* bytes allocated of each region */
    unsigned num_nodes, num_qps;
    struct sim_qp qp[2 * SIM_MAX_PAIRS];
    struct sim_key keys[SIM_MAX_KEYS];
    unsigned num_keys, num_windows;
    unsigned saw[SIM_EVENTS];   /* how often */
    bool failed;
    bool ends;                  /* open WRs will never complete */
    /* If two plays are to be compared: what the guest sees in this one. */
    struct seen *seen;
    bool frames;                /* packets are frames in this play */
    bool ruled;                 /* there is a fault rule */
    bool lossy;                 /* the rule loses or delays packets */
    bool rated;                 /* QPs have rates */
    bool marked;                /* packets are sent with marks */
    const char *order;          /* rule for the order of data, or "" */
    bool paged;                 /* the regions are of type ODP */
    bool prompt;                /* page faults are answered without delay */
    bool fickle;                /* QPs change their mind, see sim_mind.c */
    struct gsrq other[SIM_MAX_NODES];   /* of XRC, for requests given up */
    struct odp odp[SIM_MAX_NODES];
    struct sim_owed owed[SIM_MAX_OWED];
    unsigned num_owed;
    bool at_once;               /* both QPs of a pair go on after RNR NAKs */
    bool untimed;               /* QPs have no ACK timers */
    unsigned mbit;              /* speed of all ports, 0: not limited */
    unsigned nodes_gone;        /* their functions were reset, a bit each */
    unsigned flr_at, moves_end;
    uint64_t gaps_rng;
    uint64_t begin, lost_before, faults_before;
    /* End of the SRQs' receive buffers, in each node's region. */
    uint64_t shared_end[SIM_MAX_NODES];
};

/* ---- sim_setup.c ---- */

/* Bytes of each node's region. */
#define SIM_REGION      (24u << 20)

extern struct guest *sim_machine[SIM_MAX_NODES];    /* NULL: not needed yet */
/* Creates everything that the schedule of @seed needs. */
void sim_setup(struct sim *s, uint64_t seed, enum sim_kind kind);

/* ---- sim_shrink.c ---- */

/* Prints the command that plays the schedule with @sim_limits. */
void sim_print_replay(uint64_t seed, enum sim_kind kind, bool both,
                      unsigned save_load);
/* Reduces @sim_limits while @fails, which plays the schedule, returns true. */
void sim_shrink(bool (*fails)(void));

/* ---- sim_kinds.c ---- */

extern const char *const sim_kind_name[SIM_KINDS];
extern const char *const sim_event_name[SIM_EVENTS];
/* Sets of 1 << SIM_SAW_*. */
extern const unsigned sim_must_see[SIM_KINDS];

/* ---- sim_order.c ---- */

/* Decides in which order data reach memory. */
void sim_order_draw(struct sim *s);
/* Sets these fault rules of a device, and the one for the order. */
void sim_rules(struct sim *s, struct guest *g, const char *text);
/* The data of SEND or WRITE @i, which is complete, must be there, or late. */
void sim_judge_write(struct sim *s, struct sim_qp *q, unsigned i);
/* A WR has completed that shows that WRs before @end have been executed. */
void sim_judge_late(struct sim *s, struct sim_qp *q, unsigned end);

/* ---- sim_bad.c ---- */

/* Makes WR @w of @a a bad one. */
void sim_plan_bad(struct sim *s, struct sim_qp *a, struct sim_wr *w);
/* Decides whether the next receive WQE is a bad one. */
bool sim_bad_recv(struct sim *s);
/* RC: perhaps makes the receive WQE of @b for message @w of @a a bad one. */
void sim_plan_bad_recv(struct sim *s, struct sim_qp *a, struct sim_qp *b,
                       struct sim_wr *w);
/* UC and UD: makes some receive WQEs of @b bad ones; @b then ends in ERR. */
void sim_unreliable_plan_bad(struct sim *s, struct sim_qp *b);
/* The status of @c must match whether its receive WQE was @bad. */
void sim_judge_bad_recv(struct sim *s, bool bad, const struct qhca_cqe *c);
/* Message @i of @q must not have left data if its receive WQE was bad. */
void sim_check_refused(struct sim *s, struct sim_qp *q, unsigned i);

/* ---- sim_both.c ---- */

/* Chooses the number of machines; makes their network a perfect one. */
unsigned sim_both_nodes(struct sim *s);
/* Creates machine @i, with limits and memory according to the seed. */
struct guest *sim_both_machine(struct sim *s, unsigned i);
/* Perhaps sets a fault rule for one of the QPs. */
void sim_both_faults(struct sim *s);
/* Whether the guest must wait long between steps, so that both plays agree. */
bool sim_both_slow(const struct sim *s);
/* If plays are compared: waits until everything begun has ended. */
void sim_both_settle(struct sim *s);
/* The cable is pulled; inside one machine that must have an effect as well. */
void sim_both_cut(struct sim *s);
/* Whether another QP may use the SRQ. */
bool sim_both_share(struct sim *s, struct sim_srq *q);
/* If plays are compared, these record a CQE of CQ number @cq, an event, */
void sim_see_cqe(struct sim *s, unsigned cq, const struct qhca_cqe *c);
void sim_see_event(struct sim *s, const struct qhca_eqe *e);
/* the final state of a QP, and everything else. */
void sim_see_qp(struct sim *s, const struct sim_qp *q,
                const struct qhca_qpc *c);
void sim_see_end(struct sim *s);

/* ---- sim_uc.c ---- */

/* Functions for the models of UC and UD. */
void sim_unreliable_put_recv(struct sim *s, struct sim_qp *q);
void sim_unreliable_judge_send(struct sim *s, struct sim_qp *q,
                               const struct qhca_cqe *c);
/* Counts receive WR @i as done; true: it succeeded, with a message. */
bool sim_unreliable_received(struct sim *s, struct sim_qp *q,
                             const struct qhca_cqe *c, unsigned *i);
bool sim_unreliable_complete(const struct sim_qp *q);

/* ---- sim.c, sim_wr.c ---- */

/* Plays a schedule; false: an invariant did not hold, and was reported. */
bool sim_run(struct sim *s, uint64_t seed, enum sim_kind kind);
unsigned sim_rand_of(uint64_t *rng, unsigned below);
unsigned sim_rand(struct sim *s, unsigned below);
/* Takes the node's events, and judges them. */
void sim_take_events(struct sim *s, struct node *n);
/* Takes the schedule's random numbers from stream @which from here on. */
void sim_stream(struct sim *s, unsigned which);
/* Allocates @len bytes of @n's region. */
uint64_t sim_alloc(struct sim *s, struct node *n, uint32_t len);
/* Reports that an invariant does not hold. */
__attribute__((format(printf, 2, 3)))
void sim_fail(struct sim *s, const char *fmt, ...);

/* Plans all WRs of @a according to its model and the limits. */
void sim_plan(struct sim *s, struct sim_qp *a, struct sim_qp *b);
/* Spreads the data of @w over one to three SGEs. */
void sim_plan_sges(struct sim *s, struct sim_wr *w, uint32_t key);
bool sim_takes_rr(uint8_t opcode);

/* ---- sim_keys.c ---- */

/* WRs @i and @i + 2 of @q register and invalidate the key WR @i + 1 uses. */
void sim_plan_fast(struct sim *s, struct sim_qp *q, unsigned i);
/* WR @i of @a uses a window of the peer's, which WR @i + 1 invalidates. */
void sim_plan_window(struct sim *s, struct sim_qp *a, unsigned i);
/* @c, of @q, must name the key that the message @w has invalidated. */
void sim_judge_inv(struct sim *s, struct sim_qp *q, const struct sim_wr *w,
                   const struct qhca_cqe *c);
/* The key in READ_WITH_INV @i of @q, which is complete, must be Free. */
void sim_judge_read_inv(struct sim *s, struct sim_qp *q, unsigned i);
/* Creates another key for the region of @q's node. */
uint32_t sim_second_key(struct sim *s, struct sim_qp *q);
/* Deregisters the key of its own that @q sends with, if it has one. */
void sim_strike_key(struct sim *s, struct sim_qp *q);
/* Deallocates some windows, in use or not. */
void sim_strike_windows(struct sim *s);
void sim_free_keys(struct sim *s);

/* ---- sim_place.c ---- */

/* Allocates the word at @b that all ATOMIC WRITEs of @a write. */
void sim_place_setup(struct sim *s, struct sim_qp *a, struct sim_qp *b);
/* Makes WR @i of @a a FLUSH. */
void sim_plan_flush(struct sim *s, struct sim_qp *a, unsigned i);
/* Chooses the destination of WR @i of @a, an ATOMIC WRITE. */
void sim_plan_store(struct sim *s, struct sim_qp *a, unsigned i);
/* ATOMIC WRITE @i of @q is complete: the word has its value or a later one. */
void sim_judge_store(struct sim *s, struct sim_qp *q, unsigned i);
/* At the end: no ATOMIC WRITE was executed again after a later one. */
void sim_check_store(struct sim *s, struct sim_qp *q);

/* ---- sim_wr.c ---- */

/* Whether @c can be the next CQE of the queue: of WR @i, posted, not done. */
bool sim_send_in_order(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c, unsigned *i);
bool sim_recv_in_order(struct sim *s, struct sim_qp *q,
                       const struct qhca_cqe *c, unsigned *i);
/* The message of @w has arrived at @addr: @c must agree. */
void sim_judge_message(struct sim *s, struct sim_qp *q, const struct sim_wr *w,
                       const struct qhca_cqe *c, uint64_t addr);
/* Posts up to @max WRs, or receive WRs, as far as there is room. */
void sim_post_send(struct sim *s, struct sim_qp *q, unsigned max);
void sim_post_recv(struct sim *s, struct sim_qp *q, unsigned max);
/* Polls both CQs and checks the CQEs against the plan. */
void sim_poll(struct sim *s, struct sim_qp *q);

/* ---- sim_arm.c ---- */

/* Takes the COMP events of the node; the CQ of each must be armed. */
void sim_arm_events(struct sim *s, struct node *n);
/* @c is of @cq, and all events have been taken: the arm must not ask for it. */
void sim_arm_check(struct sim *s, const struct gcq *cq,
                   const struct qhca_cqe *c);
/* Arms @cq if it is empty, or not. */
void sim_arm(struct sim *s, struct gcq *cq);

/* ---- sim_srq.c ---- */

/* Whether the QP receives from an SRQ, of XRC or not. */
static inline bool sim_shares_rq(const struct sim_qp *q)
{
    return q->q.o.srqn || q->q.o.type == QHCA_QPT_XRC_TGT;
}

/* Creates both SRQs of the node, and the XRC domain of one of them. */
void sim_srq_create(struct sim *s, struct node *n);
/* Polls the CQ of the XRC SRQ, for all its QPs. */
void sim_xrc_poll(struct sim *s, struct node *n);
/* Posts up to @max WRs to the SRQ of @q; sometimes arms its limit. */
void sim_srq_post(struct sim *s, struct sim_qp *q, unsigned max);
/* Whether an event is a due one of one of the node's SRQs. */
bool sim_srq_event(struct sim *s, struct node *n, const struct qhca_eqe *e);
/* Without QPs each WR must be complete or in its SRQ; destroys the SRQs. */
void sim_srq_check(struct sim *s, struct node *n);

#include "sim_trouble.h"

#endif /* QHCA_TESTS_SIM_H */
