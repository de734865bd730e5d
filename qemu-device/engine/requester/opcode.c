/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: requester, the work request opcodes (conformance B.1): one row
 * each, for everything that asks what an opcode is.
 */
#include "requester.h"

#define KIND_SEND   (QHCA_RULE_INLINE | QHCA_RULE_TAKES_WR)
#define KIND_WRITE  QHCA_RULE_INLINE
#define FETCHES     (QHCA_RULE_RD_ATOMIC | QHCA_RULE_HAS_RESULT)
#define KIND_READ   (FETCHES | QHCA_RULE_READ)
#define KIND_CAS    (FETCHES | QHCA_RULE_8_BYTES | QHCA_RULE_ATOMIC | \
                     QHCA_RULE_BARE)
#define KIND_ADD    KIND_CAS
#define KIND_MASKED_CAS KIND_CAS
#define KIND_MASKED_ADD KIND_CAS
#define KIND_FLUSH  (QHCA_RULE_RD_ATOMIC | QHCA_RULE_NO_DATA | QHCA_RULE_BARE)
#define KIND_STORE  (QHCA_RULE_INLINE | QHCA_RULE_8_BYTES | QHCA_RULE_RD_ATOMIC)
#define KIND_BIND   (QHCA_RULE_NO_DATA | QHCA_RULE_MEMOP)
#define KIND_INV    KIND_BIND
#define KIND_REG    (KIND_BIND | QHCA_RULE_KERNEL)

#define WORD_NONE   0
#define WORD_IMM    QHCA_RULE_TAKES_WR
#define WORD_KEY    QHCA_RULE_KEY

/* Packets by place: middle, first, last, only. */
#define SEND(last)  { RC_SEND_MIDDLE, RC_SEND_FIRST, RC_SEND_LAST##last, \
                      RC_SEND_ONLY##last }
#define WRITE(last) { RC_WRITE_MIDDLE, RC_WRITE_FIRST, RC_WRITE_LAST##last, \
                      RC_WRITE_ONLY##last }
#define ONLY(op)    { 0, 0, 0, RC_##op }
#define NONE        { 0 }

#define QHCA_WR(id, number, cqe, kind, word, types, cap, packets) \
    [number] = { \
        QHCA_TYPES_##types, KIND_##kind | WORD_##word, QHCA_CQE_##cqe, packets \
    },
const struct vhca_wr_info vhca_wr_infos[256] = {
#include "qhca/opcodes.def"
};
