// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Port, protection domains and memory regions: the kernel does most of the work. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_write.h>

#include "qhca.h"
#include "qhca-abi.h"

int qhca_query_port(struct ibv_context *ibctx, uint8_t port,
		    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return qhca_ret(ibv_cmd_query_port(ibctx, port, attr, &cmd,
					   sizeof(cmd)));
}

int qhca_query_port_speed(struct ibv_context *ibctx, uint32_t port,
			  uint64_t *speed)
{
	return qhca_ret(ibv_cmd_query_port_speed(ibctx, port, speed));
}

static struct qhca_pd *new_pd(void)
{
	struct qhca_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		atomic_init(&pd->refs, 1);
	return pd;
}

struct ibv_pd *qhca_alloc_pd(struct ibv_context *ibctx)
{
	struct uqhca_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd;
	struct qhca_pd *pd;
	int err;

	pd = new_pd();
	if (!pd)
		return NULL;

	err = ibv_cmd_alloc_pd(ibctx, &pd->ibv_pd, &cmd, sizeof(cmd),
			       &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->pdn = resp.pdn;
	return &pd->ibv_pd;
}

/*
 * The provider counts users itself: the kernel knows neither parent domains nor the
 * users of an imported PD.
 */
void qhca_pd_put(struct qhca_pd *pd)
{
	if (!pd || atomic_fetch_sub(&pd->refs, 1) != 1)
		return;
	qhca_pd_put(pd->inner);
	if (pd->td)
		atomic_fetch_sub(&pd->td->refs, 1);
	free(pd);
}

int qhca_dealloc_pd(struct ibv_pd *ibpd)
{
	struct qhca_pd *pd = to_qpd(ibpd);
	int err;

	if (atomic_load(&pd->refs) != 1)
		return qhca_ret(EBUSY);
	if (!pd->inner) {
		err = ibv_cmd_dealloc_pd(ibpd);
		if (err)
			return qhca_ret(err);
	}
	qhca_pd_put(pd);
	return 0;
}

struct ibv_pd *qhca_import_pd(struct ibv_context *ibctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_PD, QHCA_METHOD_PD_QUERY, 2);
	struct qhca_alloc_pd_resp resp = {};
	struct qhca_pd *pd;
	int err;

	pd = new_pd();
	if (!pd)
		return NULL;

	fill_attr_in_obj(cmd, QHCA_ATTR_PD_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, QHCA_ATTR_PD_QUERY_RESP, &resp);
	err = execute_ioctl(ibctx, cmd);
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->ibv_pd.context = ibctx;
	pd->ibv_pd.handle = handle;
	pd->pdn = resp.pdn;
	return &pd->ibv_pd;
}

void qhca_unimport_pd(struct ibv_pd *ibpd)
{
	qhca_pd_put(to_qpd(ibpd));
}

struct ibv_td *qhca_alloc_td(struct ibv_context *ibctx,
			     struct ibv_td_init_attr *attr)
{
	struct qhca_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ibctx;
	return &td->ibv_td;
}

int qhca_dealloc_td(struct ibv_td *ibtd)
{
	struct qhca_td *td = to_qtd(ibtd);

	if (atomic_load(&td->refs))
		return qhca_ret(EBUSY);
	free(td);
	return 0;
}

struct ibv_pd *qhca_alloc_parent_domain(struct ibv_context *ibctx,
					struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t allocators = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	const uint32_t pd_context = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct qhca_pd *pd;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	if (!check_comp_mask(attr->comp_mask, allocators | pd_context)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((attr->comp_mask & allocators && (!attr->alloc || !attr->free)) ||
	    to_qpd(attr->pd)->inner) {
		errno = EINVAL;
		return NULL;
	}
	pd = new_pd();
	if (!pd)
		return NULL;

	pd->inner = to_qpd(attr->pd);
	pd->pdn = pd->inner->pdn;
	qhca_pd_get(pd->inner);
	if (attr->td) {
		pd->td = to_qtd(attr->td);
		atomic_fetch_add(&pd->td->refs, 1);
	}
	ibv_initialize_parent_domain(&pd->ibv_pd, attr->pd);
	if (attr->comp_mask & allocators) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & pd_context)
		pd->pd_context = attr->pd_context;
	return &pd->ibv_pd;
}

/* Last step of every way to register an MR. */
struct ibv_mr *qhca_mr_made(struct ibv_pd *ibpd, struct verbs_mr *vmr, int err)
{
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	qhca_pd_get(to_qpd(ibpd));
	return &vmr->ibv_mr;
}

struct ibv_mr *qhca_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			   uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_mr(ibpd, addr, length, hca_va, access, vmr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	return qhca_mr_made(ibpd, vmr, err);
}

/*
 * An MR with a key that every QP may use. It holds neither its PD nor anything in the kernel:
 * programs that know mlx5's null MR, perftest for one, never deregister it.
 */
struct qhca_null_mr {
	struct verbs_mr vmr;
	struct list_node entry;	/* in the context, which frees those that are left */
};

struct ibv_mr *qhca_alloc_null_mr(struct ibv_pd *ibpd)
{
	struct qhca_context *ctx = to_qctx(ibpd->context);
	struct qhca_null_mr *mr;

	if (!ctx->null_lkey) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	mr->vmr.mr_type = IBV_MR_TYPE_NULL_MR;
	mr->vmr.access = IBV_ACCESS_LOCAL_WRITE;
	mr->vmr.ibv_mr.context = ibpd->context;
	mr->vmr.ibv_mr.pd = ibpd;
	mr->vmr.ibv_mr.length = SIZE_MAX;
	mr->vmr.ibv_mr.lkey = ctx->null_lkey;
	pthread_mutex_lock(&ctx->null_mrs_lock);
	list_add_tail(&ctx->null_mrs, &mr->entry);
	pthread_mutex_unlock(&ctx->null_mrs_lock);
	return &mr->vmr.ibv_mr;
}

static void free_null_mr(struct verbs_mr *vmr)
{
	struct qhca_context *ctx = to_qctx(vmr->ibv_mr.context);
	struct qhca_null_mr *mr = container_of(vmr, struct qhca_null_mr, vmr);

	pthread_mutex_lock(&ctx->null_mrs_lock);
	list_del(&mr->entry);
	pthread_mutex_unlock(&ctx->null_mrs_lock);
	free(mr);
}

void qhca_null_mrs_init(struct qhca_context *ctx)
{
	pthread_mutex_init(&ctx->null_mrs_lock, NULL);
	list_head_init(&ctx->null_mrs);
}

/* Free those that the program has not deregistered. */
void qhca_null_mrs_free(struct qhca_context *ctx)
{
	struct qhca_null_mr *mr, *next;

	list_for_each_safe(&ctx->null_mrs, mr, next, entry)
		free(mr);
	pthread_mutex_destroy(&ctx->null_mrs_lock);
}

struct ibv_mr *qhca_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dmabuf_mr(ibpd, offset, length, iova, fd, access,
				    vmr, NULL);
	return qhca_mr_made(ibpd, vmr, err);
}

/* Hints for the placement of DMA: the kernel checks them. */
struct ibv_dmah *qhca_alloc_dmah(struct ibv_context *ibctx,
				 struct ibv_dmah_init_attr *attr)
{
	const uint32_t known = IBV_DMAH_INIT_ATTR_MASK_CPU_ID |
			       IBV_DMAH_INIT_ATTR_MASK_PH |
			       IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE;
	struct verbs_dmah *dmah;
	int err;

	if (!check_comp_mask(attr->comp_mask, known)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dmah = calloc(1, sizeof(*dmah));
	if (!dmah)
		return NULL;

	err = ibv_cmd_alloc_dmah(ibctx, dmah, attr);
	if (err) {
		free(dmah);
		errno = err;
		return NULL;
	}
	return &dmah->dmah;
}

int qhca_dealloc_dmah(struct ibv_dmah *ibdmah)
{
	int err = ibv_cmd_free_dmah(verbs_get_dmah(ibdmah));

	if (err)
		return qhca_ret(err);
	free(verbs_get_dmah(ibdmah));
	return 0;
}

struct ibv_mr *qhca_reg_mr_ex(struct ibv_pd *ibpd, struct ibv_mr_init_attr *attr)
{
	struct verbs_mr *vmr;
	int err;

	if (attr->comp_mask & IBV_REG_MR_MASK_DMAH && !attr->dmah) {
		errno = EINVAL;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_mr_ex(ibpd, vmr, attr);
	return qhca_mr_made(ibpd, vmr, err);
}

int qhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd,
		  void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;
	int err;

	err = ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
			       access, ibpd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (!err && flags & IBV_REREG_MR_CHANGE_PD) {
		qhca_pd_get(to_qpd(ibpd));
		qhca_pd_put(to_qpd(vmr->ibv_mr.pd));
	}
	return qhca_ret(err);
}

struct ibv_mr *qhca_import_mr(struct ibv_pd *ibpd, uint32_t handle)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_query_mr(ibpd, vmr, handle);
	return qhca_mr_made(ibpd, vmr, err);
}

void qhca_unimport_mr(struct ibv_mr *ibmr)
{
	qhca_pd_put(to_qpd(ibmr->pd));
	free(verbs_get_mr(ibmr));
}

int qhca_dereg_mr(struct verbs_mr *vmr)
{
	int err;

	if (vmr->mr_type == IBV_MR_TYPE_NULL_MR) {
		free_null_mr(vmr);
		return 0;
	}
	err = ibv_cmd_dereg_mr(vmr);
	if (err)
		return qhca_ret(err);
	qhca_unimport_mr(&vmr->ibv_mr);
	return 0;
}
