// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: the port, its GID table and its one P_Key. */
#include <linux/etherdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "qhca_ib.h"

/* IBTA's VLCap: one data VL. */
#define QHCA_IB_VL_CAP_1	1

/**
 * qhca_ib_port_is_active - whether the port sends and receives RoCE packets
 * @dev: the HCA
 *
 * Context: any.
 */
bool qhca_ib_port_is_active(struct qhca_ib_dev *dev)
{
	return netif_running(dev->ndev) && netif_carrier_ok(dev->ndev) &&
	       !qhca_is_dead(dev->core);
}

/**
 * qhca_ib_active_mtu - largest path MTU that fits into a frame of the netdev's MTU
 * @dev: the HCA
 *
 * Return: an enum ib_mtu; IB_MTU_256 also if a frame has no room for even that.
 */
int qhca_ib_active_mtu(const struct qhca_ib_dev *dev)
{
	return iboe_get_mtu(READ_ONCE(dev->ndev->mtu)) ?: IB_MTU_256;
}

/**
 * qhca_ib_port_init - read the port's constant attributes
 * @dev: the HCA
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_port_init(struct qhca_ib_dev *dev)
{
	struct qhca_port_attr hw;
	int ret;

	ret = qhca_ib_query(dev, QHCA_CMD_QUERY_PORT, QHCA_IB_PORT, &hw, sizeof(hw));
	if (ret)
		return ret;
	dev->max_mtu = iboe_get_mtu(le32_to_cpu(hw.max_mtu));
	return dev->max_mtu ? 0 : -EINVAL;
}

static void qhca_ib_port_state(struct qhca_ib_dev *dev, struct ib_port_attr *attr)
{
	if (qhca_ib_port_is_active(dev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
		return;
	}
	attr->state = IB_PORT_DOWN;
	attr->phys_state = netif_running(dev->ndev) ? IB_PORT_PHYS_STATE_POLLING :
						      IB_PORT_PHYS_STATE_DISABLED;
}

/**
 * qhca_ib_query_port - query_port verb
 * @ibdev: the HCA
 * @port: port number, valid
 * @attr: zero; filled in
 *
 * The port of a dead device is down. Do not return an error for it, or the core would not dispatch
 * PORT_ERR.
 *
 * Context: process, without RTNL.
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct qhca_ib_dev *dev = to_qdev(ibdev);
	struct qhca_port_attr hw = {};
	int ret;

	ret = qhca_ib_query(dev, QHCA_CMD_QUERY_PORT, port, &hw, sizeof(hw));
	if (ret && !qhca_is_dead(dev->core))
		return ret;
	ret = ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width);
	if (ret)
		return ret;

	qhca_ib_port_state(dev, attr);
	attr->max_mtu = dev->max_mtu;
	attr->active_mtu = qhca_ib_active_mtu(dev);
	attr->phys_mtu = ib_mtu_enum_to_int(attr->active_mtu);
	attr->gid_tbl_len = qhca_ib_gid_len(dev);
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = dev->limits->max_msg_size;
	attr->bad_pkey_cntr = le32_to_cpu(hw.bad_pkey_cntr);
	attr->qkey_viol_cntr = le32_to_cpu(hw.qkey_viol_cntr);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = QHCA_IB_VL_CAP_1;
	return 0;
}

/**
 * qhca_ib_query_port_speed - query_port_speed verb
 * @ibdev: the HCA
 * @port: port number, valid
 * @speed: filled in: the bandwidth in units of 100 Mb/s, rounded up
 *
 * Width and speed, in query_port, know only some values. This one is the limit that the operator of
 * the device has set. qhca_ib_check_speed() tells of a change.
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct qhca_port_attr hw;
	int ret;

	ret = qhca_ib_query(to_qdev(ibdev), QHCA_CMD_QUERY_PORT, port, &hw, sizeof(hw));
	if (ret)
		return ret;
	*speed = DIV_ROUND_UP(le32_to_cpu(hw.speed), 100);
	return 0;
}

/**
 * qhca_ib_get_port_immutable - the port's constant attributes
 * @ibdev: the HCA
 * @port: port number
 * @immutable: filled in
 *
 * MADs, and with them the CM, need a GSI QP; without one the port still is RoCE v2.
 *
 * Return: 0.
 */
int qhca_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
			       struct ib_port_immutable *immutable)
{
	struct qhca_ib_dev *dev = to_qdev(ibdev);

	immutable->gid_tbl_len = qhca_ib_gid_len(dev);
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

/**
 * qhca_ib_get_link_layer - get_link_layer verb
 * @ibdev: the HCA
 * @port: port number
 */
enum rdma_link_layer qhca_ib_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

/**
 * qhca_ib_query_pkey - query_pkey verb
 * @ibdev: the HCA
 * @port: port number
 * @index: entry of the table
 * @pkey: filled in
 *
 * Return: 0, or -EINVAL if there is no such entry.
 */
int qhca_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static int qhca_ib_set_gid(struct qhca_ib_dev *dev, const struct ib_gid_attr *attr)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_SET_GID) };
	struct qhca_cmd_set_gid *body = &cmd.set_gid;
	u16 vlan;
	int ret;

	ret = rdma_read_gid_l2_fields(attr, &vlan, body->smac);
	if (ret)
		return ret;
	memcpy(body->gid, attr->gid.raw, sizeof(body->gid));
	/* VLAN 0 stands for no VLAN: such a tag carries only a priority. */
	body->vlan = cpu_to_le16(vlan && vlan < VLAN_N_VID ? vlan : QHCA_NO_VLAN);
	body->index = cpu_to_le16(attr->index);
	body->port = attr->port_num;
	body->valid = 1;
	return qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
}

/**
 * qhca_ib_add_gid - add_gid verb: pass a new GID to the device
 * @attr: the entry
 * @context: not needed
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qhca_ib_dev *dev = to_qdev(attr->device);
	int ret;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP || attr->index >= QHCA_IB_MAX_GID)
		return -EINVAL;

	mutex_lock(&dev->gid_lock);
	ret = qhca_ib_set_gid(dev, attr);
	if (!ret)
		set_bit(attr->index, dev->gid_valid);
	mutex_unlock(&dev->gid_lock);
	return ret;
}

/**
 * qhca_ib_del_gid - del_gid verb: remove a GID from the device
 * @attr: the entry
 * @context: not needed
 *
 * Return: 0, also for a dead device, which uses no GIDs anyway.
 */
int qhca_ib_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qhca_ib_dev *dev = to_qdev(attr->device);
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_SET_GID),
		.set_gid.index = cpu_to_le16(attr->index),
		.set_gid.port = attr->port_num,
	};
	int ret;

	mutex_lock(&dev->gid_lock);
	clear_bit(attr->index, dev->gid_valid);
	ret = qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
	mutex_unlock(&dev->gid_lock);
	if (ret && !qhca_is_dead(dev->core))
		ibdev_warn(&dev->ibdev, "GID %u not cleared: %d\n", attr->index, ret);
	return 0;
}

static void qhca_ib_refresh_gid(struct qhca_ib_dev *dev, unsigned int index)
{
	const struct ib_gid_attr *attr;
	int ret = 0;

	mutex_lock(&dev->gid_lock);
	/* Test under the lock, so that a GID is not set again after its deletion. */
	if (test_bit(index, dev->gid_valid)) {
		attr = rdma_get_gid_attr(&dev->ibdev, QHCA_IB_PORT, index);
		if (!IS_ERR(attr)) {
			ret = qhca_ib_set_gid(dev, attr);
			rdma_put_gid_attr(attr);
		}
	}
	mutex_unlock(&dev->gid_lock);
	if (ret)
		ibdev_warn(&dev->ibdev, "GID %u keeps its old MAC address: %d\n", index, ret);
}

/**
 * qhca_ib_gid_work - give the device the new MAC address for all GIDs
 * @work: gid_work of the HCA
 *
 * When a MAC address changes the core replaces the default GIDs, but not the GIDs of IP addresses,
 * whose frames must be sent from the new address as well.
 */
void qhca_ib_gid_work(struct work_struct *work)
{
	struct qhca_ib_dev *dev = container_of(work, struct qhca_ib_dev, gid_work);
	unsigned int index;

	for_each_set_bit(index, dev->gid_valid, QHCA_IB_MAX_GID)
		qhca_ib_refresh_gid(dev, index);
}
