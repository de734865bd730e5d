/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca.ko: declarations that its files share. <net/qhca/core.h> declares what other modules use. */
#ifndef QHCA_H
#define QHCA_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <net/qhca/core.h>
#include <rdma/qhca-abi.h>

/* MSI-X vector of command completions and asynchronous events. */
#define QHCA_VECTOR_ASYNC	0
/* First completion vector; all vectors behind it are completion vectors as well. */
#define QHCA_VECTOR_COMP	1
#define QHCA_VECTORS_MIN	2

/* Largest number of pairs of Ethernet queues. */
#define QHCA_CHANNELS_MAX	32u

/*
 * enum qhca_dev_state - whether the function takes commands
 * @QHCA_DEV_DOWN: not brought up, or taken down on purpose
 * @QHCA_DEV_RUNNING: up
 * @QHCA_DEV_DEAD: failed while it was up; must be taken down and brought up again
 *
 * The owner (probe, remove, reset, loss of power) moves it from DOWN to RUNNING and back; RUNNING
 * to DEAD may happen at any time in any context.
 */
enum qhca_dev_state {
	QHCA_DEV_DOWN,
	QHCA_DEV_RUNNING,
	QHCA_DEV_DEAD,
};

/*
 * enum qhca_slot_state - who owns a command slot
 * @QHCA_SLOT_FREE: no owner
 * @QHCA_SLOT_POSTED: the device
 * @QHCA_SLOT_DONE: the caller, which has yet to take the answer
 * @QHCA_SLOT_LOST: the device, for ever: no answer came
 */
enum qhca_slot_state {
	QHCA_SLOT_FREE,
	QHCA_SLOT_POSTED,
	QHCA_SLOT_DONE,
	QHCA_SLOT_LOST,
};

/*
 * struct qhca_cmd_slot - a ring position of the command queue
 * @mbox_used: so many bytes of its mailbox may not be 0, the rest is; under post_lock
 */
struct qhca_cmd_slot {
	enum qhca_slot_state state;
	u16 opcode;
	u32 token;
	u8 status;
	u32 obj;
	u32 mbox_used;
	struct completion done;
};

/**
 * struct qhca_cmdq - the command queue
 * @sq: ring of struct qhca_cmd
 * @cq: ring of struct qhca_cmd_comp
 * @mbox: one mailbox of QHCA_PAGE_SIZE per slot
 * @slots: one per ring position
 * @log_size: log2 of the slots
 * @timeout: in jiffies, after which a queue without progress is lost
 * @post_lock: serialises posting; taken before @lock
 * @slot_wait: posters wait here for the slot at @pi
 * @pi: producer index; under @post_lock
 * @token: token of the latest command; under @post_lock
 * @lock: protects @ci and the slots' states; hard IRQ safe
 * @ci: index of the next completion
 */
struct qhca_cmdq {
	struct qhca_ring_mem sq;
	struct qhca_ring_mem cq;
	struct qhca_ring_mem mbox;
	struct qhca_cmd_slot *slots;
	unsigned int log_size;
	unsigned long timeout;
	struct mutex post_lock;		/* @pi and @token */
	wait_queue_head_t slot_wait;
	u32 pi;
	u32 token;
	spinlock_t lock;		/* @ci and slot states */
	u32 ci;
};

/**
 * struct qhca_eq - an event queue and the MSI-X vector it raises
 * @dev: the function
 * @mem: ring of struct qhca_eqe
 * @eqn: EQN
 * @slot: slot of its doorbell
 * @log_size: log2 of the entries
 * @vector: MSI-X vector
 * @irq: Linux interrupt number of @vector
 * @irq_requested: the handler is installed
 * @name: name of the interrupt
 * @lock: held while events are handled, and in hard IRQ; protects all below
 * @ci: consumer index
 * @overdue: an event waited at @ci when qhca_eqs_check() last looked
 * @overdue_ci: @ci at that time
 * @live: the queue exists; vector 0 has its handler even before and after that
 */
struct qhca_eq {
	struct qhca_dev *dev;
	struct qhca_ring_mem mem;
	u32 eqn;
	int slot;
	u8 log_size;
	unsigned int vector;
	int irq;
	bool irq_requested;
	char name[40];
	spinlock_t lock;		/* all below */
	u32 ci;
	bool overdue;
	u32 overdue_ci;
	bool live;
};

/**
 * struct qhca_health - death of the function
 * @lock: serialises qhca_health_quiesce()
 * @quiesced: the device is known to touch no memory any more
 * @failed: the device was dead when it was last taken down; belongs to the owner
 * @reason: failure that the driver saw
 * @fatal: the device's own reason, enum qhca_fatal
 * @status: the register STATUS at that time
 * @cmd_progress: the register CMD_PROGRESS at that time
 * @work: stops DMA and reports DEVICE_FATAL
 * @poll: periodically checks the status register and the event queues
 * @limit: declares the device dead if its users do not release it
 * @reporter: devlink's view of it
 * @watched: devlink knows the function
 * @report: tells devlink, which may restart the function
 */
struct qhca_health {
	struct mutex lock;		/* @quiesced */
	bool quiesced;
	bool failed;
	const char *reason;
	u32 fatal;
	u32 status;
	u32 cmd_progress;
	struct work_struct work;
	struct delayed_work poll;
	struct delayed_work limit;
	struct devlink_health_reporter *reporter;
	bool watched;
	struct work_struct report;
};

/**
 * struct qhca_clock - the PTP clock
 * @info: operations
 * @ptp: the clock, or NULL if the kernel has none
 * @lock: serialises changes of @base
 * @seq: protects @base
 * @base: converts device time to the time of the clock
 * @page: @base for processes, in a page of its own
 * @mark: device time at some moment; belongs to the owner of the function
 * @mark_boot: the system's time at the same moment, sleep included
 */
struct qhca_clock {
	struct ptp_clock_info info;
	struct ptp_clock *ptp;
	struct mutex lock;		/* changes of @base */
	seqlock_t seq;			/* @base */
	struct qhca_clock_info base;
	struct qhca_clock_info *page;
	u64 mark;
	u64 mark_boot;
};

/**
 * struct qhca_dev - the PCI function
 * @pdev: its PCI device
 * @regs: BAR0
 * @version: of the interface, as QHCA_REG_VERSION has it
 * @db: page 0 of BAR2
 * @db_stride: bytes of BAR2 from one page to the next
 * @uars: doorbell pages in use
 * @shadow: doorbells of page 0 in memory, or NULL
 * @shadow_mem: their memory
 * @slots: slots in use; a queue's stays its own while the function is down
 * @state: enum qhca_dev_state
 * @up: qhca_dev_up() is to be undone; belongs to the owner
 * @held: reset or asleep: nothing but the end of that may bring it up
 * @shut: the machine goes down, so the device stays down
 * @limits: limits that QUERY_DEVICE reported
 * @cmdq: command queue
 * @eqs: event queues, one for each vector
 * @num_eqs: number of vectors that are used
 * @num_comp: completion vectors of RDMA; those behind them belong to the Ethernet channels
 * @cqs: struct qhca_cq_core by CQN
 * @events: notifier chain of asynchronous events
 * @health: state of a failure
 * @clock_lock: keeps the two halves of the clock together
 * @cc: parameters of congestion control; under qhca_lock()
 * @clock: PTP clock
 * @netdev: Ethernet port
 * @adev: auxiliary device, or NULL while the function is down
 * @debugfs: folder of the function, or NULL
 */
struct qhca_dev {
	struct pci_dev *pdev;
	void __iomem *regs;
	u32 version;
	void __iomem *db;
	u32 db_stride;
	struct ida uars;
	struct qhca_shadow *shadow;
	struct qhca_ring_mem shadow_mem;
	struct ida slots;
	atomic_t state;
	bool up;
	bool held;
	bool shut;
	struct qhca_limits limits;
	struct qhca_cmdq cmdq;
	struct qhca_eq *eqs;
	unsigned int num_eqs;
	unsigned int num_comp;
	struct xarray cqs;
	struct atomic_notifier_head events;
	struct qhca_health health;
	spinlock_t clock_lock;		/* clock registers */
	u32 cc[QHCA_CC_MAX];
	struct qhca_clock clock;
	struct net_device *netdev;
	struct qhca_adev *adev;
	struct dentry *debugfs;
};

static inline u32 qhca_read_reg(struct qhca_dev *dev, unsigned int reg)
{
	return readl(dev->regs + reg);
}

static inline void qhca_write_reg(struct qhca_dev *dev, unsigned int reg, u32 val)
{
	writel(val, dev->regs + reg);
}

/* Whether frames are spread over several queues of a direction. */
static inline bool qhca_limits_have_rss(const struct qhca_limits *limits)
{
	return limits->max_ethq > 2;
}

/* Phase of a new entry at @index of a ring of 2^@log_size entries. */
static inline u8 qhca_phase(u32 index, unsigned int log_size)
{
	return (index >> log_size) & 1 ? 0 : QHCA_OWNER_PHASE;
}

/* hw.c */
int qhca_hw_identify(struct qhca_dev *dev);
bool qhca_hw_present(struct qhca_dev *dev);
int qhca_hw_reset(struct qhca_dev *dev);
int qhca_hw_enable(struct qhca_dev *dev);
bool qhca_hw_link_up(struct qhca_dev *dev);
void qhca_hw_mac(struct qhca_dev *dev, u8 *mac);
u64 qhca_hw_clock(struct qhca_dev *dev, struct ptp_system_timestamp *sts);

/* clock.c */
int qhca_clock_init(struct qhca_dev *dev);
void qhca_clock_cleanup(struct qhca_dev *dev);
void qhca_clock_mark(struct qhca_dev *dev);
void qhca_clock_resume(struct qhca_dev *dev);
int qhca_clock_index(const struct qhca_dev *dev);
u64 qhca_clock_to_ns(struct qhca_dev *dev, u64 cycles);

/* cmdq.c */
int qhca_cmdq_init(struct qhca_dev *dev);
void qhca_cmdq_cleanup(struct qhca_dev *dev);
void qhca_cmdq_kill(struct qhca_dev *dev);

/* state.c */
bool qhca_health_check(struct qhca_dev *dev);

/* limits.c */
int qhca_limits_query(struct qhca_dev *dev);

/* shadow.c */
void qhca_shadow_init(struct qhca_dev *dev);
void qhca_shadow_cleanup(struct qhca_dev *dev);

/* cmd.c */
unsigned int qhca_cmdq_poll(struct qhca_dev *dev);

/* vectors.c */
u32 qhca_comp_eqn(struct qhca_dev *dev, unsigned int vector);
int qhca_comp_irq(struct qhca_dev *dev, unsigned int vector);
unsigned int qhca_eth_comp_vector(struct qhca_dev *dev, unsigned int channel);
unsigned int qhca_max_channels(struct qhca_dev *dev);

/* eq.c */
int qhca_irqs_init(struct qhca_dev *dev);
void qhca_irqs_cleanup(struct qhca_dev *dev);
int qhca_eqs_create(struct qhca_dev *dev);
void qhca_eqs_destroy(struct qhca_dev *dev);
void qhca_eqs_check(struct qhca_dev *dev);

/* events.c */
void qhca_event(struct qhca_dev *dev, enum qhca_event type, u32 obj);

/* uar.c */
int qhca_uars_init(struct qhca_dev *dev);
u32 qhca_num_uars(struct qhca_dev *dev);

/* health.c */
void qhca_health_init(struct qhca_dev *dev);
int qhca_health_start(struct qhca_dev *dev);
void qhca_health_watch(struct qhca_dev *dev);
void qhca_health_unwatch(struct qhca_dev *dev);
void qhca_health_limit(struct qhca_dev *dev);
void qhca_health_unlimit(struct qhca_dev *dev);
void qhca_health_stop(struct qhca_dev *dev);

/* adev.c */
int qhca_adev_add(struct qhca_dev *dev);
void qhca_adev_del(struct qhca_dev *dev);

/* faults.c */
void qhca_faults_init(void);
void qhca_faults_exit(void);
void qhca_faults_add(struct qhca_dev *dev);
void qhca_faults_del(struct qhca_dev *dev);

/* congestion.c */
void qhca_cc_init(struct qhca_dev *dev);
int qhca_cc_restore(struct qhca_dev *dev);
int qhca_cc_register(struct qhca_dev *dev);
void qhca_cc_unregister(struct qhca_dev *dev);

/* netdev.c */
int qhca_netdev_register(struct qhca_dev *dev);
void qhca_netdev_unregister(struct qhca_dev *dev);
void qhca_netdev_suspend(struct qhca_dev *dev);
int qhca_netdev_resume(struct qhca_dev *dev);

/* restart.c */
int qhca_dev_up(struct qhca_dev *dev);
void qhca_dev_down(struct qhca_dev *dev);
int qhca_may_start(const struct qhca_dev *dev);
int qhca_attach(struct qhca_dev *dev);
void qhca_detach(struct qhca_dev *dev);

/* devlink.c */
struct qhca_dev *qhca_devlink_alloc(struct pci_dev *pdev);
void qhca_devlink_free(struct qhca_dev *dev);
int qhca_devlink_register(struct qhca_dev *dev);
void qhca_devlink_unregister(struct qhca_dev *dev);
void qhca_devlink_started(struct qhca_dev *dev, int ret);
void qhca_lock(struct qhca_dev *dev);
void qhca_unlock(struct qhca_dev *dev);

#endif /* QHCA_H */
