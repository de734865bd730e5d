// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging of memory that Ethernet frames are received in: a frame for a page that is
 * absent is lost, and the page is there for a later one.
 */
#include <sys/mman.h>

#include "lib/steer.h"

#define LEN	120
#define PAGE	4096ul
#define PAGES	8

static struct dev *d;
static struct end tx;
static struct ibv_cq *cq;	/* where frames are received */
static struct steer rx;		/* without a WQ the QP has the WRs */
static uint8_t *mem;
static struct ibv_mr *odp;

static void bring_up(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = PORT };

	REQUIRE_OK(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT));
	REQUIRE_OK(set_state(qp, IBV_QPS_RTR));
}

static void make_qp(void)
{
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.type = IBV_QPT_RAW_PACKET;
	o.recv_cq = cq;
	e = end_new(d, &o);
	bring_up(e.qp);
	rx.qp = e.qp;
	REQUIRE_OK(steer_rule(&rx));
}

static void start(bool queue)
{
	struct ibv_device_attr_ex attr;
	struct qp_opts o = QP_OPTS;

	d = dev_open_qhca();
	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		test_skip("no on-demand paging");
	o.type = IBV_QPT_RAW_PACKET;
	tx = end_new(d, &o);
	bring_up(tx.qp);
	REQUIRE_OK(set_state(tx.qp, IBV_QPS_RTS));
	cq = cq_new(d, 64, NULL);
	if (queue)
		REQUIRE_OK(steer_make(d, cq, &rx));
	else
		make_qp();
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(mem != MAP_FAILED);
	odp = ibv_reg_mr(d->pd, mem, PAGES * PAGE, LOCAL | IBV_ACCESS_ON_DEMAND);
	REQUIRE(odp);
}

static void post(void *at, uint64_t id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = LEN, .lkey = odp->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	REQUIRE_OK(rx.wq ? ibv_post_wq_recv(rx.wq, &wr, &bad) : ibv_post_recv(rx.qp, &wr, &bad));
}

static void send_frame(const struct buf *b)
{
	struct ibv_sge sge = buf_sge(b, 0, LEN);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	REQUIRE_OK(ibv_post_send(tx.qp, &wr, &bad));
	CHECK_EQ(poll_get(tx.send_cq).status, IBV_WC_SUCCESS);
}

static const struct {
	const char *name;
	bool queue;
} kinds[] = {
	{ "QP", false },
	{ "WQ", true },
};

TEST_ROWS(received, "raw: frames for absent pages are lost until the pages are there", kinds)
{
	uint64_t before;
	unsigned int i;
	struct buf b;

	start(row->queue);
	b = buf_new(d->pd, PAGE, LOCAL);
	before = hw_counter("page_fault");
	for (i = 0; i < PAGES; i++) {
		uint8_t *at = mem + i * PAGE;
		struct ibv_wc wc;
		unsigned int tries = 0;

		fill(b.addr, LEN, i);
		memcpy(b.addr, STEER_RULE_DMAC STEER_SMAC "\x88\xb5", 14);
		post(at, i);
		do {
			send_frame(&b);
			if (tries++)
				sleep_ms(10);
			REQUIRE(tries < 200);
		} while (!ibv_poll_cq(cq, 1, &wc));
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.byte_len, LEN);
		CHECK(tries > 1);
		CHECK(!memcmp(at, b.addr, LEN));
	}
	CHECK(hw_counter("page_fault") >= before + PAGES);
	/* They stay there, until the kernel takes them. */
	REQUIRE_OK(madvise(mem, PAGE, MADV_DONTNEED));
	CHECK_ERR(ibv_dereg_mr(odp), 0);
}
