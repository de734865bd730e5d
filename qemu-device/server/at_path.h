/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: addresses of UNIX sockets. */
#ifndef QHCA_SERVER_AT_PATH_H
#define QHCA_SERVER_AT_PATH_H

#include <stdbool.h>
#include <sys/socket.h>

/* Connect or bind @fd to a path: @act is connect() or bind(). Sets errno. */
bool at_path(int fd, const char *path,
             int (*act)(int, const struct sockaddr *, socklen_t));
/*
 * Before a socket is bound to @path: remove one that no process has, which a
 * server that is gone has left there. Until at_path_done() gets what this
 * returns, no other server does the same in that directory.
 */
int at_path_clear(const char *path);
void at_path_done(int lock);

#endif /* QHCA_SERVER_AT_PATH_H */
