/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca device interface: PCI identity, registers (BAR0) and doorbells (BAR2). */
#ifndef QHCA_REGS_H
#define QHCA_REGS_H

#include "base.h"

/* QEMU's docs/specs/pci-ids.rst reserves this range for experiments. */
#define QHCA_PCI_VENDOR_ID	0x1af4
#define QHCA_PCI_DEVICE_ID	0x10f0
#define QHCA_PCI_REVISION	1

#define QHCA_BAR_REGS		0	/* registers, 32-bit accesses only */
#define QHCA_BAR_MSIX		1	/* MSI-X table and PBA */
#define QHCA_BAR_DB		2	/* doorbell pages, 64-bit writes only */
#define QHCA_BAR_DM		4	/* device memory; absent if there is none */
#define QHCA_BAR_REGS_SIZE	0x1000

/*
 * Registers. 64-bit registers are two 32-bit registers, low word first. While the device is running
 * it ignores writes to the base registers.
 */
#define QHCA_REG_MAGIC		0x000	/* RO: QHCA_MAGIC */
#define QHCA_REG_VERSION	0x004	/* RO: interface version */
#define QHCA_REG_CMD_CAPS	0x008	/* RO: command queue limits */
#define QHCA_REG_CMD_TIMEOUT	0x00c	/* RO: ms without progress until the queue is lost */
#define QHCA_REG_DB_CAPS	0x010	/* RO: doorbell pages */
#define QHCA_REG_EQ_CAPS	0x014	/* RO: event queue limits */
#define QHCA_REG_VECTORS	0x018	/* RO: MSI-X vectors */
#define QHCA_REG_CONTROL	0x020	/* RW: QHCA_CONTROL_* */
#define QHCA_REG_STATUS		0x024	/* RO: QHCA_STATUS_* */
#define QHCA_REG_RESET		0x028	/* WO: QHCA_RESET_KEY resets the device */
#define QHCA_REG_FATAL		0x02c	/* RO: enum qhca_fatal */
#define QHCA_REG_CMD_SQ_LO	0x030	/* RW: command ring, QHCA_PAGE_SIZE aligned */
#define QHCA_REG_CMD_SQ_HI	0x034
#define QHCA_REG_CMD_CQ_LO	0x038	/* RW: command completions, QHCA_PAGE_SIZE aligned */
#define QHCA_REG_CMD_CQ_HI	0x03c
#define QHCA_REG_CMD_LOG_SIZE	0x040	/* RW: log2 of the entries of both rings */
#define QHCA_REG_CMD_PROGRESS	0x044	/* RO: changes with each step of a command */
#define QHCA_REG_MAC_LO		0x048	/* RO: permanent MAC, bytes 0 to 3, byte 0 lowest */
#define QHCA_REG_MAC_HI		0x04c	/* RO: bytes 4 and 5 */
#define QHCA_REG_CLOCK_LO	0x050	/* RO: device time in ns; reading LO latches HI */
#define QHCA_REG_CLOCK_HI	0x054

#define QHCA_MAGIC		0x41434851u	/* "QHCA" */

#define QHCA_VERSION_MAJOR	0xffff0000u	/* a driver refuses another major version */
#define QHCA_VERSION_MINOR	0x0000ffffu	/* a higher one only adds to a lower */
#define QHCA_VERSION		0x00010000u	/* version that these headers describe */

#define QHCA_CMD_CAPS_LOG_MAX	0x000000ffu	/* log2 of the largest number of entries */
#define QHCA_DB_CAPS_PAGES	0x0000ffffu	/* doorbell pages in BAR2, page 0 included */
#define QHCA_DB_CAPS_LOG_STRIDE	0x00ff0000u	/* log2 of their distance; 0: a page */
#define QHCA_EQ_CAPS_MAX	0x0000ffffu	/* number of event queues that can exist */
#define QHCA_EQ_CAPS_LOG_MAX	0x00ff0000u	/* log2 of the largest number of entries of an EQ */

/* Setting ENABLE starts the command queue that the base registers describe. */
#define QHCA_CONTROL_ENABLE	0x00000001u
/* With ENABLE: the words that atomics change, and return, are big-endian, as the CPU is. */
#define QHCA_CONTROL_BIG_ENDIAN	0x00000002u

#define QHCA_STATUS_STATE	0x000000ffu	/* enum qhca_state */
#define QHCA_STATUS_LINK_UP	0x00000100u

enum qhca_state {
	QHCA_STATE_RESET = 0,	/* no object exists, no DMA, no interrupt */
	QHCA_STATE_RUNNING = 1,	/* commands and doorbells are accepted */
	QHCA_STATE_FATAL = 2,	/* stopped for the reason in FATAL; must be reset */
};

#define QHCA_RESET_KEY		0x54455352u	/* "RSET" */

/* Reason why the device stopped. Apart from INJECTED, only mistakes of the driver cause them. */
enum qhca_fatal {
	QHCA_FATAL_NONE = 0,
	QHCA_FATAL_CMDQ_CONFIG = 1,	/* enabled with a bad base address or size */
	QHCA_FATAL_CMDQ_DMA = 2,	/* a command ring cannot be read or written */
	QHCA_FATAL_CMDQ_INDEX = 3,	/* command doorbell beyond the free entries */
	QHCA_FATAL_EQ_DMA = 4,		/* an event queue cannot be written */
	QHCA_FATAL_INJECTED = 5,	/* requested by the operator of the VM */
};

/*
 * Doorbells. Page N of BAR2 rings only objects created with uar = N, so a page mapped into a
 * process reaches the objects of that process and no others. It begins at N times the stride of
 * DB_CAPS, which can be more than a page. Where the CPU's pages are larger than that, a process is
 * given all doorbell pages in one of them, and only one of these may have objects. Page 0 belongs
 * to the kernel and has additional doorbells. The device drops a doorbell, and counts it in
 * QHCA_CNT_BAD_DOORBELL, if it names no object of its page, has another offset (also one between
 * two pages) or access size, or has an index outside the ring.
 *
 * A doorbell is one naturally aligned 64-bit little-endian write. An arm doorbell has taken effect
 * when a later read of any register returns; CQEs older than the arm raise no event.
 */
#define QHCA_DB_PAGE_SIZE	QHCA_PAGE_SIZE
#define QHCA_DB_LOG_STRIDE_MAX	16		/* the smallest stride is a page */
#define QHCA_DB_SQ		0x00	/* QPN, new producer index of the send queue */
#define QHCA_DB_RQ		0x08	/* QPN, new producer index of the receive queue */
#define QHCA_DB_SRQ		0x10	/* SRQN, new producer index */
#define QHCA_DB_CQ_ARM		0x18	/* CQN, arm sequence number, SOLICITED */
#define QHCA_DB_SHADOW		0x20	/* object 0: look at the page's struct qhca_shadow */
#define QHCA_DB_EQ		0x40	/* page 0: EQN, consumer index; arms the EQ */
#define QHCA_DB_CMD		0x48	/* page 0: object 0, producer index of commands */
#define QHCA_DB_ETH		0x50	/* page 0: Ethernet queue number, producer index */

/*
 * Indexes are free-running 32-bit counters; the ring position is the index modulo the ring size.
 * They start at 0 in a new queue, and in the queues of a QP that has been moved to RESET. The arm
 * sequence number must differ from the previous arm's: the device takes the same number for a
 * repetition and ignores it.
 */
#define QHCA_DB_OBJ		0x0000000000ffffffull
#define QHCA_DB_SOLICITED	0x0000000001000000ull	/* CQ_ARM: solicited CQEs and errors only */
#define QHCA_DB_INDEX		0xffffffff00000000ull
#define QHCA_DB_KIND		0x00000000fe000000ull	/* in struct qhca_shadow: offset / 8 */

/*
 * struct qhca_shadow - doorbells of a page in memory, where the device looks (CREATE_SHADOW). Each
 * queue has a slot, with the last doorbell written for it; several may become one.
 * @look: bit i: word i of @rung has bits
 * @ask: written by the device: if not 0, ring QHCA_DB_SHADOW as well
 * @rung: bit i % 64 of word i / 64: there is a doorbell in slot i
 * @slot: as a doorbell is written to BAR2, with QHCA_DB_KIND
 *
 * To ring, write the slot, then set its bit in @rung and then that in @look, both atomically, and
 * after a full barrier read @ask.
 */
struct qhca_shadow {
	__le64	look;
	__u8	rsvd0[56];
	__le32	ask;
	__u8	rsvd1[60];
	__le64	rung[64];
	__u8	rsvd2[384];
	__le64	slot[];
};
QHCA_ASSERT_SIZE(struct qhca_shadow, 1024);
QHCA_ASSERT_OFFSET(struct qhca_shadow, ask, 64);
QHCA_ASSERT_OFFSET(struct qhca_shadow, rung, 128);

#define QHCA_SHADOW_SLOTS_MAX	4096

#endif /* QHCA_REGS_H */
