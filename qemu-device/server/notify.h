/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: tell its starter that it is ready; sd_notify(3). */
#ifndef QHCA_SERVER_NOTIFY_H
#define QHCA_SERVER_NOTIFY_H

/* Connect to $NOTIFY_SOCKET. Returns -1 if there is none. */
int notify_open(void);
/* All sockets are there. Closes @fd. */
void notify_ready(int fd);

#endif /* QHCA_SERVER_NOTIFY_H */
