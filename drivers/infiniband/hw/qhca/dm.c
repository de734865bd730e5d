// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_ib.ko: device memory, RAM on the adapter that users allocate, map and register. It is
 * allocated in whole pages, because only pages can be mapped, and zeroed, because another user may
 * have written to it. A bitmap manages it, because not every kernel has gen_pool.
 */
#include <linux/bitmap.h>
#include <linux/io.h>

#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

struct qhca_ib_dm {
	struct ib_dm ibdm;
	struct qhca_ib_mmap_entry *entry;
};

static struct qhca_ib_dm *to_qdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct qhca_ib_dm, ibdm);
}

static unsigned long qhca_ib_dm_num_pages(struct qhca_ib_dev *dev)
{
	return qhca_dm_size(dev->core) >> PAGE_SHIFT;
}

/* The BAR is aligned to its size, so an aligned offset gives an aligned address. */
static int qhca_ib_dm_alloc_pages(struct qhca_ib_dev *dev, size_t len, u32 log_align,
				  phys_addr_t *addr)
{
	unsigned long mask = (PAGE_ALIGN(BIT(log_align)) >> PAGE_SHIFT) - 1;
	unsigned long total = qhca_ib_dm_num_pages(dev);
	unsigned long n = len >> PAGE_SHIFT;
	unsigned long first;

	mutex_lock(&dev->dm_lock);
	first = bitmap_find_next_zero_area(dev->dm_used, total, 0, n, mask);
	if (first < total)
		bitmap_set(dev->dm_used, first, n);
	mutex_unlock(&dev->dm_lock);
	if (first >= total)
		return qhca_ib_refuse(dev, -ENOMEM, "device memory: no %zu contiguous bytes", len);
	memset_io(dev->dm_va + (first << PAGE_SHIFT), 0, len);
	*addr = qhca_dm_phys(dev->core) + (first << PAGE_SHIFT);
	return 0;
}

static void qhca_ib_dm_free_pages(struct qhca_ib_dev *dev, phys_addr_t addr, size_t len)
{
	mutex_lock(&dev->dm_lock);
	bitmap_clear(dev->dm_used, (addr - qhca_dm_phys(dev->core)) >> PAGE_SHIFT,
		     len >> PAGE_SHIFT);
	mutex_unlock(&dev->dm_lock);
}

static void qhca_ib_dm_release(struct qhca_ib_dev *dev, const struct qhca_ib_mmap_entry *entry)
{
	qhca_ib_dm_free_pages(dev, entry->addr, qhca_ib_mmap_len(entry));
}

static const struct qhca_ib_mmap_kind qhca_ib_mmap_dm = {
	.write_combine = true,
	.bar = QHCA_BAR_DM,
	.release = qhca_ib_dm_release,
};

static struct qhca_alloc_dm_resp qhca_ib_dm_resp(const struct qhca_ib_dm *dm)
{
	return (struct qhca_alloc_dm_resp) {
		.mmap_key = qhca_ib_mmap_key(dm->entry),
		.mmap_len = qhca_ib_mmap_len(dm->entry),
	};
}

static struct ib_dm *qhca_ib_do_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibctx,
					 struct ib_dm_alloc_attr *attr,
					 struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qdev(ibdev);
	size_t len = PAGE_ALIGN(attr->length);
	struct qhca_ib_charge charge = {};
	struct qhca_alloc_dm_resp resp;
	struct qhca_ib_dm *dm;
	phys_addr_t addr;
	int ret;

	if (!attr->length || attr->length > qhca_dm_size(dev->core) ||
	    attr->alignment > ilog2(qhca_dm_size(dev->core)))
		return ERR_PTR(qhca_ib_refuse(dev, -EINVAL, "device memory: %llu bytes, at 2^%u",
					      attr->length, attr->alignment));
	dm = kzalloc_obj(*dm, GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	ret = qhca_ib_charge(dev, &charge, len, qhca_dm_size(dev->core));
	if (ret)
		goto err_dm;
	ret = qhca_ib_dm_alloc_pages(dev, len, attr->alignment, &addr);
	if (ret)
		goto err_charge;
	dm->entry = qhca_ib_mmap_insert(ibctx, &qhca_ib_mmap_dm, addr, len);
	if (IS_ERR(dm->entry)) {
		ret = PTR_ERR(dm->entry);
		qhca_ib_dm_free_pages(dev, addr, len);
		goto err_charge;
	}
	/* The cgroup pays until the last mapping of the pages is gone. */
	dm->entry->charge = charge;
	resp = qhca_ib_dm_resp(dm);
	ret = uverbs_copy_to_struct_or_zero(attrs, QHCA_ATTR_ALLOC_DM_RESP, &resp, sizeof(resp));
	if (ret)
		goto err_entry;
	return &dm->ibdm;

err_entry:
	qhca_ib_mmap_remove(dm->entry);
	goto err_dm;
err_charge:
	qhca_ib_uncharge_all(dev, &charge);
err_dm:
	kfree(dm);
	return ERR_PTR(ret);
}

static struct ib_dm *qhca_ib_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibctx,
				      struct ib_dm_alloc_attr *attr,
				      struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = qhca_ib_do_alloc_dm(ibdev, ibctx, attr, attrs);

	qhca_ib_count_err(to_qdev(ibdev), QHCA_IB_ALLOC_DM_ERR, PTR_ERR_OR_ZERO(ibdm));
	return ibdm;
}

static int qhca_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dm *dm = to_qdm(ibdm);

	qhca_ib_mmap_remove(dm->entry);
	kfree(dm);
	return 0;
}

/* The core has checked that the range is inside and the region zero-based. */
static struct ib_mr *qhca_ib_do_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
					  struct ib_dm_mr_attr *attr)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	u64 offset = to_qdm(ibdm)->entry->addr - qhca_dm_phys(dev->core) + attr->offset;
	u32 in_page = offset & (QHCA_PAGE_SIZE - 1);
	/* An empty region is allowed, but the table needs at least one block. */
	u64 end = in_page + max(attr->length, 1ULL);
	struct qhca_cmd cmd = { .reg_mr = {
		.type = QHCA_MR_MEM,
		.buf = {
			.addr = cpu_to_le64(QHCA_ADDR_DM | (offset - in_page)),
			.num_blocks = cpu_to_le32(DIV_ROUND_UP_ULL(end, QHCA_PAGE_SIZE)),
			.block_shift = QHCA_PAGE_SHIFT,
		},
		.length = cpu_to_le64(attr->length),
		.offset = cpu_to_le32(in_page),
	} };
	int ret;

	ret = qhca_ib_check_access(dev, attr->access_flags);
	if (ret)
		return ERR_PTR(ret);
	return qhca_ib_mr_new(ibpd, &cmd, attr->access_flags);
}

static struct ib_mr *qhca_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				       struct ib_dm_mr_attr *attr,
				       struct uverbs_attr_bundle *attrs)
{
	struct ib_mr *ibmr = qhca_ib_do_reg_dm_mr(ibpd, ibdm, attr);

	qhca_ib_count_err(to_qdev(ibpd->device), QHCA_IB_REG_MR_ERR, PTR_ERR_OR_ZERO(ibmr));
	return ibmr;
}

static const struct ib_device_ops qhca_ib_dm_ops = {
	.alloc_dm = qhca_ib_alloc_dm,
	.dealloc_dm = qhca_ib_dealloc_dm,
	.reg_dm_mr = qhca_ib_reg_dm_mr,
};

/* Give another process that imports the device memory the same response as alloc_dm. */
static int UVERBS_HANDLER(QHCA_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, QHCA_ATTR_DM_QUERY_HANDLE);
	struct qhca_query_dm_resp resp = {
		.alloc = qhca_ib_dm_resp(to_qdm(ibdm)),
		.length = ibdm->length,
	};

	return uverbs_copy_to_struct_or_zero(attrs, QHCA_ATTR_DM_QUERY_RESP, &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(QHCA_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(QHCA_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_DM_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct qhca_query_dm_resp,
								   length),
						UA_MANDATORY));

ADD_UVERBS_METHODS(qhca_ib_dm_methods, UVERBS_OBJECT_DM, &UVERBS_METHOD(QHCA_METHOD_DM_QUERY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(qhca_ib_alloc_dm_attrs, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(QHCA_ATTR_ALLOC_DM_RESP,
						 UVERBS_ATTR_STRUCT(struct qhca_alloc_dm_resp,
								    mmap_len),
						 UA_MANDATORY));

const struct uapi_definition qhca_ib_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &qhca_ib_dm_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &qhca_ib_alloc_dm_attrs),
	{},
};

/**
 * qhca_ib_dm_init - offer the verbs of device memory, if the device has some
 * @dev: the HCA, not yet registered
 *
 * Return: 0 or a negative errno.
 */
int qhca_ib_dm_init(struct qhca_ib_dev *dev)
{
	unsigned long pages = qhca_ib_dm_num_pages(dev);

	if (!pages)
		return 0;
	mutex_init(&dev->dm_lock);
	dev->dm_used = bitmap_zalloc(pages, GFP_KERNEL);
	if (!dev->dm_used)
		return -ENOMEM;
	dev->dm_va = ioremap_wc(qhca_dm_phys(dev->core), pages << PAGE_SHIFT);
	if (!dev->dm_va) {
		bitmap_free(dev->dm_used);
		return -ENOMEM;
	}
	ib_set_device_ops(&dev->ibdev, &qhca_ib_dm_ops);
	return 0;
}

/**
 * qhca_ib_dm_cleanup - undo qhca_ib_dm_init()
 * @dev: the HCA; all its device memory is free
 */
void qhca_ib_dm_cleanup(struct qhca_ib_dev *dev)
{
	if (!dev->dm_va)
		return;
	iounmap(dev->dm_va);
	bitmap_free(dev->dm_used);
}
