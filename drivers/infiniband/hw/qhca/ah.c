// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: address vectors and address handles. A handle is an address vector
 * that is copied into the WQE; the device knows no handles.
 */
#include <linux/capability.h>
#include <linux/etherdevice.h>
#include <linux/nsproxy.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>

#include "qhca_ib.h"

/* The device ignores static rates, but values that are not rates are refused. */
static bool qhca_ib_rate_ok(u8 rate)
{
	return rate == IB_RATE_PORT_CURRENT || ib_rate_to_mbps(rate) > 0;
}

/**
 * qhca_ib_check_ah_attr - whether the device can reach that address
 * @dev: the HCA
 * @attr: the address
 *
 * Return: 0 or -EINVAL.
 */
int qhca_ib_check_ah_attr(struct qhca_ib_dev *dev, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return qhca_ib_refuse(dev, -EINVAL, "address: type %u is not RoCE, or no GRH",
				      attr->type);
	if (rdma_ah_get_port_num(attr) != QHCA_IB_PORT || rdma_ah_get_sl(attr) > 15)
		return qhca_ib_refuse(dev, -EINVAL, "address: port %u, service level %u",
				      rdma_ah_get_port_num(attr), rdma_ah_get_sl(attr));
	if (!qhca_ib_rate_ok(rdma_ah_get_static_rate(attr)))
		return qhca_ib_refuse(dev, -EINVAL, "address: static rate %u",
				      rdma_ah_get_static_rate(attr));
	if (grh->sgid_index >= qhca_ib_gid_len(dev))
		return qhca_ib_refuse(dev, -EINVAL, "address: GID index %u", grh->sgid_index);
	if (!grh->sgid_attr || grh->sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return qhca_ib_refuse(dev, -EINVAL, "address: GID %u is not RoCE v2",
				      grh->sgid_index);
	return 0;
}

/**
 * qhca_ib_check_gid_user - whether the calling process may send from a GID
 * @dev: the HCA
 * @attr: an address, checked
 * @udata: the user's, or NULL for a kernel consumer, which may use any GID
 *
 * In a device that several network namespaces share, the GID table holds the GIDs of all of them,
 * and the core does not check which of them a process uses. A process may use the GIDs of its own
 * network namespace, and those whose addresses it could send from with a raw socket there.
 *
 * Return: 0 or -EPERM.
 */
int qhca_ib_check_gid_user(struct qhca_ib_dev *dev, const struct rdma_ah_attr *attr,
			   struct ib_udata *udata)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct net_device *ndev;
	bool ok = false;

	if (!udata)
		return 0;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(grh->sgid_attr);
	if (!IS_ERR(ndev))
		ok = net_eq(dev_net(ndev), current->nsproxy->net_ns) ||
		     ns_capable(dev_net(ndev)->user_ns, CAP_NET_RAW);
	rcu_read_unlock();
	return ok ? 0 : qhca_ib_refuse(dev, -EPERM, "address: GID %u of another net namespace",
				       grh->sgid_index);
}

/**
 * qhca_ib_av_from_attr - convert an address to an address vector
 * @av: filled in
 * @attr: the address, checked
 * @pdn: PD of an address handle, or 0
 *
 * A flow label of 0 stays 0; the device then takes the UDP source port from the
 * two QPNs.
 */
void qhca_ib_av_from_attr(struct qhca_av *av, const struct rdma_ah_attr *attr, u32 pdn)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	memset(av, 0, sizeof(*av));
	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	ether_addr_copy(av->dmac, attr->roce.dmac);
	av->sgid_index = grh->sgid_index;
	av->hop_limit = grh->hop_limit;
	av->flow_label = cpu_to_le32(grh->flow_label & IB_GRH_FLOWLABEL_MASK);
	av->pdn = cpu_to_le32(pdn);
	av->tclass = grh->traffic_class;
	av->sl = rdma_ah_get_sl(attr);
	av->port = rdma_ah_get_port_num(attr);
	av->static_rate = rdma_ah_get_static_rate(attr);
}

/**
 * qhca_ib_av_to_attr - convert an address vector to an address
 * @dev: the HCA
 * @attr: filled in
 * @av: the address vector
 */
void qhca_ib_av_to_attr(struct qhca_ib_dev *dev, struct rdma_ah_attr *attr,
			const struct qhca_av *av)
{
	union ib_gid dgid;

	memset(attr, 0, sizeof(*attr));
	memcpy(dgid.raw, av->dgid, sizeof(dgid.raw));
	attr->type = rdma_ah_find_type(&dev->ibdev, QHCA_IB_PORT);
	rdma_ah_set_grh(attr, &dgid, le32_to_cpu(av->flow_label), av->sgid_index,
			av->hop_limit, av->tclass);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_port_num(attr, av->port);
	rdma_ah_set_static_rate(attr, av->static_rate);
	ether_addr_copy(attr->roce.dmac, av->dmac);
}

/* The user's provider builds the address vector itself. */
static int qhca_ib_ah_respond(const struct qhca_av *av, struct ib_udata *udata)
{
	struct qhca_create_ah_resp resp = { .hop_limit = av->hop_limit };

	ether_addr_copy(resp.dmac, av->dmac);
	return ib_respond_udata(udata, resp);
}

/* Users write the GID index into their WQEs, so tell the device which indices this page may use. */
static int qhca_ib_allow_gid(struct qhca_ib_dev *dev, const struct qhca_ib_ucontext *ctx,
			     u8 index)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(QHCA_CMD_ALLOW_GID),
		.allow_gid.uar = cpu_to_le32(ctx->uar),
		.allow_gid.index = cpu_to_le16(index),
		.allow_gid.port = QHCA_IB_PORT,
		.allow_gid.allow = 1,
	};

	return qhca_cmd_exec(dev->core, &cmd, NULL, NULL);
}

/* Limit the address handles of one user, so that others and the CM still get memory. */
static int qhca_ib_ah_charge(struct qhca_ib_dev *dev, struct qhca_ib_ah *ah,
			     struct ib_udata *udata)
{
	ah->ctx = rdma_udata_to_drv_context(udata, struct qhca_ib_ucontext, ibucontext);
	if (atomic_add_unless(&ah->ctx->num_ah, 1, QHCA_IB_MAX_AH))
		return 0;
	return qhca_ib_refuse(dev, -ENOMEM, "address handle: context has %u", QHCA_IB_MAX_AH);
}

static int qhca_ib_do_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init_attr,
				struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibah->device);
	struct qhca_ib_ah *ah = to_qah(ibah);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	ret = qhca_ib_check_ah_attr(dev, init_attr->ah_attr);
	if (!ret)
		ret = qhca_ib_check_gid_user(dev, init_attr->ah_attr, udata);
	if (ret)
		return ret;
	qhca_ib_av_from_attr(&ah->av, init_attr->ah_attr, to_qpd(ibah->pd)->pdn);
	if (!udata)
		return 0;
	ret = qhca_ib_ah_charge(dev, ah, udata);
	if (ret)
		return ret;
	ret = qhca_ib_allow_gid(dev, ah->ctx, ah->av.sgid_index);
	if (!ret)
		ret = qhca_ib_ah_respond(&ah->av, udata);
	if (ret)
		atomic_dec(&ah->ctx->num_ah);
	return ret;
}

/**
 * qhca_ib_create_ah - create_ah verb, for the kernel and for users
 * @ibah: the address handle
 * @init_attr: the address
 * @udata: the user's, or NULL
 *
 * Return: 0 or a negative errno; -ENOMEM if the user context already has max_ah address handles,
 * -EPERM if the process may not send from that GID.
 */
int qhca_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init_attr,
		      struct ib_udata *udata)
{
	return qhca_ib_count_err(to_qdev(ibah->device), QHCA_IB_CREATE_AH_ERR,
				 qhca_ib_do_create_ah(ibah, init_attr, udata));
}

/**
 * qhca_ib_query_ah - query_ah verb
 * @ibah: the address handle
 * @attr: filled in
 *
 * Return: 0.
 */
int qhca_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	qhca_ib_av_to_attr(to_qdev(ibah->device), attr, &to_qah(ibah)->av);
	return 0;
}

/**
 * qhca_ib_destroy_ah - destroy_ah verb
 * @ibah: the address handle
 * @flags: RDMA_DESTROY_AH_SLEEPABLE or 0; this function never sleeps
 *
 * Return: 0.
 */
int qhca_ib_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct qhca_ib_ah *ah = to_qah(ibah);

	if (ah->ctx)
		atomic_dec(&ah->ctx->num_ah);
	return 0;
}
