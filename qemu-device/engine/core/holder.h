/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: objects that only hold others together. */
#ifndef QHCA_ENGINE_CORE_HOLDER_H
#define QHCA_ENGINE_CORE_HOLDER_H

#include "command.h"
#include "table.h"

/*
 * struct vhca_holder - what a PD, an XRC domain, a set of counters begins with
 * @number: in its table
 * @users: objects that belong to it; it can go when there are none
 */
struct vhca_holder {
    uint32_t number, users;
};

/* Makes one of @size bytes, zeroed; enum qhca_cmd_status, as the next. */
int vhca_holder_alloc(struct vhca_table *t, size_t size,
                      struct vhca_cmd_ctx *c);
/* That of the command goes. */
int vhca_holder_dealloc(struct vhca_table *t, struct vhca_cmd_ctx *c);
/* All go (reset). */
void vhca_holder_free_all(struct vhca_table *t);

#endif /* QHCA_ENGINE_CORE_HOLDER_H */
