/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The same context, PDs and MRs a second time, by command fd and handles.
 */
#ifndef SELFTESTS_IMPORT_H
#define SELFTESTS_IMPORT_H

#include "rdma.h"

#define IMPORT_MSG	512

/* The context and the PD of @from, imported. */
struct dev *dev_import(struct dev *from);
/* A buffer by the handle of its MR. */
struct buf buf_import(struct dev *d, const struct buf *from);
/* QPs of two contexts, connected. */
struct pair pair_across(struct dev *a, struct dev *b, enum ibv_qp_type type);
/* A WRITE within @b, by @from, from its first half to its second. */
void write_half(struct end *from, const struct buf *b, uint32_t seed);

#endif /* SELFTESTS_IMPORT_H */
