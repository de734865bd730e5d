// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: attributes of the device. */
#include <linux/ktime.h>

#include "qhca_ib.h"

/*
 * Log2 of the longest time until this device acknowledges a request, in units of 4.096 us: 134 ms,
 * because the vCPU thread that sends the ACK may have to wait for its turn.
 */
#define QHCA_IB_CA_ACK_DELAY	15

static int qhca_ib_int(u64 val)
{
	return min_t(u64, val, INT_MAX);
}

#define QHCA_IB_CAP_FLAGS							\
	(IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |		\
	 IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |			\
	 IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_RC_RNR_NAK_GEN |		\
	 IB_DEVICE_UD_AV_PORT_ENFORCE | IB_DEVICE_MEM_MGT_EXTENSIONS |		\
	 IB_DEVICE_SRQ_RESIZE | IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_ATOMIC_WRITE |	\
	 IB_DEVICE_XRC | IB_DEVICE_MANAGED_FLOW_STEERING | IB_DEVICE_RAW_IP_CSUM |	\
	 IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B)

static void qhca_ib_device_limits(const struct qhca_ib_dev *dev, struct ib_device_attr *attr)
{
	const struct qhca_limits *l = dev->limits;

	attr->max_mr_size = l->max_mr_size;
	attr->page_size_cap = QHCA_IB_PAGE_SIZES;
	attr->max_qp = qhca_ib_int(l->max_qp);
	attr->max_qp_wr = BIT(min(l->max_sq_wr_log, l->max_rq_wr_log));
	attr->max_send_sge = qhca_ib_int(l->max_send_sge);
	attr->max_recv_sge = qhca_ib_int(l->max_recv_sge);
	attr->max_sge_rd = attr->max_send_sge;
	attr->max_cq = qhca_ib_int(l->max_cq) - qhca_num_eth_cqs(dev->core);
	attr->max_cqe = BIT(l->max_cqe_log);
	attr->max_mr = qhca_ib_int(l->max_mr);
	attr->max_mw = qhca_ib_int(l->max_mw);
	attr->max_fast_reg_page_list_len = qhca_ib_max_fast_reg(dev);
	attr->max_pd = qhca_ib_int(l->max_pd);
	attr->max_qp_rd_atom = qhca_ib_int(l->max_rd_atomic);
	attr->max_qp_init_rd_atom = qhca_ib_int(l->max_rd_atomic);
	attr->max_res_rd_atom = qhca_ib_int((u64)l->max_qp * l->max_rd_atomic);
	attr->max_ah = QHCA_IB_MAX_AH;
	attr->max_mcast_grp = qhca_ib_int(l->max_mcast_grp);
	attr->max_mcast_qp_attach = qhca_ib_int(l->max_mcast_qp);
	attr->max_total_mcast_qp_attach = qhca_ib_int((u64)l->max_mcast_grp * l->max_mcast_qp);
	attr->max_pkeys = 1;
	attr->max_dm_size = round_down(qhca_dm_size(dev->core), PAGE_SIZE);
	attr->cq_caps.max_cq_moderation_count = min_t(u32, l->max_cq_count, U16_MAX);
	attr->cq_caps.max_cq_moderation_period = min_t(u32, l->max_cq_period, U16_MAX);
	attr->max_srq = qhca_ib_int(l->max_srq);
	attr->max_srq_wr = BIT(l->max_srq_wr_log);
	attr->max_srq_sge = qhca_ib_int(l->max_srq_sge);
}

/* Read the device's clock, to be compared with the timestamps of CQEs, and what no verb tells. */
static int qhca_ib_query_more(struct qhca_ib_dev *dev, struct ib_udata *udata)
{
	struct qhca_query_device_ex_resp resp = {};

	if (!udata || !udata->outlen)
		return 0;
	resp.max_rate_limit = U32_MAX;
	resp.rate_limit_qpts = BIT(IB_QPT_RC) | BIT(IB_QPT_UC) | BIT(IB_QPT_UD) |
			       BIT(IB_QPT_XRC_INI) | BIT(IB_QPT_XRC_TGT) | BIT(IB_QPT_RAW_PACKET);
	resp.clock_ns = qhca_read_clock(dev->core);
	resp.real_ns = ktime_get_real_ns();
	return ib_respond_udata(udata, resp);
}

/*
 * Only what never loses a message because of an absent page: a sender waits, and the peer of a
 * reliable service sends again.
 */
static void qhca_ib_odp_caps(struct ib_device_attr *attr)
{
	const u32 reliable = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |
			     IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV |
			     IB_ODP_SUPPORT_FLUSH | IB_ODP_SUPPORT_ATOMIC_WRITE;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		return;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = reliable;
	attr->odp_caps.per_transport_caps.xrc_odp_caps = reliable;
	attr->odp_caps.per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	attr->odp_caps.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

static void qhca_ib_raw_caps(struct ib_device_attr *attr)
{
	attr->raw_packet_caps = IB_RAW_PACKET_CAP_IP_CSUM;
	attr->max_wq_type_rq = attr->max_qp;
	attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
	attr->rss_caps.max_rwq_indirection_tables = QHCA_SPREAD_MAX;
	attr->rss_caps.max_rwq_indirection_table_size = BIT(QHCA_SPREAD_LOG_MAX);
}

/**
 * qhca_ib_query_device - query_device verb
 * @ibdev: the HCA
 * @attr: zero; filled in
 * @udata: the user's, which may ask for the time
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			 struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibdev);
	struct pci_dev *pdev = qhca_pdev(dev->core);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;

	attr->fw_ver = dev->limits->fw_version;
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = pdev->vendor;
	attr->vendor_part_id = pdev->device;
	attr->hw_ver = pdev->revision;
	attr->device_cap_flags = QHCA_IB_CAP_FLAGS;
	attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK | IBK_SG_GAPS_REG;
	if (dev->limits->reserved_lkey)
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	qhca_ib_odp_caps(attr);
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->local_ca_ack_delay = QHCA_IB_CA_ACK_DELAY;
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = NSEC_PER_SEC / MSEC_PER_SEC;	/* kHz */
	qhca_ib_device_limits(dev, attr);
	qhca_ib_raw_caps(attr);
	return qhca_ib_query_more(dev, udata);
}

/**
 * qhca_ib_modify_device - modify_device verb
 * @ibdev: the HCA
 * @mask: what to change
 * @modify: values
 *
 * Return: 0, or -EOPNOTSUPP for all but the node description.
 */
int qhca_ib_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return qhca_ib_refuse(to_qdev(ibdev), -EOPNOTSUPP, "modify device: mask %#x",
				      mask);
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc, IB_DEVICE_NODE_DESC_MAX);
	return 0;
}

/**
 * qhca_ib_get_dev_fw_str - firmware version as text
 * @ibdev: the HCA
 * @str: IB_FW_VERSION_NAME_MAX bytes
 */
void qhca_ib_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	qhca_fw_text(to_qdev(ibdev)->limits, str, IB_FW_VERSION_NAME_MAX);
}
