// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: the performance management agent of the port (IBTA 16.1). The core asks it for
 * /sys/class/infiniband/.../ports/1/counters, and other hosts ask it with MADs.
 *
 * It counts RoCE packets only, as tx_pkts and rx_pkts in hw_counters do. Counters of errors that
 * this port cannot have, or that are not counted, are 0. The counters cannot be cleared: they are
 * the device's.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "qhca_ib.h"

/* PortSelect of all ports, of which there is one. */
#define QHCA_IB_ALL_PORTS	0xff

static u32 qhca_ib_sat(u64 val, u32 max)
{
	return min_t(u64, val, max);
}

static void qhca_ib_pma_class(struct ib_class_port_info *info)
{
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	/* There are 64-bit counters, but not for unicast and multicast apart. */
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF |
				IB_PMA_CLASS_CAP_ALLPORTSELECT;
}

/* These counters stop at their largest value. */
static void qhca_ib_pma_counters(struct ib_pma_portcounters *out, const u64 *cnt)
{
	out->port_rcv_errors = cpu_to_be16(qhca_ib_sat(cnt[QHCA_CNT_RX_ICRC] +
						       cnt[QHCA_CNT_RX_MALFORMED], U16_MAX));
	out->port_xmit_discards = cpu_to_be16(qhca_ib_sat(cnt[QHCA_CNT_TX_DROPPED], U16_MAX));
	out->port_xmit_data = cpu_to_be32(qhca_ib_sat(cnt[QHCA_CNT_TX_BYTES] / 4, U32_MAX));
	out->port_rcv_data = cpu_to_be32(qhca_ib_sat(cnt[QHCA_CNT_RX_BYTES] / 4, U32_MAX));
	out->port_xmit_packets = cpu_to_be32(qhca_ib_sat(cnt[QHCA_CNT_TX_PKTS], U32_MAX));
	out->port_rcv_packets = cpu_to_be32(qhca_ib_sat(cnt[QHCA_CNT_RX_PKTS], U32_MAX));
}

static void qhca_ib_pma_counters_ext(struct ib_pma_portcounters_ext *out, const u64 *cnt)
{
	out->port_xmit_data = cpu_to_be64(cnt[QHCA_CNT_TX_BYTES] / 4);
	out->port_rcv_data = cpu_to_be64(cnt[QHCA_CNT_RX_BYTES] / 4);
	out->port_xmit_packets = cpu_to_be64(cnt[QHCA_CNT_TX_PKTS]);
	out->port_rcv_packets = cpu_to_be64(cnt[QHCA_CNT_RX_PKTS]);
}

/* Fill in the attribute that @in asks for. Returns the status of the answer. */
static u16 qhca_ib_pma_get(struct qhca_ib_dev *dev, const struct ib_pma_mad *in,
			   struct ib_pma_mad *out)
{
	const struct ib_pma_portcounters *want = (const void *)in->data;
	struct ib_pma_portcounters *have = (void *)out->data;
	u64 cnt[QHCA_CNT_MAX];

	if (in->mad_hdr.class_version != 1)
		return IB_MGMT_MAD_STATUS_BAD_VERSION;
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		qhca_ib_pma_class((void *)out->data);
		return 0;
	case IB_PMA_PORT_COUNTERS:
	case IB_PMA_PORT_COUNTERS_EXT:
		break;
	default:
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	}
	/* Both attributes begin with the same members. */
	if (want->port_select != QHCA_IB_PORT && want->port_select != QHCA_IB_ALL_PORTS)
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	if (qhca_ib_query_counters(dev, cnt))
		return IB_MGMT_MAD_STATUS_BUSY;
	have->port_select = want->port_select;
	have->counter_select = want->counter_select;
	if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS)
		qhca_ib_pma_counters(have, cnt);
	else
		qhca_ib_pma_counters_ext((void *)out->data, cnt);
	return 0;
}

/**
 * qhca_ib_process_mad - process_mad verb: answer MADs to the agents in the port
 * @ibdev: the HCA
 * @flags: IB_MAD_*; nothing here has a key
 * @port: port number
 * @in_wc: how @in came, or NULL from the core itself
 * @in_grh: where @in came from, or NULL from the core itself
 * @in: the request, from anybody
 * @out: filled in
 * @out_size: bytes of @out
 * @out_pkey_index: not needed
 *
 * Context: process.
 * Return: IB_MAD_RESULT_*; all but requests to the performance management agent are for others.
 */
int qhca_ib_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *in_wc,
			const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
			size_t *out_size, u16 *out_pkey_index)
{
	const struct ib_mad_hdr *hdr = &in->mad_hdr;
	u16 status;

	if (hdr->mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    (hdr->method != IB_MGMT_METHOD_GET && hdr->method != IB_MGMT_METHOD_SET))
		return IB_MAD_RESULT_SUCCESS;

	memset(out, 0, sizeof(*out));
	out->mad_hdr = *hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	status = qhca_ib_pma_get(to_qdev(ibdev), (const void *)in, (void *)out);
	/* The core does not look at the status, but at the result. */
	if (status && !in_wc)
		return IB_MAD_RESULT_FAILURE;
	out->mad_hdr.status = cpu_to_be16(status);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
