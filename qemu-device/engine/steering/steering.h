/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, raw: Ethernet frames of QPs: those that QPs of type RAW send,
 * and the rules that say which frames they receive.
 */
#ifndef QHCA_ENGINE_STEERING_H
#define QHCA_ENGINE_STEERING_H

#include "../eth/eth.h"
#include "../requester/requester.h"
#include "../responder/responder.h"

/* Sender of frames of QPs of type RAW in the loopback FIFO: no QP has it. */
#define VHCA_FROM_RAW   QHCA_OBJ_MASK

/*
 * struct vhca_spread - QPs that share the frames of a rule
 * @users: rules
 */
struct vhca_spread {
    uint32_t number, users;
    uint8_t types, log_size;
    uint8_t key[QHCA_RSS_KEY_LEN];
    struct vhca_qp *qp[1 << QHCA_SPREAD_LOG_MAX];
};

/*
 * struct vhca_flow - a rule
 * @key, @mask: struct qhca_flow_key
 * @qp, @spread, @to: by @action, enum qhca_flow_action
 * @frames, @bytes: that it has been applied to
 */
struct vhca_flow {
    uint32_t number;
    uint32_t priority, tag;
    uint8_t order, action;
    struct vhca_eth_to to;
    uint64_t key[8], mask[8];
    struct vhca_qp *qp;
    struct vhca_spread *spread;
    uint64_t frames, bytes;
};

/*
 * struct vhca_raw - rules and spreads
 * @line: the rules in the order in which they are asked: by enum
 *        qhca_flow_order, priority, and age; as many as @flow has
 * @end: where the rules of each order end in the line
 * @frame: the one being sent, during a turn
 */
struct vhca_raw {
    struct vhca_table flow, spread;
    struct vhca_flow *line[QHCA_FLOW_MAX];
    uint32_t end[QHCA_FLOW_ETH + 1];
    uint8_t frame[VHCA_MAX_FRAME];
};

extern const struct vhca_room vhca_raw_room;

/* ---- raw.c ---- */

/* Send what a QP of type RAW has to send, as far as room and budget allow. */
void vhca_raw_turn(struct qhca_engine *e, struct vhca_qp *qp);

/* ---- flow.c ---- */

/* Whether a rule that comes first is for the frame. */
bool vhca_flow_wants(struct qhca_engine *e, const uint8_t *frame, size_t len);
/*
 * Add the rules of @order that are for a frame of at least ETH_LEN bytes to its
 * receivers. Returns whether a rule keeps the frame from the Ethernet queues: a
 * frame to a group goes to all, unless a rule drops it.
 */
bool vhca_flow_choose(struct qhca_engine *e, const uint8_t *frame, size_t len,
                      enum qhca_flow_order order);
/* Give the frame to the QPs of the rules that have been chosen. */
void vhca_flow_deliver(struct qhca_engine *e, const uint8_t *frame, size_t len,
                       bool csum_ok);
/* Deliver the frame that rules have not had yet. */
void vhca_flow_go_on(struct qhca_engine *e);
/* Whether a frame that is being delivered may be for rule @number. */
bool vhca_flow_may_get(struct qhca_engine *e, const struct vhca_delivery *d,
                       uint32_t number);
/*
 * Ask the rules of the Ethernet queues about a frame, and change @to if one is
 * for it. Returns false if that one drops the frame.
 */
bool vhca_flow_eth(struct qhca_engine *e, const uint8_t *frame, size_t len,
                   struct vhca_eth_to *to);
/* Check a rule; returns enum qhca_cmd_status. */
int vhca_flow_check(const struct qhca_flow *r);
/* Make a rule of @r, which has been checked; returns enum qhca_cmd_status. */
int vhca_flow_find(struct qhca_engine *e, struct vhca_flow *f,
                   const struct qhca_flow *r);
/* Count @by uses more of its target. */
void vhca_flow_count(struct qhca_engine *e, struct vhca_flow *f, int by);
/* Add it to the line, which has @n rules. */
void vhca_flow_queue(struct vhca_raw *raw, struct vhca_flow *f, uint32_t n);

/* ---- spread.c ---- */

/* Return the QP for a frame. */
struct vhca_qp *vhca_spread_choose(const struct vhca_spread *s,
                                   const uint8_t *frame, size_t len);
/* Check a spread, and find its QPs; returns enum qhca_cmd_status. */
int vhca_spread_find(struct qhca_engine *e, struct vhca_spread *s,
                     const struct qhca_spread *r);
/* Count @by uses more of each of its QPs. */
void vhca_spread_count(struct vhca_spread *s, int by);
/* Return a QP that can be a target, or NULL. */
struct vhca_qp *vhca_raw_target(struct qhca_engine *e, uint32_t qpn);

/* ---- snapshot.c ---- */

/* Walk over spreads and rules, after the QPs. */
void vhca_raw_walk(struct vhca_snap *s);

#endif /* QHCA_ENGINE_STEERING_H */
