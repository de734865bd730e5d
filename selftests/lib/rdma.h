/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Verbs for tests. A function that returns no error ends the test when it fails; the end of the
 * test's process frees what it created.
 */
#ifndef SELFTESTS_RDMA_H
#define SELFTESTS_RDMA_H

#include <infiniband/verbs.h>

#include "harness.h"

#define PORT		1
#define LOCAL		IBV_ACCESS_LOCAL_WRITE
#define REMOTE		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ)

/* How long to wait for an expected completion or event, and how long for none. */
#define WAIT_MS		(20000 * (int)test_patience())
#define QUIET_MS	100

/* struct dev - an open device with a PD */
struct dev {
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	int gid_index;
	union ibv_gid gid;
	bool qhca;
};

/* Skips the test if there is no device and no name was given. */
struct dev *dev_open(void);
/* Skips the test on other devices, which need not have the property under test. */
struct dev *dev_open_qhca(void);
const char *dev_name(void);
/* Check for the feature first, because distributions backport. */
bool kernel_before(unsigned int major, unsigned int minor);
/* Returns false if the device does not offer FLUSH and this kernel is older than FLUSH. */
bool has_flush(struct ibv_context *ctx);
/* Skips the test if has_flush() is false. */
void need_flush(struct ibv_context *ctx);
uint32_t mtu_bytes(enum ibv_mtu mtu);

/* struct buf - memory with an MR, filled with a pattern that depends on @seed */
struct buf {
	uint8_t *addr;
	size_t len;
	struct ibv_mr *mr;
};

struct buf buf_new(struct ibv_pd *pd, size_t len, int access);
void buf_free(struct buf *b);
struct ibv_sge buf_sge(const struct buf *b, size_t off, uint32_t len);
void fill(void *p, size_t len, uint32_t seed);
/* Returns the offset of the first byte that does not match the pattern, or -1. */
ssize_t find_bad(const void *p, size_t len, uint32_t seed);
/* Fails the test if [p, p + len) does not match the pattern. */
void check_fill(const void *p, size_t len, uint32_t seed, const char *what);

/* struct qp_opts - how qp_new() makes a QP; QP_OPTS has sensible values */
struct qp_opts {
	enum ibv_qp_type type;
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_data;
	int sig_all;
	int cqe;
	struct ibv_pd *pd;		/* NULL: the device's */
	struct ibv_cq *send_cq;		/* NULL: a new one */
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;		/* for XRC_RECV; NULL: a new one */
};

#define QP_OPTS ((struct qp_opts){ .type = IBV_QPT_RC, .send_wr = 16,	\
		.recv_wr = 16, .send_sge = 1, .recv_sge = 1, .cqe = 64 })

/* Makes an SRQ in the device's PD; skips the test if the device has none. */
struct ibv_srq *srq_new(struct dev *d, uint32_t max_wr, uint32_t max_sge);
/* Posts a receive of @len bytes at offset @off of @b. */
int srq_post(struct ibv_srq *srq, uint64_t id, const struct buf *b, size_t off,
	     uint32_t len);

/* struct end - a QP and its objects */
struct end {
	struct dev *dev;
	struct ibv_qp *qp;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp_cap cap;
};

/* Skips the test if the device has no QPs of that type. */
struct end end_new(struct dev *d, const struct qp_opts *o);
struct ibv_cq *cq_new(struct dev *d, int cqe, struct ibv_comp_channel *ch);

/* struct conn - attributes of a connection; CONN has sensible values */
struct conn {
	enum ibv_mtu mtu;
	uint32_t rq_psn, sq_psn;
	uint32_t dest_qpn;
	int access;
	uint8_t rd_atomic, dest_rd_atomic;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
	uint32_t qkey;			/* for UD */
};

#define CONN ((struct conn){ .mtu = IBV_MTU_1024, .rq_psn = 0x123456,	\
		.sq_psn = 0x123456, .rd_atomic = 4, .dest_rd_atomic = 4,\
		.access = REMOTE,					\
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7,	\
		.rnr_retry = 7, .qkey = 0x11111111 })

/* Returns the address of the device itself. */
struct ibv_ah_attr own_address(const struct dev *d);
struct ibv_ah *own_ah(const struct dev *d, struct ibv_pd *pd);

/* Set the attributes, and return RC's mask, for one legal step. */
int attr_init(struct ibv_qp_attr *a, const struct conn *c);
int attr_rtr(struct ibv_qp_attr *a, const struct dev *d, const struct conn *c);
int attr_rts(struct ibv_qp_attr *a, const struct conn *c);
/* Returns RC's mask of a step, reduced to the attributes of @type, with UD's Q_Key. */
int attr_mask(enum ibv_qp_type type, int mask);
int set_state(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state get_state(struct ibv_qp *qp);
/* Moves a QP from RESET to @state, connected to c->dest_qpn; not to SQE for RC. */
void qp_bring(struct end *e, const struct conn *c, enum ibv_qp_state state);
/* Moves a QP from RTS to SQE by a request that fails; UC and UD only. */
void qp_spoil(struct end *e);
/* Makes a QP in @state that is connected to itself. */
struct end end_in(struct dev *d, const struct qp_opts *o, enum ibv_qp_state state);
/* Waits until @qp is in @state. Returns false if it is not after WAIT_MS. */
bool wait_state(struct ibv_qp *qp, enum ibv_qp_state state);

/* struct pair - two QPs of one device, connected to each other, in RTS */
struct pair {
	struct dev *dev;
	struct end a, b;
};

struct pair pair_new(struct dev *d, const struct qp_opts *o,
		     const struct conn *c);
/* Moves both QPs from RESET to RTS, with c's PSNs from a to b and in the other direction. */
void pair_connect(struct pair *p, const struct conn *c);
struct pair pair_default(void);
/* A pair of which @b receives at @cq, deep enough to let that overflow. */
struct pair pair_at(struct dev *d, struct ibv_cq *cq);
/* Gives the CQ of @b one completion more than it holds: all its QPs and WQs go to ERR. */
void pair_overflow(struct pair *p);

bool is_atomic(enum ibv_wr_opcode opcode);
/* Make signaled work requests. */
struct ibv_send_wr wr_send(uint64_t id, struct ibv_sge *sge, int num_sge);
/* Atomics as well, which have their address and key in another member. */
struct ibv_send_wr wr_rdma(uint64_t id, enum ibv_wr_opcode opcode,
			   struct ibv_sge *sge, int num_sge, uint64_t raddr,
			   uint32_t rkey);
int post_send(struct end *e, struct ibv_send_wr *wr);
int post_recv(struct end *e, uint64_t id, struct ibv_sge *sge, int num_sge);
/* Posts a SEND without data. */
void send_id(struct end *e, uint64_t id);

/* Poll one completion, or none. */
bool poll_wait(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
struct ibv_wc poll_get(struct ibv_cq *cq);
/* Polls one completion, which must have this wr_id and status. */
struct ibv_wc poll_expect_at(struct ibv_cq *cq, uint64_t id,
			     enum ibv_wc_status status, const char *file,
			     int line);
#define poll_expect(cq, id, status) \
	poll_expect_at(cq, id, status, __FILE__, __LINE__)
#define poll_ok(cq, id) poll_expect(cq, id, IBV_WC_SUCCESS)
void poll_none_at(struct ibv_cq *cq, int ms, const char *file, int line);
#define poll_none(cq) poll_none_at(cq, QUIET_MS, __FILE__, __LINE__)
/* Like poll_none(), for a completion that would already be there. */
#define poll_empty(cq) poll_none_at(cq, 0, __FILE__, __LINE__)
/* Sends a few bytes from @from to @to, and polls both completions. */
void ping(struct end *from, struct end *to);
void ping_pong(struct pair *p);
/* Sends a message without data from p->a, which p->b receives; leaves the completion of that. */
void send_empty(struct pair *p);

/* Waits up to @ms for an event of a completion channel, and acknowledges it. */
bool cq_event_wait(struct ibv_comp_channel *ch, struct ibv_cq **cq, int ms);
/* Waits up to @ms for an asynchronous event, and acknowledges it. Returns false if none came. */
bool async_wait(struct ibv_context *ctx, struct ibv_async_event *ev, int ms);
/*
 * Waits for an event of @type and of this element. Skips events of the port; any other one fails
 * the test.
 */
void async_expect(struct ibv_context *ctx, enum ibv_event_type type,
		  void *element);
/* Waits a while for an event, and fails the test if one comes, except of the port. */
void async_none(struct ibv_context *ctx);

/* Returns a hardware counter of the port; ends the test if it does not exist. */
uint64_t hw_counter(const char *name);
bool hw_counter_exists(const char *name);
/* Returns a hardware counter of the device. */
uint64_t dev_counter(const char *name);

/*
 * Reads the output of "@prefix rdma @args". Returns whether the command succeeded. Skips the test
 * without rdma(8).
 */
bool rdma_tool(const char *prefix, const char *args, char *text, size_t len);
/* Lists the objects of all processes, by rdma_tool(). */
void resources(char *text, size_t len);
/* Fails the test unless the objects are the same as before. */
void check_resources(const char *before);

/* Writes to a file of the kernel. Returns 0 or an errno value. */
int write_file(const char *path, const char *text);
/* Returns a number from the environment, or @val if it is not set. */
long from_env(const char *name, long val);
void sleep_ms(unsigned int ms);
int64_t time_ms(void);

#endif /* SELFTESTS_RDMA_H */
