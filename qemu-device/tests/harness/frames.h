/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: Ethernet frames and Ethernet queues.
 */
#ifndef QHCA_TESTS_FRAMES_H
#define QHCA_TESTS_FRAMES_H

#include "harness.h"
#include "net.h"

struct frame {
    size_t len;
    uint8_t data[9100];
};

/* UDP from 10.0.0.@from to 10.0.0.@to, @payload bytes, correct checksums. */
struct frame udp_frame(const uint8_t *dmac, unsigned from, unsigned to,
                       unsigned dport, size_t payload);
struct frame udp6_frame(const uint8_t *dmac, const uint8_t *dst, unsigned dport,
                        size_t payload);
void frame_add_vlan(struct frame *f, unsigned tci);

/* struct eth_rx - the driver's side of the receive queue */
struct eth_rx {
    struct guest *g;
    struct gcq cq;
    uint32_t number, pi;
    unsigned log;
    uint32_t buf_len;
    struct gbuf ring;
    uint64_t *buf;              /* addresses; wr_ids are indices of it */
};
struct eth_rx eth_rx_create(struct guest *g, const struct geq *eq, unsigned log,
                            uint32_t buf_len);
/* The receive queue with another index than 0. */
struct eth_rx eth_rx_create_at(struct guest *g, const struct geq *eq,
                               unsigned index, unsigned log, uint32_t buf_len);
/* One that spreads a frame over up to @frags buffers. */
struct eth_rx eth_rx_create_scatter(struct guest *g, const struct geq *eq,
                                    unsigned index, unsigned log,
                                    uint32_t buf_len, unsigned frags);
/* Posts all completed buffers again. */
void eth_rx_refill(struct eth_rx *q);

/* A table that spreads frames over the queues from 0 on, and some key. */
struct qhca_rss eth_rss_even(unsigned queues);
/* Runs SET_RSS with @rss, or NULL for no table; returns its status. */
int eth_set_rss(struct guest *g, uint32_t types, const struct qhca_rss *rss);
/* Runs SET_RSS for RSS context @context. */
int eth_set_context(struct guest *g, uint32_t context, uint32_t types,
                    const struct qhca_rss *rss);

/* struct eth_tx - the driver's side of the send queue */
struct eth_tx {
    struct guest *g;
    struct gcq cq;
    uint32_t number, pi;
    unsigned log;
    struct gbuf ring;
};
struct eth_tx eth_tx_create(struct guest *g, const struct geq *eq,
                            unsigned log);
struct eth_tx eth_tx_create_at(struct guest *g, const struct geq *eq,
                               unsigned index, unsigned log);
/* Puts a WQE in the ring without a doorbell; the caller may change it. */
struct qhca_eth_wqe *eth_tx_post(struct eth_tx *q, uint64_t addr, uint32_t len,
                                 unsigned flags);
/* Rings the doorbell and settles. */
void eth_tx_ring(struct eth_tx *q);

#endif /* QHCA_TESTS_FRAMES_H */
