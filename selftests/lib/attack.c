// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks of one process on another. The attacker knows all numbers, keys, addresses and PSNs, and
 * lacks only privileges.
 */
#include <sys/mman.h>
#include <unistd.h>

#include <qhca/queues.h>
#include <qhca/regs.h>

#include "attack.h"
#include "uverbs.h"
#include "window.h"
#include "xrc.h"

static struct target *t;

/* struct bad - the attacker; @n counts, so that every round tries something else */
struct bad {
	struct dev *d;
	struct uv uv;
	struct buf buf;
	uint32_t n;
};

static void end_free(struct end *e)
{
	REQUIRE_OK(ibv_destroy_qp(e->qp));
	REQUIRE_OK(ibv_destroy_cq(e->send_cq));
	REQUIRE_OK(ibv_destroy_cq(e->recv_cq));
}

/* Posts a WR that must not succeed; the QP cannot be used afterwards. */
static void must_fail(struct end *e, struct ibv_send_wr *wr, const char *what)
{
	REQUIRE_OK(post_send(e, wr));
	if (poll_get(e->send_cq).status == IBV_WC_SUCCESS)
		FAIL("%s: opcode %d succeeded", what, wr->opcode);
}

static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_RDMA_WRITE_WITH_IMM,
};

/* Makes a WR with @opcode for the canaries, with @rkey and a local buffer with @lkey. */
static struct ibv_send_wr aimed(struct bad *b, struct ibv_sge *sge, enum ibv_wr_opcode opcode,
				uint32_t lkey, uint32_t rkey)
{
	struct ibv_send_wr wr = wr_rdma(b->n, opcode, sge, 1, t->addr, rkey);

	*sge = buf_sge(&b->buf, 0, 8);
	if (lkey != sge->lkey)
		sge->addr = t->addr;
	sge->lkey = lkey;
	return wr;
}

/* Connects to each of the victim's QPs as if it were the peer, at and near its PSN. */
static void speak_for_the_peer(struct bad *b, enum ibv_qp_type type)
{
	static const int32_t near[] = { 0, 1, 4, -1, -4, 1000 };
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct conn c = CONN;
	struct ibv_sge sge;
	struct end e;
	int i;

	o.type = type;
	c.retry_cnt = 0;
	c.timeout = 1;
	for (i = 0; i < NUM_QPS; i++) {
		c.dest_qpn = t->qpn[i];
		c.sq_psn = i < RC_A ? atomic_load(&t->psn) : CONN.sq_psn;
		c.sq_psn = (c.sq_psn + near[b->n % ARRAY_SIZE(near)]) & 0xffffff;
		e = end_new(b->d, &o);
		qp_bring(&e, &c, IBV_QPS_RTS);
		wr = aimed(b, &sge, opcodes[(b->n + i) % (type == IBV_QPT_UC ? 2 : 5)],
			   b->buf.mr->lkey, t->keys[0]);
		if (type == IBV_QPT_XRC_SEND)
			wr.qp_type.xrc.remote_srqn = t->srqn;
		if (type == IBV_QPT_UC) {
			REQUIRE_OK(post_send(&e, &wr));
			poll_ok(e.send_cq, b->n);
		} else {
			must_fail(&e, &wr, "another's peer");
		}
		end_free(&e);
	}
}

static void forge_rc(struct bad *b)
{
	speak_for_the_peer(b, IBV_QPT_RC);
}

static void forge_uc(struct bad *b)
{
	speak_for_the_peer(b, IBV_QPT_UC);
}

static void forge_xrc(struct bad *b)
{
	speak_for_the_peer(b, IBV_QPT_XRC_SEND);
}

/* Sends datagrams to all QPs; the kernel does not check the AV, because it is in the WQE. */
static void datagrams(struct bad *b)
{
	static const uint32_t qkeys[] = { 0, 1, 0x7fffffff, 0x80010000 };
	struct ibv_ah *ah = own_ah(b->d, b->d->pd);
	struct qhca_av *av = (struct qhca_av *)(ah + 1), good = *av;
	struct ibv_sge sge = buf_sge(&b->buf, 0, 8);
	struct ibv_send_wr wr = wr_send(1, &sge, 1);
	struct qp_opts o = QP_OPTS;
	struct end e;
	int i;

	REQUIRE(!memcmp(av->dgid, &b->d->gid, sizeof(av->dgid)));
	o.type = IBV_QPT_UD;
	e = end_in(b->d, &o, IBV_QPS_RTS);
	wr.wr.ud.ah = ah;
	for (i = 0; i < NUM_QPS; i++) {
		wr.wr.ud.remote_qpn = t->qpn[i];
		wr.wr.ud.remote_qkey = qkeys[(b->n + i) % ARRAY_SIZE(qkeys)];
		REQUIRE_OK(post_send(&e, &wr));
		poll_ok(e.send_cq, 1);
	}
	av->pdn = htole32(t->pdn);
	must_fail(&e, &wr, "another's PD");
	end_free(&e);
	*av = good;
	av->sgid_index = b->n + 100;
	e = end_in(b->d, &o, IBV_QPS_RTS);
	REQUIRE_OK(post_send(&e, &wr));
	poll_get(e.send_cq);
	end_free(&e);
	REQUIRE_OK(ibv_destroy_ah(ah));
}

/* Uses the victim's keys, and those near them, on QPs of the attacker. */
static void keys(struct bad *b)
{
	static const uint32_t around[] = { 0, 1, 0xff, 0x100, 0x80000000 };
	uint32_t i, key, pick;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	for (i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		enum ibv_wr_opcode opcode = opcodes[i / 2];
		bool local = i % 2;

		pick = b->n * 7 + i;
		key = t->keys[pick % 4] ^ around[pick / 4 % ARRAY_SIZE(around)];
		if (opcode == IBV_WR_SEND && !local)
			continue;
		p = pair_new(b->d, &QP_OPTS, &CONN);
		wr = aimed(b, &sge, opcode, local ? key : b->buf.mr->lkey,
			   local ? b->buf.mr->rkey : key);
		if (local)
			wr.wr.rdma.remote_addr = (uintptr_t)b->buf.addr;
		REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
		must_fail(&p.a, &wr, "another's key");
		end_free(&p.a);
		end_free(&p.b);
	}
}

/* Receives into the victim's memory. */
static void receive(struct bad *b)
{
	struct pair p = pair_new(b->d, &QP_OPTS, &CONN);
	struct ibv_sge sge = { t->addr, 8, t->keys[b->n % 4] };
	struct ibv_sge own = buf_sge(&b->buf, 0, 8);
	struct ibv_send_wr wr = wr_send(1, &own, 1);

	REQUIRE_OK(post_recv(&p.b, 2, &sge, 1));
	must_fail(&p.a, &wr, "into the victim's memory");
	end_free(&p.a);
	end_free(&p.b);
}

/* Invalidates the victim's keys, and binds windows to the memory behind them. */
static void change_keys(struct bad *b)
{
	struct ibv_mw *mw = mw_new(b->d, IBV_MW_TYPE_1);
	struct buf fake = { .addr = (void *)(uintptr_t)t->addr, .len = t->len };
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	uint32_t key = t->keys[b->n % 4];
	struct ibv_mr mr = *b->buf.mr;
	struct pair p;

	mr.lkey = key;
	mr.rkey = key;
	fake.mr = &mr;
	p = pair_new(b->d, &QP_OPTS, &CONN);
	CHECK(mw_bind(&p.a, mw, mw_part(&fake, 0, t->len, MW_RW)) != IBV_WC_SUCCESS);
	end_free(&p.a);
	end_free(&p.b);
	p = pair_new(b->d, &QP_OPTS, &CONN);
	CHECK(local_inv(&p.a, key) != IBV_WC_SUCCESS);
	end_free(&p.a);
	end_free(&p.b);
	p = pair_new(b->d, &QP_OPTS, &CONN);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = key;
	REQUIRE_OK(post_recv(&p.b, 2, NULL, 0));
	must_fail(&p.a, &wr, "another's key");
	end_free(&p.a);
	end_free(&p.b);
	REQUIRE_OK(ibv_dealloc_mw(mw));
}

/* Sends to the victim's SRQ by number, from another XRC domain. */
static void name_srq(struct bad *b)
{
	static struct xrc x;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	if (!x.d)
		x = xrc_new(b->d, &CONN);
	else if (get_state(x.p.b.qp) != IBV_QPS_RTS)
		return;
	wr = xrc_wr(&x, &sge, IBV_WR_SEND, 8);
	wr.qp_type.xrc.remote_srqn = t->srqn;
	must_fail(&x.p.a, &wr, "another's SRQ");
}

/* Rings the victim's doorbells on a page of the attacker. */
static void doorbells(struct bad *b)
{
	static const uint32_t reg[] = { QHCA_DB_SQ, QHCA_DB_RQ, QHCA_DB_SRQ, QHCA_DB_CQ_ARM };
	static const uint64_t index[] = { 1, 2, 16, 0x7fffffff, 0xffffffff };
	size_t i, j, k;

	for (i = 0; i < ARRAY_SIZE(reg); i++)
		for (j = 0; j < NUM_QPS + 2; j++)
			for (k = 0; k < ARRAY_SIZE(index); k++)
				uv_ring(b->uv.db, reg[i], index[k] << 32 |
					(j < NUM_QPS ? t->qpn[j] :
					 j == NUM_QPS ? t->cqn : t->srqn));
}

/* Uses the victim's handles and pages with the attacker's command file. */
static void handles(struct bad *b)
{
	long page = sysconf(_SC_PAGESIZE);
	unsigned int mapped = 0;
	uint32_t h;
	void *p;

	for (h = 0; h < 256; h++) {
		CHECK(uv_destroy_qp(&b->uv, &(struct uv_qp){ .handle = h }));
		CHECK(uv_destroy_cq(&b->uv, &(struct uv_cq){ .handle = h }));
		CHECK(uv_destroy_srq(&b->uv, &(struct uv_srq){ .handle = h }));
		p = mmap(NULL, page, PROT_WRITE, MAP_SHARED, b->uv.fd, h * page);
		if (p == MAP_FAILED)
			continue;
		mapped++;
		munmap(p, page);
	}
	CHECK_EQ(mapped, 1);
}

static void (*const attacks[])(struct bad *b) = {
	forge_rc, forge_uc, forge_xrc, datagrams, keys, receive, change_keys, name_srq, doorbells,
	handles,
};

void attack(struct target *target, long ms, atomic_int *times)
{
	int64_t end = time_ms() + ms;
	struct bad b = { .d = dev_open_qhca() };
	size_t i;

	t = target;
	b.uv = uv_open(b.d);
	b.buf = buf_new(b.d->pd, 4096, ANY_ACCESS);
	do {
		for (i = 0; i < ARRAY_SIZE(attacks); i++)
			attacks[i](&b);
		b.n++;
		atomic_fetch_add(times, 1);
	} while (time_ms() < end);
}
