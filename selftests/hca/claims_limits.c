// SPDX-License-Identifier: GPL-2.0
/* Limits of the tables in claims.c that no other test uses: the last works, one more is refused. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rawqp.h"
#include "lib/rdma.h"
#include "lib/xrc.h"

static struct ibv_device_attr_ex query(struct dev *d)
{
	struct ibv_device_attr_ex attr = {};

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	return attr;
}

/* ---- regions and messages ---- */

TEST(mr_size, "J-034 J-036 F-014 a region of max_mr_size, and one of a byte more")
{
	const int odp = REMOTE | IBV_ACCESS_ON_DEMAND;
	struct dev *d = dev_open_qhca();
	size_t len = d->attr.max_mr_size;
	uint8_t *p = mmap(NULL, len + 1, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct pair pair = pair_new(d, &QP_OPTS, &CONN);
	struct buf b = buf_new(d->pd, 8, LOCAL);
	struct ibv_sge sge = buf_sge(&b, 0, 8);
	struct ibv_send_wr wr;
	struct ibv_mr *mr;

	REQUIRE(p != MAP_FAILED);
	errno = 0;
	CHECK(!ibv_reg_mr(d->pd, p, len + 1, 0));
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK(!ibv_reg_mr(d->pd, p, len + 1, odp));
	CHECK_EQ(errno, EINVAL);
	mr = ibv_reg_mr(d->pd, p, len, odp);
	REQUIRE(mr);
	fill(b.addr, 8, 1);
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)p + len - 8, mr->rkey);
	REQUIRE_OK(post_send(&pair.a, &wr));
	poll_ok(pair.a.send_cq, 1);
	check_fill(p + len - 8, 8, 1, "the last bytes");
	wr.wr.rdma.remote_addr++;
	REQUIRE_OK(post_send(&pair.a, &wr));
	poll_expect(pair.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

TEST(message, "J-034 J-008 B-027 a message of max_msg_sz, and one of a byte more")
{
	struct dev *d = dev_open_qhca();
	uint32_t i, n = d->attr.max_sge, len = d->port.max_msg_sz / n;
	struct ibv_sge in[64], out[64];
	struct qp_opts o = QP_OPTS;
	struct ibv_send_wr wr;
	struct buf src, dst;
	struct pair p;
	int err;

	test_timeout(200);
	REQUIRE(n <= ARRAY_SIZE(in));
	o.send_sge = n;
	o.recv_sge = n;
	p = pair_new(d, &o, &CONN);
	src = buf_new(d->pd, len + 1, LOCAL);
	dst = buf_new(d->pd, len + 1, LOCAL);
	fill(src.addr, len, 1);
	for (i = 0; i < n; i++) {
		out[i] = buf_sge(&src, 0, len);
		in[i] = buf_sge(&dst, 0, len);
	}
	out[n - 1].length += d->port.max_msg_sz % n;
	REQUIRE_OK(post_recv(&p.b, 2, in, n));
	wr = wr_send(1, out, n);
	REQUIRE_OK(post_send(&p.a, &wr));
	CHECK(poll_wait(p.a.send_cq, &(struct ibv_wc){}, 180 * 1000));
	CHECK_EQ(poll_ok(p.b.recv_cq, 2).byte_len, d->port.max_msg_sz);
	check_fill(dst.addr, len, 1, "received");
	out[0].length++;
	err = post_send(&p.a, &wr);
	if (err)
		CHECK_ERR(err, EINVAL);
	else
		poll_expect(p.a.send_cq, 1, IBV_WC_LOC_LEN_ERR);
}

/* ---- WQs, tables of them, and what spreads frames over them ---- */

static struct ibv_wq *wq_new(struct dev *d, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = d->pd, .cq = cq,
	};

	errno = 0;
	return ibv_create_wq(d->ctx, &attr);
}

static struct ibv_rwq_ind_table *table_new(struct dev *d, struct ibv_wq **wqs, uint32_t log_size)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = log_size, .ind_tbl = wqs };

	errno = 0;
	return ibv_create_rwq_ind_table(d->ctx, &attr);
}

static struct ibv_qp *rss_new(struct dev *d, struct ibv_rwq_ind_table *table,
			      enum ibv_qp_type type, uint8_t function)
{
	static uint8_t key[40] = { 1, 2, 3 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type, .pd = d->pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = {
			.rx_hash_function = function, .rx_hash_key_len = sizeof(key),
			.rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
		},
	};

	errno = 0;
	return ibv_create_qp_ex(d->ctx, &attr);
}

TEST(tables, "J-034 J-001 tables of WQs: as many and as large as promised, and no more")
{
	struct dev *d = dev_open_qhca();
	struct ibv_rss_caps caps = query(d).rss_caps;
	struct ibv_wq *wq, *wqs[1024];
	struct ibv_rwq_ind_table *t;
	uint32_t i, n = 0, log = 0;

	while (2u << log <= caps.max_rwq_indirection_table_size)
		log++;
	REQUIRE(2u << log <= ARRAY_SIZE(wqs));
	CHECK_EQ(caps.max_rwq_indirection_table_size, 1u << log);
	wq = wq_new(d, cq_new(d, 4, NULL));
	REQUIRE(wq);
	for (i = 0; i < ARRAY_SIZE(wqs); i++)
		wqs[i] = wq;
	CHECK(!table_new(d, wqs, log + 1));
	CHECK_EQ(errno, EINVAL);
	for (; n <= caps.max_rwq_indirection_tables; n++) {
		t = table_new(d, wqs, log);
		if (!t || !rss_new(d, t, IBV_QPT_RAW_PACKET, IBV_RX_HASH_FUNC_TOEPLITZ))
			break;
	}
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(n, caps.max_rwq_indirection_tables);
}

TEST(queues, "J-034 J-001 WQs: as many as promised, less the QPs there are, and no more")
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	uint32_t n = 0, max = query(d).max_wq_type_rq;

	test_timeout(200);
	while (n <= max && wq_new(d, cq))
		n++;
	CHECK_EQ(errno, ENOMEM);
	/* QPs of the kernel, and of other programs. */
	CHECK(n > 1 && n <= max && n + 64 > max);
}

TEST(rss_types, "J-034 J-004 only the types in rss_caps spread what they receive")
{
	struct dev *d = dev_open_qhca();
	struct ibv_rss_caps caps = query(d).rss_caps;
	struct ibv_wq *wq = wq_new(d, cq_new(d, 4, NULL));
	struct ibv_rwq_ind_table *t = table_new(d, &wq, 0);
	int type;

	REQUIRE(t);
	for (type = IBV_QPT_RC; type <= IBV_QPT_XRC_RECV; type++) {
		bool made = rss_new(d, t, type, IBV_RX_HASH_FUNC_TOEPLITZ);

		if (made != !!(caps.supported_qpts & 1u << type))
			FAIL("type %d: %s", type, made ? "made" : strerror(errno));
	}
}

TEST(hash_functions, "J-034 J-004 each function in rss_caps hashes, and no other")
{
	struct dev *d = dev_open_qhca();
	struct ibv_rss_caps caps = query(d).rss_caps;
	struct ibv_wq *wq = wq_new(d, cq_new(d, 4, NULL));
	struct ibv_rwq_ind_table *t = table_new(d, &wq, 0);
	struct ibv_qp *qp;
	int function;

	REQUIRE(t);
	for (function = 0; function < 256; function++) {
		/* One at a time. */
		bool offered = function && !(function & (function - 1)) &&
			       (caps.rx_hash_function & function);

		qp = rss_new(d, t, IBV_QPT_RAW_PACKET, function);
		if (!qp != !offered)
			FAIL("function %#x: %s", function, qp ? "made" : strerror(errno));
		if (!qp)
			CHECK(errno == EOPNOTSUPP || errno == EINVAL);
		else
			REQUIRE_OK(ibv_destroy_qp(qp));
	}
}

/* ---- what QPs can have ---- */

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = {
	{ "RC", IBV_QPT_RC }, { "UC", IBV_QPT_UC }, { "UD", IBV_QPT_UD },
	{ "raw packets", IBV_QPT_RAW_PACKET },
	{ "XRC, sender", IBV_QPT_XRC_SEND }, { "XRC, receiver", IBV_QPT_XRC_RECV },
};

static struct ibv_qp *qp_in_rts(struct dev *d, enum ibv_qp_type type)
{
	struct qp_opts o = QP_OPTS;
	struct xrc x;

	if (type == IBV_QPT_RAW_PACKET)
		return raw_new(d).e.qp;
	if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV) {
		x = xrc_new(d, &CONN);
		return type == IBV_QPT_XRC_SEND ? x.p.a.qp : x.p.b.qp;
	}
	o.type = type;
	return end_in(d, &o, IBV_QPS_RTS).qp;
}

TEST_ROWS(rates, "J-034 A-074 a type in packet_pacing_caps takes both limits, another none", types)
{
	struct dev *d = dev_open_qhca();
	struct ibv_packet_pacing_caps caps = query(d).packet_pacing_caps;
	const uint32_t rates[] = { caps.qp_rate_limit_min, caps.qp_rate_limit_max };
	bool offered = caps.supported_qpts & 1u << row->type;
	struct ibv_qp *qp = qp_in_rts(d, row->type);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct ibv_qp_rate_limit_attr attr = { .rate_limit = rates[i] };

		CHECK_EQ(!ibv_modify_qp_rate_limit(qp, &attr), offered);
	}
}

TEST_ROWS(no_tso, "J-034 J-004 tso_caps has no type, so none can be made for it", types)
{
	struct dev *d = dev_open_qhca();
	struct ibv_cq *cq = cq_new(d, 4, NULL);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = row->type, .send_cq = cq, .recv_cq = cq, .pd = d->pd,
		.cap = { 1, 1, 1, 1, 0 }, .max_tso_header = 64,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
	};

	errno = 0;
	CHECK(!ibv_create_qp_ex(d->ctx, &init));
	CHECK(errno == EOPNOTSUPP || errno == EINVAL);
}

/* ---- the GID table, filled ---- */

#define NET	"198.18.0.0/15"	/* for tests, RFC 2544 */

static int count_gids(struct dev *d)
{
	struct ibv_gid_entry e[256];

	return ibv_query_gid_table(d->ctx, e, ARRAY_SIZE(e), 0);
}

static void wait_gids(struct dev *d, int n)
{
	int64_t end = time_ms() + WAIT_MS;

	while (count_gids(d) != n && time_ms() < end)
		sleep_ms(20);
	CHECK_EQ(count_gids(d), n);
}

/* Gives the interface @n addresses of NET. */
static void add_addresses(int n)
{
	FILE *f = popen("ip -batch -", "w");
	int i;

	REQUIRE(f);
	for (i = 1; i <= n; i++)
		fprintf(f, "addr add 198.18.%d.%d/32 dev %s\n", i >> 8, i & 255, getenv("QHCA_IF"));
	CHECK_EQ(pclose(f), 0);
}

static void use_last_gid(struct dev *d)
{
	int last = d->port.gid_tbl_len - 1;
	struct ibv_gid_entry e;
	struct pair p;

	REQUIRE_OK(ibv_query_gid_ex(d->ctx, PORT, last, &e, 0));
	d->gid = e.gid;
	d->gid_index = last;
	p = pair_new(d, &QP_OPTS, &CONN);
	ping_pong(&p);
}

TEST(gid_table, "J-034 J-008 J-013 as many GIDs as gid_tbl_len says, and the last one works")
{
	struct dev *d = dev_open_qhca();
	char cmd[128];
	pid_t pid;
	int n;

	if (!getenv("QHCA_IF") || geteuid())
		test_skip("needs root, and QHCA_IF names the interface");
	REQUIRE(d->port.gid_tbl_len <= 256);
	n = count_gids(d);
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		d = dev_open_qhca();
		/* Some more than there is room for. */
		add_addresses(d->port.gid_tbl_len - n + 4);
		wait_gids(d, d->port.gid_tbl_len);
		use_last_gid(d);
		_exit(0);
	}
	REQUIRE(waitpid(pid, NULL, 0) == pid);
	snprintf(cmd, sizeof(cmd), "ip addr flush dev %s to " NET, getenv("QHCA_IF"));
	CHECK_EQ(system(cmd), 0);
	wait_gids(d, n);
}
