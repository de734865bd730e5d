/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: what each opcode of RoCE means (IBTA table 38), and two of those
 * that it leaves to manufacturers.
 */
#include "wire.h"

#define FIRST   OPF_FIRST
#define LAST    OPF_LAST
#define ONLY    (OPF_FIRST | OPF_LAST)
#define PAY     OPF_PAYLOAD

/*
 * The opcodes RC, UC and XRC share, for service @svc. @ext: what requests of
 * that service carry besides.
 */
#define CONNECTED_OPCODES(svc, ext) \
    [(svc) | RC_SEND_FIRST]     = { OP_SEND, FIRST | PAY | (ext) }, \
    [(svc) | RC_SEND_MIDDLE]    = { OP_SEND, PAY | (ext) }, \
    [(svc) | RC_SEND_LAST]      = { OP_SEND, LAST | PAY | (ext) }, \
    [(svc) | RC_SEND_LAST_IMM]  = { OP_SEND, LAST | PAY | OPF_IMM | (ext) }, \
    [(svc) | RC_SEND_ONLY]      = { OP_SEND, ONLY | PAY | (ext) }, \
    [(svc) | RC_SEND_ONLY_IMM]  = { OP_SEND, ONLY | PAY | OPF_IMM | (ext) }, \
    [(svc) | RC_WRITE_FIRST]    = { OP_WRITE, FIRST | PAY | OPF_RETH | \
                                    (ext) }, \
    [(svc) | RC_WRITE_MIDDLE]   = { OP_WRITE, PAY | (ext) }, \
    [(svc) | RC_WRITE_LAST]     = { OP_WRITE, LAST | PAY | (ext) }, \
    [(svc) | RC_WRITE_LAST_IMM] = { OP_WRITE, LAST | PAY | OPF_IMM | (ext) }, \
    [(svc) | RC_WRITE_ONLY]     = { OP_WRITE, ONLY | PAY | OPF_RETH | (ext) }, \
    [(svc) | RC_WRITE_ONLY_IMM] = { OP_WRITE, ONLY | PAY | OPF_RETH | \
                                    OPF_IMM | (ext) }

#define RESP    (OPF_RESPONSE | OPF_PAYLOAD)

/* And those RC and XRC share. */
#define RELIABLE_OPCODES(svc, ext) \
    [(svc) | RC_READ_REQUEST]    = { OP_READ_REQ, ONLY | OPF_RETH | (ext) }, \
    [(svc) | RC_READ_RESP_FIRST] = { OP_READ_RESP, FIRST | RESP | OPF_AETH }, \
    [(svc) | RC_READ_RESP_MIDDLE] = { OP_READ_RESP, RESP }, \
    [(svc) | RC_READ_RESP_LAST]  = { OP_READ_RESP, LAST | RESP | OPF_AETH }, \
    [(svc) | RC_READ_RESP_ONLY]  = { OP_READ_RESP, ONLY | RESP | OPF_AETH }, \
    [(svc) | RC_ACKNOWLEDGE]     = { OP_ACK, ONLY | OPF_RESPONSE | OPF_AETH }, \
    [(svc) | RC_ATOMIC_ACKNOWLEDGE] = { OP_ATOMIC_ACK, ONLY | OPF_RESPONSE | \
                                        OPF_AETH | OPF_ATOMICACK }, \
    [(svc) | RC_CMP_SWAP]        = { OP_CAS, ONLY | OPF_ATOMICETH | (ext) }, \
    [(svc) | RC_FETCH_ADD]       = { OP_FAA, ONLY | OPF_ATOMICETH | (ext) }, \
    [(svc) | RC_SEND_LAST_INV]   = { OP_SEND, LAST | PAY | OPF_IETH | (ext) }, \
    [(svc) | RC_SEND_ONLY_INV]   = { OP_SEND, ONLY | PAY | OPF_IETH | (ext) }

const struct roce_opcode_info roce_opcodes[256] = {
    CONNECTED_OPCODES(SVC_RC, 0),
    RELIABLE_OPCODES(SVC_RC, 0),
    CONNECTED_OPCODES(SVC_UC, 0),
    CONNECTED_OPCODES(SVC_XRC, OPF_XRCETH),
    RELIABLE_OPCODES(SVC_XRC, OPF_XRCETH),
    [RC_FLUSH]              = { OP_FLUSH, ONLY | OPF_FETH | OPF_RETH },
    [RC_ATOMIC_WRITE]       = { OP_ATOMIC_WRITE, ONLY | PAY | OPF_RETH },
    [RC_MASKED_CMP_SWAP]    = { OP_MASKED_CAS, ONLY | OPF_ATOMICETH |
                                OPF_MASKETH },
    [RC_MASKED_FETCH_ADD]   = { OP_MASKED_FAA, ONLY | OPF_ATOMICETH |
                                OPF_MASKETH },
    [SVC_UD | RC_SEND_ONLY] = { OP_SEND, ONLY | PAY | OPF_DETH },
    [SVC_UD | RC_SEND_ONLY_IMM] = { OP_SEND, ONLY | PAY | OPF_DETH | OPF_IMM },
    [ROCE_CNP]              = { OP_CNP, ONLY | PAY },
};
