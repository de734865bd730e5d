/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: frames that are sent whole, for the network to cut.
 */
#ifndef QHCA_TESTS_LONG_H
#define QHCA_TESTS_LONG_H

#include "harness.h"

/* The engine's send_long(): checks that the frame is what it is said to be. */
bool long_send(void *opaque, const uint8_t *frame, size_t len,
               const struct qhca_long_frame *how);
/*
 * A guest's take_long(): sends what Linux makes of the frame, unless the
 * network takes nothing now.
 */
bool long_cut(struct guest *g, const uint8_t *frame, size_t len,
              const struct qhca_long_frame *how);

#endif /* QHCA_TESTS_LONG_H */
