/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: what each opcode of RoCE means (IBTA table 38).
 */
#include "wire.h"

#define FIRST   OPF_FIRST
#define LAST    OPF_LAST
#define ONLY    (OPF_FIRST | OPF_LAST)
#define PAY     OPF_PAYLOAD

#define LEN_IF(flags, name) ((flags) & OPF_##name ? name##_LEN : 0)
#define EXT_LEN(flags) \
    (LEN_IF(flags, XRCETH) + LEN_IF(flags, DETH) + LEN_IF(flags, FETH) + \
     LEN_IF(flags, RETH) + LEN_IF(flags, ATOMICETH) + LEN_IF(flags, AETH) + \
     LEN_IF(flags, ATOMICACK) + LEN_IF(flags, IMM) + LEN_IF(flags, IETH))
#define OP(op, flags) { op, EXT_LEN(flags), flags }

/*
 * The opcodes that RC, UC and XRC share, for service @svc; @ext: flags of the
 * additional headers of its requests.
 */
#define CONNECTED_OPCODES(svc, ext) \
    [(svc) | RC_SEND_FIRST]     = OP(OP_SEND, FIRST | PAY | (ext)), \
    [(svc) | RC_SEND_MIDDLE]    = OP(OP_SEND, PAY | (ext)), \
    [(svc) | RC_SEND_LAST]      = OP(OP_SEND, LAST | PAY | (ext)), \
    [(svc) | RC_SEND_LAST_IMM]  = OP(OP_SEND, LAST | PAY | OPF_IMM | (ext)), \
    [(svc) | RC_SEND_ONLY]      = OP(OP_SEND, ONLY | PAY | (ext)), \
    [(svc) | RC_SEND_ONLY_IMM]  = OP(OP_SEND, ONLY | PAY | OPF_IMM | (ext)), \
    [(svc) | RC_WRITE_FIRST]    = OP(OP_WRITE, FIRST | PAY | OPF_RETH | \
                                    (ext)), \
    [(svc) | RC_WRITE_MIDDLE]   = OP(OP_WRITE, PAY | (ext)), \
    [(svc) | RC_WRITE_LAST]     = OP(OP_WRITE, LAST | PAY | (ext)), \
    [(svc) | RC_WRITE_LAST_IMM] = OP(OP_WRITE, LAST | PAY | OPF_IMM | (ext)), \
    [(svc) | RC_WRITE_ONLY]     = OP(OP_WRITE, ONLY | PAY | OPF_RETH | (ext)), \
    [(svc) | RC_WRITE_ONLY_IMM] = OP(OP_WRITE, ONLY | PAY | OPF_RETH | \
                                    OPF_IMM | (ext))

#define RESP    (OPF_RESPONSE | OPF_PAYLOAD)

/* The opcodes that only RC and XRC share. */
#define RELIABLE_OPCODES(svc, ext) \
    [(svc) | RC_READ_REQUEST]    = OP(OP_READ_REQ, ONLY | OPF_RETH | (ext)), \
    [(svc) | RC_READ_RESP_FIRST] = OP(OP_READ_RESP, FIRST | RESP | OPF_AETH), \
    [(svc) | RC_READ_RESP_MIDDLE] = OP(OP_READ_RESP, RESP), \
    [(svc) | RC_READ_RESP_LAST]  = OP(OP_READ_RESP, LAST | RESP | OPF_AETH), \
    [(svc) | RC_READ_RESP_ONLY]  = OP(OP_READ_RESP, ONLY | RESP | OPF_AETH), \
    [(svc) | RC_ACKNOWLEDGE]     = OP(OP_ACK, ONLY | OPF_RESPONSE | OPF_AETH), \
    [(svc) | RC_ATOMIC_ACKNOWLEDGE] = OP(OP_ATOMIC_ACK, ONLY | OPF_RESPONSE | \
                                        OPF_AETH | OPF_ATOMICACK), \
    [(svc) | RC_CMP_SWAP]        = OP(OP_CAS, ONLY | OPF_ATOMICETH | (ext)), \
    [(svc) | RC_FETCH_ADD]       = OP(OP_FAA, ONLY | OPF_ATOMICETH | (ext)), \
    [(svc) | RC_SEND_LAST_INV]   = OP(OP_SEND, LAST | PAY | OPF_IETH | (ext)), \
    [(svc) | RC_SEND_ONLY_INV]   = OP(OP_SEND, ONLY | PAY | OPF_IETH | (ext))

const struct roce_opcode_info roce_opcodes[256] = {
    CONNECTED_OPCODES(SVC_RC, 0),
    RELIABLE_OPCODES(SVC_RC, 0),
    CONNECTED_OPCODES(SVC_UC, 0),
    CONNECTED_OPCODES(SVC_XRC, OPF_XRCETH),
    RELIABLE_OPCODES(SVC_XRC, OPF_XRCETH),
    [RC_FLUSH]              = OP(OP_FLUSH, ONLY | OPF_FETH | OPF_RETH),
    [RC_ATOMIC_WRITE]       = OP(OP_ATOMIC_WRITE, ONLY | PAY | OPF_RETH),
    [SVC_UD | RC_SEND_ONLY] = OP(OP_SEND, ONLY | PAY | OPF_DETH),
    [SVC_UD | RC_SEND_ONLY_IMM] = OP(OP_SEND, ONLY | PAY | OPF_DETH | OPF_IMM),
    [ROCE_CNP]              = OP(OP_CNP, ONLY | PAY),
};
