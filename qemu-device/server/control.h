/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: what the operator can ask while it runs.
 *
 * A part of QMP, so that the same clients and commands work as with a device in
 * QEMU: qom-get and qom-set of /machine/peripheral/ID, qom-list, set_link.
 */
#ifndef QHCA_SERVER_CONTROL_H
#define QHCA_SERVER_CONTROL_H

#include <poll.h>

#include "hca.h"

struct control;

/* One that listens, and connections. */
#define CONTROL_FDS     (1 + CONTROL_CLIENTS)
#define CONTROL_CLIENTS 8

/* @path may be NULL. Returns NULL after a message. */
struct control *control_new(const char *path, struct hca **hca, unsigned num);
void control_free(struct control *c);
/* Fill in what there is to poll; returns how many. */
unsigned control_poll(const struct control *c, struct pollfd *fds);
/* Returns when to call it, and control_poll(), again, as hca_work(). */
uint64_t control_watch(struct control *c, uint64_t now);
/* Serve the file descriptors that control_poll() has filled in. */
void control_input(struct control *c, const struct pollfd *fds);

#endif /* QHCA_SERVER_CONTROL_H */
