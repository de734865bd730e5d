/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: tell its starter that it is ready; sd_notify(3).
 *
 * The connection is made before the server is ready, when it may still make
 * some. The server also works if the message does not arrive.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "notify.h"

int notify_open(void)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    int fd = -1;

    if (!len) {
        return -1;
    }
    errno = ENAMETOOLONG;
    if (len < sizeof(addr.sun_path)) {
        memcpy(addr.sun_path, path, len);
        if (path[0] == '@') {
            addr.sun_path[0] = '\0';        /* a name without a file */
        }
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    len += offsetof(struct sockaddr_un, sun_path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, (socklen_t)len)) {
        fprintf(stderr, "qhca-server: NOTIFY_SOCKET=%s: %s\n", path,
                strerror(errno));
    }
    return fd;
}

void notify_ready(int fd)
{
    static const char text[] = "READY=1";

    if (fd >= 0) {
        (void)!write(fd, text, sizeof(text) - 1);
        close(fd);
    }
}
