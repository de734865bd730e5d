/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, congestion: how fast a QP may send. Each QP has a gate, which
 * opens when the packet before has been paid for at the QP's rate: the lowest
 * of what its owner asked for and what DCQCN has left it. The rooms below ask
 * the gate, and tell it what has been sent and which notifications have come.
 *
 * Zhu et al., SIGCOMM 2015, describe DCQCN; the parameters here are the ones
 * that adapters have. The notification point (NP) is the receiver of packets
 * which the network has marked; the reaction point (RP) is their sender.
 */
#ifndef QHCA_ENGINE_CONGESTION_H
#define QHCA_ENGINE_CONGESTION_H

#include "../port/port.h"

#define VHCA_ALPHA_ONE  (1u << 30)
#define VHCA_KBIT       1000u   /* in a Mbit */
#define VHCA_CC_US      1000ull /* ns */
#define VHCA_KBIT_MAX   (VHCA_KBIT * VHCA_PORT_SPEED)

/* struct vhca_congestion - the port's parameters, see qhca/congestion.def */
struct vhca_congestion {
    uint32_t value[QHCA_CC_MAX];
};

/*
 * struct vhca_rp - the reaction point of a QP; all 0 while it has no limit.
 * Nothing of it needs a timer: what time does to it is made up for when it is
 * looked at.
 * @rate, @target: kbit/s
 * @alpha: of VHCA_ALPHA_ONE: estimate of the share of packets that are marked
 * @times, @laps: increases because of time and of bytes, since the last cut
 * @bytes: sent since the last of @laps
 * @timed: when the last of @times was due
 * @shrunk: when alpha last was
 * @cut: when the rate was
 */
struct vhca_rp {
    uint32_t rate, target;
    uint32_t alpha;
    uint32_t times, laps;
    uint32_t bytes;
    uint64_t timed, shrunk, cut;
};

/*
 * struct vhca_gate - where the packets of a QP wait for their time to leave
 * @timer: runs while the QP waits; its function schedules the QP
 * @next: when the packet before has been paid for
 * @rest: of the division of which @next is the result
 * @quiet: NP: until when no other CNP is sent
 * @cnp_owed: NP: one is to be sent
 */
struct vhca_gate {
    struct vhca_timer timer;
    uint64_t next;
    uint32_t rest;
    struct vhca_rp rp;
    uint64_t quiet;
    bool cnp_owed;
};

extern const struct vhca_room vhca_congestion_room;

static inline uint32_t vhca_cc(const struct qhca_engine *e, enum qhca_cc which)
{
    return e->congestion->value[which];
}

/* ---- dcqcn.c: the reaction point ---- */

/* A CNP has come: slow down. Returns false if it was too soon after another. */
bool vhca_rp_cut(const struct qhca_engine *e, struct vhca_rp *rp);
/* Make up for the time that has passed: alpha shrinks, and the rate grows. */
void vhca_rp_catch_up(const struct qhca_engine *e, struct vhca_rp *rp);
/* @bytes have been sent. */
void vhca_rp_sent(const struct qhca_engine *e, struct vhca_rp *rp,
                  uint32_t bytes);

/* ---- gate.c ---- */

/* The owner has set another limit: open the gate, whatever is unpaid. */
void vhca_gate_reset(struct qhca_engine *e, struct vhca_gate *g);
/* Take a CNP, which opens no gate. Returns whether it had an effect. */
bool vhca_gate_cnp(struct qhca_engine *e, struct vhca_gate *g);
/* A packet has come with the mark. Returns whether a CNP is owed now. */
bool vhca_gate_marked(struct qhca_engine *e, struct vhca_gate *g);
/* Start the timer, as the gate is closed; returns false. */
bool vhca_gate_wait(struct qhca_engine *e, struct vhca_gate *g);
/* Return the lower rate; 0 is none. */
static inline uint32_t vhca_lower_rate(uint32_t a, uint32_t b)
{
    return a && b ? MIN_OF(a, b) : a | b;
}

/* Charge the gate with @bytes sent, at most at @kbit (0: any) kbit/s. */
void vhca_gate_charge(struct qhca_engine *e, struct vhca_gate *g,
                      uint32_t kbit, uint32_t bytes);

/* Whether a packet may leave now; if not, the timer says when. */
static inline bool vhca_gate_open(struct qhca_engine *e, struct vhca_gate *g)
{
    return g->next <= e->now + e->cfg.timer_slack || vhca_gate_wait(e, g);
}

/* Whether the QP waits, so that a turn would be for nothing. */
static inline bool vhca_gate_waits(const struct vhca_gate *g)
{
    return g->timer.pos;
}

/* Return the kbit/s of enum ib_rate @rate; 0: no limit, or not a rate. */
uint32_t vhca_static_rate(uint8_t rate);

/*
 * Whether the gate is at rest: no notification limits the QP, and nothing
 * waits. If the owner sets no limit either, the QP need not look at the gate,
 * which would cost a line of the CPU's cache.
 */
static inline bool vhca_gate_rests(const struct qhca_engine *e,
                                   const struct vhca_gate *g)
{
    return !g->rp.rate && !g->cnp_owed && !g->timer.pos && g->next <= e->now;
}

/* ---- congestion.c: the parameters; and the saved state ---- */

/* Walk over the parameters. */
void vhca_congestion_walk(struct vhca_snap *s);
/* Walk over the gate of a QP, except for its timer. */
void vhca_gate_walk(struct vhca_snap *s, struct vhca_gate *g);

#endif /* QHCA_ENGINE_CONGESTION_H */
