// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging of memory that Ethernet frames are received in: a frame for a page that is
 * absent is lost, and the page is there for a later one.
 */
#include <sys/mman.h>

#include "lib/rdma.h"

#define LEN	120
#define PAGE	4096ul
#define PAGES	8
#define DMAC	"\x02\x11\x22\x33\x44\x56"
#define SMAC	"\x02\x66\x77\x88\x99\xab"

static struct dev *d;
static struct end tx;
static struct ibv_cq *cq;	/* where frames are received */
static struct ibv_qp *rx;	/* of which rules can be */
static struct ibv_wq *wq;	/* or NULL: @rx has the WRs */
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
	rx = e.qp;
}

static void make_wq(void)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 16, .max_sge = 1, .pd = d->pd, .cq = cq,
	};
	struct ibv_wq_attr rdy = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &wq };
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = d->pd,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
		},
	};

	wq = ibv_create_wq(d->ctx, &init);
	REQUIRE(wq);
	REQUIRE_OK(ibv_modify_wq(wq, &rdy));
	attr.rwq_ind_tbl = ibv_create_rwq_ind_table(d->ctx, &table);
	REQUIRE(attr.rwq_ind_tbl);
	rx = ibv_create_qp_ex(d->ctx, &attr);
	REQUIRE(rx);
}

static void add_rule(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = PORT },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};

	memcpy(rule.eth.val.dst_mac, DMAC, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	REQUIRE(ibv_create_flow(rx, &rule.attr));
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
	(queue ? make_wq : make_qp)();
	bring_up(rx);
	add_rule();
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(mem != MAP_FAILED);
	odp = ibv_reg_mr(d->pd, mem, PAGES * PAGE, LOCAL | IBV_ACCESS_ON_DEMAND);
	REQUIRE(odp);
}

static void post(void *at, uint64_t id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = LEN, .lkey = odp->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	REQUIRE_OK(wq ? ibv_post_wq_recv(wq, &wr, &bad) : ibv_post_recv(rx, &wr, &bad));
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
		memcpy(b.addr, DMAC SMAC "\x88\xb5", 14);
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
