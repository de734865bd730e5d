/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: saved states that somebody has edited who knows which
 * field is where. The engine's own walk tells: each call that writes a field is
 * wrapped (meson.build).
 */
#ifndef QHCA_TESTS_FIELDS_H
#define QHCA_TESTS_FIELDS_H

#include "harness.h"

enum {
    FIELD_SET,                  /* to @value */
    FIELD_ADD,                  /* @value to it */
    FIELD_LAST,                 /* to the largest value that its row allows */
    FIELD_COPY,                 /* field number @value into it */
    FIELD_HOWS,
    /*
     * The object is changed while it is being saved, so that what is written
     * behind the field, such as the elements it counts, follows.
     */
    FIELD_IN_OBJECT = 0x80,
};

/* struct field_edit - field number @which, of however many there are */
struct field_edit {
    uint32_t which;
    uint8_t how;
    uint64_t value;
};

/*
 * Saves @g, whose engine stays as it is, with @n edits; the CRC is right. The
 * result is valid until the next call.
 */
uint8_t *fields_save(struct guest *g, const struct field_edit *edits,
                     unsigned n, size_t *len);
/* Number of the field @name in @section, the @nth of that name; or fails. */
uint32_t fields_find(struct guest *g, const char *section, const char *name,
                     unsigned nth);
/* How many fields of that name there are. */
unsigned fields_count(struct guest *g, const char *section, const char *name);

#endif /* QHCA_TESTS_FIELDS_H */
