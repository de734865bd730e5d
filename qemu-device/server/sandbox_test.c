/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: what its sandbox lets a process do, and what not.
 *
 * Each line of TAP is a process that enters the sandbox and makes one call.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox.h"

/* Objects of the process from before: a file, sockets of each kind, a page. */
static int file, dgram, listener;
static void *page;
static struct sockaddr_un addr = { .sun_family = AF_UNIX };

static long mapped(void *at)
{
    return at == MAP_FAILED ? -1 : 0;
}

static long try_open(void)
{
    return open("/dev/null", O_RDONLY);
}

static long try_create(void)
{
    return openat(AT_FDCWD, "sandbox_test.tmp", O_CREAT | O_WRONLY, 0600);
}

static long try_unlink(void)
{
    return unlink(addr.sun_path);
}

static long try_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long try_connect(void)
{
    return connect(dgram, (struct sockaddr *)&addr, sizeof(addr));
}

static long try_bind(void)
{
    return bind(dgram, (struct sockaddr *)&addr, sizeof(addr));
}

static long try_sendto(void)
{
    return sendto(dgram, "x", 1, 0, (struct sockaddr *)&addr, sizeof(addr));
}

static long try_tun(void)
{
    return ioctl(file, TUNSETIFF, page);
}

static long try_owner(void)
{
    return fcntl(dgram, F_SETOWN, getppid());
}

static long try_code(void)
{
    return mapped(mmap(NULL, 4096, PROT_READ | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static long try_protect(void)
{
    return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static long try_fork(void)
{
    return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_fork3(void)
{
    struct clone_args args = { .exit_signal = SIGCHLD };

    return syscall(SYS_clone3, &args, sizeof(args));
}

static long try_exec(void)
{
    return execl("/bin/true", "true", NULL);
}

static long try_kill(void)
{
    return kill(getppid(), 0);
}

static long try_ptrace(void)
{
    return ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static long try_uring(void)
{
    return syscall(SYS_io_uring_setup, 1, page);
}

static long try_dumpable(void)
{
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void *open_in_thread(void *opened)
{
    *(long *)opened = try_open();
    return (void *)(long)errno;
}

/* A thread can be started, and what it may is the same. */
static long try_thread(void)
{
    pthread_t thread;
    long opened = 0;
    void *error;

    if (pthread_create(&thread, NULL, open_in_thread, &opened)) {
        errno = ECHILD;
        return -1;
    }
    pthread_join(thread, &error);
    errno = (int)(long)error;
    return opened;
}

static long try_memory(void)
{
    void *much = malloc(64 << 20);
    long ret = much ? 0 : -1;

    free(much);
    return ret ? ret : mapped(mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                   MAP_SHARED, file, 0));
}

static long try_accept(void)
{
    return accept(listener, NULL, NULL);
}

static long try_filter(void)
{
    struct sock_filter all = { .code = BPF_RET | BPF_K, .k = 0xffff };
    struct sock_fprog prog = { .len = 1, .filter = &all };

    return setsockopt(dgram, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static long try_timeout(void)
{
    const struct timeval limit = { .tv_usec = 1000 };

    return setsockopt(dgram, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static long try_memfd(void)
{
    return memfd_create("test", MFD_CLOEXEC);
}

static long try_abort(void)
{
    abort();
}

static const struct attempt {
    const char *what;
    long (*call)(void);
    int error, signal;          /* how it ends; neither: it succeeds */
} attempts[] = {
    { "open a file", try_open, EPERM, 0 },
    { "create a file", try_create, EPERM, 0 },
    { "remove a file", try_unlink, EPERM, 0 },
    { "get a socket", try_socket, EPERM, 0 },
    { "connect a socket", try_connect, EPERM, 0 },
    { "bind a socket", try_bind, EPERM, 0 },
    { "send to an address", try_sendto, EPERM, 0 },
    { "give a socket a program", try_filter, EPERM, 0 },
    { "become an interface", try_tun, EPERM, 0 },
    { "have signals sent", try_owner, EPERM, 0 },
    { "map code", try_code, EPERM, 0 },
    { "make memory code", try_protect, EPERM, 0 },
    { "start a process", try_fork, EPERM, 0 },
    { "start a process by clone3", try_fork3, ENOSYS, 0 },
    { "start a program", try_exec, 0, SIGSYS },
    { "send a signal", try_kill, EPERM, 0 },
    { "trace", try_ptrace, EPERM, 0 },
    { "use io_uring", try_uring, EPERM, 0 },
    { "be traced", try_dumpable, EPERM, 0 },
    { "open a file in a thread", try_thread, EPERM, 0 },
    { "have memory", try_memory, 0, 0 },
    { "accept a connection", try_accept, EAGAIN, 0 },
    { "limit how long to send", try_timeout, 0, 0 },
    { "make memory for others", try_memfd, 0, 0 },
    { "abort", try_abort, 0, SIGABRT },
};

static void prepare(void)
{
    snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/sandbox_test.%d",
             (int)getpid());
    file = memfd_create("file", 0);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    dgram = socket(AF_UNIX, SOCK_DGRAM, 0);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file < 0 || ftruncate(file, 4096) || listener < 0 || dgram < 0 ||
        page == MAP_FAILED ||
        bind(listener, (struct sockaddr *)&addr, sizeof(addr)) ||
        listen(listener, 1)) {
        perror("Bail out!");
        exit(2);
    }
}

static bool is_right(const struct attempt *attempt)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        /* An error number, or 0; 255: not even the sandbox. */
        _exit(!sandbox_enter() ? 255 : attempt->call() < 0 ? errno : 0);
    }
    if (waitpid(pid, &status, 0) < 0) {
        return false;
    }
    if (attempt->signal) {
        return WIFSIGNALED(status) && WTERMSIG(status) == attempt->signal;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == attempt->error;
}

int main(void)
{
    const unsigned num = sizeof(attempts) / sizeof(attempts[0]);
    bool good = true;

    prepare();
    printf("1..%u\n", num);
    for (unsigned i = 0; i < num; i++) {
        bool right;

        fflush(stdout);
        right = is_right(&attempts[i]);
        printf("%sok %u - %s\n", right ? "" : "not ", i + 1, attempts[i].what);
        good &= right;
    }
    unlink(addr.sun_path);
    return good ? 0 : 1;
}
