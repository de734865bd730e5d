/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca front ends: a capture of the frames that a port sends to itself, which
 * no network sees.
 */
#ifndef QHCA_COMMON_CAPTURE_H
#define QHCA_COMMON_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* struct qhca_capture - a capture; @fd: of its file, or -1 if there is none */
struct qhca_capture {
    int fd;
};

/*
 * Begin the file @fd, which is empty and which qhca_capture_end() closes, for
 * the port of device @id. Returns false with errno set; then nothing more will
 * be written.
 */
bool qhca_capture_begin(struct qhca_capture *c, int fd, const char *id);
/*
 * Append a frame of at most VHCA_MAX_FRAME bytes that was sent @us microseconds
 * after the beginning of 1970. Without a file nothing happens. Returns false
 * with errno set; then nothing more will be written.
 */
bool qhca_capture_frame(struct qhca_capture *c, uint64_t us,
                        const uint8_t *frame, size_t len);
/* Close the file, if there is one. */
void qhca_capture_end(struct qhca_capture *c);

#endif /* QHCA_COMMON_CAPTURE_H */
