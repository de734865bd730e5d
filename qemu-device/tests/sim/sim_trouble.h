/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: network simulator: what makes its machines' work hard:
 * pages that are absent, requesters that change their mind, rates, and packets
 * that get lost where no timer helps. Included by sim.h.
 */
#ifndef QHCA_TESTS_SIM_TROUBLE_H
#define QHCA_TESTS_SIM_TROUBLE_H

/* ---- sim_pages.c ---- */

/* Decides whether the regions of this schedule are of type ODP. */
void sim_pages_draw(struct sim *s);
/* Makes the region of node @i one, if so. */
void sim_pages_setup(struct sim *s, unsigned i);
/* Page faults of QP @qpn are open. */
void sim_pages_event(struct sim *s, struct node *n, uint32_t qpn);
/* Perhaps makes some pages absent. */
void sim_pages_steal(struct sim *s);
/* From now on page faults are answered without delay. */
void sim_pages_prompt(struct sim *s);

/* ---- sim_mind.c ---- */

/* Creates an SRQ at node @i if QPs change their mind in this schedule. */
void sim_mind_setup(struct sim *s, unsigned i);
/* Lets some QPs send a request and go through RESET, before all others. */
void sim_mind_change(struct sim *s);
/* At the end: no request has got the WR of that SRQ; destroys it. */
void sim_mind_check(struct sim *s, unsigned i);

/* ---- sim_rates.c ---- */

/* Decides whether the QPs of this schedule have rates. */
void sim_rates_draw(struct sim *s);
/* If so, sets the parameters of node @i. */
void sim_rates_port(struct sim *s, unsigned i);
/* Gives a QP in RTS its rates. */
void sim_rates_qp(struct sim *s, struct sim_qp *q);
/* Perhaps changes the limit of a QP. */
void sim_rates_change(struct sim *s, struct sim_qp *q);

/* ---- sim_gaps.c ---- */

/* Decides whether QPs have ACK timers, and whether ports are slow. */
void sim_gaps_draw(struct sim *s);
/* If they have none: replaces chance in the network, */
void sim_gaps_net(struct sim *s);
/* and takes the timer away. */
void sim_gaps_qp(struct sim *s, struct rc_opts *o);
bool sim_gaps_filter(struct net *n, unsigned from, uint8_t *frame, size_t len);
/* Sends held packets that no packet follows. */
void sim_gaps_end_round(struct sim *s);
/* From now on nothing is lost. */
void sim_gaps_stop(struct sim *s);

/* ---- sim_time.c ---- */

/* Whether some WRs may never end. */
static inline bool sim_may_hang(const struct sim *s)
{
    return s->kind >= SIM_CUT ||
           s->has & (SIM_HAS(FLR) | SIM_HAS(STALE));
}

/* The work begins now. */
void sim_time_begin(struct sim *s);
/* Returns how long the work may take, with the trouble that it has had. */
uint64_t sim_time_bound(const struct sim *s);

#endif /* QHCA_TESTS_SIM_TROUBLE_H */
