/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, faults: the names that rules use, those of the specification.
 */
#include <stdio.h>

#include "faults.h"

/* Without the service, which is in front of it. */
static const char *const opcode_name[] = {
    [RC_SEND_FIRST] = "send_first",
    [RC_SEND_MIDDLE] = "send_middle",
    [RC_SEND_LAST] = "send_last",
    [RC_SEND_LAST_IMM] = "send_last_imm",
    [RC_SEND_ONLY] = "send_only",
    [RC_SEND_ONLY_IMM] = "send_only_imm",
    [RC_WRITE_FIRST] = "write_first",
    [RC_WRITE_MIDDLE] = "write_middle",
    [RC_WRITE_LAST] = "write_last",
    [RC_WRITE_LAST_IMM] = "write_last_imm",
    [RC_WRITE_ONLY] = "write_only",
    [RC_WRITE_ONLY_IMM] = "write_only_imm",
    [RC_READ_REQUEST] = "read_request",
    [RC_READ_RESP_FIRST] = "read_response_first",
    [RC_READ_RESP_MIDDLE] = "read_response_middle",
    [RC_READ_RESP_LAST] = "read_response_last",
    [RC_READ_RESP_ONLY] = "read_response_only",
    [RC_ACKNOWLEDGE] = "acknowledge",
    [RC_ATOMIC_ACKNOWLEDGE] = "atomic_acknowledge",
    [RC_CMP_SWAP] = "cmp_swap",
    [RC_FETCH_ADD] = "fetch_add",
    [RC_SEND_LAST_INV] = "send_last_inv",
    [RC_SEND_ONLY_INV] = "send_only_inv",
    [RC_FLUSH] = "flush",
    [RC_ATOMIC_WRITE] = "atomic_write",
};

static const char *const service_name[] = {
    [SVC_RC >> 5] = "rc",
    [SVC_UC >> 5] = "uc",
    [SVC_UD >> 5] = "ud",
    [SVC_XRC >> 5] = "xrc",
};

const struct qhca_fault_name qhca_fault_damages[] = {
    { "payload", QHCA_FAULT_PAYLOAD },
    { "icrc", QHCA_FAULT_ICRC },
    { NULL, 0 }
};

const struct qhca_fault_name qhca_fault_naks[] = {
    { "rnr", AETH_RNR_NAK },
    { "psn_seq_err", AETH_NAK_SEQ },
    { "inv_req", AETH_NAK_INV_REQ },
    { "rem_access_err", AETH_NAK_ACCESS },
    { "rem_op_err", AETH_NAK_OP },
    { NULL, 0 }
};

const struct qhca_fault_name qhca_fault_qp_events[] = {
    { "qp_fatal", QHCA_EVENT_QP_FATAL },
    { "qp_req_err", QHCA_EVENT_QP_REQ_ERR },
    { "qp_access_err", QHCA_EVENT_QP_ACCESS_ERR },
    { "comm_est", QHCA_EVENT_COMM_EST },
    { "sq_drained", QHCA_EVENT_SQ_DRAINED },
    { "last_wqe_reached", QHCA_EVENT_LAST_WQE_REACHED },
    { NULL, 0 }
};

#define NAME_MAX_LEN    32

static bool packet_name(unsigned opcode, char *buf)
{
    unsigned service = opcode >> 5, op = opcode & ~SVC_MASK;

    if (roce_opcode((uint8_t)opcode)->op == OP_NONE) {
        return false;
    }
    if (opcode == ROCE_CNP) {
        strcpy(buf, "cnp");
    } else if (service == SVC_VENDOR >> 5) {
        snprintf(buf, NAME_MAX_LEN, "rc.masked_%s", opcode_name[op]);
    } else {
        snprintf(buf, NAME_MAX_LEN, "%s.%s", service_name[service],
                 opcode_name[op]);
    }
    return true;
}

/* The name of kind @kind at @points; false: it has none. */
static bool kind_name(unsigned points, unsigned kind, char *buf)
{
    return points & 1u << QHCA_FAULT_TX && packet_name(kind, buf);
}

/* One * is enough; several could take longer than anybody wants to wait. */
static bool is_like(const char *name, const char *pattern, size_t len)
{
    const char *star = memchr(pattern, '*', len);
    size_t head = star ? (size_t)(star - pattern) : len;
    size_t tail = star ? len - head - 1 : 0, n = strlen(name);

    return (star ? n >= head + tail : n == len) &&
           !memcmp(name, pattern, head) &&
           !memcmp(name + n - tail, pattern + len - tail, tail);
}

bool qhca_fault_kinds(unsigned points, const char *name, size_t len,
                      uint64_t kinds[4])
{
    char buf[NAME_MAX_LEN];
    bool any = false;

    memset(kinds, 0, 4 * sizeof(*kinds));
    for (unsigned kind = 0; kind < 256; kind++) {
        if (kind_name(points, kind, buf) && is_like(buf, name, len)) {
            kinds[kind / 64] |= 1ull << kind % 64;
            any = true;
        }
    }
    return any;
}
