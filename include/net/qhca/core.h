/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The interface of qhca.ko for the drivers on its auxiliary devices: typed access to the command
 * queue, doorbells, completion and asynchronous events.
 */
#ifndef NET_QHCA_CORE_H
#define NET_QHCA_CORE_H

#include <linux/auxiliary_bus.h>
#include <linux/bitfield.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/pci.h>

#include <qhca/cmd.h>
#include <qhca/queues.h>
#include <qhca/regs.h>

#define QHCA_DRV_NAME		"qhca"
#define QHCA_RDMA_DEV_NAME	"rdma"	/* auxiliary device: qhca.rdma.N */

struct qhca_dev;

/**
 * struct qhca_adev - the auxiliary device that qhca.ko publishes
 * @adev: the device; drivers find this structure by container_of()
 * @dev: the function behind it, valid from probe() until remove() returns
 */
struct qhca_adev {
	struct auxiliary_device adev;
	struct qhca_dev *dev;
};

/* struct qhca_device_attr in CPU order. */
struct qhca_limits {
	u64 fw_version;
	u64 node_guid;
	u64 max_mr_size;
	u64 caps;
	u32 max_pd;
	u32 max_mr;
	u32 max_cq;
	u32 max_qp;
	u32 max_ethq;
	u32 max_uar;
	u32 max_gid;
	u32 max_mcast;
	u32 max_table_blocks;
	u32 max_cqe_log;
	u32 max_sq_wr_log;
	u32 max_rq_wr_log;
	u32 max_ethq_log;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_inline;
	u32 max_rd_atomic;
	u32 reserved_lkey;
	u32 max_msg_size;
	u32 max_fast_reg_blocks;
	u32 max_mw;
	u32 max_srq;
	u32 max_srq_wr_log;
	u32 max_srq_sge;
	u32 max_cq_count;
	u32 max_cq_period;
	u32 max_mcast_grp;
	u32 max_mcast_qp;
	u32 max_tso;
	u32 null_lkey;
	u32 max_cntset;
};

/* Facts about the function, all constant while an auxiliary driver is bound. */
struct pci_dev *qhca_pdev(struct qhca_dev *dev);
struct net_device *qhca_netdev(struct qhca_dev *dev);
const struct qhca_limits *qhca_limits(struct qhca_dev *dev);
unsigned int qhca_num_comp_vectors(struct qhca_dev *dev);
u32 qhca_num_eth_cqs(struct qhca_dev *dev);
/* True from the moment the device is known to be dead: fatal error, timeout or unplugged. */
bool qhca_is_dead(struct qhca_dev *dev);
/* True once a dead device is known to do no more DMA, so that memory can be freed. */
bool qhca_is_quiet(struct qhca_dev *dev);
/* Declare the device dead for @reason, unless it already is. Context: any. */
void qhca_health_die(struct qhca_dev *dev, const char *reason);
/* Stop DMA of a dead device. Context: process. */
void qhca_health_quiesce(struct qhca_dev *dev);
/* The device clock, in ns. */
u64 qhca_read_clock(struct qhca_dev *dev);
/* The page with struct qhca_clock_info of the PTP clock, or NULL. */
struct page *qhca_clock_page(struct qhca_dev *dev);
/* Physical address and size in bytes of the device memory; the size is 0 if there is none. */
phys_addr_t qhca_dm_phys(struct qhca_dev *dev);
size_t qhca_dm_size(struct qhca_dev *dev);

/**
 * struct qhca_mbox - data of a command beyond its 48 bytes
 * @in: copied to the mailbox before the command, or NULL
 * @in_len: bytes of @in, at most QHCA_PAGE_SIZE
 * @out: filled from the mailbox after success, or NULL
 * @out_len: bytes of @out, at most QHCA_PAGE_SIZE
 */
struct qhca_mbox {
	const void *in;
	size_t in_len;
	void *out;
	size_t out_len;
};

/**
 * qhca_cmd_exec - run one command and wait for its completion
 * @dev: the function
 * @cmd: opcode and body; token and mailbox address are filled in here
 * @mbox: mailbox contents, or NULL for a command without one
 * @obj: object number of the completion, or NULL
 *
 * Context: process; may sleep for many command timeouts while the device makes progress. Any
 * number of callers may run concurrently.
 * Return: 0; the errno for the device's status (table in cmd.c); -ETIMEDOUT when this very command
 * was lost, which makes the device dead; -EIO for every command to a dead device. On a dead device
 * DESTROY, DEALLOC and DEREG succeed, since nothing is left to destroy; memory may be freed then,
 * because by that time the function has been reset or has lost bus mastering.
 */
int qhca_cmd_exec(struct qhca_dev *dev, struct qhca_cmd *cmd,
		  const struct qhca_mbox *mbox, u32 *obj);

/* qhca_cmd_obj - qhca_cmd_exec() for commands that take only an object number. */
int qhca_cmd_obj(struct qhca_dev *dev, enum qhca_cmd_opcode opcode, u32 obj);
/* qhca_cmd_destroy - destroy an object; a device that refuses is declared dead. */
void qhca_cmd_destroy(struct qhca_dev *dev, enum qhca_cmd_opcode opcode, u32 obj);

/**
 * qhca_fw_text - firmware version as text
 * @limits: of the function
 * @text: filled in
 * @len: bytes of @text
 *
 * Context: any.
 */
static inline void qhca_fw_text(const struct qhca_limits *limits, char *text, size_t len)
{
	u64 v = limits->fw_version;

	snprintf(text, len, "%u.%u.%u", upper_32_bits(v), lower_32_bits(v) >> 16,
		 lower_32_bits(v) & 0xffff);
}

/**
 * struct qhca_cq_core - the part of a CQ that qhca.ko needs to deliver events
 * @cqn: CQN
 * @vector: completion vector, less than qhca_num_comp_vectors()
 * @comp: called for a COMP event of the arm @arm_sn; one call at a time for each vector
 * @error: called for a CQ_ERR event
 * @arm_sn: number of the last arm of a kernel CQ
 *
 * Both may be called in hard IRQ, or in process context with interrupts and softirqs off; on
 * PREEMPT_RT, in process context with softirqs off.
 */
struct qhca_cq_core {
	u32 cqn;
	unsigned int vector;
	void (*comp)(struct qhca_cq_core *cq, u32 arm_sn);
	void (*error)(struct qhca_cq_core *cq);
	u32 arm_sn;
	/* private: to qhca.ko */
	u32 arm_any_sn;
	bool arm_in_record;
	bool dying;
};

/**
 * qhca_cq_create - create a CQ and start event delivery
 * @dev: the function
 * @cq: vector, comp and error are set; the rest is filled in
 * @body: buf, uar, log_size and flags are set
 *
 * Context: process. Events may be delivered before this returns.
 */
int qhca_cq_create(struct qhca_dev *dev, struct qhca_cq_core *cq,
		   const struct qhca_cmd_create_cq *body);

/**
 * qhca_cq_flags - how the CQs of the kernel are armed
 * @dev: the function
 *
 * Return: flags for CREATE_CQ.
 */
u8 qhca_cq_flags(const struct qhca_dev *dev);

/**
 * qhca_cq_arm - ask for an event at the next CQE
 * @dev: the function
 * @cq: a CQ with qhca_cq_flags()
 * @dbrec: its doorbell record
 * @solicited: only at the next one that is solicited or an error
 *
 * CQEs that are there when this returns raise no event: poll once more.
 *
 * Context: any; calls for one CQ must be serialised.
 */
void qhca_cq_arm(struct qhca_dev *dev, struct qhca_cq_core *cq, struct qhca_cq_dbrec *dbrec,
		 bool solicited);

/**
 * qhca_cq_destroy - destroy a CQ; afterwards no callback runs or will run
 * @dev: the function
 * @cq: a CQ that qhca_cq_create() made
 *
 * No queue uses the CQ any more, so a device that refuses is declared dead.
 *
 * Context: process.
 */
void qhca_cq_destroy(struct qhca_dev *dev, struct qhca_cq_core *cq);

/**
 * qhca_register_events - register for all asynchronous events but COMP and CQ_ERR
 * @dev: the function
 * @nb: the notifier
 *
 * The notifier is called in the contexts of the functions of struct qhca_cq_core, or, for
 * QHCA_EVENT_DEVICE_FATAL, from the health work in process context. Its action is an enum
 * qhca_event, its data a pointer to the u32 object number. It must not sleep.
 */
int qhca_register_events(struct qhca_dev *dev, struct notifier_block *nb);
void qhca_unregister_events(struct qhca_dev *dev, struct notifier_block *nb);
/* Wait for all event callbacks that are running now. Context: process. */
void qhca_eqs_synchronize(struct qhca_dev *dev);
/* Call comp() as for an event of the device. Context: process, softirqs off. */
void qhca_cq_tell(struct qhca_dev *dev, struct qhca_cq_core *cq, u32 arm_sn);

/* qhca_db - the doorbell value for an object number and an index. */
static inline u64 qhca_db(u32 obj, u32 index)
{
	return FIELD_PREP(QHCA_DB_OBJ, obj) | FIELD_PREP(QHCA_DB_INDEX, index);
}

/* qhca_ring - write a doorbell of page 0. Context: any. */
void qhca_ring(struct qhca_dev *dev, unsigned int offset, u64 value);

/*
 * Doorbells of page 0 that cost no access to the device while it is awake. A queue that has no slot
 * rings in BAR 2 all the same.
 */
#define QHCA_NO_SLOT	(-1)
int qhca_db_slot_get(struct qhca_dev *dev);
void qhca_db_slot_put(struct qhca_dev *dev, int slot);
void qhca_ring_slot(struct qhca_dev *dev, int slot, unsigned int offset, u64 value);

/* Doorbell pages other than page 0, each alone in a page of the CPU. */
int qhca_uar_alloc(struct qhca_dev *dev, u32 *uar);
void qhca_uar_free(struct qhca_dev *dev, u32 uar);
phys_addr_t qhca_uar_phys(struct qhca_dev *dev, u32 uar);

/**
 * struct qhca_table - description of memory for the device
 * @buf: description for a command
 *
 * The table pages behind @buf can be freed when the command has completed.
 */
struct qhca_table {
	struct qhca_buf buf;
	/* private: to qhca.ko */
	struct device *dma_dev;
	void *pages;
};

/*
 * qhca_table_init - start a table of @num_blocks blocks of 2^@block_shift bytes
 * qhca_table_set - set the DMA address of block @index
 * qhca_table_free - free the table pages; the described memory stays
 *
 * Context: process for init and free. Blocks may be set in any order, but all before the command.
 */
int qhca_table_init(struct qhca_dev *dev, struct qhca_table *t, u32 num_blocks,
		    u8 block_shift);
void qhca_table_set(struct qhca_table *t, u32 index, dma_addr_t addr);
void qhca_table_free(struct qhca_table *t);

/**
 * struct qhca_ring_mem - memory of a kernel ring: zeroed and virtually contiguous
 * @va: kernel address
 * @size: bytes
 * @dma: DMA address, if DMA addresses are contiguous as well, as they always are without a @buf
 */
struct qhca_ring_mem {
	void *va;
	size_t size;
	dma_addr_t dma;
	/* private: to qhca.ko */
	struct qhca_table table;
	dma_addr_t *pages;	/* DMA address of each page, unless they are contiguous */
};

/* Allocate a coherent ring; @buf, if not NULL, is filled in for a command. Context: process. */
int qhca_ring_mem_alloc(struct qhca_dev *dev, struct qhca_ring_mem *mem,
			size_t size, struct qhca_buf *buf);
void qhca_ring_mem_free(struct qhca_dev *dev, struct qhca_ring_mem *mem);

#endif /* NET_QHCA_CORE_H */
