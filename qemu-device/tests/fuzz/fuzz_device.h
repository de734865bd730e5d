/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: commands, WQEs and doorbells of a guest as inputs.
 */
#ifndef QHCA_TESTS_FUZZ_DEVICE_H
#define QHCA_TESTS_FUZZ_DEVICE_H

#include "fuzz.h"
#include "inputs.h"

#define DEVICE_RECORDS  200     /* per session, at most */

enum device_kind {
    DEVICE_COMMAND,             /* struct qhca_cmd, then its mailbox */
    DEVICE_SEND,                /* a send WQE; aim: QP, owner of the keys */
    DEVICE_RECV,                /* SGEs of a receive WQE */
    DEVICE_DOORBELL,            /* struct device_doorbell */
    DEVICE_TABLE,               /* block addresses; aim: the command for them */
    DEVICE_TIME,                /* time passes: the length in microseconds */
    DEVICE_KINDS
};

#define DEVICE_FIX_OPCODE   0x01    /* one that exists */
#define DEVICE_FIX_OBJ      0x02    /* numbers and keys that exist */
#define DEVICE_FIX_ADDR     0x04    /* mailbox, memory, page */
#define DEVICE_FIX_COUNT    0x08    /* number of SGEs and bytes; index */
#define DEVICE_FIX_BUF      0x10    /* rings and regions */
#define DEVICE_FIX_ALL      0x1f

/* struct device_doorbell - all fields are little-endian */
struct device_doorbell {
    uint16_t page, off;
    uint32_t obj, index;
};

/* Memory for tables, and for the pages in them. */
#define DEVICE_PAGES    32u

/* struct device - the guest, and the address of those pages */
struct device {
    struct fuzz f;
    uint64_t pages;
};

/* An object of enum fuzz_kind @kind, or @which if there is none. */
uint32_t device_one_of(const struct fuzz *f, unsigned kind, uint32_t which);
/* Plays a record of kind DEVICE_COMMAND. */
void device_command(struct device *d, const struct record *r,
                    const uint8_t *data, size_t len);
/* Plays the records on a new device; returns how much passed the checks. */
uint64_t device_session(const uint8_t *data, size_t size);
bool device_has_data(uint8_t kind);
/* The engine's command opcodes, by number; there are about fifty. */
unsigned device_opcode(unsigned n);

#endif /* QHCA_TESTS_FUZZ_DEVICE_H */
