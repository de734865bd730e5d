/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of verbs in the kernel: two connected QPs of one device, and a list of functions that use
 * them. The report of a test lists its failures.
 */
#ifndef KVERBS_H
#define KVERBS_H

#include <linux/completion.h>
#include <linux/seq_file.h>
#include <rdma/ib_verbs.h>

#define KV_WAIT		(30 * HZ)

/**
 * struct kv - a run of the tests
 * @dev: the device under test
 * @gid_index: index of the GID to use
 * @m: the report
 * @failed: this test has failed
 * @skip: reason why this test cannot run, or NULL
 */
struct kv {
	struct ib_device *dev;
	int gid_index;
	struct seq_file *m;
	bool failed;
	const char *skip;
};

#define KV_CHECK(kv, cond)						\
	({								\
		bool kv_ok = (cond);					\
									\
		if (!kv_ok) {						\
			(kv)->failed = true;				\
			seq_printf((kv)->m, "# %s:%d: %s\n", kbasename(__FILE__), \
				   __LINE__, #cond);			\
		}							\
		kv_ok;							\
	})

#define KV_CHECK_EQ(kv, a, b)						\
	({								\
		long long kv_a = (a), kv_b = (b);			\
									\
		if (kv_a != kv_b) {					\
			(kv)->failed = true;				\
			seq_printf((kv)->m, "# %s:%d: %s is %lld, not %lld\n", \
				   kbasename(__FILE__), __LINE__, #a, kv_a, kv_b); \
		}							\
		kv_a == kv_b;						\
	})

/* Sets @to to the object that @call returns, or to NULL on error. Evaluates to success. */
#define KV_GET(kv, to, call)						\
	({								\
		(to) = (call);						\
		if (!KV_CHECK(kv, !IS_ERR(to)))				\
			(to) = NULL;					\
		(to);							\
	})

struct kv_test {
	const char *name;
	void (*fn)(struct kv *kv);
};

extern const struct kv_test kv_arm_tests[], kv_cq_tests[], kv_death_tests[],
			    kv_dim_tests[], kv_fast_tests[], kv_flush_tests[],
			    kv_handler_tests[], kv_last_tests[], kv_lost_tests[],
			    kv_place_tests[], kv_refused_tests[], kv_restrack_tests[],
			    kv_rings_tests[], kv_rxq_tests[], kv_srq_tests[],
			    kv_stop_tests[], kv_txq_tests[], kv_xrc_tests[];

/* struct kv_end - a QP, beyond RESET if @init, with one CQ for both of its queues */
struct kv_end {
	struct ib_qp *qp;
	struct ib_cq *cq;
	bool init;
};

/* struct kv_rig - two QPs of one PD, connected to each other */
struct kv_rig {
	struct ib_pd *pd;
	enum ib_poll_context ctx;
	struct kv_end a, b;
};

/*
 * struct kv_buf - pages that need not be contiguous. Their memory is coherent, so that reading what
 * the device has written needs no synchronisation.
 */
struct kv_buf {
	struct sg_table sgt;	/* DMA addresses only */
	void **va;
	unsigned int num_pages;
};

/* struct kv_done - a work request that is to complete, and its completion */
struct kv_done {
	struct ib_cqe cqe;
	struct ib_wc wc;
	struct completion done;
};

/* Returns false, and reports a failure, if an allocation fails. */
bool kv_rig_open(struct kv *kv, struct kv_rig *r, enum ib_poll_context ctx);
void kv_rig_close(struct kv *kv, struct kv_rig *r);
/* Afterwards nothing is outstanding, so that memory can be freed. */
void kv_rig_stop(struct kv_rig *r);
/* Moves both from RESET to RTS, connected to each other; both may be the same QP. */
bool kv_connect(struct kv *kv, struct kv_end *a, struct kv_end *b);

bool kv_buf_open(struct kv *kv, struct kv_buf *b, unsigned int num_pages);
void kv_buf_close(struct kv *kv, struct kv_buf *b);
void *kv_page(struct kv_buf *b, unsigned int i);
dma_addr_t kv_dma(struct kv_buf *b, unsigned int i);
void kv_fill(struct kv_buf *b, u8 seed);
bool kv_is_filled(struct kv_buf *b, u8 seed);

/* Returns the netdev of the port, with a reference; or NULL, and reports a failure. */
struct net_device *kv_netdev(struct kv *kv);

/* Resets the function without the driver, which finds it dead at its next poll. */
bool kv_break(struct kv *kv);

/* Returns the error with which this machine refuses the largest queues, or 0. */
int kv_large_err(struct kv *kv);

void kv_expect(struct kv_done *d);
/*
 * Waits for the completion, polling if no handler does. Returns its status, or -ETIMEDOUT, and then
 * has stopped the QP.
 */
int kv_wait(struct kv_rig *r, struct kv_end *e, struct kv_done *d);

/* These post one work request and prepare @d for its completion. */
int kv_recv(struct kv_end *e, struct kv_done *d, struct ib_sge *sge, int num_sge);
int kv_send(struct kv_end *e, struct kv_done *d, struct ib_sge *sge, int num_sge);
int kv_send_inv(struct kv_end *e, struct kv_done *d, u32 rkey);
int kv_rdma(struct kv_end *e, struct kv_done *d, enum ib_wr_opcode opcode,
	    struct ib_sge *sge, u64 raddr, u32 rkey);
int kv_reg(struct kv_end *e, struct kv_done *d, struct ib_mr *mr, u32 key, int access);
int kv_local_inv(struct kv_end *e, struct kv_done *d, u32 key);

/* Prints results, but is not a test: see lies.c. */
void kv_lies(struct kv *kv);

/* Makes the core slow to handle MADs, see mads.c. Returns 0 or a negative errno. */
int kv_mads_slow(void);
void kv_mads_fast(void);

#endif /* KVERBS_H */
