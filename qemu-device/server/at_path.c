/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: addresses of UNIX sockets.
 *
 * A server leaves its sockets, for it may not remove files any more when it
 * ends, if it is asked at all. The next one replaces them.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "at_path.h"

/* For how long to try to get a lock: another server has it for a moment. */
#define LOCK_TRIES      100
#define LOCK_WAIT_US    10000

bool at_path(int fd, const char *path,
             int (*act)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    /* An empty one would be a name without a file. */
    if (!*path || strlen(path) >= sizeof(addr.sun_path)) {
        errno = *path ? ENAMETOOLONG : ENOENT;
        return false;
    }
    strcpy(addr.sun_path, path);
    return !act(fd, (struct sockaddr *)&addr, sizeof(addr));
}

/*
 * Return whether it is a socket that no process has. The kernel looks for the
 * process before it looks at the type, so connecting with a type that no server
 * uses tells, and a server that is there does not notice.
 */
static bool is_left(const char *path)
{
    struct stat st;
    bool left;
    int fd;

    if (lstat(path, &st) || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    left = fd >= 0 && !at_path(fd, path, connect) && errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return left;
}

int at_path_clear(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (unsigned i = 0; lock >= 0 && flock(lock, LOCK_EX | LOCK_NB); i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES) {
            close(lock);
            return -1;          /* what is there stays, and is in use */
        }
        g_usleep(LOCK_WAIT_US);
    }
    if (lock >= 0 && is_left(path)) {
        unlink(path);
    }
    return lock;
}

void at_path_done(int lock)
{
    if (lock >= 0) {
        close(lock);
    }
}
