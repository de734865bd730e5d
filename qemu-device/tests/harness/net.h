/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a simulated network in virtual time. Seeded: the same seed
 * loses, duplicates, delays and corrupts the same frames.
 */
#ifndef QHCA_TESTS_NET_H
#define QHCA_TESTS_NET_H

#include "harness.h"

#define NET_MAX_PORTS 8

struct net_frame {
    uint64_t when, order;
    unsigned from, to;
    bool halfway;               /* on its way to the switch */
    size_t len;
    uint8_t *data;
};

struct net_switch;

struct net {
    uint64_t clock;
    uint64_t rng;
    struct guest *guest[NET_MAX_PORTS];
    unsigned num_guests;
    struct net_frame *frame;
    unsigned num_frames, room;
    uint64_t order;

    /* Per mille of frames. */
    unsigned loss, dup, reorder, corrupt;
    uint64_t latency, jitter;   /* ns; jitter applies to reordered frames */
    bool cut;                   /* the cable is out */
    bool together;              /* frames due for a guest arrive in a batch */
    bool one_place;             /* machines can access each other's memory */
    struct net_switch *switched;    /* see switch.h; NULL: a cable */
    /* Called for each frame before chance decides; false loses the frame. */
    bool (*filter)(struct net *n, unsigned from, uint8_t *frame, size_t len);
    unsigned sent, lost, doubled, delayed, corrupted;
    /* Called before each step, for guests that act in between; or NULL. */
    void (*on_step)(struct net *n);
    void *opaque;
};

struct net *net_new(uint64_t seed);
unsigned net_attach(struct net *n, struct guest *g);
void net_send(struct net *n, unsigned from, const uint8_t *frame, size_t len);
/*
 * The machine that frames from @g to @mac reach, if they need not be frames, or
 * NULL. At a cable with two ends it is always the other.
 */
struct guest *net_neighbour(const struct guest *g, const uint8_t *smac,
                            const uint8_t *mac);
/* Runs until nothing happens any more or @limit ns have passed. */
void net_run(struct net *n, uint64_t limit);
/* Lets exactly @ns pass. */
void net_advance(struct net *n, uint64_t ns);
/* Drops all frames in flight. */
void net_clear(struct net *n);
void net_cleanup(void);
void gbuf_cleanup(void);
uint64_t test_random(uint64_t *state);

#endif /* QHCA_TESTS_NET_H */
