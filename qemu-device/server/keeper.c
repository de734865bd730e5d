/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: what is left of connections when the server is gone. */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper.h"
#include "port.h"
#include "sandbox.h"

/* A port can have its next connection before the last one is forgotten. */
#define KEEPER_MAX      (2 * NET_MAX_PORTS)

static int keeper = -1;
static int ended;           /* a connection was; see close_one() */

/*
 * A message is one byte, and a file descriptor: @fd, or -1 if this process can
 * have no more of them. Returns false if there are no more messages.
 */
static bool receive(int from, int *fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    char byte;
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control.buf, .msg_controllen = sizeof(control.buf),
    };

    *fd = -1;
    if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != 1) {
        return false;
    }
    if (CMSG_FIRSTHDR(&msg)) {
        memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*fd));
    }
    return true;
}

/* The other end reads what was sent to it, and that this is all. */
static gpointer finish(gpointer opaque)
{
    int fd = GPOINTER_TO_INT(opaque);
    char buf[65536];
    ssize_t num;

    shutdown(fd, SHUT_RDWR);
    do {
        num = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
    } while (num > 0);
    close(fd);
    return NULL;
}

/*
 * A connection can still hold file descriptors that a machine has sent and
 * whose close() waits, so each ends in a thread of its own.
 */
static void finish_all(const struct pollfd *fds, unsigned num)
{
    GThread *threads[KEEPER_MAX];

    for (unsigned i = 0; i < num; i++) {
        threads[i] = g_thread_try_new("finish", finish,
                                      GINT_TO_POINTER(fds[i].fd), NULL);
    }
    for (unsigned i = 0; i < num; i++) {
        if (threads[i]) {
            g_thread_join(threads[i]);
        } else {
            finish(GINT_TO_POINTER(fds[i].fd));
        }
    }
}

/*
 * Close file descriptor @next - 1, later: the server may have done so already.
 * Both ends know that it is over. A pool takes no NULL.
 */
static void close_one(gpointer next, gpointer opaque)
{
    (void)opaque;
    /* For ThreadSanitizer, which does not know the locks of the pool. */
    g_assert(g_atomic_int_get(&ended));
    close(GPOINTER_TO_INT(next) - 1);
}

static void keep(int from)
{
    struct pollfd fds[1 + KEEPER_MAX] = { { from, POLLIN, 0 } };
    GThreadPool *closer = g_thread_pool_new(close_one, NULL, 1, TRUE, NULL);
    unsigned num = 1, left;
    int fd;

    for (;;) {
        if (poll(fds, num, -1) < 0 && errno != EINTR) {
            return;
        }
        fd = -1;
        if (fds[0].revents && !receive(from, &fd)) {
            break;
        }
        left = 1;
        for (unsigned i = 1; i < num; i++) {
            if (fds[i].revents) {
                g_atomic_int_set(&ended, true);
                g_thread_pool_push(closer, GINT_TO_POINTER(fds[i].fd + 1),
                                   NULL);
            } else {
                fds[left++] = fds[i];
            }
        }
        num = left;
        if (fd >= 0 && num < 1 + KEEPER_MAX) {
            fds[num++] = (struct pollfd) { fd, 0, 0 };
        } else if (fd >= 0) {
            close(fd);
        }
    }
    finish_all(fds + 1, num - 1);
}

/* The server's end is the keeper's; a signal is for the server. */
static void be_keeper(int from)
{
    bool safe = sandbox_enter();

    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        close(fd);
    }
    if (safe) {
        keep(from);
    }
    _exit(0);
}

bool keeper_start(void)
{
    int pair[2] = { -1, -1 };
    pid_t pid = -1;

    if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        pid = fork();
    }
    if (!pid) {
        close(pair[0]);
        be_keeper(pair[1]);
    }
    if (pid < 0) {
        fprintf(stderr, "qhca-server: keeper: %s\n", strerror(errno));
        return false;
    }
    close(pair[1]);
    keeper = pair[0];
    return true;
}

/* Without a keeper, or if it does not read, the server works as well. */
void keeper_give(int fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { 0 };
    char byte = 0;
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control.buf, .msg_controllen = sizeof(control.buf),
    };
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    sendmsg(keeper, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}
