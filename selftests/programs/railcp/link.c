// SPDX-License-Identifier: GPL-2.0
/* An adapter with a QP, and how two of them find each other. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "railcp.h"

#define PLACES	(2 * WINDOW)

/* Data that the ends exchange over TCP. */
struct address {
	uint32_t rail, qpn, psn, mtu;
	union ibv_gid gid;
};

uint64_t *link_place(struct link *l, uint64_t place)
{
	return l->words + place % PLACES * WORDS;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **dev = list;
	struct ibv_context *ctx = NULL;

	for (; dev && *dev && !ctx; dev++)
		if (!strcmp(ibv_get_device_name(*dev), name))
			ctx = ibv_open_device(*dev);
	if (list)
		ibv_free_device_list(list);
	if (ctx)
		fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK);
	return ctx;
}

bool link_open(struct link *l, int rail)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = PLACES, .max_recv_wr = PLACES,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_port_attr port;

	l->rail = rail;
	l->ctx = open_device(opts.dev[rail]);
	if (!l->ctx || ibv_query_port(l->ctx, 1, &port) || port.state != IBV_PORT_ACTIVE)
		return false;
	l->active = true;
	l->words = aligned_alloc(4096, PLACES * CHUNK);
	l->pd = ibv_alloc_pd(l->ctx);
	l->channel = ibv_create_comp_channel(l->ctx);
	if (!l->words || !l->pd || !l->channel)
		return false;
	fcntl(l->channel->fd, F_SETFL, O_NONBLOCK);
	l->cq = ibv_create_cq(l->ctx, 2 * PLACES, NULL, l->channel, 0);
	l->mr = ibv_reg_mr(l->pd, l->words, PLACES * CHUNK, IBV_ACCESS_LOCAL_WRITE);
	if (!l->cq || !l->mr)
		return false;
	init.send_cq = l->cq;
	init.recv_cq = l->cq;
	l->qp = ibv_create_qp(l->pd, &init);
	return l->qp;
}

/* The index of the address's GID, which may be another one than before the port was down. */
static int gid_of(struct link *l, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	uint32_t ip;
	int i;

	inet_pton(AF_INET, opts.ip[l->rail], &ip);
	memset(gid, 0, sizeof(*gid));
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, &ip, 4);
	for (i = 0; i < 256; i++)
		if (!ibv_query_gid_ex(l->ctx, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&entry.gid, gid, 16))
			return i;
	return -1;
}

static bool connect_qp(struct link *l, int gid, uint32_t psn, const struct address *peer)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = peer->mtu, .dest_qp_num = peer->qpn,
		.rq_psn = peer->psn, .min_rnr_timer = 1, .max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = peer->gid, .sgid_index = gid, .hop_limit = 64 } },
	};
	/* Half a second, five times: a slow rail is not one that has failed. */
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .sq_psn = psn, .timeout = 17, .retry_cnt = 4,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};

	return !ibv_modify_qp(l->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_ACCESS_FLAGS) &&
	       !ibv_modify_qp(l->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER) &&
	       !ibv_modify_qp(l->qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* The receiver has room for all that the sender has in flight, and a probe. */
static bool post_places(struct link *l)
{
	uint64_t place;

	for (place = 0; place < PLACES; place++)
		if (!link_recv(l, place))
			return false;
	return true;
}

bool link_greet(struct link *l, int sock, bool first)
{
	struct address mine = { .rail = l->rail, .qpn = l->qp->qp_num, .psn = random() & 0xffffff };
	struct address peer = { .mtu = IBV_MTU_256 };
	struct ibv_port_attr port;
	int gid = gid_of(l, &mine.gid);

	l->sock = sock;
	if (gid < 0 || ibv_query_port(l->ctx, 1, &port))
		return false;
	mine.mtu = port.active_mtu;
	if (first && send(sock, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine))
		return false;
	if (recv(sock, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer))
		return false;
	if (peer.mtu > mine.mtu)
		peer.mtu = mine.mtu;
	if (!connect_qp(l, gid, mine.psn, &peer))
		return false;
	/* The first one sends data immediately, so the other one is ready before it answers. */
	return first || (post_places(l) &&
			 send(sock, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine));
}

bool link_send(struct link *l, uint64_t place)
{
	struct ibv_sge sge = { (uintptr_t)link_place(l, place), CHUNK, l->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = place, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	return !ibv_post_send(l->qp, &wr, &bad);
}

bool link_recv(struct link *l, uint64_t place)
{
	struct ibv_sge sge = { (uintptr_t)link_place(l, place), CHUNK, l->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = place, .sg_list = &sge, .num_sge = 1 };

	return !ibv_post_recv(l->qp, &wr, &bad);
}

int link_poll(struct link *l, struct ibv_wc *wc, int count)
{
	int found = ibv_poll_cq(l->cq, count, wc);

	/* None, and one that comes from now on wakes the waiter; or it is there already. */
	if (!found && !ibv_req_notify_cq(l->cq, 0))
		found = ibv_poll_cq(l->cq, count, wc);
	if (found < 0)
		l->broken = true;
	return found < 0 ? 0 : found;
}

static void note_event(struct link *l, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		l->gone = true;
		l->broken = true;
		break;
	case IBV_EVENT_PORT_ERR:
		l->active = false;
		l->broken = true;
		break;
	case IBV_EVENT_PORT_ACTIVE:
		l->active = true;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_CQ_ERR:
		l->broken = true;
		break;
	default:
		break;
	}
}

void link_wait(struct link *l, int ms)
{
	struct pollfd fds[] = {
		{ .fd = l->channel->fd, .events = POLLIN },
		{ .fd = l->ctx->async_fd, .events = POLLIN },
		{ .fd = l->sock, .events = POLLIN },
	};
	bool deaf = opts.wrong & COMPLETIONS_ONLY;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	poll(fds, deaf ? 1 : 3, ms);
	if (fds[0].revents & POLLIN && !ibv_get_cq_event(l->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	while (fds[1].revents & POLLIN && !ibv_get_async_event(l->ctx, &event)) {
		note_event(l, &event);
		ibv_ack_async_event(&event);
	}
	/* The connection is closed. */
	if (fds[2].revents) {
		close(l->sock);
		l->sock = -1;
		l->broken = true;
	}
}

void link_close(struct link *l)
{
	if (l->qp)
		ibv_destroy_qp(l->qp);
	if (l->mr)
		ibv_dereg_mr(l->mr);
	if (l->cq)
		ibv_destroy_cq(l->cq);
	if (l->channel)
		ibv_destroy_comp_channel(l->channel);
	if (l->pd)
		ibv_dealloc_pd(l->pd);
	if (l->ctx)
		ibv_close_device(l->ctx);
	if (l->sock >= 0)
		close(l->sock);
	free(l->words);
	memset(l, 0, sizeof(*l));
	l->sock = -1;
}
