/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca_ib.ko: memory regions, windows, device memory; included by qhca_ib.h. */
#ifndef QHCA_IB_MR_H
#define QHCA_IB_MR_H

/**
 * struct qhca_ib_mr - memory region
 * @ibmr: the verbs object
 * @mem: the user's memory, if it is pinned
 * @odp: if its pages come on demand
 * @access: IB_ACCESS_* flags it was registered with
 * @pdn: number of its PD, for readers that must not follow ibmr.pd during a re-registration
 * @pages: for fast registration, as all below: DMA addresses for the next REG_MR
 * @pages_dma: DMA address of @pages
 * @gaps: @pages are pieces of memory of any size, two words each
 * @max_pages: room in @pages
 * @num_pages: entries used of @pages
 * @offset: offset of the first byte in the first page
 */
struct qhca_ib_mr {
	struct ib_mr ibmr;
	struct qhca_ib_pinned mem;
	struct qhca_ib_odp *odp;
	int access;
	u32 pdn;

	__le64 *pages;
	dma_addr_t pages_dma;
	bool gaps;
	u32 max_pages;
	u32 num_pages;
	u32 offset;
};

struct qhca_ib_mw {
	struct ib_mw ibmw;
};

#ifdef QHCA_HAVE_REG_MR_DMAH
struct qhca_ib_dmah {
	struct ib_dmah ibdmah;
};
#endif

static inline struct qhca_ib_mr *to_qmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct qhca_ib_mr, ibmr);
}

/* region.c */
int qhca_ib_check_access(struct qhca_ib_dev *dev, int access);
__le16 qhca_ib_mr_rights(int access);
int qhca_ib_mr_create(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr, struct qhca_cmd *cmd,
		      struct ib_pd *ibpd);
void qhca_ib_mr_free(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr);
struct ib_mr *qhca_ib_mr_new(struct ib_pd *ibpd, struct qhca_cmd *cmd, int access);

/* mr.c */
struct ib_mr *qhca_ib_get_dma_mr(struct ib_pd *ibpd, int access);
int qhca_ib_alloc_dmah(struct ib_dmah *ibdmah, struct uverbs_attr_bundle *attrs);
int qhca_ib_dealloc_dmah(struct ib_dmah *ibdmah, struct uverbs_attr_bundle *attrs);
struct ib_mr *qhca_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				  int access, struct ib_dmah *dmah, struct ib_udata *udata);
struct ib_mr *qhca_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
					 int fd, int access, struct ib_dmah *dmah,
					 struct uverbs_attr_bundle *attrs);
struct ib_mr *qhca_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				    u64 iova, int access, struct ib_pd *ibpd,
				    struct ib_udata *udata);
int qhca_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* dm.c */
extern const struct uapi_definition qhca_ib_dm_defs[];
int qhca_ib_dm_init(struct qhca_ib_dev *dev);
void qhca_ib_dm_cleanup(struct qhca_ib_dev *dev);

struct qhca_ib_faults;
struct qhca_ib_pager;

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
/* odp_mr.c */
struct ib_mr *qhca_ib_odp_reg(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access);
void qhca_ib_odp_going(struct qhca_ib_mr *mr, bool going);
void qhca_ib_odp_release(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr);
int qhca_ib_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		      struct ib_sge *sge, u32 num_sge, struct uverbs_attr_bundle *attrs);

/* faults.c */
struct qhca_ib_faults *qhca_ib_faults_new(struct qhca_ib_dev *dev);
void qhca_ib_faults_start(struct qhca_ib_faults *f, u32 qpn);
void qhca_ib_faults_event(struct qhca_ib_faults *f);
void qhca_ib_faults_check(struct qhca_ib_faults *f);
void qhca_ib_faults_hold(struct qhca_ib_faults *f);
void qhca_ib_faults_end(struct qhca_ib_faults *f);

/* pager.c */
struct qhca_ib_pager *qhca_ib_pager_get(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *ctx);
void qhca_ib_pager_put(struct qhca_ib_pager *pager);
void qhca_ib_pagers_leave(struct qhca_ib_dev *dev);
int qhca_ib_pagers_init(void);
void qhca_ib_pagers_exit(void);
#else
static inline struct ib_mr *qhca_ib_odp_reg(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					    int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void qhca_ib_odp_going(struct qhca_ib_mr *mr, bool going)
{
}

static inline void qhca_ib_odp_release(struct qhca_ib_dev *dev, struct qhca_ib_mr *mr)
{
}

static inline struct qhca_ib_faults *qhca_ib_faults_new(struct qhca_ib_dev *dev)
{
	return NULL;
}

static inline void qhca_ib_faults_start(struct qhca_ib_faults *f, u32 qpn)
{
}

static inline void qhca_ib_faults_event(struct qhca_ib_faults *f)
{
}

static inline void qhca_ib_faults_hold(struct qhca_ib_faults *f)
{
}

static inline void qhca_ib_faults_end(struct qhca_ib_faults *f)
{
}

static inline void qhca_ib_pager_put(struct qhca_ib_pager *pager)
{
}

static inline void qhca_ib_pagers_leave(struct qhca_ib_dev *dev)
{
}

static inline int qhca_ib_pagers_init(void)
{
	return 0;
}

static inline void qhca_ib_pagers_exit(void)
{
}
#endif

/* mw.c */
struct ib_mr *qhca_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int qhca_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		      unsigned int *sg_offset);
int qhca_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int qhca_ib_dealloc_mw(struct ib_mw *ibmw);

#endif /* QHCA_IB_MR_H */
