// SPDX-License-Identifier: GPL-2.0
/*
 * A device that lies to the provider. The ring of the CQ is memory of this program, which writes
 * CQEs there that no honest device would write.
 */
#include <stdlib.h>

#include <qhca/queues.h>

#include "lib/rdma.h"

#define LOG_ENTRIES	4
#define ENTRIES		(1u << LOG_ENTRIES)
#define NO_QP		0xfffffe	/* most likely not the number of a QP */

static struct ibv_pd *parent;
static void *ring_mem;

static void *ring_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			uint64_t resource_type)
{
	REQUIRE_OK(posix_memalign(&ring_mem, alignment, size));
	return ring_mem;
}

static void ring_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type)
{
}

/* struct forge - a CQ, a QP that completes there, and the number of CQEs written so far */
struct forge {
	struct dev *d;
	struct ibv_cq_ex *cq;
	struct end e;
	struct qhca_cqe *ring;
	uint32_t pi;
};

static struct forge forge_new(void)
{
	struct forge f = { .d = dev_open_qhca() };
	struct ibv_parent_domain_init_attr pd = {
		.pd = f.d->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = ring_alloc, .free = ring_free,
	};
	struct ibv_cq_init_attr_ex attr = {
		.cqe = ENTRIES, .wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct qp_opts o = QP_OPTS;

	parent = ibv_alloc_parent_domain(f.d->ctx, &pd);
	REQUIRE(parent);
	attr.parent_domain = parent;
	f.cq = ibv_create_cq_ex(f.d->ctx, &attr);
	REQUIRE(f.cq && ring_mem);
	f.ring = ring_mem;
	o.send_cq = ibv_cq_ex_to_cq(f.cq);
	o.recv_cq = o.send_cq;
	f.e = end_in(f.d, &o, IBV_QPS_RTS);
	return f;
}

static struct ibv_cq *plain(struct forge *f)
{
	return ibv_cq_ex_to_cq(f->cq);
}

/* Writes a CQE at the next position, whether that is free or not. */
static void forge(struct forge *f, const struct qhca_cqe *cqe)
{
	struct qhca_cqe *to = &f->ring[f->pi % ENTRIES];

	*to = *cqe;
	to->wr_id = htole64(f->pi);
	to->owner = f->pi / ENTRIES % 2 ? 0 : QHCA_OWNER_PHASE;
	f->pi++;
}

static struct qhca_cqe good(const struct forge *f)
{
	return (struct qhca_cqe){
		.qpn = htole32(f->e.qp->qp_num),
		.flags = htole16(QHCA_CQE_SQ),
		.opcode = QHCA_CQE_SEND,
	};
}

static struct qhca_cqe stray(void)
{
	return (struct qhca_cqe){ .qpn = htole32(NO_QP), .opcode = QHCA_CQE_SEND };
}

/* Returns the index up to which the provider has returned CQEs to the device. */
static uint32_t consumer_index(const struct forge *f)
{
	return le32toh(((struct qhca_cq_dbrec *)(f->ring + ENTRIES))->ci);
}

TEST(endless, "C-035 polling ends although the device never stops writing CQEs")
{
	struct forge f = forge_new();
	struct qhca_cqe ours = good(&f), other = stray();
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc[ENTRIES];
	uint32_t i, n = 0;
	int err;

	for (i = 0; i < ENTRIES / 2; i++) {
		forge(&f, &other);
		forge(&f, &ours);
	}
	err = ibv_start_poll(f.cq, &attr);
	REQUIRE(!err);
	/* Write each pair of CQEs again as soon as it has been read. */
	while (!err && n < 4 * ENTRIES) {
		n++;
		forge(&f, &other);
		forge(&f, &ours);
		err = ibv_next_poll(f.cq);
	}
	CHECK_EQ(err, ENOENT);
	CHECK_EQ(n, ENTRIES / 2);
	ibv_end_poll(f.cq);
	CHECK_EQ(consumer_index(&f), ENTRIES);
	/* The ring is full again, with newer CQEs. */
	CHECK_EQ(ibv_poll_cq(plain(&f), ENTRIES, wc), ENTRIES / 2);
}

TEST(give_back, "C-035 CQEs of QPs that do not exist are returned to the device")
{
	struct forge f = forge_new();
	struct ibv_poll_cq_attr attr = { 0 };
	struct qhca_cqe other = stray();
	struct ibv_wc wc;
	uint32_t i;

	forge(&f, &other);
	CHECK_EQ(ibv_poll_cq(plain(&f), 1, &wc), 0);
	CHECK_EQ(consumer_index(&f), 1);
	for (i = 0; i < 3; i++)
		forge(&f, &other);
	CHECK_EQ(ibv_start_poll(f.cq, &attr), ENOENT);
	CHECK_EQ(consumer_index(&f), 4);
}

TEST(undefined, "C-035 programs get only statuses and opcodes that they know")
{
	struct forge f = forge_new();
	struct ibv_poll_cq_attr attr = { 0 };
	struct qhca_cqe cqe = good(&f);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 256; i++) {
		cqe.status = i;
		cqe.opcode = 255 - i;
		forge(&f, &cqe);
		REQUIRE(ibv_poll_cq(plain(&f), 1, &wc) == 1);
		CHECK_EQ(wc.status, i < IBV_WC_GENERAL_ERR ? i : IBV_WC_GENERAL_ERR);
		CHECK(wc.opcode <= IBV_WC_ATOMIC_WRITE ||
		      wc.opcode == IBV_WC_RECV || wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
		CHECK_EQ(wc.wr_id, f.pi - 1);

		forge(&f, &cqe);
		REQUIRE(!ibv_start_poll(f.cq, &attr));
		CHECK_EQ(f.cq->status, wc.status);
		CHECK_EQ(ibv_wc_read_opcode(f.cq), wc.opcode);
		ibv_end_poll(f.cq);
	}
}

static const struct {
	const char *name;
	uint32_t index;
} places[] = {
	{ "none was posted", 0 }, { "far ahead", 0x7fffffff }, { "behind", 0xfffffff0 },
	{ "the last one", 0xffffffff },
};

TEST_ROWS(indices, "C-035 a WQE that was never posted completes", places)
{
	struct forge f = forge_new();
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct qhca_cqe cqe = good(&f);
	struct ibv_wc wc;
	uint32_t i;

	cqe.wqe_index = htole32(row->index);
	forge(&f, &cqe);
	CHECK_EQ(ibv_poll_cq(plain(&f), 1, &wc), 1);
	/* The queue may now seem full or empty for ever, but posting never leaves the ring. */
	for (i = 0; i < 1000 && !post_send(&f.e, &wr); i++)
		;
	REQUIRE_OK(ibv_destroy_qp(f.e.qp));
	REQUIRE_OK(ibv_destroy_cq(plain(&f)));
}
