// SPDX-License-Identifier: GPL-2.0
/* FLUSH and ATOMIC WRITE, the memory placement extensions. */
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
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

static struct ibv_wc flush(struct scene *s, uint64_t addr, size_t len,
			   uint8_t type, uint8_t level, enum ibv_wc_status want)
{
	struct ibv_qp_ex *q;

	need_flush(s->p.dev->ctx);
	q = wr_start(&s->p.a, 1);
	ibv_wr_flush(q, s->dst.mr->rkey, addr, len, type, level);
	REQUIRE_OK(ibv_wr_complete(q));
	return poll_expect(s->p.a.send_cq, 1, want);
}

static struct ibv_wc store(struct scene *s, uint64_t addr, const void *word,
			   enum ibv_wc_status want)
{
	struct ibv_qp_ex *q = wr_start(&s->p.a, 2);

	ibv_wr_atomic_write(q, s->dst.mr->rkey, addr, word);
	REQUIRE_OK(ibv_wr_complete(q));
	return poll_expect(s->p.a.send_cq, 2, want);
}

TEST(offered, "J-004 B-012 B-013 what the device reports about FLUSH and ATOMIC WRITE")
{
	struct dev *d = dev_open_qhca();
	struct ibv_device_attr_ex attr;

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	CHECK(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE);
	/* The RAM of a VM is not persistent. */
	CHECK(!(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT));
	need_flush(d->ctx);
	CHECK(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_GLOBAL);
}

TEST(write_flush, "B-012 B-073 WRITE and FLUSH in one batch")
{
	struct scene s = scene_new(RIGHTS, RIGHTS);
	uint32_t seed;

	for (seed = 1; seed < 100; seed++) {
		uint32_t len = 1 + seed * 81 % LEN, off = (LEN - len) / 2;
		struct ibv_qp_ex *q = wr_start(&s.p.a, 1);
		struct ibv_wc wc;

		fill(s.src.addr, LEN, seed);
		q->wr_flags = 0;
		ibv_wr_rdma_write(q, s.dst.mr->rkey, at(&s, off));
		ibv_wr_set_sge(q, s.src.mr->lkey, (uintptr_t)s.src.addr, len);
		q->wr_id = 2;
		q->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_flush(q, s.dst.mr->rkey, at(&s, off), len,
			     IBV_FLUSH_GLOBAL,
			     seed % 2 ? IBV_FLUSH_RANGE : IBV_FLUSH_MR);
		REQUIRE_OK(ibv_wr_complete(q));
		wc = poll_ok(s.p.a.send_cq, 2);
		CHECK_EQ(wc.opcode, IBV_WC_FLUSH);
		check_fill(s.dst.addr + off, len, seed, "flushed");
	}
	poll_empty(s.p.a.send_cq);
}

static const struct {
	const char *name;
	int64_t off;
	uint64_t len;
	uint8_t level;
} ranges[] = {
	{ "all of it", 0, LEN, IBV_FLUSH_RANGE },
	{ "the last byte", LEN - 1, 1, IBV_FLUSH_RANGE },
	{ "nothing, anywhere", -100000, 0, IBV_FLUSH_RANGE },
	{ "the region", 0, 0, IBV_FLUSH_MR },
	{ "the region, whatever the range", -100000, 1ull << 40,
	  IBV_FLUSH_MR },
};

TEST_ROWS(range, "B-012 B-073 FLUSH of", ranges)
{
	struct scene s = scene_new(RIGHTS, RIGHTS);

	flush(&s, at(&s, row->off), row->len, IBV_FLUSH_GLOBAL, row->level,
	      IBV_WC_SUCCESS);
}

TEST(atomic_write, "B-013 B-074 ATOMIC WRITE writes its 8 bytes as they are, and no others")
{
	const uint8_t word[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct scene s = scene_new(REMOTE, REMOTE);
	size_t i;

	for (i = 0; i < LEN / 8; i += 7) {
		memset(s.dst.addr, 0, LEN);
		CHECK_EQ(store(&s, at(&s, 8 * i), word, IBV_WC_SUCCESS).opcode,
			 IBV_WC_ATOMIC_WRITE);
		CHECK(!memcmp(s.dst.addr + 8 * i, word, 8));
		memset(s.dst.addr + 8 * i, 0, 8);
		CHECK(!memcmp(s.dst.addr, s.dst.addr + 1, LEN - 1));
	}
	poll_empty(s.p.b.recv_cq);
}

TEST(atomic_write_plain, "B-013 B-074 ATOMIC WRITE by ibv_post_send(), from several SGEs or inline")
{
	const uint8_t word[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
	struct scene s = scene_of_qhca(REMOTE, REMOTE);
	struct ibv_sge sge[3] = {
		buf_sge(&s.src, 0, 3), buf_sge(&s.src, 50, 0), buf_sge(&s.src, 100, 5),
	};
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_ATOMIC_WRITE, sge, 3,
					at(&s, 16), s.dst.mr->rkey);

	memcpy(s.src.addr, word, 3);
	memcpy(s.src.addr + 100, word + 3, 5);
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_ok(s.p.a.send_cq, 1);
	CHECK(!memcmp(s.dst.addr + 16, word, 8));
	wr.wr.rdma.remote_addr += 8;
	wr.send_flags |= IBV_SEND_INLINE;
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_ok(s.p.a.send_cq, 1);
	CHECK(!memcmp(s.dst.addr + 24, word, 8));
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.num_sge = 1;
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_expect(s.p.a.send_cq, 1, IBV_WC_LOC_LEN_ERR);
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
	bool store;
	int qp_access, mr_access;
	int off;
	uint8_t type;
	int want;
	uint32_t key;		/* change of the key */
	uint8_t level;
} errors[] = {
	{ "I-004 FLUSH, unknown rkey", false, RIGHTS, RIGHTS, 0,
	  IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR, 0x100 },
	{ "I-004 FLUSH of a region, unknown rkey", false, RIGHTS, RIGHTS, 0,
	  IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR, 0x100, IBV_FLUSH_MR },
	{ "I-007 FLUSH beyond the MR", false, RIGHTS, RIGHTS, LEN - 7,
	  IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR },
	{ "I-037 FLUSH, right missing on the MR", false, RIGHTS, REMOTE, 0,
	  IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR },
	{ "I-037 FLUSH of a region without the right", false, RIGHTS, REMOTE, 0,
	  IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR, 0, IBV_FLUSH_MR },
	{ "I-037 persistence of RAM", false, RIGHTS | PERSISTENT, RIGHTS, 0,
	  IBV_FLUSH_PERSISTENT, IBV_WC_REM_ACCESS_ERR },
	{ "I-037 persistence and visibility", false, RIGHTS | PERSISTENT, RIGHTS,
	  0, IBV_FLUSH_PERSISTENT | IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR },
	{ "I-038 FLUSH, right missing on the QP", false, REMOTE, RIGHTS, 0,
	  IBV_FLUSH_GLOBAL, IBV_WC_REM_INV_REQ_ERR },
	{ "I-038 persistence not enabled on the QP", false, RIGHTS, RIGHTS, 0,
	  IBV_FLUSH_PERSISTENT, IBV_WC_REM_INV_REQ_ERR },
	{ "I-004 ATOMIC WRITE, unknown rkey", true, REMOTE, REMOTE, 0, 0,
	  IBV_WC_REM_ACCESS_ERR, 0x100 },
	{ "I-007 ATOMIC WRITE beyond the MR", true, REMOTE, REMOTE, LEN, 0,
	  IBV_WC_REM_ACCESS_ERR },
	{ "I-007 ATOMIC WRITE, right missing on the MR", true, REMOTE,
	  LOCAL | IBV_ACCESS_REMOTE_READ, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "I-038 ATOMIC WRITE, right missing on the QP", true,
	  IBV_ACCESS_REMOTE_READ, REMOTE, 0, 0, IBV_WC_REM_INV_REQ_ERR },
	{ "I-038 ATOMIC WRITE misaligned by 4", true, REMOTE, REMOTE, 4, 0,
	  IBV_WC_REM_INV_REQ_ERR },
	{ "I-038 ATOMIC WRITE misaligned by 1", true, REMOTE, REMOTE, 1, 0,
	  IBV_WC_REM_INV_REQ_ERR },
};

TEST_ROWS(error, "refused by the peer:", errors)
{
	struct scene s = scene_new(row->qp_access, row->mr_access);

	s.dst.mr->rkey ^= row->key;
	memset(s.dst.addr, 0, LEN);
	if (row->store)
		store(&s, at(&s, row->off), "\1\1\1\1\1\1\1", row->want);
	else
		flush(&s, at(&s, row->off), 8, row->type, row->level, row->want);
	CHECK(wait_state(s.p.a.qp, IBV_QPS_ERR));
	CHECK(wait_state(s.p.b.qp, IBV_QPS_ERR));
	CHECK(!memcmp(s.dst.addr, s.dst.addr + 1, LEN - 1));
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
	store(&s, at(&s, 0), "\0\0\0\0\0\0\0", IBV_WC_SUCCESS);
}

TEST(too_long, "I-032 a FLUSH longer than a message can be")
{
	struct scene s = scene_of_qhca(RIGHTS, RIGHTS);

	flush(&s, at(&s, 0), (1ull << 31) + 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
	      IBV_WC_LOC_LEN_ERR);
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
	store(&s, at(&s, 4096 + 56), "\1\2\3\4\5\6\7", 0);
	CHECK_EQ(s.dst.addr[4096 + 57], 2);
	flush(&s, at(&s, 4096), 65, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
	      IBV_WC_REM_ACCESS_ERR);
}

TEST(window_rights, "F-039 a window cannot have a right that memory cannot have")
{
	struct scene s = scene_of_qhca(RIGHTS, BINDABLE);
	struct ibv_mw *mw = mw_new(s.p.dev, IBV_MW_TYPE_2);

	CHECK_EQ(mw_bind(&s.p.b, mw, mw_part(&s.dst, 0, 64, GLOBAL)), IBV_WC_MW_BIND_ERR);
}

static const struct {
	const char *name;
	uint8_t depth;
	int want;
} depths[] = {
	{ "1", 1, IBV_WC_SUCCESS }, { "16", 16, IBV_WC_SUCCESS },
	{ "0", 0, IBV_WC_LOC_QP_OP_ERR },
};

TEST_ROWS(depth, "D-067 a full queue of FLUSH and ATOMIC WRITE, max_rd_atomic", depths)
{
	struct dev *d = dev_open_qhca();
	struct conn c = CONN;
	uint64_t word = 0;
	struct scene s;
	uint32_t i;
	int round;

	c.access = RIGHTS;
	need_flush(d->ctx);
	c.rd_atomic = row->depth;
	c.dest_rd_atomic = row->depth;
	s.p = pair_ex(d, OPS, &c);
	s.src = buf_new(d->pd, LEN, LOCAL);
	s.dst = buf_new(d->pd, LEN, RIGHTS);
	for (round = 0; round < 10; round++) {
		struct ibv_qp_ex *q = wr_start(&s.p.a, 0);

		for (i = 0; i < s.p.a.cap.max_send_wr; i++) {
			q->wr_id = i;
			word++;
			if (i % 3)
				ibv_wr_atomic_write(q, s.dst.mr->rkey,
						    at(&s, 0), &word);
			else
				ibv_wr_flush(q, s.dst.mr->rkey, at(&s, 0), LEN,
					     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		}
		REQUIRE_OK(ibv_wr_complete(q));
		poll_expect(s.p.a.send_cq, 0, row->want);
		for (i = 1; i < s.p.a.cap.max_send_wr; i++)
			poll_expect(s.p.a.send_cq, i,
				    row->want ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		if (row->want)
			return;
		/* If the last WR of a round is a FLUSH, the word is one behind. */
		CHECK(word - *(uint64_t *)s.dst.addr < 2);
	}
}
