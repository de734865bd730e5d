/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: PCI identity, registers (BAR0) and doorbells (BAR2).
 */
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
 * Registers. 64-bit registers are two 32-bit ones, low word first; writing one
 * of the base registers while the device is running is ignored.
 */
#define QHCA_REG_MAGIC		0x000	/* RO: QHCA_MAGIC */
#define QHCA_REG_VERSION	0x004	/* RO: interface version */
#define QHCA_REG_CMD_CAPS	0x008	/* RO: command queue limits */
#define QHCA_REG_CMD_TIMEOUT	0x00c	/* RO: ms after which a command queue that rests is lost */
#define QHCA_REG_DB_CAPS	0x010	/* RO: doorbell pages */
#define QHCA_REG_EQ_CAPS	0x014	/* RO: event queue limits */
#define QHCA_REG_VECTORS	0x018	/* RO: MSI-X vectors */
#define QHCA_REG_CONTROL	0x020	/* RW: QHCA_CONTROL_* */
#define QHCA_REG_STATUS		0x024	/* RO: QHCA_STATUS_* */
#define QHCA_REG_RESET		0x028	/* WO: QHCA_RESET_KEY resets the device */
#define QHCA_REG_FATAL		0x02c	/* RO: enum qhca_fatal */
#define QHCA_REG_CMD_SQ_LO	0x030	/* RW: command ring, QHCA_PAGE_SIZE aligned */
#define QHCA_REG_CMD_SQ_HI	0x034
#define QHCA_REG_CMD_CQ_LO	0x038	/* RW: command completions, aligned likewise */
#define QHCA_REG_CMD_CQ_HI	0x03c
#define QHCA_REG_CMD_LOG_SIZE	0x040	/* RW: log2 of the entries of both rings */
#define QHCA_REG_CMD_PROGRESS	0x044	/* RO: another value after each step of a command */
#define QHCA_REG_MAC_LO		0x048	/* RO: permanent MAC, bytes 0 to 3, byte 0 lowest */
#define QHCA_REG_MAC_HI		0x04c	/* RO: bytes 4 and 5 */
#define QHCA_REG_CLOCK_LO	0x050	/* RO: device time in ns; reading LO latches HI */
#define QHCA_REG_CLOCK_HI	0x054

#define QHCA_MAGIC		0x41434851u	/* "QHCA" */

#define QHCA_VERSION_MAJOR	0xffff0000u	/* a driver refuses another major */
#define QHCA_VERSION_MINOR	0x0000ffffu	/* a higher minor only adds */
#define QHCA_VERSION		0x00010001u	/* what these headers describe */

#define QHCA_CMD_CAPS_LOG_MAX	0x000000ffu	/* log2 of the most entries */
#define QHCA_DB_CAPS_PAGES	0x0000ffffu	/* pages in BAR2, page 0 included */
#define QHCA_DB_CAPS_LOG_STRIDE	0x00ff0000u	/* log2 of their distance; 0: a page */
#define QHCA_EQ_CAPS_MAX	0x0000ffffu	/* event queues that can exist */
#define QHCA_EQ_CAPS_LOG_MAX	0x00ff0000u	/* log2 of the most entries of one */

/* Setting ENABLE starts the command queue that the base registers describe. */
#define QHCA_CONTROL_ENABLE	0x00000001u

#define QHCA_STATUS_STATE	0x000000ffu	/* enum qhca_state */
#define QHCA_STATUS_LINK_UP	0x00000100u

enum qhca_state {
	QHCA_STATE_RESET = 0,	/* nothing exists, no DMA, no interrupt */
	QHCA_STATE_RUNNING = 1,	/* commands and doorbells are taken */
	QHCA_STATE_FATAL = 2,	/* stopped for the reason in FATAL; only reset helps */
};

#define QHCA_RESET_KEY		0x54455352u	/* "RSET" */

/* Why the device stopped. Each is a mistake only the driver can make. */
enum qhca_fatal {
	QHCA_FATAL_NONE = 0,
	QHCA_FATAL_CMDQ_CONFIG = 1,	/* enabled with a bad base or size */
	QHCA_FATAL_CMDQ_DMA = 2,	/* a command ring cannot be read or written */
	QHCA_FATAL_CMDQ_INDEX = 3,	/* command doorbell beyond the free entries */
	QHCA_FATAL_EQ_DMA = 4,		/* an event queue cannot be written */
	QHCA_FATAL_INJECTED = 5,	/* asked for by the operator of the VM */
};

/*
 * Doorbells. Page N of BAR2 rings only objects created with uar = N, so a page
 * mapped into a process reaches that process's objects and no others. It begins
 * at N times the stride of DB_CAPS, which is a page or more: where the CPU's
 * pages are larger, a process must get no part of another's. Page 0
 * belongs to the kernel and has the extra doorbells. A doorbell that names no
 * object of its page, another offset (one between two pages as well), another
 * access size or an index outside the ring is dropped and counted
 * (QHCA_CNT_BAD_DOORBELL).
 *
 * A doorbell is one naturally aligned 64-bit little-endian write. The device
 * has acted on an arm doorbell by the time a later read of any register
 * returns; CQEs older than the arm raise no event.
 */
#define QHCA_DB_PAGE_SIZE	QHCA_PAGE_SIZE
#define QHCA_DB_LOG_STRIDE_MAX	16		/* the least is that of a page */
#define QHCA_DB_SQ		0x00	/* QPN, new producer index of the send queue */
#define QHCA_DB_RQ		0x08	/* QPN, new producer index of the receive queue */
#define QHCA_DB_SRQ		0x10	/* SRQN, new producer index */
#define QHCA_DB_CQ_ARM		0x18	/* CQN, arm sequence number, SOLICITED */
#define QHCA_DB_EQ		0x40	/* page 0: EQN, consumer index; arms the EQ */
#define QHCA_DB_CMD		0x48	/* page 0: object 0, producer index of commands */
#define QHCA_DB_ETH		0x50	/* page 0: Ethernet queue number, producer index */

/*
 * Indexes are free-running 32-bit counters; the ring position is the index
 * modulo the ring size. They start at 0 in a new queue, and again in those of a QP
 * that has gone to RESET. The arm sequence number is one a consumer has not used
 * in the arm before: the same number again is a repeat and is ignored.
 */
#define QHCA_DB_OBJ		0x0000000000ffffffull
#define QHCA_DB_SOLICITED	0x0000000001000000ull	/* CQ_ARM: solicited or error only */
#define QHCA_DB_INDEX		0xffffffff00000000ull

#endif /* QHCA_REGS_H */
