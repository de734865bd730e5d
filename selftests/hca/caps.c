// SPDX-License-Identifier: GPL-2.0
/* Capabilities that the device offers work, and others are refused. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rdma.h"

static int probe_mw(struct dev *d, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(d->pd, type);

	return mw ? ibv_dealloc_mw(mw) : errno;
}

static int probe_mw_1(struct dev *d)
{
	return probe_mw(d, IBV_MW_TYPE_1);
}

static int probe_mw_2(struct dev *d)
{
	return probe_mw(d, IBV_MW_TYPE_2);
}

static int probe_xrc(struct dev *d)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(d->ctx, &attr);

	return xrcd ? ibv_close_xrcd(xrcd) : errno;
}

static int probe_srq_resize(struct dev *d)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .max_wr = 64 };
	struct ibv_srq *srq = ibv_create_srq(d->pd, &init);
	int err;

	if (!srq)
		return errno;
	err = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	ibv_destroy_srq(srq);
	return err;
}

static int probe_qp_resize(struct dev *d)
{
	struct end e = end_new(d, &QP_OPTS);
	struct ibv_qp_attr attr = { .cap = e.cap };
	struct conn c = CONN;

	qp_bring(&e, &c, IBV_QPS_INIT);
	attr.cap.max_send_wr *= 2;
	return ibv_modify_qp(e.qp, &attr, IBV_QP_CAP);
}

static int probe_cur_state(struct dev *d)
{
	struct conn c = CONN;
	struct pair p = pair_new(d, &QP_OPTS, &c);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.cur_qp_state = IBV_QPS_RTS,
	};

	return ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
}

static int probe_path_mig(struct dev *d)
{
	struct conn c = CONN;
	struct pair p = pair_new(d, &QP_OPTS, &c);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.path_mig_state = IBV_MIG_REARM,
	};

	return ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE);
}

static const struct probe {
	const char *name;
	uint32_t flags;		/* flags, any of which promises it */
	int (*probe)(struct dev *d);
} probes[] = {
	{ "MEM_WINDOW", IBV_DEVICE_MEM_WINDOW, probe_mw_1 },
	{ "MEM_WINDOW_TYPE_2B", IBV_DEVICE_MEM_WINDOW_TYPE_2B, probe_mw_2 },
	{ "XRC", IBV_DEVICE_XRC, probe_xrc },
	{ "SRQ_RESIZE", IBV_DEVICE_SRQ_RESIZE, probe_srq_resize },
	{ "A-069 RESIZE_MAX_WR", IBV_DEVICE_RESIZE_MAX_WR, probe_qp_resize },
	{ "CURR_QP_STATE_MOD", IBV_DEVICE_CURR_QP_STATE_MOD, probe_cur_state },
	{ "AUTO_PATH_MIG", IBV_DEVICE_AUTO_PATH_MIG, probe_path_mig },
};

TEST_ROWS(promise, "J-004 what is offered works, what is not is refused", probes)
{
	struct dev *d = dev_open_qhca();
	int err = row->probe(d);

	if (d->attr.device_cap_flags & row->flags)
		CHECK_ERR(err, 0);
	else
		CHECK(err != 0);
}

/* ---- features that this device must have, even if it does not report them ---- */

static int probe_cq_resize(struct dev *d)
{
	return ibv_resize_cq(cq_new(d, 4, NULL), 64);
}

static int probe_cq_moderation(struct dev *d)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 4, .cq_period = 10 },
	};

	return ibv_modify_cq(cq_new(d, 4, NULL), &attr);
}

static int probe_cq_ex(struct dev *d)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->ctx, &attr);

	return cq ? ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) : errno;
}

static int probe_qp_ex(struct dev *d)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = d->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
				  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp;

	init.send_cq = cq_new(d, 4, NULL);
	init.recv_cq = init.send_cq;
	if (has_flush(d->ctx))
		init.send_ops_flags |= IBV_QP_EX_WITH_FLUSH;
	qp = ibv_create_qp_ex(d->ctx, &init);
	if (!qp)
		return errno;
	return ibv_qp_to_qp_ex(qp) ? ibv_destroy_qp(qp) : EINVAL;
}

static int probe_qp(struct dev *d, enum ibv_qp_type type)
{
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	return qp ? ibv_destroy_qp(qp) : errno;
}

static int probe_uc(struct dev *d)
{
	return probe_qp(d, IBV_QPT_UC);
}

static int probe_ud(struct dev *d)
{
	return probe_qp(d, IBV_QPT_UD);
}

static int probe_rereg(struct dev *d)
{
	struct buf b = buf_new(d->pd, 4096, LOCAL);

	return ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, REMOTE) ? errno : 0;
}

static int probe_atomics(struct dev *d)
{
	return d->attr.atomic_cap == IBV_ATOMIC_HCA ? 0 : EOPNOTSUPP;
}

static int probe_mcast(struct dev *d)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = 1 } };
	struct qp_opts o = QP_OPTS;

	o.type = IBV_QPT_UD;
	return ibv_attach_mcast(end_in(d, &o, IBV_QPS_INIT).qp, &gid, 0);
}

/* The tests of a feature are skipped if the device does not report it. This fails instead. */
static const struct {
	const char *name;
	int (*probe)(struct dev *d);
} offers[] = {
	{ "UC", probe_uc },
	{ "UD", probe_ud },
	{ "XRC", probe_xrc },
	{ "atomics", probe_atomics },
	{ "multicast", probe_mcast },
	{ "resizing a CQ", probe_cq_resize },
	{ "moderation of a CQ", probe_cq_moderation },
	{ "extended CQs", probe_cq_ex },
	{ "extended QPs", probe_qp_ex },
	{ "SRQs, and resizing them", probe_srq_resize },
	{ "re-registration", probe_rereg },
	{ "windows of type 1", probe_mw_1 },
	{ "windows of type 2", probe_mw_2 },
	{ "CURR_QP_STATE_MOD", probe_cur_state },
};

TEST_ROWS(offered, "J-004 this device offers", offers)
{
	CHECK_ERR(row->probe(dev_open_qhca()), 0);
}

TEST(flags, "J-004 the capabilities of this device, no less and no more")
{
	struct ibv_device_attr_ex attr;
	struct dev *d = dev_open_qhca();
	uint64_t want = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
			IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_CURR_QP_STATE_MOD |
			IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_BAD_QKEY_CNTR |
			IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_MEM_MGT_EXTENSIONS |
			IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
			IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC |
			IBV_DEVICE_MANAGED_FLOW_STEERING | IBV_DEVICE_RAW_IP_CSUM |
			IB_UVERBS_DEVICE_ATOMIC_WRITE;

	if (has_flush(d->ctx))
		want |= IB_UVERBS_DEVICE_FLUSH_GLOBAL;
	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	CHECK_EQ(attr.device_cap_flags_ex, want);
	CHECK_EQ(attr.completion_timestamp_mask, -1ull);
	CHECK_EQ(attr.hca_core_clock, 1000000);
	CHECK(attr.cq_mod_caps.max_cq_count && attr.cq_mod_caps.max_cq_period);
	CHECK_EQ(attr.raw_packet_caps, IBV_RAW_PACKET_CAP_IP_CSUM);
	CHECK_EQ(attr.rss_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
	CHECK(attr.rss_caps.max_rwq_indirection_tables && attr.max_wq_type_rq);
}

TEST(always, "J-004 H-012 A-084 capabilities that every port of this device has")
{
	struct dev *d = dev_open_qhca();
	uint32_t want = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT |
			IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_BAD_PKEY_CNTR;

	CHECK_EQ(d->attr.device_cap_flags & want, want);
}

/* Moves a QP from INIT to RTS with these depths; returns the first error. */
static int connect_with(struct dev *d, unsigned int init_depth, unsigned int depth)
{
	struct end e = end_in(d, &QP_OPTS, IBV_QPS_INIT);
	struct conn c = CONN;
	struct ibv_qp_attr a;
	int mask, err;

	c.dest_qpn = e.qp->qp_num;
	mask = attr_rtr(&a, d, &c);
	a.max_dest_rd_atomic = depth;
	err = ibv_modify_qp(e.qp, &a, mask);
	if (err)
		return err;
	mask = attr_rts(&a, &c);
	a.max_rd_atomic = init_depth;
	return ibv_modify_qp(e.qp, &a, mask);
}

TEST(depths, "J-003 A-064 READ and atomic depths, to the limit and beyond")
{
	struct dev *d = dev_open_qhca();
	int init = d->attr.max_qp_init_rd_atom, resp = d->attr.max_qp_rd_atom;

	CHECK(init > 0 && resp > 0);
	CHECK(d->attr.max_res_rd_atom >= resp);
	CHECK_ERR(connect_with(d, init, resp), 0);
	CHECK_ERR(connect_with(d, 0, 0), 0);
	CHECK_ERR(connect_with(d, init + 1, resp), EINVAL);
	CHECK_ERR(connect_with(d, init, resp + 1), EINVAL);
}

static const struct {
	const char *name;
	int type;
} refused_types[] = {
	{ "reliable datagram", 5 },	/* in no enum: libibverbs never had it */
	{ "driver", IBV_QPT_DRIVER },
	{ "zero", 0 },
	{ "a number not in the enum", 7 },
	{ "nonsense", 77 },
};

TEST_ROWS(type, "A-012 A-016 QP types that are not offered", refused_types)
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 16, NULL);
	struct ibv_qp_init_attr_ex ex = {
		.qp_type = row->type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = d->pd,
	};
	struct ibv_qp_init_attr attr = {
		.qp_type = row->type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = ex.cap,
	};

	errno = 0;
	CHECK(!ibv_create_qp_ex(d->ctx, &ex));
	CHECK(errno == EOPNOTSUPP || errno == EINVAL);
	errno = 0;
	CHECK(!ibv_create_qp(d->pd, &attr));
	CHECK(errno == EOPNOTSUPP || errno == EINVAL);
	attr.qp_type = IBV_QPT_RC;
	CHECK(ibv_create_qp(d->pd, &attr));
}

TEST(partitions, "A-070 J-016 a Q_Key with bit 31 needs a privilege")
{
	struct dev *d = dev_open_qhca();
	struct qp_opts o = QP_OPTS;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qkey = 0x80010000,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	struct end e;

	o.type = IBV_QPT_UD;
	e = end_new(d, &o);
	/* The kernel checks CAP_NET_RAW, so root may set it. */
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), geteuid() ? EPERM : 0);
	REQUIRE_OK(set_state(e.qp, IBV_QPS_RESET));
	REQUIRE(!seteuid(65534));
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), EPERM);
	a.qkey = 0x7fffffff;
	CHECK_ERR(ibv_modify_qp(e.qp, &a, mask), 0);
}
