// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes and limits of device and port: each limit can be used to the full, and one more is
 * refused.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rdma.h"

/* Enough to see that objects are freed, and few enough for an emulated machine. */
#define MANY	512

TEST(attributes, "J-005 J-007 A-016 device attributes")
{
	struct dev *d = dev_open();
	struct ibv_device_attr *a = &d->attr;

	CHECK(a->fw_ver[0]);
	CHECK(a->node_guid);
	CHECK(a->sys_image_guid);
	CHECK(a->max_mr_size >= 1ull << 31);
	CHECK(a->page_size_cap & 4096);
	CHECK(a->max_qp > 0);
	CHECK(a->max_cq > 0);
	CHECK(a->max_mr > 0);
	CHECK(a->max_pd > 0);
	CHECK(a->max_sge_rd > 0);
	CHECK(a->max_sge_rd <= a->max_sge);
	CHECK(a->max_qp_rd_atom > 0);
	CHECK(a->max_qp_init_rd_atom > 0);
	CHECK_EQ(a->phys_port_cnt, 1);
	CHECK_EQ(a->max_pkeys, 1);
	CHECK_EQ(a->max_ee, 0);
	CHECK_EQ(a->max_rdd, 0);
	CHECK_EQ(a->max_ee_rd_atom, 0);
	CHECK_EQ(a->max_ee_init_rd_atom, 0);
	CHECK(!(a->device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG));
	CHECK(!(a->device_cap_flags & IBV_DEVICE_RESIZE_MAX_WR));
	CHECK(a->atomic_cap != IBV_ATOMIC_GLOB);
}

TEST(minimum, "limits that well-known consumers require")
{
	struct dev *d = dev_open_qhca();

	CHECK(d->attr.max_qp_wr >= 4096);
	CHECK(d->attr.max_cqe >= 32766);
	CHECK(d->attr.max_sge >= 8);
	CHECK(d->attr.max_sge_rd >= 8);
	CHECK(d->ctx->num_comp_vectors >= 2);
	CHECK_EQ(d->attr.vendor_id, 0x1af4);
	CHECK_EQ(d->attr.vendor_part_id, 0x10f0);
}

TEST(port, "J-008 J-011 port attributes")
{
	struct dev *d = dev_open();
	struct ibv_port_attr *p = &d->port, other;

	CHECK_EQ(p->link_layer, IBV_LINK_LAYER_ETHERNET);
	CHECK_EQ(p->state, IBV_PORT_ACTIVE);
	CHECK_EQ(p->phys_state, 5);	/* LinkUp */
	CHECK(p->active_mtu >= IBV_MTU_1024);
	CHECK(p->active_mtu <= p->max_mtu);
	CHECK_EQ(p->max_mtu, IBV_MTU_4096);
	CHECK_EQ(p->lid, 0);
	CHECK_EQ(p->sm_lid, 0);
	CHECK_EQ(p->lmc, 0);
	CHECK_EQ(p->pkey_tbl_len, 1);
	CHECK(p->gid_tbl_len > 0);
	if (d->qhca) {
		CHECK_EQ(p->max_msg_sz, 1u << 31);
		CHECK_EQ(p->max_vl_num, 1);
		CHECK(p->flags & IBV_QPF_GRH_REQUIRED);
	}
	CHECK(ibv_query_port(d->ctx, 0, &other));
	CHECK(ibv_query_port(d->ctx, 2, &other));
}

TEST(pkey, "J-016 partition keys")
{
	struct dev *d = dev_open();
	__be16 pkey = 0;

	CHECK_ERR(ibv_query_pkey(d->ctx, PORT, 0, &pkey), 0);
	CHECK_EQ(pkey, 0xffff);
	CHECK(ibv_query_pkey(d->ctx, PORT, 1, &pkey));
	CHECK_EQ(ibv_get_pkey_index(d->ctx, PORT, 0xffff), 0);
	CHECK_EQ(ibv_get_pkey_index(d->ctx, PORT, htobe16(0x1234)), -1);
}

TEST(gids, "J-013 J-014 GID table: types, interface, empty entries")
{
	struct dev *d = dev_open();
	struct ibv_gid_entry e, *t;
	ssize_t n, i;

	t = calloc(d->port.gid_tbl_len, sizeof(*t));
	n = ibv_query_gid_table(d->ctx, t, d->port.gid_tbl_len, 0);
	REQUIRE(n > 0);
	for (i = 0; i < n; i++) {
		if (d->qhca)
			CHECK_EQ(t[i].gid_type, IBV_GID_TYPE_ROCE_V2);
		CHECK(t[i].ndev_ifindex);
	}
	CHECK_ERR(ibv_query_gid_ex(d->ctx, PORT, d->port.gid_tbl_len - 1, &e, 0),
		  ENODATA);
	CHECK(ibv_query_gid_ex(d->ctx, PORT, d->port.gid_tbl_len, &e, 0));
}

static struct ibv_cq *try_cq(struct dev *d, int cqe, int vector)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, cqe, NULL, NULL, vector);

	if (cq && cq->cqe < cqe)
		FAIL("requested %d CQEs, got %d", cqe, cq->cqe);
	return cq;
}

TEST(cq_size, "C-001 CQ sizes and vectors, to the limit and beyond")
{
	struct dev *d = dev_open();
	const int sizes[] = { 1, 2, 3, 63, 64, 65, 1000, d->attr.max_cqe };
	const int bad[] = { 0, -1, d->attr.max_cqe + 1, 0x7fffffff };
	struct ibv_cq *cq;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		cq = try_cq(d, sizes[i], 0);
		if (!cq) {
			FAIL("%d CQEs: %s", sizes[i], strerror(errno));
			continue;
		}
		CHECK_ERR(ibv_destroy_cq(cq), 0);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		errno = 0;
		CHECK(!try_cq(d, bad[i], 0));
		CHECK_EQ(errno, EINVAL);
	}
	for (i = 0; i < (size_t)d->ctx->num_comp_vectors; i++) {
		cq = try_cq(d, 4, i);
		REQUIRE(cq);
		CHECK_ERR(ibv_destroy_cq(cq), 0);
	}
	CHECK(!try_cq(d, 4, d->ctx->num_comp_vectors));
	CHECK(!try_cq(d, 4, -1));
}


static struct ibv_qp *try_qp(struct dev *d, struct ibv_cq *cq, int type,
			     struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = *cap, .qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	*cap = init.cap;
	return qp;
}

static void cap_ok(struct dev *d, struct ibv_cq *cq, struct ibv_qp_cap want)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_cap got = want;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp = try_qp(d, cq, IBV_QPT_RC, &got);

	if (!qp) {
		FAIL("wr %u/%u sge %u/%u inline %u: %s", want.max_send_wr,
		     want.max_recv_wr, want.max_send_sge, want.max_recv_sge,
		     want.max_inline_data, strerror(errno));
		return;
	}
	CHECK(got.max_send_wr >= want.max_send_wr);
	CHECK(got.max_recv_wr >= want.max_recv_wr);
	CHECK(got.max_send_sge >= want.max_send_sge);
	CHECK(got.max_recv_sge >= want.max_recv_sge);
	CHECK(got.max_inline_data >= want.max_inline_data);
	if (d->qhca) {	/* UCX fails with more */
		CHECK_EQ(got.max_send_sge, want.max_send_sge);
		CHECK_EQ(got.max_recv_sge, want.max_recv_sge);
	}
	REQUIRE_OK(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
	CHECK_EQ(init.cap.max_send_wr, got.max_send_wr);
	CHECK_EQ(init.cap.max_recv_wr, got.max_recv_wr);
	CHECK_EQ(init.cap.max_send_sge, got.max_send_sge);
	CHECK_EQ(init.cap.max_recv_sge, got.max_recv_sge);
	CHECK_EQ(init.cap.max_inline_data, got.max_inline_data);
	CHECK_ERR(ibv_destroy_qp(qp), 0);
}

static void cap_bad(struct dev *d, struct ibv_cq *cq, struct ibv_qp_cap want)
{
	struct ibv_qp_cap got = want;

	errno = 0;
	if (try_qp(d, cq, IBV_QPT_RC, &got))
		FAIL("wr %u/%u sge %u/%u inline %u was accepted",
		     want.max_send_wr, want.max_recv_wr, want.max_send_sge,
		     want.max_recv_sge, want.max_inline_data);
	else if (errno != EINVAL && errno != ENOMEM)
		FAIL("errno is %s", strerror(errno));
}

/* Returns the largest inline size of a QP, which no attribute reports. */
static uint32_t max_inline(struct dev *d, struct ibv_cq *cq)
{
	uint32_t low = 0, high = 1 << 16;

	while (high - low > 1) {
		struct ibv_qp_cap cap = {
			.max_send_wr = 1, .max_send_sge = 1,
			.max_inline_data = (low + high) / 2
		};
		uint32_t mid = cap.max_inline_data;
		struct ibv_qp *qp = try_qp(d, cq, IBV_QPT_RC, &cap);

		if (qp) {
			ibv_destroy_qp(qp);
			low = mid;
		} else {
			high = mid;
		}
	}
	return low;
}

TEST(qp_caps, "A-012 A-013 J-035 QP sizes, to the limit and beyond")
{
	struct dev *d = dev_open();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	uint32_t wr = d->attr.max_qp_wr, sge = d->attr.max_sge;
	uint32_t inl = max_inline(d, cq);

	test_note("max_qp_wr %u, max_sge %u, inline %u", wr, sge, inl);
	if (d->qhca)
		CHECK(inl >= 256);
	cap_ok(d, cq, (struct ibv_qp_cap){ 1, 1, 1, 1, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 3, 5, 2, 3, 1 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 1, 1, 6, 1, 124 });
	cap_ok(d, cq, (struct ibv_qp_cap){ wr, 1, 1, 1, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 1, wr, 1, 1, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 1, 1, sge, 1, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 1, 1, 1, sge, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 1, 1, 1, 1, inl });
	cap_ok(d, cq, (struct ibv_qp_cap){ wr, wr, sge, sge, inl });

	cap_bad(d, cq, (struct ibv_qp_cap){ wr + 1, 1, 1, 1, 0 });
	cap_bad(d, cq, (struct ibv_qp_cap){ 1, wr + 1, 1, 1, 0 });
	cap_bad(d, cq, (struct ibv_qp_cap){ 1, 1, sge + 1, 1, 0 });
	cap_bad(d, cq, (struct ibv_qp_cap){ 1, 1, 1, sge + 1, 0 });
	cap_bad(d, cq, (struct ibv_qp_cap){ 1, 1, 1, 1, inl + 1 });
	cap_bad(d, cq, (struct ibv_qp_cap){ ~0u, 1, 1, 1, 0 });
	cap_bad(d, cq, (struct ibv_qp_cap){ 1, 1, ~0u, 1, 0 });
}

TEST(no_queue, "A-013 a QP may have no send or no receive queue")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 4, NULL);

	cap_ok(d, cq, (struct ibv_qp_cap){ 0, 4, 0, 1, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 4, 0, 1, 0, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 0, 0, 0, 0, 0 });
	cap_ok(d, cq, (struct ibv_qp_cap){ 4, 4, 0, 0, 0 });
}

TEST(many_contexts, "J-020 several contexts are open at once")
{
	struct dev *d = dev_open(), *e[8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(e); i++)
		e[i] = dev_open();
	for (i = 0; i < ARRAY_SIZE(e); i++) {
		struct pair p = pair_new(e[i], &QP_OPTS, &CONN);

		ping_pong(&p);
	}
	for (i = 0; i < ARRAY_SIZE(e); i += 2) {
		CHECK_ERR(ibv_dealloc_pd(e[i]->pd), EBUSY);
		e[i] = NULL;
	}
	ibv_dealloc_pd(d->pd);
	CHECK_ERR(ibv_close_device(d->ctx), 0);
}

TEST(qpn, "A-010 A-022 QP numbers are unique, not special, not reused at once")
{
	struct dev *d = dev_open();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	uint32_t seen[64], i, j;
	struct ibv_qp *qp;

	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		qp = try_qp(d, cq, IBV_QPT_RC, &cap);
		REQUIRE(qp);
		seen[i] = qp->qp_num;
		CHECK(seen[i] > 1);
		CHECK(seen[i] < 0xffffff);
		for (j = 0; j < i; j++)
			CHECK(seen[j] != seen[i]);
		CHECK_EQ(get_state(qp), IBV_QPS_RESET);
		CHECK_ERR(ibv_destroy_qp(qp), 0);
	}
}

TEST(cleanup_order, "J-018 C-023 objects in use cannot be destroyed")
{
	struct dev *d = dev_open();
	struct ibv_comp_channel *ch = ibv_create_comp_channel(d->ctx);
	struct ibv_cq *cq = cq_new(d, 4, ch);
	struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	struct ibv_qp *qp = try_qp(d, cq, IBV_QPT_RC, &cap);
	static char page[4096];
	struct ibv_mr *mr = ibv_reg_mr(d->pd, page, sizeof(page), LOCAL);

	REQUIRE(ch && qp && mr);
	CHECK_ERR(ibv_destroy_cq(cq), EBUSY);
	CHECK_ERR(ibv_dealloc_pd(d->pd), EBUSY);
	CHECK_ERR(ibv_destroy_comp_channel(ch), EBUSY);
	CHECK_ERR(ibv_destroy_qp(qp), 0);
	CHECK_ERR(ibv_dealloc_pd(d->pd), EBUSY);
	CHECK_ERR(ibv_dereg_mr(mr), 0);
	CHECK_ERR(ibv_dealloc_pd(d->pd), 0);
	CHECK_ERR(ibv_destroy_cq(cq), 0);
	CHECK_ERR(ibv_destroy_comp_channel(ch), 0);
	CHECK_ERR(ibv_close_device(d->ctx), 0);
}

/* A process that exits with QPs, memory and a pending transfer. */
static void die_young(int qps)
{
	struct dev *d = dev_open();
	struct ibv_cq *cq = cq_new(d, 64, NULL);
	struct ibv_qp_cap cap = { 16, 16, 1, 1, 0 };
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf b = buf_new(d->pd, 1 << 20, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, b.len);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);

	while (qps--)
		REQUIRE(try_qp(d, cq, IBV_QPT_RC, &cap));
	REQUIRE_OK(post_recv(&p.b, 2, &sge, 1));
	REQUIRE_OK(post_send(&p.a, &wr));
	_exit(0);
}

TEST(process_death, "J-018 a process that dies leaves nothing behind")
{
	struct dev *d = dev_open();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	int qps = d->attr.max_qp / 2 < MANY ? d->attr.max_qp / 2 : MANY;
	int i, status;
	pid_t pid;

	for (i = 0; i < 4; i++) {
		pid = fork();
		REQUIRE(pid >= 0);
		if (!pid)
			die_young(qps);
		REQUIRE(waitpid(pid, &status, 0) == pid);
		CHECK_EQ(status, 0);
		ping_pong(&p);
	}
}
