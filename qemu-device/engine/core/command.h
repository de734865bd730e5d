/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what the handlers of commands work with. */
#ifndef QHCA_ENGINE_CORE_COMMAND_H
#define QHCA_ENGINE_CORE_COMMAND_H

#include "mem.h"

/*
 * What a command handler works with. @cmd was read from guest memory once.
 * @mbox holds the mailbox, zeroed: read before the handler runs for opcodes
 * with an "in" mailbox, written after success for those with "out".
 */
struct vhca_cmd_ctx {
    const struct qhca_cmd *cmd;
    uint8_t *mbox;
    uint32_t obj;               /* answer: object number */
    /* Kept from one call to the next: */
    bool again;                 /* not the first one */
    uint32_t from, done;        /* the handler's own */
    struct vhca_import import[2];   /* not taken: dropped with the command */
};

/* What a handler returns, besides enum qhca_cmd_status. */
#define QHCA_AGAIN      (-1)

/*
 * The handlers of the commands, each where its objects are; vhca_do_nop() is
 * that of NOP. One that the budget does not do for returns QHCA_AGAIN: then it
 * is called again later, and checks anew what may have changed.
 */
#define QHCA_COMMAND(id, name, ...) \
    int vhca_do_##name(struct qhca_engine *e, struct vhca_cmd_ctx *c);
#include "qhca/commands.def"

#endif /* QHCA_ENGINE_CORE_COMMAND_H */
