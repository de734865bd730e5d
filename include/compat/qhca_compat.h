/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names that older kernels lack. The out-of-tree build includes this header before every source
 * file; Kbuild has the table of features that it probes for.
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#include <linux/slab.h>

#ifndef kzalloc_obj			/* 7.0 */
#define qhca_second(a, b, ...)	b
#define kzalloc_obj(var, gfp...) \
	kzalloc(sizeof(var), qhca_second(, ##gfp, GFP_KERNEL))
#endif

#ifndef __counted_by			/* 6.6 */
#define __counted_by(...)
#endif

struct ib_dmah;				/* 6.17 */
struct ethtool_rxfh_context;		/* 6.11 */

#ifndef QHCA_HAVE_RXFH_PARAM		/* 6.8 */
struct ethtool_rxfh_param {
	u8	hfunc;
	u32	*indir;
	u8	*key;
};
#endif

#ifndef QHCA_HAVE_RXFH_FIELDS		/* 6.17 */
struct ethtool_rxfh_fields {
	u32	data;
	u32	flow_type;
	u32	rss_context;
};
#endif

#ifndef QHCA_HAVE_ETHTOOL_PUTS		/* 6.8 */
#include <linux/ethtool.h>

static inline void ethtool_puts(u8 **data, const char *str)
{
	strscpy(*data, str, ETH_GSTRING_LEN);
	*data += ETH_GSTRING_LEN;
}
#endif

#ifndef QHCA_HAVE_NDO_HWTSTAMP		/* 6.6 */
struct kernel_hwtstamp_config {
	int	tx_type;
	int	rx_filter;
};
#endif

#ifndef QHCA_HAVE_KERNEL_TS_INFO	/* 6.12 */
#define kernel_ethtool_ts_info	ethtool_ts_info
#endif

#ifndef QHCA_HAVE_DIM_POINTER		/* 6.13 */
#include <linux/dim.h>

#define net_dim(dim, sample)					net_dim(dim, *(sample))
#endif

#ifndef QHCA_HAVE_NAPI_CONFIG		/* 6.14 */
#define netif_napi_add_config(netdev, napi, poll, index)	netif_napi_add(netdev, napi, poll)
#endif

#ifndef QHCA_HAVE_NAPI_IRQ		/* 6.7 */
#define netif_napi_set_irq(napi, irq)				((void)(irq))
#endif

#ifndef QHCA_HAVE_QUEUE_NAPI		/* 6.8 */
#define netif_queue_set_napi(netdev, index, type, napi)		((void)(netdev))
#endif

#ifndef QHCA_HAVE_VM_FLAGS		/* 6.3 */
#define vm_flags_set(vma, flags)	((void)((vma)->vm_flags |= (flags)))
#define vm_flags_clear(vma, flags)	((void)((vma)->vm_flags &= ~(flags)))
#endif

#ifndef QHCA_HAVE_UMEM_GET_VA		/* 7.2 */
#define ib_umem_get_va	ib_umem_get
#endif

#ifndef QHCA_HAVE_FLUSH			/* 6.2 */
/* The same numbers as on the wire and in user space, with two exceptions. */
#define IB_ACCESS_FLUSH_GLOBAL		0x100
#define IB_ACCESS_FLUSH_PERSISTENT	0x200
#define IB_WR_FLUSH			14
#define IB_WR_ATOMIC_WRITE		15
#define IB_DEVICE_ATOMIC_WRITE		BIT_ULL(40)
/* The core refuses regions with these rights, so the driver cannot offer FLUSH. */
#define IB_DEVICE_FLUSH_GLOBAL		0
/* In these kernels 9 is the opcode of another completion. */
#define IB_WC_ATOMIC_WRITE		0x40
#endif

#ifndef QHCA_HAVE_DEFAULT_PERIOD	/* 6.18 */
#include <net/devlink.h>

#define devlink_health_reporter_create(devlink, ops, priv) \
	devlink_health_reporter_create(devlink, ops, QHCA_GRACE_MS, priv)
#endif

#ifndef QHCA_HAVE_SCALED_PPM		/* 6.2 */
#include <linux/math64.h>

static inline u64 adjust_by_scaled_ppm(u64 base, long scaled_ppm)
{
	u64 diff = mul_u64_u64_div_u64(base, abs(scaled_ppm), 1000000ull << 16);

	return scaled_ppm < 0 ? base - diff : base + diff;
}
#endif

#ifndef QHCA_HAVE_CHECK_REREG		/* 7.2 and stable branches, 6.12.94 among them */
#include <rdma/ib_umem.h>

static inline int ib_umem_check_rereg(struct ib_umem *umem, int flags, int access)
{
	/* Memory that was pinned for reading only cannot become writable. */
	if (umem && (flags & IB_MR_REREG_ACCESS) && !(flags & IB_MR_REREG_TRANS) &&
	    ib_access_writable(access) && !umem->writable)
		return -EACCES;
	return 0;
}
#endif

#ifndef QHCA_HAVE_UDATA_HELPERS		/* 7.2 */
#include <rdma/uverbs_ioctl.h>

/* As the core's: what is missing is 0 if the first version did not have it, a tail must be 0. */
static inline int qhca_copy_udata_in(struct ib_udata *udata, void *req, size_t size, size_t least)
{
	int ret;

	if (udata->inlen < least)
		return -EINVAL;
	ret = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return ret == -E2BIG ? -EOPNOTSUPP : ret;
}

#define ib_copy_validate_udata_in(udata, req, last) \
	qhca_copy_udata_in(udata, &(req), sizeof(req), offsetofend(typeof(req), last))

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	return udata && udata->inlen ? qhca_copy_udata_in(udata, NULL, 0, 0) : 0;
}

static inline int qhca_respond_udata(struct ib_udata *udata, const void *resp, size_t len)
{
	size_t n = min(len, udata->outlen);

	if (copy_to_user(udata->outbuf, resp, n) ||
	    clear_user(udata->outbuf + n, udata->outlen - n))
		return -EFAULT;
	return 0;
}

#define ib_respond_udata(udata, resp)	qhca_respond_udata(udata, &(resp), sizeof(resp))

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	int ret = ib_is_udata_in_empty(udata);

	return ret || !udata ? ret : qhca_respond_udata(udata, NULL, 0);
}
#endif

#ifndef QHCA_HAVE_ODP_FLUSH		/* 6.17 */
#define IB_ODP_SUPPORT_FLUSH		0
#define IB_ODP_SUPPORT_ATOMIC_WRITE	0
#endif

#endif /* QHCA_COMPAT_H */
