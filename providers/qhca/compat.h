/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Compatibility with older releases of rdma-core. The sources are written for the
 * newest one; compat.cmake probes for features.
 */
#ifndef QHCA_COMPAT_H
#define QHCA_COMPAT_H

#include <infiniband/driver.h>

#ifdef QHCA_HAVE_FLUSH			/* 45 */
#define qhca_set_wr_flush(qp, fn)	((qp)->wr_flush = (fn))
#else
#define qhca_set_wr_flush(qp, fn)	((void)(fn))
#define IBV_ACCESS_FLUSH_GLOBAL		0x100
#define IBV_QP_EX_WITH_FLUSH		(1 << 11)
#define IBV_WR_FLUSH			14
#define IBV_WC_FLUSH			8
#define IBV_FLUSH_GLOBAL		1
#define IBV_FLUSH_PERSISTENT		2
#define IBV_FLUSH_RANGE			0
#define IBV_FLUSH_MR			1
/* Without the function of FLUSH, no QP offers the operation. */
#define IB_UVERBS_DEVICE_FLUSH_GLOBAL	0
#endif

#ifndef QHCA_HAVE_REG_DMABUF_DRIVER	/* 54 */
#define ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr, driver)	\
	ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr)
#endif

#ifndef QHCA_HAVE_FD_ARR		/* 57 */
#define ibv_cmd_get_context(ctx, cmd, cmd_size, fds, resp, resp_size)		\
	ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)
#endif

#ifndef QHCA_HAVE_CQ_PROV_ATTR		/* 59 */
#define ibv_cmd_create_cq_ex(ctx, attr, prov_attr, cq, cmd, cmd_size, resp, resp_size, flags) \
	ibv_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size, flags)
#endif

#ifndef QHCA_HAVE_CREATE_QP_DRIVER	/* 64 */
#define ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size, driver)	\
	ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size)
#endif

/* QHCA_OP_62(.member = function) is an element of the table of verbs, from that release on. */
#ifdef QHCA_HAVE_DMAH			/* 59 */
#define QHCA_OP_59(op)		op,
#else
#define QHCA_OP_59(op)
struct ibv_dmah {
	struct ibv_context *context;
};
struct verbs_dmah {
	struct ibv_dmah dmah;
};
struct ibv_dmah_init_attr {
	uint32_t comp_mask;
};
struct ibv_mr_init_attr {
	uint64_t comp_mask;
	struct ibv_dmah *dmah;
};
#define IBV_REG_MR_MASK_DMAH				0
#define verbs_get_dmah(ibdmah)				((struct verbs_dmah *)(ibdmah))
#define IBV_DMAH_INIT_ATTR_MASK_CPU_ID			0
#define IBV_DMAH_INIT_ATTR_MASK_PH			0
#define IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE		0
#define ibv_cmd_alloc_dmah(ctx, dmah, attr)		EOPNOTSUPP
#define ibv_cmd_free_dmah(dmah)				EOPNOTSUPP
#define ibv_cmd_reg_mr_ex(pd, vmr, attr)		EOPNOTSUPP
#endif

#ifdef QHCA_HAVE_QUERY_PORT_SPEED	/* 62 */
#define QHCA_OP_62(op)		op,
#else
#define QHCA_OP_62(op)
#define ibv_cmd_query_port_speed(ctx, port, speed)	EOPNOTSUPP
#define ibv_cmd_export_dmabuf_fd(ctx, offset)		(errno = EOPNOTSUPP, -1)
#endif

#endif /* QHCA_COMPAT_H */
