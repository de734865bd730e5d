/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: memory regions and windows: bodies of their commands (bytes 16 to 63), and
 * access rights. The work requests that change regions and windows are in queues.h.
 */
#ifndef QHCA_MR_H
#define QHCA_MR_H

#include "base.h"

struct qhca_cmd_reg_mr {	/* QHCA_CMD_REG_MR, QHCA_CMD_REREG_MR */
	struct qhca_buf buf;
	__le64	iova;		/* address of the first byte, as WQEs use it */
	__le64	length;		/* QHCA_MR_FAST: number of blocks it can hold */
	__le32	pdn;
	__le32	key;		/* REREG_MR: key of the region */
	__le16	access;		/* QHCA_ACCESS_* */
	__u8	type;		/* enum qhca_mr_type */
	__u8	rereg;		/* REREG_MR: QHCA_REREG_*, attributes to change */
	__le32	offset;		/* offset of the first byte in the first block */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_reg_mr, 48);

enum qhca_mr_type {
	QHCA_MR_MEM = 0,	/* memory in @buf, from @offset on */
	QHCA_MR_DMA = 1,	/* all DMA addresses, iova = DMA address; local access only */
	QHCA_MR_FAST = 2,	/* no memory until a QHCA_WR_REG_MR */
	QHCA_MR_NULL = 3,	/* region of null_lkey; cannot be created */
	QHCA_MR_ODP = 4,	/* pages of the size in @buf, from SET_PAGES */
};

/*
 * Pages of a region of type ODP are counted from 0, the page of the region's first byte. An access
 * that needs an absent page, or writes to one without QHCA_PAGE_WRITE, is a page fault.
 */
struct qhca_cmd_pages {		/* QHCA_CMD_SET_PAGES, QHCA_CMD_CLEAR_PAGES */
	__le64	first;
	__le64	num;		/* SET_PAGES: at most QHCA_TABLE_ENTRIES */
	__le32	key;
	__le32	rsvd;
};
QHCA_ASSERT_SIZE(struct qhca_cmd_pages, 24);

/* struct qhca_pages - mailbox of SET_PAGES: DMA address | QHCA_PAGE_*; 0: leave the page alone */
struct qhca_pages {
	__le64	page[QHCA_TABLE_ENTRIES];
};
QHCA_ASSERT_SIZE(struct qhca_pages, 4096);

#define QHCA_PAGE_READ		0x1ull
#define QHCA_PAGE_WRITE		0x2ull	/* implies QHCA_PAGE_READ, which must be set too */
#define QHCA_PAGE_FLAGS		0x3ull

#define QHCA_ODP_SIZE_MAX	(1ull << 57)	/* bytes of a region of type ODP */
/* Block addresses that a node of its tree counts as; it has QHCA_TABLE_ENTRIES pages or nodes. */
#define QHCA_NODE_BLOCKS	(QHCA_TABLE_ENTRIES + 1u)

#define QHCA_ACCESS_LOCAL_WRITE		0x0001
#define QHCA_ACCESS_REMOTE_WRITE	0x0002
#define QHCA_ACCESS_REMOTE_READ		0x0004
#define QHCA_ACCESS_REMOTE_ATOMIC	0x0008
#define QHCA_ACCESS_MW_BIND		0x0010
#define QHCA_ACCESS_ZERO_BASED		0x0020	/* not a right: see hardware.rst */
#define QHCA_ACCESS_FLUSH_GLOBAL	0x0100	/* the peer may FLUSH */
#define QHCA_ACCESS_FLUSH_PERSISTENT	0x0200	/* only for QPs: no memory of this device has it */
#define QHCA_ACCESS_MASK		0x011f	/* all rights that memory can have */

#define QHCA_REREG_TRANS	0x01
#define QHCA_REREG_PD		0x02
#define QHCA_REREG_ACCESS	0x04

/* A window grants rights to the part of a region that QHCA_WR_BIND_MW names. */
struct qhca_cmd_alloc_mw {	/* QHCA_CMD_ALLOC_MW */
	__le32	pdn;
	__u8	type;		/* enum qhca_mw_type */
};
QHCA_ASSERT_SIZE(struct qhca_cmd_alloc_mw, 8);

enum qhca_mw_type {
	QHCA_MW_1 = 1,		/* all QPs of its PD can use it */
	QHCA_MW_2B = 2,		/* only the QP of its PD that bound it can use it */
};

#endif /* QHCA_MR_H */
