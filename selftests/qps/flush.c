// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH and ATOMIC WRITE, the memory placement extensions: when the CPU sees what they do, and what
 * the provider and the driver refuse. translate.c has the requests themselves.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "lib/window.h"
#include "lib/wr_ex.h"

#define OPS	(IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE |	\
		 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND |	\
		 IBV_QP_EX_WITH_BIND_MW)
#define GLOBAL		IBV_ACCESS_FLUSH_GLOBAL
#define PERSISTENT	IBV_ACCESS_FLUSH_PERSISTENT
#define RIGHTS		(REMOTE | GLOBAL)
#define LEN		8192

/* struct scene - a pair, and memory of the peer */
struct scene {
	struct pair p;
	struct buf src, dst;
};

static uint64_t ops(const struct dev *d)
{
	return has_flush(d->ctx) ? OPS : OPS & ~(uint64_t)IBV_QP_EX_WITH_FLUSH;
}

static struct scene scene_on(struct dev *d, int qp_access, int mr_access)
{
	struct conn c = CONN;
	struct scene s;

	c.access = qp_access;
	s.p = pair_ex(d, ops(d), &c);
	s.src = buf_new(d->pd, LEN, REMOTE);
	s.dst = buf_new(d->pd, LEN, mr_access);
	return s;
}

static struct scene scene_new(int qp_access, int mr_access)
{
	return scene_on(dev_open(), qp_access, mr_access);
}

/* For errors that other devices need not report. */
static struct scene scene_of_qhca(int qp_access, int mr_access)
{
	return scene_on(dev_open_qhca(), qp_access, mr_access);
}

static uint64_t at(const struct scene *s, size_t off)
{
	return (uintptr_t)s->dst.addr + off;
}

static void flush(struct scene *s, uint64_t addr, size_t len, uint8_t type, uint8_t level,
		  enum ibv_wc_status want)
{
	struct ibv_qp_ex *q;

	need_flush(s->p.dev->ctx);
	q = wr_start(&s->p.a, 1);
	ibv_wr_flush(q, s->dst.mr->rkey, addr, len, type, level);
	REQUIRE_OK(ibv_wr_complete(q));
	poll_expect(s->p.a.send_cq, 1, want);
}

static void store(struct scene *s, uint64_t addr, const void *word)
{
	struct ibv_qp_ex *q = wr_start(&s->p.a, 2);

	ibv_wr_atomic_write(q, s->dst.mr->rkey, addr, word);
	REQUIRE_OK(ibv_wr_complete(q));
	poll_ok(s->p.a.send_cq, 2);
}

/* Data, then a word that announces it: the purpose of FLUSH and ATOMIC WRITE. */
#define ROUNDS	200

struct reader {
	struct scene *s;
	uint32_t torn, wrong;
	atomic_bool stop;
};

static uint64_t word_of(uint32_t round)
{
	return round * 0x0101010101010101ull;
}

static void *reader_run(void *arg)
{
	struct reader *r = arg;
	_Atomic uint64_t *word = (_Atomic uint64_t *)r->s->dst.addr;
	const uint8_t *data = r->s->dst.addr + 4096;

	while (!r->stop) {
		uint64_t w = atomic_load(word);
		uint8_t round = (uint8_t)w;

		r->torn += w != word_of(round);
		/* Both ends of the data were written before the word. */
		r->wrong += data[0] < round || data[4095] < round;
	}
	return NULL;
}

TEST(publish, "B-073 B-074 an ATOMIC WRITE is never torn, and never visible before its data")
{
	struct scene s = scene_new(RIGHTS, RIGHTS);
	struct reader r = { .s = &s };
	uint32_t round;
	pthread_t t;

	memset(s.dst.addr, 0, LEN);
	REQUIRE(!pthread_create(&t, NULL, reader_run, &r));
	for (round = 1; round <= ROUNDS; round++) {
		uint64_t word = word_of(round);
		struct ibv_qp_ex *q = wr_start(&s.p.a, 1);

		memset(s.src.addr, round, 4096);
		q->wr_flags = 0;
		ibv_wr_rdma_write(q, s.dst.mr->rkey, at(&s, 4096));
		ibv_wr_set_sge(q, s.src.mr->lkey, (uintptr_t)s.src.addr, 4096);
		ibv_wr_flush(q, s.dst.mr->rkey, at(&s, 4096), 4096,
			     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		q->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(q, s.dst.mr->rkey, at(&s, 0), &word);
		REQUIRE_OK(ibv_wr_complete(q));
		poll_ok(s.p.a.send_cq, 1);
	}
	r.stop = true;
	REQUIRE(!pthread_join(t, NULL));
	CHECK_EQ(r.torn, 0);
	CHECK_EQ(r.wrong, 0);
	CHECK_EQ(*(uint64_t *)s.dst.addr, word_of(ROUNDS));
}

static const struct {
	const char *name;
	uint64_t len;
	uint8_t type, level;
	bool data;		/* pass SGEs to an operation that takes none */
} bad_flushes[] = {
	{ "no type", 8, 0, IBV_FLUSH_RANGE },
	{ "a reserved type", 8, 4, IBV_FLUSH_RANGE },
	{ "a reserved type and a good one", 8, 0x81, IBV_FLUSH_RANGE },
	{ "a reserved level", 8, IBV_FLUSH_GLOBAL, 2 },
	{ "more than 32 bits of length", 1ull << 32, IBV_FLUSH_GLOBAL,
	  IBV_FLUSH_RANGE },
	{ "data", 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, true },
};

TEST_ROWS(bad_flush, "B-012 B-035 FLUSH is refused when posted, with", bad_flushes)
{
	struct scene s = scene_of_qhca(RIGHTS, RIGHTS);
	struct ibv_qp_ex *q = wr_start(&s.p.a, 1);

	ibv_wr_flush(q, s.dst.mr->rkey, at(&s, 0), row->len, row->type, row->level);
	if (row->data)
		ibv_wr_set_sge(q, s.src.mr->lkey, (uintptr_t)s.src.addr, 8);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);
	poll_none(s.p.a.send_cq);
	flush(&s, at(&s, 0), 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
	      IBV_WC_SUCCESS);
}

TEST(bad_store, "B-013 B-035 ATOMIC WRITE is refused when posted, with more data")
{
	struct scene s = scene_of_qhca(REMOTE, REMOTE);
	struct ibv_qp_ex *q = wr_start(&s.p.a, 1);

	ibv_wr_atomic_write(q, s.dst.mr->rkey, at(&s, 0), "\0\0\0\0\0\0\0");
	ibv_wr_set_sge(q, s.src.mr->lkey, (uintptr_t)s.src.addr, 8);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);
	q = wr_start(&s.p.a, 1);
	ibv_wr_atomic_write(q, s.dst.mr->rkey, at(&s, 0), "\0\0\0\0\0\0\0");
	ibv_wr_set_inline_data(q, s.src.addr, 8);
	CHECK_ERR(ibv_wr_complete(q), EINVAL);
	poll_none(s.p.a.send_cq);
	store(&s, at(&s, 0), "\0\0\0\0\0\0\0");
}

TEST(rights, "F-002 F-005 J-004 FLUSH to persistence: a right that QPs keep and regions refuse")
{
	const int all = IBV_ACCESS_REMOTE_WRITE | GLOBAL | PERSISTENT;
	struct scene s = scene_new(all, RIGHTS);
	struct ibv_mr *mr = s.dst.mr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	REQUIRE_OK(ibv_query_qp(s.p.b.qp, &a, IBV_QP_ACCESS_FLAGS, &init));
	CHECK_EQ(a.qp_access_flags & all, all);
	errno = 0;
	CHECK(!ibv_reg_mr(s.p.dev->pd, s.dst.addr, LEN, LOCAL | all));
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   LOCAL | all));
	/* The right for visibility does not need another right. */
	CHECK_ERR(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       GLOBAL), 0);
}

static const struct {
	const char *name;
	int qp_access, mr_access;
	uint8_t type;
	enum ibv_wc_status want;
} refused[] = {
	{ "I-037 not of the region", RIGHTS, REMOTE, IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR },
	{ "I-037 persistence, which no region has", RIGHTS | PERSISTENT, RIGHTS,
	  IBV_FLUSH_PERSISTENT, IBV_WC_REM_ACCESS_ERR },
	{ "I-038 not of the QP", REMOTE, RIGHTS, IBV_FLUSH_GLOBAL, IBV_WC_REM_INV_REQ_ERR },
	{ "I-038 persistence, not of the QP", RIGHTS, RIGHTS, IBV_FLUSH_PERSISTENT,
	  IBV_WC_REM_INV_REQ_ERR },
};

/* A kind of FLUSH or a right that changes on its way to the device gets another answer. */
TEST_ROWS(no_right, "a right to FLUSH", refused)
{
	struct scene s = scene_of_qhca(row->qp_access, row->mr_access);

	flush(&s, at(&s, 0), 8, row->type, IBV_FLUSH_RANGE, row->want);
}

TEST(window, "F-048 F-039 FLUSH and ATOMIC WRITE through a window")
{
	struct scene s = scene_of_qhca(RIGHTS, BINDABLE | GLOBAL);
	struct ibv_mw *mw = mw_new(s.p.dev, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = mw_part(&s.dst, 4096, 64,
					       IBV_ACCESS_REMOTE_WRITE | GLOBAL);

	CHECK_EQ(mw_bind(&s.p.b, mw, info), IBV_WC_SUCCESS);
	s.dst.mr->rkey = mw->rkey;
	flush(&s, at(&s, 4096), 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 0);
	flush(&s, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, 0);
	store(&s, at(&s, 4096 + 56), "\1\2\3\4\5\6\7");
	CHECK_EQ(s.dst.addr[4096 + 57], 2);
	flush(&s, at(&s, 4096), 65, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
	      IBV_WC_REM_ACCESS_ERR);
}
