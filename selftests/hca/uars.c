// SPDX-License-Identifier: GPL-2.0
/*
 * The doorbell pages that the driver gives to processes, for every size of the CPU's pages. Needs
 * no device: it is the driver's arithmetic.
 */
#include <stdint.h>

#include <qhca/regs.h>

typedef uint32_t u32;
typedef uint64_t u64;

#include <net/qhca/uar.h>

#include "lib/harness.h"

#define KIB	1024u
/* Where a BAR could be that is larger than any page. */
#define BAR	0x8000000000ull

static const struct row {
	const char *name;
	u32 page, stride, pages;
	u64 start;
	u32 step, num;
} rows[] = {
	{ "4 KiB, as far apart", 4 * KIB, 4 * KIB, 1024, BAR, 1, 1024 },
	{ "16 KiB, four of them in each", 16 * KIB, 4 * KIB, 1024, BAR, 4, 256 },
	{ "64 KiB, sixteen in each", 64 * KIB, 4 * KIB, 1024, BAR, 16, 64 },
	{ "64 KiB, four in each", 64 * KIB, 16 * KIB, 1024, BAR, 4, 256 },
	{ "64 KiB, as far apart", 64 * KIB, 64 * KIB, 1024, BAR, 1, 1024 },
	{ "4 KiB, farther apart", 4 * KIB, 64 * KIB, 1024, BAR, 1, 1024 },
	{ "the least number that leaves one", 64 * KIB, 4 * KIB, 32, BAR, 16, 2 },
	{ "a last page that is not whole", 64 * KIB, 4 * KIB, 47, BAR, 16, 2 },
	{ "all in the kernel's page", 64 * KIB, 4 * KIB, 16, BAR, 16, 1 },
	{ "less than a page", 64 * KIB, 4 * KIB, 2, BAR, 16, 0 },
	{ "a BAR within a page", 64 * KIB, 4 * KIB, 8, BAR + 32 * KIB, 16, 0 },
	{ "a large BAR within a page", 16 * KIB, 4 * KIB, 1024, BAR + 4 * KIB, 4, 0 },
	{ "a BAR at a page", 4 * KIB, 4 * KIB, 2, BAR + 4 * KIB, 1, 2 },
	{ "the most of the smallest", 64 * KIB, 4 * KIB, QHCA_DB_CAPS_PAGES, BAR, 16, 4095 },
};

TEST_ROWS(layout, "J-020 doorbell pages in pages of the CPU", rows)
{
	struct qhca_uar_layout l = qhca_uar_layout(row->page, row->stride, row->pages, row->start);

	CHECK_EQ(l.step, row->step);
	CHECK_EQ(l.num, row->num);
}

/* All mappings of a process are in the BAR, and hold no doorbell page of another. */
TEST(apart, "J-020 no two processes share a page of the CPU, nor one with the kernel")
{
	u32 page_shift, shift, pages, i;

	for (page_shift = 12; page_shift <= 18; page_shift++) {
		for (shift = QHCA_PAGE_SHIFT; shift <= QHCA_DB_LOG_STRIDE_MAX; shift++) {
			for (pages = 1; pages < 200; pages++) {
				struct qhca_uar_layout l = qhca_uar_layout(1ul << page_shift,
									   1u << shift, pages, BAR);
				u64 end = 1ull << shift;	/* of the kernel's */

				for (i = 1; i < l.num; i++) {
					u64 at = (u64)i * l.step << shift;

					CHECK_EQ(at & ((1ull << page_shift) - 1), 0);
					CHECK(at >= end);
					end = at + (1ull << page_shift);
				}
				CHECK(l.num < 2 || end <= (u64)pages << shift);
				/* Nor is one left that could be used. */
				CHECK(((u64)(l.num * l.step) << shift) + (1ull << page_shift) >
				      (u64)pages << shift);
			}
		}
	}
}
