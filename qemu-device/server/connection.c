/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: the connection of a machine.
 *
 * libvfio-user waits for the rest of a message once it has begun to read it,
 * and so would all other machines. It is called only for a message that has
 * arrived, and for the first one, which it reads while it accepts a connection,
 * in a thread that has nothing else to do. A machine that does not go on, or
 * does not take its answers, loses its connection.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "hca.h"
#include "keeper.h"

/* How long a message may take to arrive, and how often to look. */
#define PARTIAL_NS      1000000000u
#define PARTIAL_LOOK_NS 10000000u
/* How long a machine may take for an answer. */
#define ANSWER_US       100000
/* QEMU sends some hundred bytes. */
#define LONGEST_MESSAGE 65536u
/* Bytes of answers that wait for the machine to read them. */
#define MOST_UNREAD     65536
/* File descriptors that wait to be closed. */
#define MOST_CLOSING    256
/*
 * Memory that waits to be unmapped: one for each mapping, and for each 4 GiB,
 * for there may be as much as there is address space. With more the machine
 * also waits.
 */
#define MOST_UNMAPPING  64
#define UNMAP_SHIFT     32
/* Bytes to unmap in one step, while no other thread can map any. */
#define UNMAP_STEP      (32u << 20)
/* Messages for one machine before the others have a turn. */
#define MESSAGES        64

static void attach(gpointer data, gpointer opaque)
{
    struct hca *hca = opaque;
    uint64_t one = 1;

    (void)data;
    /* Also for ThreadSanitizer, which does not know the locks of the pool. */
    g_assert(g_atomic_int_get(&hca->attaching));
    hca->error = vfu_attach_ctx(hca->vfu) ? errno : 0;
    if (write(hca->attach_fd, &one, sizeof(one)) < 0) {
        g_error("eventfd: %s", g_strerror(errno));
    }
}

/* struct rest - a file descriptor, or -1 and memory that the machine had */
struct rest {
    int fd;
    void *at;
    size_t len;
};

/* Where the first step is not possible, as in huge pages, it is the last. */
static void unmap(uint8_t *at, size_t len)
{
    for (size_t off = 0; off < len; off += UNMAP_STEP) {
        madvise(at + off, MIN(UNMAP_STEP, len - off), MADV_DONTNEED);
    }
    munmap(at, len);
}

/* How much of MOST_CLOSING or MOST_UNMAPPING it is. */
static int weight_of(const struct rest *rest)
{
    return 1 + (int)(rest->len >> UNMAP_SHIFT);
}

static void end_one(struct rest *rest, int *left)
{
    /* As in attach(). */
    g_assert(g_atomic_int_get(left) > 0);
    if (rest->fd >= 0) {
        close(rest->fd);
    } else {
        unmap(rest->at, rest->len);
    }
    g_atomic_int_add(left, -weight_of(rest));
    g_free(rest);
}

static void close_one(gpointer rest, gpointer opaque)
{
    struct hca *hca = opaque;

    end_one(rest, &hca->closing);
}

static void unmap_one(gpointer rest, gpointer opaque)
{
    struct hca *hca = opaque;

    end_one(rest, &hca->unmapping);
}

/*
 * Each has one from the beginning: when it is needed there may be no memory for
 * it, or too many of the user's. Memory does not wait for file descriptors,
 * which a machine can hold up.
 */
bool hca_start_threads(struct hca *hca)
{
    const struct {
        GThreadPool **pool;
        GFunc work;
    } all[] = {
        { &hca->attacher, attach }, { &hca->closer, close_one },
        { &hca->unmapper, unmap_one },
    };
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        *all[i].pool = g_thread_pool_new(all[i].work, hca, 1, TRUE, &error);
        if (error) {
            hca_log(hca, "%s", error->message);
            return false;
        }
    }
    return true;
}

void hca_end_threads(struct hca *hca)
{
    GThreadPool *all[] = { hca->attacher, hca->closer, hca->unmapper };

    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        if (all[i]) {
            g_thread_pool_free(all[i], FALSE, FALSE);
        }
    }
}

static void end_later(struct hca *hca, struct rest rest)
{
    bool fd = rest.fd >= 0;

    g_atomic_int_add(fd ? &hca->closing : &hca->unmapping, weight_of(&rest));
    g_thread_pool_push(fd ? hca->closer : hca->unmapper,
                       g_memdup2(&rest, sizeof(rest)), NULL);
}

void hca_close_fd(vfu_ctx_t *vfu, int fd)
{
    end_later(vfu_get_private(vfu), (struct rest) { fd, NULL, 0 });
}

void hca_unmap(vfu_ctx_t *vfu, void *at, size_t len)
{
    end_later(vfu_get_private(vfu), (struct rest) { -1, at, len });
}

bool hca_is_ending(struct hca *hca)
{
    return g_atomic_int_get(&hca->closing) || g_atomic_int_get(&hca->unmapping);
}

static void connected(struct hca *hca)
{
    const struct timeval limit = { .tv_usec = ANSWER_US };
    int fd, on = 1;
    uint64_t count;

    if (read(hca->attach_fd, &count, sizeof(count)) < 0) {
        return;
    }
    g_atomic_int_set(&hca->attaching, false);
    if (!hca->error) {
        fd = vfu_get_poll_fd(hca->vfu);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        /* Else there would be bytes that count as arrived but are not read. */
        setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
        keeper_give(fd);
        hca->attached = true;
        hca->port.received = hca->port.sent = hca->port.dropped = 0;
        hca->port.spoofed = 0;
        hca_log(hca, "a machine is connected");
    } else if (hca->error != EAGAIN) {
        hca_log(hca, "a connection failed: %s", g_strerror(hca->error));
        /* One that cannot be accepted is still there. */
        hca->look = hca_now() + PARTIAL_LOOK_NS;
    }
}

static void disconnected(struct hca *hca)
{
    hca->attached = hca->bad = false;
    hca->partial = hca->look = 0;
    hca_log(hca, "the machine is gone");
}

void hca_hang_up(struct hca *hca, const char *why)
{
    if (hca->attached && !hca->bad) {
        hca_log(hca, "%s: closing the connection", why);
        hca->bad = true;
        shutdown(vfu_get_poll_fd(hca->vfu), SHUT_RDWR);
    }
}

/* Process a message. Returns false if that is the last one. */
static bool run(struct hca *hca)
{
    if (vfu_run_ctx(hca->vfu) >= 0) {
        return true;
    }
    if (errno == ENOTCONN) {
        disconnected(hca);
    } else {
        hca_hang_up(hca, g_strerror(errno));
    }
    return hca->attached;
}

/* Whether the machine has read enough of its answers for one more. */
static bool can_answer(int fd)
{
    int unread = 0;

    return ioctl(fd, SIOCOUTQ, &unread) < 0 || unread <= MOST_UNREAD;
}

/* Whether the whole message with this header has arrived. */
static bool has_arrived(int fd, const struct vfio_user_header *head)
{
    int queued = 0;

    return !ioctl(fd, FIONREAD, &queued) && (uint32_t)queued >= head->msg_size;
}

/* Give the machine a while. Returns true after it has lost its connection. */
static bool is_over(struct hca *hca, uint64_t now, const char *why)
{
    if (!hca->partial) {
        hca->partial = now + PARTIAL_NS;
    } else if (now >= hca->partial) {
        hca_hang_up(hca, why);
        return true;
    }
    hca->look = now + PARTIAL_LOOK_NS;
    return false;
}

/*
 * Whether a message, or the end of the connection, can be processed now. If
 * not, the machine has a while to send the rest, or to read its answers, or
 * what it has given back is being closed or unmapped.
 */
static bool is_ready(struct hca *hca, uint64_t now)
{
    int fd = vfu_get_poll_fd(hca->vfu);
    struct vfio_user_header head;
    ssize_t len;

    if (g_atomic_int_get(&hca->unmapping) > MOST_UNMAPPING) {
        hca->partial = 0;
        hca->look = now + PARTIAL_LOOK_NS;
        return false;
    }
    if (!hca->bad && g_atomic_int_get(&hca->closing) > MOST_CLOSING) {
        return is_over(hca, now,
                       "file descriptors of the machine cannot be closed");
    }
    len = recv(fd, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
    if (len == 0) {
        /* The keeper also has it; the machine is to see that this is all. */
        shutdown(fd, SHUT_RDWR);
    }
    if (len <= 0 || hca->bad) {
        return len >= 0 || errno != EAGAIN;
    }
    if (len == sizeof(head) && head.msg_size > LONGEST_MESSAGE) {
        hca_hang_up(hca, "a message is too long");
        return true;
    }
    if (len == sizeof(head) && has_arrived(fd, &head) && can_answer(fd)) {
        hca->partial = hca->look = 0;
        return true;
    }
    return is_over(hca, now, "the machine does not go on with a message");
}

void hca_poll(const struct hca *hca, struct pollfd *fd)
{
    *fd = (struct pollfd) {
        .fd = hca->attaching ? hca->attach_fd :
              hca->look ? -1 : vfu_get_poll_fd(hca->vfu),
        .events = POLLIN,
    };
}

void hca_input(struct hca *hca)
{
    uint64_t now = hca_now();

    hca->until = now + HCA_TURN_NS;
    if (hca->attaching) {
        connected(hca);
    } else if (!hca->attached && (hca_is_ending(hca) || !hca_renew_dm(hca))) {
        hca->look = now + PARTIAL_LOOK_NS;      /* for the next machine */
    } else if (!hca->attached) {
        g_atomic_int_set(&hca->attaching, true);
        g_thread_pool_push(hca->attacher, hca, NULL);
    } else {
        for (unsigned i = 0; i < MESSAGES && is_ready(hca, hca_now()) &&
             run(hca); i++) {
            hca_send_irqs(hca);
        }
    }
}

uint64_t hca_watch(struct hca *hca, uint64_t now)
{
    if (hca->memory.lost) {
        hca_hang_up(hca, "the machine has taken memory away");
    }
    if (hca->look && now >= hca->look) {
        hca->look = 0;
        hca_input(hca);
    }
    return hca->look ? hca->look : UINT64_MAX;
}
