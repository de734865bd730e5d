// SPDX-License-Identifier: GPL-2.0
/*
 * Each opcode and field of a work request reaches the device, and each opcode, field and status of
 * a completion the program, with either way of posting and of polling. Datagrams, XRC and windows
 * have programs of their own; lists of SGEs, inline data and signaling are in rc_queue.c.
 */
#include "lib/wr_ex.h"

/* ---- requests ---- */

#define LEN	10000u			/* several packets */
#define OFF	3
#define SEND_ID	0x8123456789abcdefull
#define RECV_ID	0xfedcba9876543210ull
#define IMM	0x01020304u
#define OLD	0x1112131415161718ull
#define NEW	0x2122232425262728ull
#define ATOMIC	IBV_ACCESS_REMOTE_ATOMIC
#define GLOBAL	IBV_ACCESS_FLUSH_GLOBAL
#define OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |			\
		 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |	\
		 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |		\
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE)

struct op {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t len;
	enum ibv_wc_opcode done, arrived;	/* arrived: 0 for nothing */
	int more;				/* send flags, or the level of a FLUSH */
};

static const struct op ops[] = {
	{ "B-001 SEND", IBV_WR_SEND, LEN, IBV_WC_SEND, IBV_WC_RECV },
	{ "B-001 SEND, nothing", IBV_WR_SEND, 0, IBV_WC_SEND, IBV_WC_RECV },
	{ "B-001 SEND, inline", IBV_WR_SEND, 60, IBV_WC_SEND, IBV_WC_RECV, IBV_SEND_INLINE },
	{ "B-002 SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, LEN, IBV_WC_SEND, IBV_WC_RECV },
	{ "B-004 RDMA_WRITE", IBV_WR_RDMA_WRITE, LEN, IBV_WC_RDMA_WRITE },
	{ "B-004 RDMA_WRITE, inline", IBV_WR_RDMA_WRITE, 60, IBV_WC_RDMA_WRITE, 0,
	  IBV_SEND_INLINE },
	{ "B-005 RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, LEN, IBV_WC_RDMA_WRITE,
	  IBV_WC_RECV_RDMA_WITH_IMM },
	{ "B-006 RDMA_READ", IBV_WR_RDMA_READ, LEN, IBV_WC_RDMA_READ },
	{ "B-007 ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, 8, IBV_WC_COMP_SWAP },
	{ "B-008 ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_FETCH_ADD },
	{ "B-013 ATOMIC_WRITE", IBV_WR_ATOMIC_WRITE, 8, IBV_WC_ATOMIC_WRITE },
	{ "B-013 ATOMIC_WRITE, inline", IBV_WR_ATOMIC_WRITE, 8, IBV_WC_ATOMIC_WRITE, 0,
	  IBV_SEND_INLINE },
	{ "B-012 FLUSH of a range", IBV_WR_FLUSH, LEN, IBV_WC_FLUSH, 0, IBV_FLUSH_RANGE },
	{ "B-012 FLUSH of a region", IBV_WR_FLUSH, LEN, IBV_WC_FLUSH, 0, IBV_FLUSH_MR },
};

/* struct scene - a connection within the device, with an extended CQ at each end */
struct scene {
	struct pair p;
	struct ibv_cq_ex *sent, *received;
	struct buf local, remote;
};

static struct end end_at(struct dev *d, struct ibv_cq_ex **cq, uint64_t which)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS };

	*cq = ibv_create_cq_ex(d->ctx, &attr);
	if (!*cq && errno == EOPNOTSUPP)
		test_skip("no extended CQs here");
	REQUIRE(*cq);
	return end_ex(d, d->pd, ibv_cq_ex_to_cq(*cq), which);
}

static struct scene scene_new(const struct op *op)
{
	bool flush = op->opcode == IBV_WR_FLUSH;
	uint64_t which = flush ? OPS | IBV_QP_EX_WITH_FLUSH : OPS;
	struct scene s = { .p.dev = dev_open() };
	struct dev *d = s.p.dev;
	struct conn c = CONN;

	if (flush)
		need_flush(d->ctx);
	c.access = REMOTE | ATOMIC | (flush ? GLOBAL : 0);
	s.p.a = end_at(d, &s.sent, which);
	s.p.b = end_at(d, &s.received, which);
	pair_connect(&s.p, &c);
	s.local = buf_new(d->pd, LEN + 8, REMOTE);
	s.remote = buf_new(d->pd, LEN + 8, c.access);
	return s;
}

/* Where the peer's data are; a FLUSH of a region does not look at its address. */
static uint64_t at(const struct scene *s, const struct op *op)
{
	bool aligned = op->len == 8;

	if (op->opcode == IBV_WR_FLUSH && op->more == IBV_FLUSH_MR)
		return 5;
	return (uintptr_t)s->remote.addr + (aligned ? 0 : OFF);
}

/* Three SGEs of different lengths. */
static void cut(struct ibv_sge sge[3], const struct buf *b, size_t off, uint32_t len)
{
	sge[0] = buf_sge(b, off, len / 4);
	sge[1] = buf_sge(b, off + len / 4, len / 3);
	sge[2] = buf_sge(b, off + len / 4 + len / 3, len - len / 4 - len / 3);
}

static void post_plain(struct scene *s, const struct op *op, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = wr_rdma(SEND_ID, op->opcode, sge, 3, at(s, op),
					s->remote.mr->rkey);

	if (is_atomic(op->opcode)) {
		wr.wr.atomic.compare_add = OLD;
		wr.wr.atomic.swap = NEW;
	}
	wr.send_flags |= op->more;
	wr.imm_data = htobe32(IMM);
	REQUIRE_OK(post_send(&s->p.a, &wr));
}

static void set_data(struct ibv_qp_ex *q, const struct op *op, const struct ibv_sge *sge)
{
	struct ibv_data_buf data[3];
	int i;

	if (!(op->more & IBV_SEND_INLINE)) {
		ibv_wr_set_sge_list(q, 3, sge);
		return;
	}
	for (i = 0; i < 3; i++)
		data[i] = (struct ibv_data_buf){ (void *)(uintptr_t)sge[i].addr, sge[i].length };
	ibv_wr_set_inline_data_list(q, 3, data);
}

static void post_ex(struct scene *s, const struct op *op, struct ibv_sge *sge)
{
	struct ibv_qp_ex *q = wr_start(&s->p.a, SEND_ID);
	uint32_t rkey = s->remote.mr->rkey;
	uint64_t addr = at(s, op);

	switch ((int)op->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(q);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(q, htobe32(IMM));
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(q, rkey, addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(q, rkey, addr, htobe32(IMM));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(q, rkey, addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(q, rkey, addr, OLD, NEW);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(q, rkey, addr, OLD);
		break;
	case IBV_WR_ATOMIC_WRITE:
		ibv_wr_atomic_write(q, rkey, addr, s->local.addr + OFF);
		break;
	case IBV_WR_FLUSH:
		ibv_wr_flush(q, rkey, addr, op->len, IBV_FLUSH_GLOBAL, op->more);
		break;
	}
	if (op->opcode != IBV_WR_ATOMIC_WRITE && op->opcode != IBV_WR_FLUSH)
		set_data(q, op, sge);
	REQUIRE_OK(ibv_wr_complete(q));
}

static struct ibv_wc take_ex(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int64_t end = time_ms() + WAIT_MS;
	struct ibv_wc wc;

	while (ibv_start_poll(cq, &attr) == ENOENT)
		REQUIRE(time_ms() < end);
	wc = (struct ibv_wc){
		.wr_id = cq->wr_id, .status = cq->status,
		.opcode = ibv_wc_read_opcode(cq), .vendor_err = ibv_wc_read_vendor_err(cq),
		.byte_len = ibv_wc_read_byte_len(cq), .imm_data = ibv_wc_read_imm_data(cq),
		.qp_num = ibv_wc_read_qp_num(cq), .wc_flags = ibv_wc_read_wc_flags(cq),
		.slid = ibv_wc_read_slid(cq), .dlid_path_bits = ibv_wc_read_dlid_path_bits(cq),
	};
	ibv_end_poll(cq);
	return wc;
}

static struct ibv_wc take(struct ibv_cq_ex *cq, bool extended, uint64_t id)
{
	struct ibv_wc wc = extended ? take_ex(cq) : poll_get(ibv_cq_ex_to_cq(cq));

	CHECK_EQ(wc.wr_id, id);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.vendor_err, 0);
	/* Ethernet has no LIDs. */
	CHECK_EQ(wc.slid, 0);
	CHECK_EQ(wc.dlid_path_bits, 0);
	return wc;
}

static void check_completions(struct scene *s, const struct op *op, bool extended)
{
	bool imm = op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc wc;

	if (op->arrived) {
		wc = take(s->received, extended, RECV_ID);
		CHECK_EQ(wc.opcode, op->arrived);
		CHECK_EQ(wc.byte_len, op->len);
		CHECK_EQ(wc.qp_num, s->p.b.qp->qp_num);
		CHECK_EQ(wc.wc_flags, imm ? IBV_WC_WITH_IMM : 0);
		CHECK(!imm || be32toh(wc.imm_data) == IMM);
	}
	wc = take(s->sent, extended, SEND_ID);
	CHECK_EQ(wc.opcode, op->done);
	CHECK_EQ(wc.qp_num, s->p.a.qp->qp_num);
	CHECK_EQ(wc.wc_flags, 0);
	if (op->opcode >= IBV_WR_RDMA_READ && op->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD)
		CHECK_EQ(wc.byte_len, op->len);
	poll_empty(ibv_cq_ex_to_cq(s->sent));
	poll_empty(ibv_cq_ex_to_cq(s->received));
}

static void check_memory(const struct scene *s, const struct op *op)
{
	const uint8_t *here = s->local.addr + OFF;
	const uint8_t *there = (void *)(uintptr_t)at(s, op);
	uint64_t found, word;

	switch ((int)op->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		memcpy(&found, here, 8);
		memcpy(&word, there, 8);
		CHECK(found == OLD);
		CHECK(word == (op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? NEW : 2 * OLD));
		break;
	case IBV_WR_RDMA_READ:
		check_fill(here, op->len, 2, op->name);
		break;
	case IBV_WR_FLUSH:
		break;
	default:
		check_fill(there, op->len, 1, op->name);
	}
}

/* The first round is by ibv_post_send() and ibv_poll_cq(), the second by the extended verbs. */
TEST_ROWS(request, "B-032 B-035 B-068 C-007 C-009 C-030 request and completions", ops)
{
	struct scene s = scene_new(row);
	struct ibv_sge out[3], in[3];
	int round;

	cut(out, &s.local, OFF, row->len);
	cut(in, &s.remote, OFF, row->len);
	/* FLUSH has members that struct ibv_send_wr lacks. */
	for (round = row->opcode == IBV_WR_FLUSH; round < 2; round++) {
		memset(s.local.addr, 0, s.local.len);
		fill(s.local.addr + OFF, row->len, 1);
		fill(s.remote.addr + (row->len == 8 ? 0 : OFF), row->len, 2);
		if (is_atomic(row->opcode))
			memcpy(s.remote.addr, &(uint64_t){ OLD }, 8);
		if (row->arrived)
			REQUIRE_OK(post_recv(&s.p.b, RECV_ID, in, 3));
		if (round)
			post_ex(&s, row, out);
		else
			post_plain(&s, row, out);
		check_completions(&s, row, round);
		check_memory(&s, row);
	}
}

/* By either verb a WRITE without the fence would have the data of the round before. */
TEST(fence, "B-051 a fenced request sees the data of the READ before it")
{
	struct pair p = pair_ex(dev_open(), OPS, &CONN);
	struct buf mid = buf_new(p.dev->pd, 50000, LOCAL);
	struct buf src = buf_new(p.dev->pd, 50000, REMOTE);
	struct buf dst = buf_new(p.dev->pd, 50000, REMOTE);
	struct ibv_sge sge = buf_sge(&mid, 0, mid.len);
	struct ibv_send_wr write = wr_rdma(2, IBV_WR_RDMA_WRITE, &sge, 1,
					   (uintptr_t)dst.addr, dst.mr->rkey);
	struct ibv_send_wr read = wr_rdma(1, IBV_WR_RDMA_READ, &sge, 1,
					  (uintptr_t)src.addr, src.mr->rkey);
	struct ibv_qp_ex *q;
	int i;

	read.next = &write;
	write.send_flags |= IBV_SEND_FENCE;
	for (i = 0; i < 20; i++) {
		fill(src.addr, src.len, i);
		if (i % 2) {
			q = wr_start(&p.a, 1);
			ibv_wr_rdma_read(q, src.mr->rkey, (uintptr_t)src.addr);
			ibv_wr_set_sge(q, mid.mr->lkey, sge.addr, sge.length);
			q->wr_id = 2;
			q->wr_flags |= IBV_SEND_FENCE;
			ibv_wr_rdma_write(q, dst.mr->rkey, (uintptr_t)dst.addr);
			ibv_wr_set_sge(q, mid.mr->lkey, sge.addr, sge.length);
			REQUIRE_OK(ibv_wr_complete(q));
		} else {
			REQUIRE_OK(post_send(&p.a, &read));
		}
		poll_ok(p.a.send_cq, 1);
		poll_ok(p.a.send_cq, 2);
		check_fill(dst.addr, dst.len, i, "written after the READ");
	}
}

/* ---- statuses ---- */

#define BAD_KEY	0x00471100
#define NO_WC	-1

/* struct cause - why a request fails */
struct cause {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	int sent, received;		/* statuses; received: NO_WC if the peer stays alive */
	enum { BY_LKEY = 1, BY_RKEY, BY_ROOM, BY_RECV_LKEY, BY_PEER, BY_NO_RECV, BY_DEPTH } why;
	int event;			/* at the peer, or 0 */
};

#define RC(text, opcode, sent, received, ...) \
	{ text, IBV_QPT_RC, IBV_WR_##opcode, IBV_WC_##sent, received, __VA_ARGS__ }

static const struct cause causes[] = {
	RC("I-001 LOC_PROT_ERR", RDMA_WRITE, LOC_PROT_ERR, NO_WC, BY_LKEY),
	RC("I-004 REM_ACCESS_ERR", RDMA_WRITE, REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, BY_RKEY,
	   IBV_EVENT_QP_ACCESS_ERR),
	RC("I-012 LOC_ACCESS_ERR", RDMA_WRITE_WITH_IMM, REM_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR,
	   BY_RKEY),
	RC("I-014 REM_INV_REQ_ERR, LOC_LEN_ERR", SEND, REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR,
	   BY_ROOM),
	RC("I-015 REM_OP_ERR", SEND, REM_OP_ERR, IBV_WC_LOC_PROT_ERR, BY_RECV_LKEY),
	RC("I-018 RNR_RETRY_EXC_ERR", SEND, RNR_RETRY_EXC_ERR, NO_WC, BY_NO_RECV),
	RC("I-021 RETRY_EXC_ERR", SEND, RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR, BY_PEER),
	RC("I-035 MW_BIND_ERR", LOCAL_INV, MW_BIND_ERR, NO_WC, BY_LKEY),
	RC("D-067 LOC_QP_OP_ERR", RDMA_READ, LOC_QP_OP_ERR, NO_WC, BY_DEPTH),
	{ "I-042 UC, LOC_PROT_ERR", IBV_QPT_UC, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR, NO_WC, BY_LKEY },
};

/* Posts the request that fails, id 10, and two behind it, of which only the last is signaled. */
static void provoke(struct pair *p, struct buf *b, const struct cause *cause)
{
	struct ibv_sge out = buf_sge(b, 0, 100), in = buf_sge(b, 100, 100);
	struct ibv_send_wr last = wr_send(12, NULL, 0), next = wr_send(11, NULL, 0);
	struct ibv_send_wr wr = wr_rdma(10, cause->opcode, &out, cause->opcode != IBV_WR_LOCAL_INV,
					(uintptr_t)b->addr, b->mr->rkey);
	int i, room = cause->type == IBV_QPT_RC && cause->why != BY_NO_RECV ? 2 : 0;

	out.lkey = cause->why == BY_LKEY ? BAD_KEY : out.lkey;
	in.lkey = cause->why == BY_RECV_LKEY ? BAD_KEY : in.lkey;
	in.length -= cause->why == BY_ROOM;
	wr.wr.rdma.rkey = cause->why == BY_RKEY ? BAD_KEY : wr.wr.rdma.rkey;
	if (cause->opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = BAD_KEY;
	wr.send_flags = 0;
	wr.next = &next;
	next.send_flags = 0;
	next.next = &last;
	if (cause->why == BY_PEER)
		REQUIRE_OK(set_state(p->b.qp, IBV_QPS_ERR));
	for (i = 0; i < room; i++)
		REQUIRE_OK(post_recv(&p->b, 20 + i, &in, 1));
	REQUIRE_OK(post_send(&p->a, &wr));
}

static void check_failed(struct pair *p, const struct cause *cause)
{
	struct ibv_wc wc = poll_expect(p->a.send_cq, 10, cause->sent);

	CHECK_EQ(wc.qp_num, p->a.qp->qp_num);
	CHECK_EQ(wc.vendor_err, 0);
	CHECK_EQ(get_state(p->a.qp), cause->type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
	poll_expect(p->a.send_cq, 11, IBV_WC_WR_FLUSH_ERR);
	poll_expect(p->a.send_cq, 12, IBV_WC_WR_FLUSH_ERR);
	if (cause->received != NO_WC) {
		poll_expect(p->b.recv_cq, 20, cause->received);
		poll_expect(p->b.recv_cq, 21, IBV_WC_WR_FLUSH_ERR);
	}
	CHECK_EQ(get_state(p->b.qp), cause->received == NO_WC ? IBV_QPS_RTS : IBV_QPS_ERR);
	if (cause->event)
		async_expect(p->dev->ctx, cause->event, p->b.qp);
	async_none(p->dev->ctx);
	poll_empty(p->a.send_cq);
	poll_empty(p->b.recv_cq);
}

/* A request fails without a flag for a completion, twice on the same QP, which then works. */
TEST_ROWS(status, "A-018 A-105 B-044 C-010 H-023 status and recovery", causes)
{
	struct qp_opts o = QP_OPTS;
	struct conn c = CONN;
	struct pair p;
	struct buf b;
	int i;

	o.type = row->type;
	c.timeout = 12;
	c.retry_cnt = 3;
	c.rnr_retry = 1;
	c.min_rnr_timer = 1;
	c.rd_atomic = row->why == BY_DEPTH ? 0 : c.rd_atomic;
	p = pair_new(dev_open_qhca(), &o, &c);
	b = buf_new(p.dev->pd, 200, REMOTE);
	for (i = 0; i < 2; i++) {
		provoke(&p, &b, row);
		check_failed(&p, row);
		if (row->type == IBV_QPT_UC) {
			REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RTS));
		} else {
			REQUIRE_OK(set_state(p.a.qp, IBV_QPS_RESET));
			REQUIRE_OK(set_state(p.b.qp, IBV_QPS_RESET));
			pair_connect(&p, &c);
		}
		ping_pong(&p);
	}
}
