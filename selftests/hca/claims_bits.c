// SPDX-License-Identifier: GPL-2.0
/*
 * Each bit of what verbs say of the device: one that is set has a test that uses it, and one that
 * is not set is refused. A bit that is set and in no table is a failure. See claims.c.
 */
#include "lib/claims.h"
#include "lib/rdma.h"

/* struct bit - a capability; @probe returns 0 if it can be used, NULL: the tests of @proof do so */
struct bit {
	const char *name;
	uint64_t bit;
	const char *proof;
	int (*probe)(struct dev *d);
	bool new;		/* older kernels do not know it */
};

#define KERNEL_ONLY	"(only the kernel could ask for it)"
#define NO_SUBNET	"(there is no subnet management)"
#define MAY_BE_LOST	"(a message for a page that is absent gets lost)"

static struct ibv_device_attr_ex query(struct dev *d)
{
	struct ibv_device_attr_ex attr = {};

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return attr;
}

static void check_bit(struct dev *d, const struct bit *b, uint64_t said)
{
	int err;

	check_proof(b->name, b->proof);
	if (!b->probe)
		return;
	err = b->probe(d);
	if (said & b->bit)
		CHECK_ERR(err, 0);
	else
		CHECK(err == EOPNOTSUPP || err == EINVAL);
}

static void check_all(const struct bit *bits, size_t n, uint64_t said)
{
	uint64_t known = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		CHECK(!(known & bits[i].bit));
		known |= bits[i].bit;
	}
	if (said & ~known)
		FAIL("%#llx: in no table", (unsigned long long)(said & ~known));
}

/* ---- probes of what the device does not have ---- */

static int make_raw(struct dev *d, uint32_t flags)
{
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = cq, .recv_cq = cq, .pd = d->pd,
		.cap = { 1, 1, 1, 1, 0 }, .create_flags = flags,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp_ex(d->ctx, &init);
	return qp ? ibv_destroy_qp(qp) : errno;
}

static int make_wq(struct dev *d, uint32_t flags)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = d->pd,
		.cq = cq_new(d, 4, NULL), .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
		.create_flags = flags,
	};
	struct ibv_wq *wq;

	errno = 0;
	wq = ibv_create_wq(d->ctx, &attr);
	return wq ? ibv_destroy_wq(wq) : errno;
}

/* The same for a QP and for a WQ. */
static int both(int qp, int wq)
{
	CHECK(!qp == !wq);
	return qp ? qp : wq;
}

static int probe_fcs(struct dev *d)
{
	return both(make_raw(d, IBV_QP_CREATE_SCATTER_FCS), make_wq(d, IBV_WQ_FLAGS_SCATTER_FCS));
}

static int probe_padding(struct dev *d)
{
	return both(make_raw(d, IBV_QP_CREATE_PCI_WRITE_END_PADDING),
		    make_wq(d, IBV_WQ_FLAGS_PCI_WRITE_END_PADDING));
}

static int probe_vlan(struct dev *d)
{
	return both(make_raw(d, IBV_QP_CREATE_CVLAN_STRIPPING),
		    make_wq(d, IBV_WQ_FLAGS_CVLAN_STRIPPING));
}

static int probe_delay_drop(struct dev *d)
{
	return make_wq(d, IBV_WQ_FLAGS_DELAY_DROP);
}

static int probe_raw_mcast(struct dev *d)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = 1 } };
	struct qp_opts o = QP_OPTS;

	o.type = IBV_QPT_RAW_PACKET;
	return ibv_attach_mcast(end_new(d, &o).qp, &gid, 0);
}

/* ---- query_device ---- */

static const struct bit device_bits[] = {
	{ "RESIZE_MAX_WR", IBV_DEVICE_RESIZE_MAX_WR, "caps: promise" },
	{ "BAD_PKEY_CNTR", IBV_DEVICE_BAD_PKEY_CNTR, "claims: port" },
	{ "BAD_QKEY_CNTR", IBV_DEVICE_BAD_QKEY_CNTR, "ud: qkey" },
	{ "RAW_MULTI", IBV_DEVICE_RAW_MULTI, "mcast: checks", probe_raw_mcast },
	{ "AUTO_PATH_MIG", IBV_DEVICE_AUTO_PATH_MIG, "caps: promise" },
	{ "CHANGE_PHY_PORT", IBV_DEVICE_CHANGE_PHY_PORT, "qp_attr: value" },
	{ "UD_AV_PORT_ENFORCE", IBV_DEVICE_UD_AV_PORT_ENFORCE, "ud: bad_ah" },
	{ "CURR_QP_STATE_MOD", IBV_DEVICE_CURR_QP_STATE_MOD, "caps: promise" },
	{ "SHUTDOWN_PORT", IBV_DEVICE_SHUTDOWN_PORT, KERNEL_ONLY },
	{ "INIT_TYPE", IBV_DEVICE_INIT_TYPE, KERNEL_ONLY },
	{ "PORT_ACTIVE_EVENT", IBV_DEVICE_PORT_ACTIVE_EVENT, "port: updown" },
	{ "SYS_IMAGE_GUID", IBV_DEVICE_SYS_IMAGE_GUID, "port: guid" },
	{ "RC_RNR_NAK_GEN", IBV_DEVICE_RC_RNR_NAK_GEN, "qp_effects: rnr" },
	{ "SRQ_RESIZE", IBV_DEVICE_SRQ_RESIZE, "caps: promise" },
	{ "N_NOTIFY_CQ", IBV_DEVICE_N_NOTIFY_CQ, KERNEL_ONLY },
	{ "MEM_WINDOW", IBV_DEVICE_MEM_WINDOW, "caps: promise" },
	{ "UD_IP_CSUM", IBV_DEVICE_UD_IP_CSUM, "post: flags" },
	{ "XRC", IBV_DEVICE_XRC, "caps: promise" },
	{ "MEM_MGT_EXTENSIONS", IBV_DEVICE_MEM_MGT_EXTENSIONS, "mw: bind, mw: send_inv" },
	{ "MEM_WINDOW_TYPE_2A", IBV_DEVICE_MEM_WINDOW_TYPE_2A, "mw: caps" },
	{ "MEM_WINDOW_TYPE_2B", IBV_DEVICE_MEM_WINDOW_TYPE_2B, "mw: caps, caps: promise" },
	{ "RC_IP_CSUM", IBV_DEVICE_RC_IP_CSUM, "post: flags" },
	{ "RAW_IP_CSUM", IBV_DEVICE_RAW_IP_CSUM, "raw: checksum" },
	{ "MANAGED_FLOW_STEERING", IBV_DEVICE_MANAGED_FLOW_STEERING, "raw: takes" },
	{ "RAW_SCATTER_FCS", IBV_DEVICE_RAW_SCATTER_FCS, "mcast: flags", probe_fcs },
	{ "PCI_WRITE_END_PADDING", IBV_DEVICE_PCI_WRITE_END_PADDING, "rwq: bad", probe_padding },
	{ "FLUSH_GLOBAL", 1ull << 38, "translate: request" },
	{ "FLUSH_PERSISTENT", 1ull << 39, "flush: rights" },
	{ "ATOMIC_WRITE", 1ull << 40, "translate: request" },
};

TEST_ROWS(device_bit, "J-034 J-004 device_cap_flags_ex: used if set, refused if not", device_bits)
{
	struct dev *d = dev_open_qhca();

	check_bit(d, row, query(d).device_cap_flags_ex);
	check_all(device_bits, ARRAY_SIZE(device_bits), query(d).device_cap_flags_ex);
}

static const struct bit raw_bits[] = {
	{ "CVLAN_STRIPPING", IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, "rwq: bad", probe_vlan },
	{ "SCATTER_FCS", IBV_RAW_PACKET_CAP_SCATTER_FCS, "mcast: flags", probe_fcs },
	{ "IP_CSUM", IBV_RAW_PACKET_CAP_IP_CSUM, "raw: checksum" },
	{ "DELAY_DROP", IBV_RAW_PACKET_CAP_DELAY_DROP, "rwq: bad", probe_delay_drop },
};

TEST_ROWS(raw_bit, "J-034 J-004 raw_packet_caps: used if set, refused if not", raw_bits)
{
	struct dev *d = dev_open_qhca();

	check_bit(d, row, query(d).raw_packet_caps);
	check_all(raw_bits, ARRAY_SIZE(raw_bits), query(d).raw_packet_caps);
}

/* ---- paging on demand: of all transports in one number, see odp_said() ---- */

#define GENERAL(bit)	(1ull << (bit))
#define RELIABLE(bit)	(1ull << (8 + (bit)))
#define UC(bit)		(1ull << (16 + (bit)))
#define UD(bit)		(1ull << (24 + (bit)))

static const struct bit odp_bits[] = {
	{ "paging", GENERAL(0), "odp: messages" },
	{ "implicit regions", GENERAL(1), "odp_share: pieces" },
	{ "RC, SEND", RELIABLE(0), "odp: messages" },
	{ "RC, RECV", RELIABLE(1), "odp: messages" },
	{ "RC, WRITE", RELIABLE(2), "odp: messages" },
	{ "RC, READ", RELIABLE(3), "odp: messages" },
	{ "RC, atomics", RELIABLE(4), "odp: messages" },
	{ "RC, SRQ", RELIABLE(5), "odp_types: use" },
	{ "RC, FLUSH", RELIABLE(6), "odp_types: use", .new = true },
	{ "RC, ATOMIC WRITE", RELIABLE(7), "odp_types: use", .new = true },
	{ "UC, SEND", UC(0), "odp_types: use" },
	{ "UC, RECV", UC(1), MAY_BE_LOST },
	{ "UC, WRITE", UC(2), MAY_BE_LOST },
	{ "UD, SEND", UD(0), "odp_types: use" },
	{ "UD, RECV", UD(1), MAY_BE_LOST },
	{ "UD, SRQ", UD(5), MAY_BE_LOST },
};

static uint64_t odp_said(const struct ibv_odp_caps *caps)
{
	CHECK(caps->general_caps < 256 && caps->per_transport_caps.rc_odp_caps < 256 &&
	      caps->per_transport_caps.uc_odp_caps < 256 &&
	      caps->per_transport_caps.ud_odp_caps < 256);
	return caps->general_caps | (uint64_t)caps->per_transport_caps.rc_odp_caps << 8 |
	       (uint64_t)caps->per_transport_caps.uc_odp_caps << 16 |
	       (uint64_t)caps->per_transport_caps.ud_odp_caps << 24;
}

TEST_ROWS(odp_bit, "J-034 F-018 odp_caps: exactly what loses no message", odp_bits)
{
	struct ibv_device_attr_ex attr = query(dev_open_qhca());
	uint64_t said = odp_said(&attr.odp_caps);

	check_proof(row->name, row->proof);
	if (!row->new || said & row->bit)
		CHECK_EQ(!(said & row->bit), row->proof[0] == '(');
	check_all(odp_bits, ARRAY_SIZE(odp_bits), said);
}

/* ---- the port: what is used is set, and nothing else ---- */

static const struct bit port_bits[] = {
	{ "CM_SUP", IBV_PORT_CM_SUP, "cm: hundred" },
	{ "IP_BASED_GIDS", IBV_PORT_IP_BASED_GIDS, "gids: connected" },
	{ "SM", IBV_PORT_SM, NO_SUBNET },
	{ "AUTO_MIGR_SUP", IBV_PORT_AUTO_MIGR_SUP, "(see AUTO_PATH_MIG of the device)" },
	{ "SL_MAP_SUP", IBV_PORT_SL_MAP_SUP, NO_SUBNET },
	{ "CAP_MASK2_SUP", IBV_PORT_CAP_MASK2_SUP, NO_SUBNET },
	{ "DEVICE_MGMT_SUP", IBV_PORT_DEVICE_MGMT_SUP, NO_SUBNET },
	{ "VENDOR_CLASS_SUP", IBV_PORT_VENDOR_CLASS_SUP, NO_SUBNET },
};

TEST_ROWS(port_bit, "J-034 J-008 port_cap_flags: exactly what works", port_bits)
{
	struct dev *d = dev_open_qhca();

	check_proof(row->name, row->proof);
	CHECK_EQ(!(d->port.port_cap_flags & row->bit), row->proof[0] == '(');
	check_all(port_bits, ARRAY_SIZE(port_bits), d->port.port_cap_flags);
}
