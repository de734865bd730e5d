// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: multicast groups of UD QPs. The device filters by itself: RoCE
 * packets to a group never pass the netdev.
 */
#include "qhca_ib.h"

static int qhca_ib_mcast(struct ib_qp *ibqp, const union ib_gid *gid,
			 enum qhca_cmd_opcode opcode)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(opcode),
		.mcast.qpn = cpu_to_le32(to_qqp(ibqp)->qpn),
	};
	int ret;

	memcpy(cmd.mcast.gid, gid->raw, sizeof(cmd.mcast.gid));
	ret = qhca_cmd_exec(to_qdev(ibqp->device)->core, &cmd, NULL, NULL);
	if (!ret)
		atomic_add(opcode == QHCA_CMD_ATTACH_MCAST ? 1 : -1, &to_qqp(ibqp)->num_groups);
	return ret;
}

/* A group is no object, so what each of them counts for is on the QP's account. */
static void qhca_ib_group_left(struct ib_qp *ibqp)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);

	if (ibqp->uobject)
		qhca_ib_uncharge(dev, &to_qqp(ibqp)->groups, 1, dev->limits->max_mcast_grp);
}

static int qhca_ib_do_attach_mcast(struct ib_qp *ibqp, const union ib_gid *gid)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	int ret;

	if (ibqp->uobject) {
		ret = qhca_ib_charge(dev, &to_qqp(ibqp)->groups, 1, dev->limits->max_mcast_grp);
		if (ret)
			return ret;
	}
	ret = qhca_ib_mcast(ibqp, gid, QHCA_CMD_ATTACH_MCAST);
	if (ret)
		qhca_ib_group_left(ibqp);
	return ret;
}

/**
 * qhca_ib_attach_mcast - attach_mcast verb
 * @ibqp: the QP, of type UD
 * @gid: a multicast GID
 * @lid: means nothing here
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return qhca_ib_count_err(to_qdev(ibqp->device), QHCA_IB_ATTACH_MCAST_ERR,
				 qhca_ib_do_attach_mcast(ibqp, gid));
}

/**
 * qhca_ib_detach_mcast - detach_mcast verb
 * @ibqp: the QP
 * @gid: a multicast GID
 * @lid: means nothing here
 *
 * Return: 0 or a negative errno; 0 from a dead device, which has no groups.
 */
int qhca_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	int ret = qhca_ib_mcast(ibqp, gid, QHCA_CMD_DETACH_MCAST);

	if (!ret)
		qhca_ib_group_left(ibqp);
	return ret;
}
