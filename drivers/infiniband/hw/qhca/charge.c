// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: charge the rdma cgroup for what an object takes of the device besides its number.
 *
 * The core charges each object to the rdma cgroup of its creator, but one object can be large: a
 * region can take all block addresses of the device, and a QP can join all multicast groups. So
 * each such resource is divided into as many parts as there are objects of the scarcest kind, and
 * an object is charged one object more for each part that it takes. A cgroup that may have a tenth
 * of the objects then has at most a tenth of these resources.
 */
#include <linux/cgroup_rdma.h>

#include "qhca_ib.h"

/* A bound, whatever number of objects the device reports: each part is one step of a loop. */
#define QHCA_IB_MAX_PARTS	BIT(18)

/* How many objects to charge for @used of @all. */
static u32 qhca_ib_num_objects(const struct qhca_ib_dev *dev, u64 used, u64 all)
{
	/* Every user needs PDs and QPs, and the device has no fewer of any other kind. */
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
	/* One cgroup pays for all: refuse if the process has moved, or if another one calls. */
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

/* Uncharge objects until only @num are charged. */
static void qhca_ib_uncharge_to(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u32 num)
{
	while (charge->num > num) {
		qhca_ib_uncharge_one(dev, charge->cg);
		charge->num--;
		cond_resched();
	}
}

/**
 * qhca_ib_charge - charge the caller's cgroup for a part of a shared resource
 * @dev: the HCA
 * @charge: what the object has been charged with besides itself; grows
 * @used: how much the caller takes
 * @all: how much the device has
 *
 * Context: process, the user's own.
 *
 * Return: 0; -ENOMEM if @used exceeds @all; -EAGAIN, as for any object, if it exceeds the limit of
 * the cgroup.
 */
int qhca_ib_charge(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u64 used, u64 all)
{
	u32 before = charge->num, num;
	int ret;

	if (used > all)
		return qhca_ib_refuse(dev, -ENOMEM, "%llu of a resource of %llu", used, all);
	num = qhca_ib_num_objects(dev, used, all);
	while (charge->num - before < num) {
		ret = qhca_ib_charge_one(dev, charge);
		if (ret) {
			qhca_ib_uncharge_to(dev, charge, before);
			return qhca_ib_refuse(dev, ret, "cgroup: no room for %u more objects", num);
		}
		cond_resched();
	}
	return 0;
}

/* How many block addresses the tree of a region with on-demand paging takes at most. */
static u64 qhca_ib_tree_blocks(u64 pages)
{
	u64 blocks = 0;

	do {
		pages = DIV_ROUND_UP_ULL(pages, QHCA_TABLE_ENTRIES);
		blocks += pages * QHCA_NODE_BLOCKS;
	} while (pages > 1);
	return blocks;
}

/**
 * qhca_ib_charge_odp - charge the caller's cgroup for a region with on-demand paging
 * @dev: the HCA
 * @charge: what the region has been charged with besides itself; grows
 * @pages: how many pages it has
 *
 * Charge for all pages before one is present. The core takes up to 16 bytes of kernel memory for
 * each page at registration, and accounts them to no cgroup. A page fault could not charge the
 * owner: its work item is in another cgroup.
 *
 * Context: process, the user's own.
 *
 * Return: 0 or -EAGAIN, as qhca_ib_charge().
 */
int qhca_ib_charge_odp(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge, u64 pages)
{
	u64 all = dev->limits->max_table_blocks;

	/* Not all pages of the largest region can be present at a time. */
	return qhca_ib_charge(dev, charge, min(qhca_ib_tree_blocks(pages), all), all);
}

/**
 * qhca_ib_uncharge - give back what qhca_ib_charge() has taken
 * @dev: the HCA
 * @charge: the object's charge
 * @used: the value given to qhca_ib_charge()
 * @all: the value given to qhca_ib_charge()
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
 * @charge: the object's charge
 *
 * Context: process, any.
 */
void qhca_ib_uncharge_all(struct qhca_ib_dev *dev, struct qhca_ib_charge *charge)
{
	qhca_ib_uncharge_to(dev, charge, 0);
}
