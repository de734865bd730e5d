/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: objects that have only a number and a count of users. */
#ifndef QHCA_ENGINE_CORE_HOLDER_H
#define QHCA_ENGINE_CORE_HOLDER_H

#include "command.h"
#include "table.h"

/*
 * struct vhca_holder - a PD or XRC domain, or the head of a set of counters
 * @number: the object's number in its table
 * @users: how many objects belong to it; it can be freed when there are none
 */
struct vhca_holder {
    uint32_t number, users;
};

/* Return the number of @h, 0 if it is NULL. */
static inline uint32_t vhca_holder_number(const struct vhca_holder *h)
{
    return h ? h->number : 0;
}

/*
 * Handle ALLOC of an object of @size bytes, zeroed, or DEALLOC of the object
 * that the command names. Both return enum qhca_cmd_status.
 */
int vhca_holder_alloc(struct vhca_table *t, size_t size,
                      struct vhca_cmd_ctx *c);
int vhca_holder_dealloc(struct vhca_table *t, struct vhca_cmd_ctx *c);
/* Free all objects, for a reset. */
void vhca_holder_free_all(struct vhca_table *t);

#endif /* QHCA_ENGINE_CORE_HOLDER_H */
