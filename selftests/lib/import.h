/* SPDX-License-Identifier: GPL-2.0 */
/* Imports contexts, PDs and MRs by command fd and handles. */
#ifndef SELFTESTS_IMPORT_H
#define SELFTESTS_IMPORT_H

#include "rdma.h"

#define IMPORT_MSG	512

/* Imports the context and the PD of @from. */
struct dev *dev_import(struct dev *from);
/* Imports a buffer by the handle of its MR. */
struct buf buf_import(struct dev *d, const struct buf *from);
/* Connects QPs of two contexts. */
struct pair pair_across(struct dev *a, struct dev *b, enum ibv_qp_type type);
/* Copies by a WRITE of @from from the first half of @b to its second half. */
void write_half(struct end *from, const struct buf *b, uint32_t seed);

#endif /* SELFTESTS_IMPORT_H */
