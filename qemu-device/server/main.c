/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: its command line and its loop. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "control.h"
#include "hca.h"
#include "keeper.h"
#include "notify.h"
#include "options.h"
#include "sandbox.h"

#define MAX_FDS     (NET_MAX_PORTS + 2 + CONTROL_FDS)
/* So many a machine can make the server have; others come with a message. */
#define MACHINE_FDS 650

/* Rounds of work for all HCAs before there is a look at input. */
#define WORK_ROUNDS 16

/* How long to look for more doorbells in memory after the last one. */
#define POLL_NS     50000
/* How long to leave the CPU to a process that needed it for so long. */
#define SHY_NS      100000000
#define NEEDED_NS   1000000
/* How long it may take until a store of a guest is visible. */
#define SETTLE_NS   1000000

struct server {
    struct hca *hca[NET_MAX_PORTS];
    unsigned num;
    struct net *net;
    struct control *control;
    int signals;
    uint64_t looked, cpu;       /* time, and CPU time, at the last look */
    uint64_t shy;               /* until then do not look for long */
    uint64_t settled;           /* what was rung before rest() is visible */
};

/* Messages are not to end in whatever is opened next: sockets above all. */
static void open_standard(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static int open_signals(void)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/*
 * Each machine needs many: its memory, interrupts, connection. The kernel
 * closes those that a machine sends beyond the limit, and the server waits for
 * that.
 */
static void allow_fds(unsigned machines)
{
    const rlim_t most = (rlim_t)machines * MACHINE_FDS;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit)) {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < most) {
        fprintf(stderr, "qhca-server: the limit of file descriptors is %llu: "
                "with less than %llu a machine can hold up others\n",
                (unsigned long long)limit.rlim_max, (unsigned long long)most);
    }
}

static bool start(struct server *s, const struct options *o)
{
    s->net = net_new();
    if (o->uplink && !net_uplink(s->net, o->uplink, o->aggregate)) {
        return false;
    }
    for (unsigned i = 0; i < o->num; i++) {
        s->hca[s->num++] = o->hca[i];
        if (!net_plug(s->net, o->hca[i]) || !hca_start(o->hca[i])) {
            return false;
        }
    }
    s->control = control_new(o->control, s->hca, s->num);
    return s->control;
}

/* Of a sandbox, in which threads begin without capabilities. */
static bool start_threads(struct server *s)
{
    bool ok = true;

    for (unsigned i = 0; i < s->num; i++) {
        ok = ok && hca_start_threads(s->hca[i]);
    }
    return ok;
}

/*
 * Work for all until nothing is due, or for a while: two machines can keep each
 * other busy, and there is input of others. Returns when something will be due.
 */
static uint64_t work(struct server *s)
{
    struct hca *hca;
    unsigned rounds = 0;
    uint64_t next, at;
    bool again;

    do {
        next = net_uplink_watch(s->net, hca_now());
        next = MIN(next, control_watch(s->control, hca_now()));
        again = false;
        for (unsigned i = 0; i < s->num; i++) {
            at = hca_work(s->hca[i]);
            next = MIN(next, at);
        }
        net_uplink_push(s->net);
        /* The work of one may be for another that has had its turn. */
        for (unsigned i = 0; i < s->num; i++) {
            hca = s->hca[i];
            again |= hca->host.todo || (hca->host.irqs && hca->attached);
        }
    } while (again && next && ++rounds < WORK_ROUNDS);
    return again ? 0 : next;
}

static bool any_awake(const struct server *s)
{
    bool awake = false;

    for (unsigned i = 0; i < s->num; i++) {
        awake |= s->hca[i]->awake;
    }
    return awake;
}

/*
 * Whether there is a CPU to look with. Where the guests' CPUs need it, the
 * doorbell by which they ask wakes the server sooner than its next turn would.
 */
static bool has_cpu(struct server *s, uint64_t now)
{
    uint64_t cpu = hca_clock(CLOCK_THREAD_CPUTIME_ID);

    if (s->looked && now - s->looked > cpu - s->cpu + NEEDED_NS) {
        s->shy = now + SHY_NS;
    }
    s->looked = now;
    s->cpu = cpu;
    return now >= s->shy;
}

/* Whether a guest has rung in memory, and is likely to do so again soon. */
static bool is_rung(const struct server *s, uint64_t now)
{
    bool rung = false;

    for (unsigned i = 0; i < s->num; i++) {
        rung |= s->hca[i]->awake && s->hca[i]->rung + POLL_NS > now;
    }
    return rung;
}

static bool rest(struct server *s)
{
    bool idle = true;

    for (unsigned i = 0; i < s->num; i++) {
        idle &= hca_rest(s->hca[i]);
    }
    return idle;
}

/*
 * Return until when to wait for input if there is work at @next. After a guest
 * has rung in memory the server looks on for a while. QEMU emulates locked
 * instructions of a machine with one CPU without a barrier, so before a long
 * wait there is a short one, after which everything that was rung is visible.
 */
static uint64_t wait_until(struct server *s, uint64_t next)
{
    uint64_t now = hca_now();

    if (!next) {
        return next;
    }
    if (any_awake(s)) {
        if (has_cpu(s, now) && is_rung(s, now)) {
            return 0;
        }
        s->looked = 0;          /* it may wait now */
        s->settled = now + SETTLE_NS;
        if (!rest(s)) {
            return 0;
        }
    }
    return now < s->settled ? MIN(next, s->settled) : next;
}

static unsigned gather(struct server *s, struct pollfd *fds)
{
    unsigned num = 0;

    fds[num++] = (struct pollfd) { s->signals, POLLIN, 0 };
    fds[num].fd = net_uplink_fd(s->net, &fds[num].events);
    num++;
    for (unsigned i = 0; i < s->num; i++) {
        hca_poll(s->hca[i], &fds[num++]);
    }
    return num + control_poll(s->control, fds + num);
}

static void serve(struct server *s)
{
    struct pollfd fds[MAX_FDS];
    struct timespec wait;
    uint64_t next, now;
    unsigned num;

    for (;;) {
        next = wait_until(s, work(s));
        now = hca_now();
        next = next > now ? next - now : 0;
        wait.tv_sec = (time_t)MIN(next / 1000000000u, 3600);
        wait.tv_nsec = (long)(next % 1000000000u);
        num = gather(s, fds);
        if (ppoll(fds, num, &wait, NULL) < 0 && errno != EINTR) {
            fprintf(stderr, "qhca-server: poll: %s\n", g_strerror(errno));
            return;
        }
        if (fds[0].revents) {
            return;
        }
        if (fds[1].revents) {
            net_uplink_input(s->net, fds[1].revents);
        }
        for (unsigned i = 0; i < s->num; i++) {
            if (fds[2 + i].revents) {
                hca_input(s->hca[i]);
            }
        }
        control_input(s->control, fds + 2 + s->num);
    }
}

static void stop(struct server *s)
{
    control_free(s->control);
    /* The end of a connection can have effects on other HCAs. */
    for (unsigned i = 0; i < s->num; i++) {
        hca_pci_exit(s->hca[i]);
    }
    for (unsigned i = 0; i < s->num; i++) {
        hca_stop(s->hca[i]);
    }
    net_free(s->net);
}

int main(int argc, char **argv)
{
    struct server server = { 0 };
    struct options options;
    int notify;
    bool ok;

    open_standard();
    if (!options_parse(&options, argc, argv)) {
        return 2;
    }
    allow_fds(options.num);
    if (!keeper_start()) {
        return 1;
    }
    server.signals = open_signals();
    notify = notify_open();
    ok = start(&server, &options) && sandbox_enter() && start_threads(&server);
    if (ok) {
        printf("ready\n");
        fflush(stdout);
        notify_ready(notify);
        serve(&server);
    }
    stop(&server);
    return ok ? 0 : 1;
}
