/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Both ends of a connection of the CM in one process, which handles their events in turn. A
 * failure here ends the test.
 */
#ifndef SELFTESTS_CMPAIR_H
#define SELFTESTS_CMPAIR_H

#include "echo.h"

/* struct side - one end: an event channel and its ids */
struct side {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct rdma_cm_event *event;
};

extern struct side passive, active;
extern struct rdma_cm_id *listener;

/* Waits for the next event of that channel, which must be @type and stays unacknowledged. */
void expect(struct side *s, enum rdma_cm_event_type type);
/* Gives @id a QP, with one CQ and room for 4 WRs in each queue. */
void make_qp(struct rdma_cm_id *id);
/* Starts a listener at @d, and an active side with a QP and a route to the listener. */
void start_in(const struct dev *d, enum rdma_port_space space);
/* The active side asks for a connection, and the passive one knows. */
void request(const struct rdma_conn_param *param);
/* The passive side accepts, with a QP, and both are connected. */
void accept_it(const struct rdma_conn_param *param);

/* Returns parameters with @len bytes of private data, at most 256. */
struct rdma_conn_param with_data(size_t len);
/* Checks that the event of @s has @len bytes from with_data(). */
void check_data(const struct side *s, size_t len);

#endif /* SELFTESTS_CMPAIR_H */
