/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: saved states in which single fields are edited. The calls
 * with which the engine saves a field are wrapped (meson.build), and so tell
 * where each field is.
 */
#ifndef QHCA_TESTS_FIELDS_H
#define QHCA_TESTS_FIELDS_H

#include "harness.h"

enum {
    FIELD_SET,                  /* set it to @value */
    FIELD_ADD,                  /* add @value to it */
    FIELD_LAST,                 /* set it to the largest value its row allows */
    FIELD_COPY,                 /* copy field number @value to it */
    FIELD_HOWS,
    /*
     * Edit the object while it is being saved, so that what is written after
     * the field, such as the elements it counts, is consistent with it.
     */
    FIELD_IN_OBJECT = 0x80,
};

/* struct field_edit - an edit of field number @which, modulo their number */
struct field_edit {
    uint32_t which;
    uint8_t how;
    uint64_t value;
};

/*
 * Saves @g's engine, which does not change, with @n edits and a correct CRC.
 * The result is valid until the next call.
 */
uint8_t *fields_save(struct guest *g, const struct field_edit *edits,
                     unsigned n, size_t *len);
/* Number of the @nth field @name in @section, which must exist. */
uint32_t fields_find(struct guest *g, const char *section, const char *name,
                     unsigned nth);
/* How many fields of that name there are. */
unsigned fields_count(struct guest *g, const char *section, const char *name);

#endif /* QHCA_TESTS_FIELDS_H */
