/* SPDX-License-Identifier: GPL-2.0 */
/* On-demand paging. */
#ifndef SELFTESTS_ONDEMAND_H
#define SELFTESTS_ONDEMAND_H

#include "rdma.h"

#define PAGE	4096ul

/* Opens a device that has implicit regions; skips the test if it has none. */
struct dev *odp_open(void);
struct ibv_mr *odp_reg(struct dev *d, void *addr, size_t len, int access);
/* Maps memory that has no page yet, and will have no huge one. */
uint8_t *odp_map(size_t len);
/* Posts a WRITE of 64 bytes at @from, in a region with on-demand paging, to @to. */
void odp_post_write(struct pair *p, const void *from, struct ibv_mr *mr, struct buf *to);

#endif /* SELFTESTS_ONDEMAND_H */
