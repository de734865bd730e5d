// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: multicast groups of UD QPs. The device filters by itself: RoCE
 * packets to a group never pass the netdev.
 */
#include "qhca_ib.h"

/* struct qhca_ib_group - one attachment of a QP to a multicast group */
struct qhca_ib_group {
	struct list_head list;
	union ib_gid gid;
};

static int qhca_ib_mcast(struct ib_qp *ibqp, const union ib_gid *gid,
			 enum qhca_cmd_opcode opcode)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(opcode),
		.mcast.qpn = cpu_to_le32(to_qqp(ibqp)->qpn),
	};

	memcpy(cmd.mcast.gid, gid->raw, sizeof(cmd.mcast.gid));
	return qhca_cmd_exec(to_qdev(ibqp->device)->core, &cmd, NULL, NULL);
}

/* An attachment can be one of few groups, or one of few QPs in a group that others want as well. */
static u32 qhca_ib_max_attachments(const struct qhca_ib_dev *dev)
{
	return min(dev->limits->max_mcast_grp, dev->limits->max_mcast_qp);
}

/* A group is no object of the core, so charge the QP for its attachments. */
static int qhca_ib_charge_group(struct ib_qp *ibqp)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);

	return ibqp->uobject ? qhca_ib_charge(dev, &to_qqp(ibqp)->shares, 1,
					      qhca_ib_max_attachments(dev)) : 0;
}

static void qhca_ib_uncharge_group(struct ib_qp *ibqp)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);

	if (ibqp->uobject)
		qhca_ib_uncharge(dev, &to_qqp(ibqp)->shares, 1, qhca_ib_max_attachments(dev));
}

static int qhca_ib_do_attach_mcast(struct ib_qp *ibqp, const union ib_gid *gid)
{
	struct qhca_ib_group *group;
	int ret;

	group = kzalloc_obj(*group, GFP_KERNEL_ACCOUNT);
	if (!group)
		return -ENOMEM;
	group->gid = *gid;
	mutex_lock(&to_qqp(ibqp)->mutex);
	ret = qhca_ib_charge_group(ibqp);
	if (!ret) {
		ret = qhca_ib_mcast(ibqp, gid, QHCA_CMD_ATTACH_MCAST);
		if (ret)
			qhca_ib_uncharge_group(ibqp);
		else
			list_add(&group->list, &to_qqp(ibqp)->joined);
	}
	mutex_unlock(&to_qqp(ibqp)->mutex);
	if (ret)
		kfree(group);
	return ret;
}

static struct qhca_ib_group *qhca_ib_group_find(const struct qhca_ib_qp *qp,
						const union ib_gid *gid)
{
	struct qhca_ib_group *group;

	list_for_each_entry(group, &qp->joined, list)
		if (!memcmp(&group->gid, gid, sizeof(*gid)))
			return group;
	return NULL;
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
 * If a QP cannot leave its groups, the core never frees it. So a device that refuses to detach an
 * attached QP is declared dead.
 *
 * Return: 0, also from a dead device, which has no groups; -EINVAL if the QP is not in the group.
 */
int qhca_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_ib_group *group;
	int ret;

	mutex_lock(&qp->mutex);
	group = qhca_ib_group_find(qp, gid);
	ret = qhca_ib_mcast(ibqp, gid, QHCA_CMD_DETACH_MCAST);
	if (group) {
		list_del(&group->list);
		qhca_ib_uncharge_group(ibqp);
	}
	mutex_unlock(&qp->mutex);
	if (!group)
		return ret;
	kfree(group);
	if (ret)
		qhca_health_die(to_qdev(ibqp->device)->core, "a group could not be left");
	return 0;
}
