// SPDX-License-Identifier: GPL-2.0
/* Atomic operations. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/rdma.h"

#define CAS	IBV_WR_ATOMIC_CMP_AND_SWP
#define FAA	IBV_WR_ATOMIC_FETCH_AND_ADD
#define ATOMIC	(REMOTE | IBV_ACCESS_REMOTE_ATOMIC)

/* struct scene - a pair, a word at the peer, and memory for its old value */
struct scene {
	struct pair p;
	struct buf word, found;
	struct ibv_sge sge;
};

static struct scene scene_new(int qp_access, int mr_access)
{
	struct dev *d = dev_open();
	struct conn c = CONN;
	struct scene s;

	if (d->attr.atomic_cap == IBV_ATOMIC_NONE)
		test_skip("no atomics here");
	c.access = qp_access;
	s.p = pair_new(d, &QP_OPTS, &c);
	s.word = buf_new(d->pd, 4096, mr_access);
	s.found = buf_new(d->pd, 4096, LOCAL);
	s.sge = buf_sge(&s.found, 0, 8);
	return s;
}

static atomic_ullong *word(struct scene *s)
{
	return (atomic_ullong *)s->word.addr;
}

static uint64_t found(struct scene *s)
{
	return *(atomic_ullong *)s->found.addr;
}

static struct ibv_send_wr wr_atomic(struct scene *s, enum ibv_wr_opcode opcode,
				    uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = wr_send(1, &s->sge, 1);

	wr.opcode = opcode;
	wr.wr.atomic.remote_addr = (uintptr_t)s->word.addr;
	wr.wr.atomic.rkey = s->word.mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return wr;
}

static void atomic_ok(struct scene *s, enum ibv_wr_opcode opcode,
		      uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = wr_atomic(s, opcode, compare_add, swap);
	struct ibv_wc wc;

	REQUIRE_OK(post_send(&s->p.a, &wr));
	wc = poll_ok(s->p.a.send_cq, 1);
	CHECK_EQ(wc.byte_len, 8);
	CHECK_EQ(wc.opcode, opcode == CAS ? IBV_WC_COMP_SWAP :
		 IBV_WC_FETCH_ADD);
}

TEST(fetch_add, "B-008 B-072 F-021 fetch and add, modulo 2^64")
{
	const uint64_t add[] = { 1, 0, 0x123456789abcdef0, ~0ull, 1ull << 63,
				 1ull << 63 };
	struct scene s = scene_new(ATOMIC, ATOMIC);
	uint64_t want = 0x1122334455667788;
	size_t i;

	*word(&s) = want;
	for (i = 0; i < ARRAY_SIZE(add); i++) {
		atomic_ok(&s, FAA, add[i], 0);
		CHECK_EQ(found(&s), want);
		want += add[i];
		CHECK_EQ(*word(&s), want);
	}
}

TEST(compare_swap, "B-007 B-072 compare and swap: only if the values are equal")
{
	struct scene s = scene_new(ATOMIC, ATOMIC);

	*word(&s) = 5;
	atomic_ok(&s, CAS, 5, 0xdeadbeefcafe0000);
	CHECK_EQ(found(&s), 5);
	CHECK_EQ(*word(&s), 0xdeadbeefcafe0000);
	atomic_ok(&s, CAS, 5, 7);
	CHECK_EQ(found(&s), 0xdeadbeefcafe0000);
	CHECK_EQ(*word(&s), 0xdeadbeefcafe0000);
	/* Only one half of the word is equal. */
	atomic_ok(&s, CAS, 0xdeadbeef00000000, 7);
	atomic_ok(&s, CAS, 0x00000000cafe0000, 7);
	CHECK_EQ(*word(&s), 0xdeadbeefcafe0000);
	CHECK_EQ(word(&s)[1], 0);
}

TEST(scattered, "B-032 the result may be scattered")
{
	struct qp_opts o = QP_OPTS;
	struct scene s = scene_new(ATOMIC, ATOMIC);
	struct ibv_sge part[3] = {
		buf_sge(&s.found, 100, 3), buf_sge(&s.found, 200, 0),
		buf_sge(&s.found, 300, 5),
	};
	struct ibv_send_wr wr = wr_atomic(&s, FAA, 1, 0);
	struct conn c = CONN;

	o.send_sge = 3;
	c.access = ATOMIC;
	s.p = pair_new(s.p.dev, &o, &c);
	memcpy(word(&s), "\1\2\3\4\5\6\7\10", 8);
	wr.sg_list = part;
	wr.num_sge = 3;
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_ok(s.p.a.send_cq, 1);
	CHECK(!memcmp(s.found.addr + 100, "\1\2\3\0", 4));
	CHECK(!memcmp(s.found.addr + 300, "\4\5\6\7\10\0", 6));
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	int qp_access, mr_access;
	int off;		/* offset of the remote address */
	uint32_t key, length;	/* key: change of the key; length: 0 stands for 8 */
	int want;
} errors[] = {
	{ "I-004 CAS, unknown rkey", CAS, ATOMIC, ATOMIC, 0, 0x100, 0,
	  IBV_WC_REM_ACCESS_ERR },
	{ "I-004 FAA, unknown rkey", FAA, ATOMIC, ATOMIC, 0, 0x100, 0,
	  IBV_WC_REM_ACCESS_ERR },
	{ "I-007 right missing on the MR", FAA, ATOMIC, REMOTE, 0, 0, 0,
	  IBV_WC_REM_ACCESS_ERR },
	{ "I-013 F-005 right missing on the QP", FAA, REMOTE, ATOMIC, 0, 0, 0,
	  IBV_WC_REM_INV_REQ_ERR },
	{ "I-007 beyond the MR", FAA, ATOMIC, ATOMIC, 4096, 0, 0,
	  IBV_WC_REM_ACCESS_ERR },
	{ "I-017 B-033 misaligned by 4", FAA, ATOMIC, ATOMIC, 4, 0, 0,
	  IBV_WC_REM_INV_REQ_ERR },
	{ "I-017 B-033 misaligned by 1", CAS, ATOMIC, ATOMIC, 1, 0, 0,
	  IBV_WC_REM_INV_REQ_ERR },
	{ "I-032 4 bytes of room", FAA, ATOMIC, ATOMIC, 0, 0, 4,
	  IBV_WC_LOC_LEN_ERR },
	{ "I-032 16 bytes of room", CAS, ATOMIC, ATOMIC, 0, 0, 16,
	  IBV_WC_LOC_LEN_ERR },
};

TEST_ROWS(error, "atomic error", errors)
{
	struct scene s = scene_new(row->qp_access, row->mr_access);
	struct ibv_send_wr wr = wr_atomic(&s, row->opcode, 0, 77);
	int err;

	if (!s.p.dev->qhca)
		test_skip("qhca only");
	wr.wr.atomic.remote_addr += row->off;
	wr.wr.atomic.rkey ^= row->key;
	if (row->length)
		s.sge.length = row->length;
	err = post_send(&s.p.a, &wr);
	/* Posting may refuse bad lengths and alignment. */
	if (err && (row->length || row->off % 8)) {
		CHECK_EQ(err, EINVAL);
		return;
	}
	REQUIRE_OK(err);
	poll_expect(s.p.a.send_cq, 1, row->want);
	CHECK_EQ(*word(&s), 0);
	CHECK_EQ(found(&s), 0);
}

TEST(no_room, "I-003 a result that cannot be written")
{
	struct scene s = scene_new(ATOMIC, ATOMIC);
	struct buf ro = buf_new(s.p.dev->pd, 64, 0);
	struct ibv_send_wr wr = wr_atomic(&s, FAA, 1, 0);

	s.sge = buf_sge(&ro, 0, 8);
	REQUIRE_OK(post_send(&s.p.a, &wr));
	poll_expect(s.p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
}

#define ROUNDS 300

struct adder {
	struct scene *s;
	struct end e;
	struct buf found;
	uint32_t done;
	pthread_t thread;
};

static void *adder(void *arg)
{
	struct adder *t = arg;
	struct ibv_sge sge = buf_sge(&t->found, 0, 8);
	struct ibv_send_wr wr = wr_atomic(t->s, FAA, 1, 0);
	struct ibv_wc wc;

	wr.sg_list = &sge;
	while (t->done < ROUNDS) {
		if (post_send(&t->e, &wr) ||
		    !poll_wait(t->e.send_cq, &wc, WAIT_MS) || wc.status)
			break;
		t->done++;
	}
	return NULL;
}

TEST(many, "F-020 several QPs add to one word, and no addition is lost")
{
	struct scene s = scene_new(ATOMIC, ATOMIC);
	struct conn c = CONN;
	struct adder t[3];
	size_t i;

	c.access = ATOMIC;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct pair p;

		c.mtu = i ? IBV_MTU_1024 : IBV_MTU_256;
		p = pair_new(s.p.dev, &QP_OPTS, &c);
		t[i] = (struct adder){
			.s = &s, .e = p.a,
			.found = buf_new(s.p.dev->pd, 64, LOCAL),
		};
	}
	for (i = 0; i < ARRAY_SIZE(t); i++)
		REQUIRE_OK(pthread_create(&t[i].thread, NULL, adder, &t[i]));
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		pthread_join(t[i].thread, NULL);
		CHECK_EQ(t[i].done, ROUNDS);
	}
	CHECK_EQ(*word(&s), ARRAY_SIZE(t) * ROUNDS);
}

TEST(queued, "D-067 more atomics than may be outstanding, in order")
{
	struct scene s = scene_new(ATOMIC, ATOMIC);
	struct ibv_sge sge[16];
	int i;

	for (i = 0; i < 16; i++) {
		struct ibv_send_wr wr = wr_atomic(&s, FAA, 1, 0);

		sge[i] = buf_sge(&s.found, i * 8, 8);
		wr.wr_id = i;
		wr.sg_list = &sge[i];
		REQUIRE_OK(post_send(&s.p.a, &wr));
	}
	for (i = 0; i < 16; i++) {
		poll_ok(s.p.a.send_cq, i);
		CHECK_EQ(((atomic_ullong *)s.found.addr)[i], i);
	}
}
