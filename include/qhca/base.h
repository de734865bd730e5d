/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: types and accessors shared by every header here.
 *
 * These headers are the one contract between the device model, the Linux
 * drivers and the rdma-core provider, and are used verbatim by all three.
 * Documentation/hardware.rst says what they mean.
 *
 * Conventions: little-endian unless a field is __be, natural alignment and no
 * packing, no bitfields, every size and offset asserted, every reserved field
 * written as zero and ignored by its reader.
 */
#ifndef QHCA_BASE_H
#define QHCA_BASE_H

#ifdef __linux__
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __le16;
typedef uint32_t __le32;
typedef uint64_t __le64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint64_t __be64;
#endif

/*
 * QHCA_GET - take the field @mask out of the CPU-order value @val.
 * QHCA_PREP - place @val into the field @mask.
 *
 * @mask is a contiguous constant. Kernel code uses FIELD_GET() and FIELD_PREP()
 * on the same masks and gets their compile-time range checks.
 */
#define QHCA_GET(mask, val)	(((val) & (mask)) / ((mask) & -(mask)))
#define QHCA_PREP(mask, val)	(((val) * ((mask) & -(mask))) & (mask))

/* Every structure of the contract asserts its size, and the offsets of some members. */
#define QHCA_ASSERT_SIZE(type, size) \
	_Static_assert(sizeof(type) == (size), #type " is not " #size " bytes")
#define QHCA_ASSERT_OFFSET(type, member, off) \
	_Static_assert(__builtin_offsetof(type, member) == (off), \
		       #type "." #member " is not at " #off)

/* Object numbers (QPN, CQN, PDN, EQN, ...) have 24 bits. */
#define QHCA_OBJ_MASK		0x00ffffffu

/* A table page of a struct qhca_buf: 512 block addresses of 8 bytes. */
#define QHCA_PAGE_SHIFT		12
#define QHCA_PAGE_SIZE		(1u << QHCA_PAGE_SHIFT)
#define QHCA_TABLE_ENTRIES	512u
#define QHCA_BUF_MAX_DEPTH	3
/* Block addresses in a table of the largest depth. */
#define QHCA_TABLE_MAX_BLOCKS	(QHCA_TABLE_ENTRIES * QHCA_TABLE_ENTRIES * QHCA_TABLE_ENTRIES)

/*
 * Wherever the device takes a DMA address, an address with this bit is an offset in the device's
 * own memory instead, which the driver sees as QHCA_BAR_DM.
 */
#define QHCA_ADDR_DM		0x8000000000000000ull

/*
 * struct qhca_buf - description of guest memory of any size, written by the driver.
 * @addr: depth 0: DMA address of the first block, the others follow it without
 *        a gap; depth 1: DMA address of a table page of block addresses; depth
 *        2 and 3: DMA address of a table page of tables of the next lower depth
 * @num_blocks: number of blocks described
 * @depth: 0 to QHCA_BUF_MAX_DEPTH
 * @block_shift: log2 of the block size, 12 to 31; every block is aligned to it
 *
 * The device reads the tables only while it executes the command that names them, so the driver may
 * free them when that command has completed.
 */
struct qhca_buf {
	__le64	addr;
	__le32	num_blocks;
	__u8	depth;
	__u8	block_shift;
	__u8	rsvd[2];
};
QHCA_ASSERT_SIZE(struct qhca_buf, 16);

#define QHCA_BLOCK_SHIFT_MIN	12
#define QHCA_BLOCK_SHIFT_MAX	31

/*
 * Ownership of ring entries that the device writes (command completions, CQEs,
 * EQEs): bit 0 of the last byte. The device writes 1 there on its first pass
 * over the ring, 0 on the second, 1 on the third; rings start out all zero.
 * The byte is written after the rest of the entry.
 */
#define QHCA_OWNER_PHASE	0x01

#endif /* QHCA_BASE_H */
