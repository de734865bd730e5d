/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measure the cost of TCP segments of 64 KiB to a tap: cut into frames by the
 * engine, each of which is written, or whole, behind a vnet header, with which
 * the kernel need not cut it at all if it stays in the host. The frames are for
 * the kernel, which has no use for them.
 *
 *   unshare --map-root-user --net build/gcc/cut-fast
 */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../common/vnet.h"
#include "harness/frames.h"
#include "harness/harness.h"
#include "harness/tso.h"

#define HEADERS     66u         /* Ethernet, IPv4, TCP with timestamps */
#define PAYLOAD     65160u      /* 45 segments at an MTU of 1500 */
#define ROUNDS      15
#define SEGMENTS    1920u       /* in a round */
#define BATCH       32u

static uint8_t mac[6];
static struct eth_tx tx;
static uint64_t mem[BATCH];
static int taps[2];             /* without vnet headers, and with them */

static void must(bool done, const char *what)
{
    if (!done) {
        perror(what);
        exit(1);
    }
}

static int open_tap(const char *name, short flags)
{
    struct ifreq r = { .ifr_flags = (short)(IFF_TAP | IFF_NO_PI | flags) };
    int fd = open("/dev/net/tun", O_RDWR);
    int sock = socket(AF_INET, SOCK_DGRAM, 0);

    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
    must(fd >= 0 && !ioctl(fd, TUNSETIFF, &r), "tap (try unshare -Urn)");
    must(!ioctl(sock, SIOCGIFHWADDR, &r), "address");
    memcpy(mac, r.ifr_hwaddr.sa_data, sizeof(mac));
    r.ifr_flags = IFF_UP;
    must(!ioctl(sock, SIOCSIFFLAGS, &r), "up");
    close(sock);
    return fd;
}

static bool forget(struct guest *g, const uint8_t *frame, size_t len)
{
    (void)g;
    (void)frame;
    (void)len;
    return true;
}

static bool write_frame(struct guest *g, const uint8_t *frame, size_t len)
{
    must(write(*(int *)g->opaque, frame, len) == (ssize_t)len, "write");
    return true;
}

static bool write_whole(struct guest *g, const uint8_t *frame, size_t len,
                        const struct qhca_long_frame *how)
{
    struct qhca_vnet h = qhca_vnet_long(how);
    struct iovec iov[] = { { &h, sizeof(h) }, { (void *)frame, len } };

    must(writev(*(int *)g->opaque, iov, 2) == (ssize_t)(sizeof(h) + len),
         "writev");
    return true;
}

enum { NOWHERE, CUT, WHOLE, KINDS };

static const struct {
    const char *name;
    bool (*send)(struct guest *g, const uint8_t *frame, size_t len);
    bool (*take)(struct guest *g, const uint8_t *frame, size_t len,
                 const struct qhca_long_frame *how);
} kinds[] = {
    [NOWHERE] = { "cut, not written", forget, NULL },
    [CUT] = { "cut", write_frame, NULL },
    [WHOLE] = { "whole", forget, write_whole },
};

static uint64_t new_segment(struct guest *g)
{
    uint64_t at = guest_alloc(g, HEADERS + PAYLOAD, 4096);
    uint8_t *f = guest_ptr(g, at, HEADERS);

    guest_fill(g, at, HEADERS + PAYLOAD, 1);
    REQUIRE(tso_headers(f, false, false, 0x10) == HEADERS);
    memcpy(f, mac, 6);
    memcpy(f + 6, test_mac, 6);
    return at;
}

static void post(uint64_t at, unsigned mss)
{
    struct qhca_eth_wqe *w;

    w = eth_tx_post(&tx, at, HEADERS + PAYLOAD, QHCA_ETH_TSO | QHCA_ETH_CSUM);
    w->mss = htole16((uint16_t)mss);
    w->csum_start = htole16(34);
    w->csum_offset = htole16(16);
}

/* Gbit/s of payload. */
static double rate(struct guest *g, unsigned kind, unsigned mss)
{
    struct timespec a, b;
    struct qhca_cqe cqe;

    g->uplink = kinds[kind].send;
    g->take_long = kinds[kind].take;
    g->opaque = &taps[kind == WHOLE];
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (unsigned n = 0; n < SEGMENTS; n += BATCH) {
        for (unsigned i = 0; i < BATCH; i++) {
            post(mem[i], mss);
        }
        eth_tx_ring(&tx);
        guest_settle(g);
        for (unsigned i = 0; i < BATCH; i++) {
            REQUIRE(cq_poll(&tx.cq, &cqe) && cqe.status == QHCA_WC_SUCCESS);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    return 8.0 * PAYLOAD * SEGMENTS /
           ((double)(b.tv_sec - a.tv_sec) * 1e9 +
            (double)(b.tv_nsec - a.tv_nsec));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* All kinds in turn, so that whatever else the machine does meets them all. */
static void measure(struct guest *g, unsigned mtu)
{
    double result[KINDS][ROUNDS];

    port_enable(g, test_mac, 0, mtu);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned kind = 0; kind < KINDS; kind++) {
            result[kind][i] = rate(g, kind, mtu - (HEADERS - 14));
        }
    }
    for (unsigned kind = 0; kind < KINDS; kind++) {
        qsort(result[kind], ROUNDS, sizeof(double), by_size);
        printf("MTU %u, %s: %.1f Gbit/s (%.1f to %.1f)\n", mtu,
               kinds[kind].name, result[kind][ROUNDS / 2], result[kind][0],
               result[kind][ROUNDS - 1]);
    }
}

int main(void)
{
    struct guest *g = guest_start();
    struct geq eq = eq_create(g, 1, 6, 0);

    taps[0] = open_tap("plain", 0);
    taps[1] = open_tap("vnet", IFF_VNET_HDR);
    tx = eth_tx_create(g, &eq, 6);
    for (unsigned i = 0; i < BATCH; i++) {
        mem[i] = new_segment(g);
    }
    measure(g, 1500);
    measure(g, 9000);
    return 0;
}
