/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: when an engine runs, its callbacks, and its life. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "dma.h"
#include "trace.h"

/* Rounds of work for one HCA before the others have a turn. */
#define HCA_ROUNDS      16

uint64_t hca_clock(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t hca_now(void)
{
    return hca_clock(CLOCK_MONOTONIC);
}

static bool hca_send_frame(void *opaque, const uint8_t *frame, size_t len)
{
    struct hca *hca = opaque;
    bool taken = net_send(hca, frame, len);

    trace_qhca_net_tx(hca->name, len, taken);
    return taken;
}

static bool hca_send_long(void *opaque, const uint8_t *frame, size_t len,
                          const struct qhca_long_frame *how)
{
    struct hca *hca = opaque;
    bool taken = net_send_long(hca, frame, len, how);

    trace_qhca_net_tx_long(hca->name, len, how->mss, taken);
    return taken;
}

static void hca_capture_failed(struct hca *hca)
{
    hca_log(hca, "%s: %s; no frames are captured from now on",
            hca->props.loopback_capture, g_strerror(errno));
}

static void hca_loop_frame(void *opaque, const uint8_t *frame, size_t len)
{
    struct hca *hca = opaque;

    if (!qhca_capture_frame(&hca->capture, hca_clock(CLOCK_REALTIME) / 1000,
                            frame, len)) {
        hca_capture_failed(hca);
    }
}

static uint32_t hca_random(void *opaque)
{
    uint32_t bits;

    if (!qhca_host_random(opaque, &bits) &&
        getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) {
        g_error("no random numbers: %s", g_strerror(errno));
    }
    return bits;
}

static struct qhca_engine *hca_neighbour(void *opaque, const uint8_t smac[6],
                                         const uint8_t dmac[6])
{
    return net_neighbour(opaque, smac, dmac);
}

static void hca_remove(void *opaque)
{
    struct hca *hca = opaque;

    hca->host.todo |= QHCA_TODO_REMOVE;
}

static bool hca_enough(void *opaque)
{
    const struct hca *hca = opaque;

    return hca_now() >= hca->until;
}

static void hca_guest_error(void *opaque, const char *msg)
{
    hca_note(opaque, "guest error: %s", msg);
}

static struct qhca_engine_ops hca_callbacks = {
    .dma_read = hca_dma_read,
    .dma_write = hca_dma_write,
    .dma_write_entry = hca_dma_write_entry,
    .dma_peek = hca_dma_peek,
    .atomic_cas = hca_dma_cas,
    .atomic_add = hca_dma_add,
    .atomic_store = hca_dma_store,
    .send_frame = hca_send_frame,
    .send_long = hca_send_long,
    .loop_frame = hca_loop_frame,
    .raise_irq = qhca_host_raise_irq,
    .set_timer = qhca_host_set_timer,
    .schedule = qhca_host_schedule,
    .random = hca_random,
    .neighbour = hca_neighbour,
    .remove = hca_remove,
    .enough = hca_enough,
    .guest_error = hca_guest_error,
};

#define VHCA_TRACE(point, params, args) \
static void on_##point(void *opaque, params) \
{ \
    const struct hca *hca = opaque; \
\
    trace_qhca_##point(hca->name, args); \
}
#include "../common/trace.def"

static const struct qhca_host_ops hca_host_callbacks = {
    .guest_error = hca_guest_error,
    .drop_frames = net_forget,
#define VHCA_TRACE(name, params, args) .name = on_##name,
#include "../common/trace.def"
};

void hca_send_irqs(struct hca *hca)
{
    while (hca->host.irqs && hca->attached) {
        /* One that the machine does not listen to is lost, as it would be. */
        vfu_irq_trigger(hca->vfu, qhca_host_next_irq(&hca->host));
    }
}

static void hca_do_todo(struct hca *hca, uint64_t now)
{
    unsigned todo = hca->host.todo;

    qhca_host_tick(&hca->host, now);
    qhca_host_work(&hca->host, now, todo);
    if (todo & QHCA_TODO_REMOVE) {
        hca_hang_up(hca, "a fault rule removes the adapter");
    }
    if (qhca_engine_look(hca->host.engine, now)) {
        hca->rung = now;
        hca->awake = true;
    }
}

bool hca_rest(struct hca *hca)
{
    if (hca->awake && qhca_engine_rest(hca->host.engine, hca_now())) {
        hca->awake = false;
    }
    return !hca->awake && !hca->host.todo;
}

uint64_t hca_work(struct hca *hca)
{
    uint64_t now = hca_now(), again = UINT64_MAX;

    hca->until = now + HCA_TURN_NS;
    for (unsigned i = 0; i < HCA_ROUNDS; i++) {
        hca_do_todo(hca, now);
        again = net_deliver(hca, now);
        if (!hca->host.todo && hca->host.deadline > now && again > now) {
            break;
        }
        now = hca_now();
        if (now >= hca->until) {
            break;
        }
    }
    hca_send_irqs(hca);
    again = MIN(again, hca_watch(hca, now));
    again = MIN(again, hca_log_watch(hca, now));
    return hca->host.todo ? 0 : MIN(hca->host.deadline, again);
}

static int hca_new_dm(const struct hca *hca)
{
    int fd = memfd_create("qhca-dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && (ftruncate(fd, (off_t)hca->props.dm_size) < 0 ||
                    fcntl(fd, F_ADD_SEALS,
                          F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool hca_renew_dm(struct hca *hca)
{
    uint8_t *old = hca->dm, *dm = MAP_FAILED;
    int fd;

    if (!hca->dm_used) {
        return true;
    }
    fd = hca_new_dm(hca);
    if (fd >= 0) {
        dm = mmap(NULL, hca->props.dm_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                  fd, 0);
    }
    if (dm != MAP_FAILED && dup3(fd, hca->dm_fd, O_CLOEXEC) >= 0) {
        hca->dm = dm;
        hca->dm_used = false;
        hca_unmap(hca->vfu, old, hca->props.dm_size);
    } else {
        hca_log(hca, "no new memory of the device: %s", g_strerror(errno));
        if (dm != MAP_FAILED) {
            munmap(dm, hca->props.dm_size);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return !hca->dm_used;
}

void hca_reset(struct hca *hca, bool lost)
{
    qhca_host_reset(&hca->host, hca_now());
    if (lost) {
        hca->host.todo &= ~(unsigned)QHCA_TODO_REMOVE;
        hca->memory.lost = false;
        hca_pci_power_on(hca);
        hca->dm_used |= hca->dm && hca->attached;
        hca_renew_dm(hca);
    }
}

static bool hca_init_dm(struct hca *hca)
{
    hca->dm_fd = -1;
    if (!hca->props.dm_size) {
        return true;
    }
    hca->dm_fd = hca_new_dm(hca);
    if (hca->dm_fd < 0) {
        return false;
    }
    hca->dm = mmap(NULL, hca->props.dm_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                   hca->dm_fd, 0);
    if (hca->dm == MAP_FAILED) {
        hca->dm = NULL;
    }
    return hca->dm;
}

static bool hca_init_capture(struct hca *hca)
{
    const char *path = hca->props.loopback_capture;
    int fd;

    if (!path) {
        return true;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        hca_log(hca, "loopback-capture: %s: %s", path, g_strerror(errno));
        return false;
    }
    if (!qhca_capture_begin(&hca->capture, fd, hca->name)) {
        hca_capture_failed(hca);
    }
    return true;
}

static bool hca_init_engine(struct hca *hca)
{
    const char *wrong;

    qhca_host_init(&hca->host, &hca->props, &hca_host_callbacks);
    hca_callbacks.trace = trace_of_engine();
    /* A connection can always end, so it can be removed. */
    wrong = qhca_host_start(&hca->host, hca->mac, true, &hca_callbacks);
    if (!wrong && hca->faults) {
        wrong = qhca_host_set_faults(&hca->host, hca_now(), hca->faults);
    }
    if (wrong) {
        hca_log(hca, "%s", wrong);
    }
    return !wrong;
}

bool hca_start(struct hca *hca)
{
    if (!hca_init_engine(hca) || !hca_init_capture(hca)) {
        return false;
    }
    if (!hca_init_dm(hca)) {
        hca_log(hca, "no memory of the device: %s", g_strerror(errno));
        return false;
    }
    hca->attach_fd = eventfd(0, EFD_CLOEXEC);
    memory_survive(&hca->memory);
    return hca_pci_init(hca);
}

void hca_stop(struct hca *hca)
{
    hca_log_watch(hca, UINT64_MAX);
    hca_end_threads(hca);
    if (hca->attaching || hca_is_ending(hca)) {
        return;     /* a thread has the rest until the process ends */
    }
    if (hca->attach_fd > 0) {
        close(hca->attach_fd);
    }
    net_forget(hca);
    qhca_host_stop(&hca->host);
    if (hca->dm) {
        munmap(hca->dm, hca->props.dm_size);
    }
    if (hca->dm_fd >= 0) {
        close(hca->dm_fd);
    }
    qhca_capture_end(&hca->capture);
    g_free(hca->props.loopback_capture);
    g_free(hca->faults);
    g_free(hca->name);
    g_free(hca->socket);
    g_free(hca);
}
