/* SPDX-License-Identifier: GPL-2.0 */
/* Memory windows. A function without an error to return ends the test when it fails. */
#ifndef SELFTESTS_WINDOW_H
#define SELFTESTS_WINDOW_H

#include "rdma.h"

#define BINDABLE	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define MW_RW		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Opens the device; skips the test if it has no windows of @type. */
struct dev *dev_open_mw(enum ibv_mw_type type);
struct ibv_mw *mw_new(struct dev *d, enum ibv_mw_type type);
/* Returns the binding to [@off, @off + @len) of @b. */
struct ibv_mw_bind_info mw_part(const struct buf *b, size_t off, size_t len,
				int access);
/* Binds on @e and returns the status. mw->rkey is the new key, if there is one. */
enum ibv_wc_status mw_bind(struct end *e, struct ibv_mw *mw,
			   struct ibv_mw_bind_info info);
enum ibv_wc_status local_inv(struct end *e, uint32_t rkey);

/* Executes RDMA of @len bytes at the start of @b on @e; returns the status. */
enum ibv_wc_status rdma(struct end *e, enum ibv_wr_opcode opcode,
			const struct buf *b, uint32_t len, const void *raddr,
			uint32_t rkey);

#endif /* SELFTESTS_WINDOW_H */
