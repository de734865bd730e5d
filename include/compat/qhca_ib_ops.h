/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Operations of older kernels, whose arguments differ from the driver's functions. Each replaces
 * such a function in main.c, which includes this header after the declarations.
 */
#ifndef QHCA_IB_OPS_H
#define QHCA_IB_OPS_H

#include <rdma/uverbs_ioctl.h>

#ifndef QHCA_HAVE_CREATE_CQ_ATTRS	/* 6.11 */
static int qhca_ib_create_cq_udata(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				   struct ib_udata *udata)
{
	return qhca_ib_create_cq(ibcq, attr,
				 udata ? rdma_udata_to_uverbs_attr_bundle(udata) : NULL);
}

#define qhca_ib_create_cq	qhca_ib_create_cq_udata
#endif

#ifndef QHCA_HAVE_RESIZE_USER_CQ	/* 7.1 */
static int qhca_ib_resize_cq_int(struct ib_cq *ibcq, int entries, struct ib_udata *udata)
{
	return qhca_ib_resize_cq(ibcq, entries, udata);
}

#define qhca_ib_resize_cq	qhca_ib_resize_cq_int
#define resize_user_cq		resize_cq
#endif

#ifndef QHCA_HAVE_REG_MR_DMAH		/* 6.17 */
static struct ib_mr *qhca_ib_reg_user_mr_no_dmah(struct ib_pd *ibpd, u64 start, u64 length,
						 u64 iova, int access, struct ib_udata *udata)
{
	return qhca_ib_reg_user_mr(ibpd, start, length, iova, access, NULL, udata);
}

#define qhca_ib_reg_user_mr	qhca_ib_reg_user_mr_no_dmah

#ifdef QHCA_HAVE_DMABUF_ATTRS		/* 6.12 */
static struct ib_mr *qhca_ib_reg_dmabuf_no_dmah(struct ib_pd *ibpd, u64 offset, u64 length,
						u64 iova, int fd, int access,
						struct uverbs_attr_bundle *attrs)
{
	return qhca_ib_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access, NULL, attrs);
}
#else
static struct ib_mr *qhca_ib_reg_dmabuf_no_dmah(struct ib_pd *ibpd, u64 offset, u64 length,
						u64 iova, int fd, int access,
						struct ib_udata *udata)
{
	return qhca_ib_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access, NULL,
					  rdma_udata_to_uverbs_attr_bundle(udata));
}
#endif
#define qhca_ib_reg_user_mr_dmabuf	qhca_ib_reg_dmabuf_no_dmah
#endif

#ifndef QHCA_HAVE_COUNTER_PORT		/* 6.14: which port */
static int qhca_ib_counter_bind_port1(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	return qhca_ib_counter_bind_qp(counter, ibqp, QHCA_IB_PORT);
}

#define qhca_ib_counter_bind_qp	qhca_ib_counter_bind_port1

static int qhca_ib_counter_unbind_port1(struct ib_qp *ibqp)
{
	return qhca_ib_counter_unbind_qp(ibqp, QHCA_IB_PORT);
}

#define qhca_ib_counter_unbind_qp	qhca_ib_counter_unbind_port1
#endif

#endif /* QHCA_IB_OPS_H */
