/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what test_fuzz_direct draws: two QPs, @qp and @peer, and
 * their work requests.
 */
#ifndef QHCA_TESTS_DIRECT_H
#define QHCA_TESTS_DIRECT_H

#include "harness/fixture.h"
#include "harness/net.h"

#define SRC         0u
#define DST         (NODE_MEM / 2)
#define BACK        0xd8000u        /* results of READs and atomics */
#define MAX_LEN     150000u         /* longest message; BACK has room for it */
#define NEXT        70000u          /* minimal distance of SGEs */
#define BAD_KEY     0x1234u
#define MAX_RECVS   10u
#define WINDOWS     2

/* Which end may make something fail. */
enum trouble { NOBODY, SENDER, PEER };

/* struct scene - the random choices */
struct scene {
    uint64_t rng;
    uint8_t type;               /* type of @qp */
    enum trouble trouble;
    bool bad_memory;
    bool bad_queue;             /* one of the queues, from some WR on */
    bool shared;                /* @peer receives from @srq */
    struct node *to;            /* where @peer is: @node, or @there */
    uint32_t window[WINDOWS];   /* keys, 0: none */
};

extern struct scene scene;

static inline unsigned draw(unsigned below)
{
    return (unsigned)((test_random(&scene.rng) >> 24) % below);
}

static inline bool one_in(unsigned n)
{
    return !draw(n);
}

/* one_in() for failures of the peer, if those are allowed. */
static inline bool peer_one_in(unsigned n)
{
    return scene.trouble == PEER && one_in(n);
}

static inline uint64_t at(uint64_t off)
{
    return node.mr.addr + off;
}

static inline uint64_t there_at(uint64_t off)
{
    return scene.to->mr.addr + off;
}

static inline bool is_far(void)
{
    return scene.to != &node;
}

static inline bool is_atomic(uint8_t opcode)
{
    return opcode == QHCA_WR_ATOMIC_CMP_AND_SWP ||
           opcode == QHCA_WR_ATOMIC_FETCH_AND_ADD;
}

/* Post some receive WRs, the first as @wr_id. */
void draw_recvs(uint64_t wr_id);
/* A send WR for @qp. */
struct rc_wr draw_wr(void);

#endif /* QHCA_TESTS_DIRECT_H */
