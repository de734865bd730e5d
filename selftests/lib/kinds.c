// SPDX-License-Identifier: GPL-2.0
/* Kinds of objects that users share: see kinds.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kinds.h"
#include "steer.h"

#define PAGE		4096
/* A region of that many pages, none of which is contiguous with the one before. */
#define BLOCKS		8192
/* Number of block addresses of the device, for all users. */
#define ALL_BLOCKS	(1u << 24)
/* QPs in a multicast group; there are more groups. */
#define ALL_MEMBERS	128u
#define ALL_SPREADS	64u
/* Length of a region with on-demand paging, of memory that need not exist. */
#define ODP_LEN		(1ul << 30)

static struct dev *d;
static struct ibv_cq *cq;
static struct ibv_qp *ud;
static struct steer steer;
static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
static uint8_t *scattered;

static void *make_context(int i)
{
	return ibv_open_device(d->ctx->device);
}

static void *make_pd(int i)
{
	return ibv_alloc_pd(d->ctx);
}

static void *make_cq(int i)
{
	return ibv_create_cq(d->ctx, 1, NULL, NULL, 0);
}

static void *make_qp(int i)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 2, 2, 1, 1, 0 },
	};

	return ibv_create_qp(d->pd, &init);
}

static void *make_srq(int i)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(d->pd, &init);
}

static void *make_mr(int i)
{
	return ibv_reg_mr(d->pd, page, PAGE, REMOTE);
}

static void *make_mw(int i)
{
	return ibv_alloc_mw(d->pd, IBV_MW_TYPE_1);
}

static void *make_ah(int i)
{
	struct ibv_ah_attr attr = own_address(d);

	return ibv_create_ah(d->pd, &attr);
}

static void *make_xrcd(int i)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(d->ctx, &init);
}

static void *make_dm(int i)
{
	struct ibv_alloc_dm_attr attr = { .length = PAGE };

	return ibv_alloc_dm(d->ctx, &attr);
}

static union ibv_gid group_gid(int i)
{
	return (union ibv_gid){ .raw = { 0xff, 0x0e, [14] = i >> 8, i } };
}

static struct ibv_qp *ud_new(void)
{
	struct qp_opts o = QP_OPTS;

	o.type = IBV_QPT_UD;
	o.send_cq = cq;
	o.recv_cq = cq;
	return end_in(d, &o, IBV_QPS_INIT).qp;
}

static void *make_group(int i)
{
	union ibv_gid gid = group_gid(i);

	if (!ud)
		ud = ud_new();
	errno = ibv_attach_mcast(ud, &gid, 0);
	return errno ? NULL : ud;
}

/* Lets one more QP join the same group. */
static void *make_member(int i)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .cap = { 2, 2, 1, 1, 0 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT };
	union ibv_gid gid = group_gid(0xffff);
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	if (!qp)
		return NULL;
	REQUIRE_OK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				 IBV_QP_QKEY));
	errno = ibv_attach_mcast(qp, &gid, 0);
	return errno ? NULL : qp;
}

static struct steer *steering(void)
{
	if (!steer.wq)
		REQUIRE_OK(steer_make(d, cq, &steer));
	return &steer;
}

static void *make_flow(int i)
{
	errno = steer_rule(steering());
	return errno ? NULL : &steer;
}

static void *make_spread(int i)
{
	errno = steer_qp(d, steering());
	return errno ? NULL : &steer;
}

static void *make_wq(int i)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = d->pd, .cq = cq,
	};

	return ibv_create_wq(d->ctx, &attr);
}

static void *make_table(int i)
{
	struct ibv_wq *wq[] = { steering()->wq, steer.wq };
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = 1, .ind_tbl = wq };

	return ibv_create_rwq_ind_table(d->ctx, &attr);
}

static void *make_counters(int i)
{
	struct ibv_counters_init_attr attr = {};

	return ibv_create_counters(d->ctx, &attr);
}

/* Asks for one page of each 2 MiB. The device has to know the other 511 of them as well. */
static void touch(struct ibv_mr *mr, uint8_t *mem, size_t len)
{
	struct ibv_sge sge[64];
	size_t at;
	int n = 0;

	for (at = 0; at < len; at += 2 << 20) {
		sge[n++] = (struct ibv_sge){ (uintptr_t)mem + at, 1, mr->lkey };
		if (n < (int)ARRAY_SIZE(sge) && at + (2 << 20) < len)
			continue;
		CHECK_ERR(ibv_advise_mr(d->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
					IBV_ADVISE_MR_FLAG_FLUSH, sge, n), 0);
		n = 0;
	}
}

static uint8_t *nothing(size_t len)
{
	uint8_t *mem = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);

	REQUIRE(mem != MAP_FAILED);
	madvise(mem, len, MADV_NOHUGEPAGE);
	return mem;
}

static struct ibv_mr *make_small_odp(void)
{
	struct ibv_mr *mr = ibv_reg_mr(d->pd, nothing(PAGE), PAGE, IBV_ACCESS_ON_DEMAND);

	REQUIRE(mr);
	return mr;
}

static void *make_odp(int i)
{
	uint8_t *mem = nothing(ODP_LEN);
	struct ibv_mr *mr = ibv_reg_mr(d->pd, mem, ODP_LEN, IBV_ACCESS_ON_DEMAND);

	if (mr)
		touch(mr, mem, ODP_LEN);
	return mr;
}

static void *make_implicit(int i)
{
	struct ibv_mr *mr = ibv_reg_mr(d->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);

	if (mr)
		touch(mr, nothing(2 * ODP_LEN), 2 * ODP_LEN);
	return mr;
}

/* Maps the even pages of a file many times. */
static uint8_t *scatter(void)
{
	int i, fd = memfd_create("scattered", 0);
	uint8_t *mem;

	REQUIRE(fd >= 0);
	/* With the odd pages, or the even ones may be neighbours in memory. */
	for (i = 0; i < 64; i++)
		REQUIRE(pwrite(fd, "", 1, (off_t)i * PAGE) == 1);
	mem = mmap(NULL, (size_t)BLOCKS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(mem != MAP_FAILED);
	for (i = 0; i < BLOCKS; i++)
		REQUIRE(mmap(mem + (size_t)i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, fd, i % 32 * 2 * PAGE) != MAP_FAILED);
	return mem;
}
static void *make_blocks(int i)
{
	if (!scattered)
		scattered = scatter();
	return ibv_reg_mr(d->pd, scattered, (size_t)BLOCKS * PAGE, REMOTE);
}

static unsigned int parts(void)
{
	return d->attr.max_pd < d->attr.max_qp ? d->attr.max_pd : d->attr.max_qp;
}

/* Charge for an object that takes no other resource. */
static unsigned int one(void)
{
	return 1;
}

static unsigned int dm_cost(void)
{
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return 1 + (uint64_t)PAGE * parts() / attr.max_dm_size;
}

static unsigned int group_cost(void)
{
	return parts() / ALL_MEMBERS;
}

static unsigned int member_cost(void)
{
	return 1 + group_cost();
}

static unsigned int flow_cost(void)
{
	return 1 + parts() / STEER_MAX_FLOWS;
}

static unsigned int spread_cost(void)
{
	return 1 + parts() / ALL_SPREADS;
}

/* For each 512 pages the device has a node of 513 words, and nodes of those. */
static unsigned int odp_cost(void)
{
	uint64_t nodes = ODP_LEN / PAGE / 512 + 1;

	return 1 + nodes * 513 * parts() / ALL_BLOCKS;
}

static unsigned int implicit_cost(void)
{
	return 1 + parts() / 32;
}

static unsigned int blocks_cost(void)
{
	return 1 + (uint64_t)BLOCKS * parts() / ALL_BLOCKS;
}

const struct kind kinds[NUM_KINDS] = {
	{ "contexts", make_context, one, KINDS_HANDLES },
	{ "PDs", make_pd, one, KINDS_OBJECTS },
	{ "CQs", make_cq, one, KINDS_OBJECTS },
	{ "QPs", make_qp, one, KINDS_OBJECTS },
	{ "SRQs", make_srq, one, KINDS_OBJECTS },
	{ "regions", make_mr, one, KINDS_OBJECTS },
	{ "windows", make_mw, one, KINDS_OBJECTS },
	{ "address handles", make_ah, one, KINDS_OBJECTS },
	{ "XRC domains", make_xrcd, one, KINDS_OBJECTS },
	{ "device memory", make_dm, dm_cost, KINDS_OBJECTS },
	{ "multicast groups", make_group, group_cost, KINDS_OBJECTS },
	{ "members of a group", make_member, member_cost, KINDS_OBJECTS },
	{ "block addresses", make_blocks, blocks_cost, KINDS_OBJECTS },
	{ "regions with on-demand paging", make_odp, odp_cost, KINDS_OBJECTS },
	{ "implicit regions", make_implicit, implicit_cost, KINDS_OBJECTS },
	{ "flow rules", make_flow, flow_cost, KINDS_OBJECTS },
	{ "spreads", make_spread, spread_cost, KINDS_OBJECTS },
	{ "work queues", make_wq, one, KINDS_OBJECTS },
	{ "tables of work queues", make_table, one, KINDS_OBJECTS },
	{ "counters of flows", make_counters, one, KINDS_OBJECTS },
};

bool kind_offered(const struct kind *k)
{
	struct ibv_device_attr_ex attr;
	uint64_t need = 0;

	if (k->make == make_odp || k->make == make_implicit)
		need |= IBV_ODP_SUPPORT;
	if (k->make == make_implicit)
		need |= IBV_ODP_SUPPORT_IMPLICIT;
	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return (attr.odp_caps.general_caps & need) == need;
}

void kinds_use(struct dev *dev, struct ibv_cq *with)
{
	d = dev;
	cq = with;
}

void kind_prepare(const struct kind *k)
{
	if (k->make == make_group)
		ud = ud_new();
	/* The context is charged for its first such region, as long as it exists. */
	if (k->make == make_odp || k->make == make_implicit)
		REQUIRE(!ibv_dereg_mr(make_small_odp()));
	if (k->make == make_flow || k->make == make_spread || k->make == make_table)
		steering();
}

const struct kind *kind_named(const char *name)
{
	const struct kind *k;

	for (k = kinds; strcmp(k->name, name); k++)
		REQUIRE(k + 1 < kinds + NUM_KINDS);
	return k;
}
