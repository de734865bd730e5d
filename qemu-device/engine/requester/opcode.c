/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the work request opcodes (conformance B.1): one row
 * each, for everything that asks what an opcode is.
 */
#include "requester.h"

#define RELIABLE    (QHCA_TYPE(RC) | QHCA_TYPE(XRC_INI))
#define CONNECTED   (RELIABLE | QHCA_TYPE(UC))
#define DATAGRAM    (QHCA_TYPE(UD) | QHCA_TYPE(GSI))
#define MESSAGE     (QHCA_RULE_INLINE | QHCA_RULE_TAKES_WR)
#define READ        (QHCA_RULE_RD_ATOMIC | QHCA_RULE_HAS_RESULT)
#define ATOMIC      (READ | QHCA_RULE_8_BYTES | QHCA_RULE_ATOMIC | \
                     QHCA_RULE_BARE)
#define FLUSH       (QHCA_RULE_RD_ATOMIC | QHCA_RULE_NO_DATA | QHCA_RULE_BARE)
#define WORD        (QHCA_RULE_INLINE | QHCA_RULE_8_BYTES | QHCA_RULE_RD_ATOMIC)
#define MEMOP       (QHCA_RULE_NO_DATA | QHCA_RULE_MEMOP)

/* Packets by place: middle, first, last, only. */
#define SEND(last)  { RC_SEND_MIDDLE, RC_SEND_FIRST, RC_SEND_LAST##last, \
                      RC_SEND_ONLY##last }
#define WRITE(last) { RC_WRITE_MIDDLE, RC_WRITE_FIRST, RC_WRITE_LAST##last, \
                      RC_WRITE_ONLY##last }
#define ONLY(op)    { 0, 0, 0, op }

const struct qhca_wr_info qhca_wr_infos[256] = {
    [QHCA_WR_SEND] = {
        CONNECTED | DATAGRAM, MESSAGE, QHCA_CQE_SEND, SEND()
    },
    [QHCA_WR_SEND_WITH_IMM] = {
        CONNECTED | QHCA_TYPE(UD), MESSAGE, QHCA_CQE_SEND, SEND(_IMM)
    },
    [QHCA_WR_SEND_WITH_INV] = { RELIABLE, MESSAGE, QHCA_CQE_SEND, SEND(_INV) },
    [QHCA_WR_RDMA_WRITE] = {
        CONNECTED, QHCA_RULE_INLINE, QHCA_CQE_RDMA_WRITE, WRITE()
    },
    [QHCA_WR_RDMA_WRITE_WITH_IMM] = {
        CONNECTED, MESSAGE, QHCA_CQE_RDMA_WRITE, WRITE(_IMM)
    },
    [QHCA_WR_RDMA_READ] = {
        RELIABLE, READ, QHCA_CQE_RDMA_READ, ONLY(RC_READ_REQUEST)
    },
    [QHCA_WR_ATOMIC_CMP_AND_SWP] = {
        RELIABLE, ATOMIC, QHCA_CQE_COMP_SWAP, ONLY(RC_CMP_SWAP)
    },
    [QHCA_WR_ATOMIC_FETCH_AND_ADD] = {
        RELIABLE, ATOMIC, QHCA_CQE_FETCH_ADD, ONLY(RC_FETCH_ADD)
    },
    [QHCA_WR_MASKED_ATOMIC_CMP_AND_SWP] = {
        QHCA_TYPE(RC), ATOMIC, QHCA_CQE_MASKED_COMP_SWAP,
        ONLY(RC_MASKED_CMP_SWAP)
    },
    [QHCA_WR_MASKED_ATOMIC_FETCH_AND_ADD] = {
        QHCA_TYPE(RC), ATOMIC, QHCA_CQE_MASKED_FETCH_ADD,
        ONLY(RC_MASKED_FETCH_ADD)
    },
    [QHCA_WR_FLUSH] = { QHCA_TYPE(RC), FLUSH, QHCA_CQE_FLUSH, ONLY(RC_FLUSH) },
    [QHCA_WR_ATOMIC_WRITE] = {
        QHCA_TYPE(RC), WORD, QHCA_CQE_ATOMIC_WRITE, ONLY(RC_ATOMIC_WRITE)
    },
    [QHCA_WR_BIND_MW] = { CONNECTED, MEMOP, QHCA_CQE_BIND_MW, { 0 } },
    [QHCA_WR_LOCAL_INV] = { CONNECTED, MEMOP, QHCA_CQE_LOCAL_INV, { 0 } },
    [QHCA_WR_REG_MR] = {
        QHCA_TYPE(RC) | QHCA_TYPE(UC), MEMOP | QHCA_RULE_KERNEL,
        QHCA_CQE_REG_MR, { 0 }
    },
};
