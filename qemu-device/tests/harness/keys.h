/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: keys that work requests validate and invalidate: regions
 * of type FAST, memory windows.
 */
#ifndef QHCA_TESTS_KEYS_H
#define QHCA_TESTS_KEYS_H

#include "rc.h"

/* struct fast - a region of type FAST and memory to register with it */
struct fast {
    uint32_t key;
    struct gbuf buf;
    uint64_t table;             /* DMA address of the list of its blocks */
};

struct fast fast_create(struct node *n, uint32_t max_blocks, uint32_t blocks);
/*
 * A region of @len bytes, at most VHCA_MAX_FAST_REG / 2, in as many pieces; @by
 * is a QP of the kernel's. Returns its key.
 */
uint32_t fast_bytes(struct rc_qp *by, uint64_t iova, uint32_t len);
/* A signaled REG_MR that registers all of @f's memory at @iova as @key. */
struct rc_wr wr_reg(const struct rc_qp *q, const struct fast *f, uint32_t key,
                    uint64_t iova, unsigned access);
struct rc_wr wr_inv(const struct rc_qp *q, uint8_t opcode, uint32_t key);
/* A signaled BIND_MW of @key to [@off, @off + @len) of the node's memory. */
struct rc_wr wr_bind(const struct rc_qp *q, uint32_t key, uint64_t off,
                     uint64_t len, unsigned access);
uint32_t mw_create(struct guest *g, uint32_t pdn, unsigned type);
/* The key with the next variant. */
static inline uint32_t next_key(uint32_t key)
{
    return (key & ~0xffu) | ((key + 1) & 0xff);
}

/* Whether @pdn's QP @qpn may use @key. */
bool key_allows(struct guest *g, uint32_t pdn, uint32_t qpn, uint32_t key,
                uint64_t addr, uint64_t len, unsigned access);

#endif /* QHCA_TESTS_KEYS_H */
