/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, transport: joins the halves of QPs. Packets find their QP, QPs
 * get their turns, and the commands create, modify and destroy them.
 */
#ifndef QHCA_ENGINE_TRANSPORT_H
#define QHCA_ENGINE_TRANSPORT_H

#include "../link/link.h"

extern const struct qhca_room qhca_transport_room;

/* ---- turn.c ---- */

/*
 * The QP that is first in line has its turn: what it has to do, as far as the
 * budget goes. It goes to the end of its page's line if there is more that can
 * be done now.
 */
void qhca_qp_turn(struct qhca_engine *e);
/*
 * A CQ has failed: its owner is told, and the QPs that use it get QP_FATAL and
 * go to ERR (H-002, C-029), as far as the budget goes.
 */
void qhca_qp_cq_failed(struct qhca_engine *e);
/* Back to the empty queues of a new QP, without CQEs. */
void qhca_qp_clear(struct qhca_engine *e, struct qhca_qp *qp);

/* ---- snapshot.c ---- */

void qhca_transport_walk(struct qhca_snap *s);
/* Timers run that have to, and only those. */
void qhca_transport_check_timers(struct qhca_snap *s);

/* ---- create.c, modify.c, state.c, mcast.c ---- */

/* A new QP that nobody knows, zeroed but for lists and timer, or NULL. */
struct qhca_qp *qhca_qp_alloc(void);
/* It has all that it refers to, and a number: from now on it counts. */
void qhca_qp_enlist(struct qhca_engine *e, struct qhca_qp *qp);
/* One that is not in the table, and has not sent. */
void qhca_qp_free(struct qhca_engine *e, struct qhca_qp *qp);
/* Whether a QP can be as the command describes it: enum qhca_cmd_status. */
int qhca_qp_check_create(const struct qhca_create_qp *c);
/* Finds what it refers to; qhca_qp_enlist() counts the users. */
int qhca_qp_find_objects(struct qhca_engine *e, struct qhca_qp *qp,
                         const struct qhca_create_qp *c);
/* Whether a QP of that type and in that state can have these attributes. */
bool qhca_qp_attr_ok(const struct qhca_qp_attr *a, uint8_t type, uint8_t state);

extern const struct qhca_command qhca_qp_commands[];
extern const struct qhca_command qhca_modify_commands[];
extern const struct qhca_command qhca_mcast_commands[];
/*
 * Whether @mask is legal for moving a QP of @type from @from to @to,
 * conformance A.2 and A.3: all required attributes, no others than optional
 * ones.
 */
bool qhca_qp_transition_ok(uint8_t type, uint8_t from, uint8_t to,
                           uint32_t mask);
/* Attributes that have been set on the way to @state; to ERR leads any way. */
uint32_t qhca_qp_required(uint8_t type, uint8_t state);

#endif /* QHCA_ENGINE_TRANSPORT_H */
