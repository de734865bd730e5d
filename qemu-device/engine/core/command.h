/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what handlers of commands and doorbells are called with. */
#ifndef QHCA_ENGINE_CORE_COMMAND_H
#define QHCA_ENGINE_CORE_COMMAND_H

#include "mem.h"

/*
 * struct vhca_cmd_ctx - a command being executed. @cmd was read from guest
 * memory once. @mbox holds the mailbox, zeroed: read before the handler runs
 * for opcodes with an "in" mailbox, written after success for those with "out".
 */
struct vhca_cmd_ctx {
    const struct qhca_cmd *cmd;
    uint8_t *mbox;
    uint32_t obj;               /* answer: object number */
    /* Kept between the calls of a handler that returns VHCA_AGAIN: */
    bool again;                 /* this is not the first call */
    uint32_t from, done;        /* progress, for the handler to use */
    struct vhca_import import[2];   /* freed after the command if still here */
};

/* A handler returns enum qhca_cmd_status, or this. */
#define VHCA_AGAIN      (-1)

/*
 * The handlers of the commands, each in the room of its objects; vhca_do_nop()
 * handles NOP. A handler that runs out of budget returns VHCA_AGAIN. It is then
 * called again later, and has to check again whatever may have changed.
 */
#define QHCA_COMMAND(id, name, ...) \
    int vhca_do_##name(struct qhca_engine *e, struct vhca_cmd_ctx *c);
#include "qhca/commands.def"

/*
 * struct vhca_db - a write to a doorbell of page @page. The functions that take
 * it return false if there is no such object on that page, or if @index is out
 * of range.
 */
struct vhca_db {
    unsigned page;
    uint32_t obj, index;
    bool solicited;             /* CQ_ARM: for a solicited or failed CQE only */
};

#endif /* QHCA_ENGINE_CORE_COMMAND_H */
