/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: doorbells in memory. */
#ifndef QHCA_TESTS_SHADOW_H
#define QHCA_TESTS_SHADOW_H

#include "rc.h"

/* Pages of the guest that have doorbells in memory, and slots of each. */
#define SHADOW_PAGES    4
#define SHADOW_SLOTS    384

/* struct shadow - doorbells in memory; @key: what each slot is used for */
struct shadow {
    struct guest *g;
    unsigned page;
    struct gbuf buf;
    uint64_t key[SHADOW_SLOTS];
    unsigned used;
};

/* CREATE_SHADOW; returns its status. */
int shadow_create(struct guest *g, const struct gbuf *buf, unsigned page,
                  unsigned slots);
/* Gives page @page doorbells in memory; the command must succeed. */
void shadow_start(struct shadow *s, struct guest *g, unsigned page,
                  unsigned slots);
/* The doorbell at @off, as a slot has it. */
uint64_t shadow_doorbell(unsigned off, uint32_t obj, uint32_t index);
struct qhca_shadow *shadow_header(struct shadow *s);
__le64 *shadow_slot(struct shadow *s, unsigned slot);
/* Writes @val to @slot as a driver does. True: the device wants a doorbell. */
bool shadow_write(struct shadow *s, unsigned slot, uint64_t val);
/* shadow_write() for all WRs of @q. */
bool shadow_ring_sq(struct shadow *s, unsigned slot, const struct rc_qp *q);
/* Sets all bits of @look and @rung. */
void shadow_flood(struct shadow *s);
/* Rings the doorbell by which a guest asks. */
void shadow_ask(struct shadow *s);
/* Lets the device look, and do what it finds; whether it has found anything. */
bool shadow_look(struct guest *g);

/* All pages of a guest, if it uses this; guest_enable() calls it. */
void shadow_setup(struct guest *g);
/* Rings in memory; false: the guest does not, or this doorbell cannot. */
bool shadow_ring(struct guest *g, unsigned page, unsigned off, uint64_t val);

#endif /* QHCA_TESTS_SHADOW_H */
