/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of just moving frames over a stream socket, as -netdev stream does,
 * which limits two machines: CPU time of both sides for a frame, with one or
 * several frames in a system call.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME       4174        /* WRITE over IPv4 with 4 KiB */
#define FRAMES      200000
#define MAX_BATCH   64
#define READ        (4096 + 65536)      /* size of QEMU's reads */

static char frame[FRAME], buf[READ];

static double cpu_us(int who)
{
    struct rusage r;

    getrusage(who, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void must(bool done, const char *what)
{
    if (!done) {
        perror(what);
        exit(1);
    }
}

static void send_all(int fd, int batch)
{
    struct iovec iov[2 * MAX_BATCH];
    uint32_t len = htonl(FRAME);
    ssize_t whole = batch * (ssize_t)(sizeof(len) + FRAME);

    for (int i = 0; i < batch; i++) {
        iov[2 * i] = (struct iovec) { &len, sizeof(len) };
        iov[2 * i + 1] = (struct iovec) { frame, FRAME };
    }
    for (int i = 0; i < FRAMES; i += batch) {
        must(writev(fd, iov, 2 * batch) == whole, "writev");
    }
}

static void measure(int batch)
{
    double mine = cpu_us(RUSAGE_SELF), theirs = cpu_us(RUSAGE_CHILDREN);
    int fd[2];

    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd), "socketpair");
    if (!fork()) {
        close(fd[0]);
        while (read(fd[1], buf, sizeof(buf)) > 0) {
            continue;
        }
        _exit(0);
    }
    close(fd[1]);
    send_all(fd[0], batch);
    close(fd[0]);
    wait(NULL);
    mine = cpu_us(RUSAGE_SELF) - mine;
    theirs = cpu_us(RUSAGE_CHILDREN) - theirs;
    printf("%2d frames at once: sender %.2f us, receiver %.2f us for each\n",
           batch, mine / FRAMES, theirs / FRAMES);
}

int main(void)
{
    measure(1);
    measure(16);
    return 0;
}
