/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: addresses of UNIX sockets. */
#ifndef QHCA_SERVER_AT_PATH_H
#define QHCA_SERVER_AT_PATH_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Connect or bind @fd to a path: @act is connect() or bind(). Sets errno. */
static inline bool at_path(int fd, const char *path,
                           int (*act)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(addr.sun_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(addr.sun_path, path);
    return !act(fd, (struct sockaddr *)&addr, sizeof(addr));
}

#endif /* QHCA_SERVER_AT_PATH_H */
