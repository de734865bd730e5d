/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, verbs: the life of QPs: the commands that create, modify and
 * destroy them.
 */
#ifndef QHCA_ENGINE_VERBS_H
#define QHCA_ENGINE_VERBS_H

#include "../link/link.h"
#include "../steering/steering.h"

extern const struct vhca_room vhca_qps_room;

/* ---- snapshot.c ---- */

void vhca_qps_walk(struct vhca_snap *s);
/* Check that timers run exactly if they have to. */
void vhca_qps_check_timers(struct vhca_snap *s);

/* ---- pages.c ---- */

/* Walk over the page faults of a QP, last. */
void vhca_page_faults_walk(struct vhca_snap *s, struct vhca_qp *qp);

/* ---- create.c, modify.c ---- */

/* Set up lists and timer of a new QP, which is zeroed before. */
void vhca_qp_init(struct vhca_qp *qp);
/* Make a QP with objects and number known, and count it as their user. */
void vhca_qp_enlist(struct qhca_engine *e, struct vhca_qp *qp);
/* Release what a QP that is in no table and has no send WRs holds. */
void vhca_qp_release(struct qhca_engine *e, struct vhca_qp *qp);
/* Check the parameters of CREATE_QP; returns enum qhca_cmd_status. */
int vhca_qp_check_create(const struct qhca_create_qp *c);
/* Find the objects it refers to; vhca_qp_enlist() counts it as their user. */
int vhca_qp_find_objects(struct qhca_engine *e, struct vhca_qp *qp,
                         const struct qhca_create_qp *c);
/*
 * Tell the owner of a failed CQ, give the QPs that use it QP_FATAL, and move
 * them to ERR (H-002, C-029), within the budget.
 */
void vhca_qp_cq_failed(struct qhca_engine *e);
/* Empty the queues, as in a new QP, without CQEs. */
void vhca_qp_clear(struct qhca_engine *e, struct vhca_qp *qp);
/* Whether a QP of that type can have these attributes in that state. */
bool vhca_qp_attr_ok(const struct qhca_qp_attr *a, uint8_t type, uint8_t state);

/*
 * Whether @mask is legal for moving a QP of @type from @from to @to: it has all
 * required attributes, and no others than optional ones (conformance A.2, A.3).
 */
bool vhca_qp_transition_ok(uint8_t type, uint8_t from, uint8_t to,
                           uint32_t mask);

#endif /* QHCA_ENGINE_VERBS_H */
