/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: a process that sees to the connections when the server is gone.
 *
 * If a server is killed, or crashes, the kernel closes its connections, and
 * unread data turns the end of a connection into an error at the other end.
 * QEMU 11.1 fails an assertion then, and the machine would go with its adapter.
 * The keeper also has the connections, so they are not closed before it has
 * read what there is.
 */
#ifndef QHCA_SERVER_KEEPER_H
#define QHCA_SERVER_KEEPER_H

#include <stdbool.h>

/* Start it, before any other file or thread. Returns false after a message. */
bool keeper_start(void);
/* Let it have a connection; it forgets one that either end has shut down. */
void keeper_give(int fd);

#endif /* QHCA_SERVER_KEEPER_H */
