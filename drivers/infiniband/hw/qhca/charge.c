// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: what users take of the device besides objects.
 *
 * The core counts each object of a user in the rdma cgroup of whoever made it, but an object
 * may be large: a region can have all block addresses that the device has for all of them,
 * and a QP be in all groups. So what users share besides numbers is divided into as many parts
 * as there are objects of the scarcest kind, and an object counts for one more for each part
 * that it takes. Who may have a tenth of the objects then has at most a tenth of the rest.
 */
#include <linux/cgroup_rdma.h>

#include "qhca_ib.h"

/* However many objects a device claims to have: a part is a step of a loop. */
#define QHCA_IB_MAX_PARTS	BIT(18)

/* How many objects it counts for to have @used of @all. */
static u32 qhca_ib_num_objects(const struct qhca_ib_dev *dev, u64 used, u64 all)
{
	/* Of these each user needs some, and there are no fewer of the others. */
	u64 parts = min3(dev->limits->max_pd, dev->limits->max_qp, (u32)QHCA_IB_MAX_PARTS);

	return div64_u64(used * parts, all);
}

#ifdef CONFIG_CGROUP_RDMA
static void qhca_ib_uncharge_one(struct qhca_ib_dev *dev, struct rdma_cgroup *cg)
{
	rdmacg_uncharge(cg, &dev->ibdev.cg_device, RDMACG_RESOURCE_HCA_OBJECT);
}

static int qhca_ib_charge_one(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge)
{
	struct rdma_cgroup *cg;
	int ret;

	ret = rdmacg_try_charge(&cg, &dev->ibdev.cg_device, RDMACG_RESOURCE_HCA_OBJECT);
	if (ret)
		return ret;
	/* The process has moved, or is another one: all is given back to one cgroup. */
	if (charge->num && cg != charge->cg) {
		qhca_ib_uncharge_one(dev, cg);
		return -EAGAIN;
	}
	charge->cg = cg;
	charge->num++;
	return 0;
}
#else
static void qhca_ib_uncharge_one(struct qhca_ib_dev *dev, struct rdma_cgroup *cg)
{
}

static int qhca_ib_charge_one(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge)
{
	charge->num++;
	return 0;
}
#endif

/* Goes back to @num. */
static void qhca_ib_uncharge_to(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u32 num)
{
	while (charge->num > num) {
		qhca_ib_uncharge_one(dev, charge->cg);
		charge->num--;
		cond_resched();
	}
}

/**
 * qhca_ib_charge - let the caller's cgroup pay for a part of what users share
 * @dev: the HCA
 * @charge: what an object has been charged with besides itself; grows
 * @used: how much the caller takes
 * @all: of how much
 *
 * Context: process, that of the user.
 * Return: 0; -ENOMEM if the device has not as much; -EAGAIN as for any object if the cgroup may
 * not have as many.
 */
int qhca_ib_charge(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u64 used, u64 all)
{
	u32 before = charge->num, num;
	int ret;

	if (used > all)
		return qhca_ib_refuse(dev, -ENOMEM, "%llu of the device's %llu", used, all);
	num = qhca_ib_num_objects(dev, used, all);
	while (charge->num - before < num) {
		ret = qhca_ib_charge_one(dev, charge);
		if (ret) {
			qhca_ib_uncharge_to(dev, charge, before);
			return qhca_ib_refuse(dev, ret, "cgroup: %u objects more", num);
		}
		cond_resched();
	}
	return 0;
}

/**
 * qhca_ib_uncharge - give back what qhca_ib_charge() has taken
 * @dev: the HCA
 * @charge: of the object
 * @used: as then
 * @all: as then
 *
 * Context: process, any.
 */
void qhca_ib_uncharge(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u64 used, u64 all)
{
	qhca_ib_uncharge_to(dev, charge, charge->num - qhca_ib_num_objects(dev, used, all));
}

/**
 * qhca_ib_uncharge_all - give back all that an object was charged with
 * @dev: the HCA
 * @charge: of the object
 *
 * Context: process, any.
 */
void qhca_ib_uncharge_all(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge)
{
	qhca_ib_uncharge_to(dev, charge, 0);
}
