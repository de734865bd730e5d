/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, faults: the names that rules use; they are the specification's.
 */
#include <stdio.h>

#include "rules.h"

/* Names without the service that precedes them. */
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

const struct vhca_rule_name vhca_rule_damages[] = {
    { "payload", VHCA_RULE_PAYLOAD },
    { "icrc", VHCA_RULE_ICRC },
    { NULL, 0 }
};

const struct vhca_rule_name vhca_rule_marks[] = {
    { "ce", IP_ECN_CE },
    { NULL, 0 }
};

const struct vhca_rule_name vhca_rule_orders[] = {
    { "adversarial", 1 },
    { NULL, 0 }
};

const struct vhca_rule_name vhca_rule_naks[] = {
    { "rnr", AETH_RNR_NAK },
    { "psn_seq_err", AETH_NAK_SEQ },
    { "inv_req", AETH_NAK_INV_REQ },
    { "rem_access_err", AETH_NAK_ACCESS },
    { "rem_op_err", AETH_NAK_OP },
    { NULL, 0 }
};

#define QHCA_EVENT(...)
#define QHCA_QP_EVENT(id, ib, name, ...)    { #name, QHCA_EVENT_##id },
const struct vhca_rule_name vhca_rule_qp_events[] = {
#include "qhca/events.def"
    { NULL, 0 }
};

const struct vhca_rule_name vhca_rule_cqe_statuses[] = {
    { "loc_len_err", QHCA_WC_LOC_LEN_ERR },
    { "loc_qp_op_err", QHCA_WC_LOC_QP_OP_ERR },
    { "loc_prot_err", QHCA_WC_LOC_PROT_ERR },
    { "wr_flush_err", QHCA_WC_WR_FLUSH_ERR },
    { "mw_bind_err", QHCA_WC_MW_BIND_ERR },
    { "bad_resp_err", QHCA_WC_BAD_RESP_ERR },
    { "loc_access_err", QHCA_WC_LOC_ACCESS_ERR },
    { "rem_inv_req_err", QHCA_WC_REM_INV_REQ_ERR },
    { "rem_access_err", QHCA_WC_REM_ACCESS_ERR },
    { "rem_op_err", QHCA_WC_REM_OP_ERR },
    { "retry_exc_err", QHCA_WC_RETRY_EXC_ERR },
    { "rnr_retry_exc_err", QHCA_WC_RNR_RETRY_EXC_ERR },
    { "rem_abort_err", QHCA_WC_REM_ABORT_ERR },
    { "fatal_err", QHCA_WC_FATAL_ERR },
    { "general_err", QHCA_WC_GENERAL_ERR },
    { NULL, 0 }
};

const struct vhca_rule_name vhca_rule_cmd_statuses[] = {
    { "opcode", QHCA_ERR_OPCODE },
    { "param", QHCA_ERR_PARAM },
    { "limit", QHCA_ERR_LIMIT },
    { "obj", QHCA_ERR_OBJ },
    { "busy", QHCA_ERR_BUSY },
    { "state", QHCA_ERR_STATE },
    { "no_resource", QHCA_ERR_NO_RESOURCE },
    { "dma", QHCA_ERR_DMA },
    { "not_supported", QHCA_ERR_NOT_SUPPORTED },
    { "perm", QHCA_ERR_PERM },
    { NULL, 0 }
};

#define QHCA_CQE(id, name, ...)         { #name, QHCA_CQE_##id },
#define QHCA_ETH_CQE(...)
static const struct vhca_rule_name cqe_names[] = {
#include "qhca/opcodes.def"
    { NULL, 0 }
};

/* Rules cannot drop events of the device. */
#define QHCA_EVENT(id, name, ...)       { #name, QHCA_EVENT_##id },
#define QHCA_DEVICE_EVENT(...)
static const struct vhca_rule_name event_names[] = {
#include "qhca/events.def"
    { NULL, 0 }
};

#define QHCA_COMMAND(id, name, ...)     { #name, QHCA_CMD_##id },
static const struct vhca_rule_name cmd_names[] = {
#include "qhca/commands.def"
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
        snprintf(buf, NAME_MAX_LEN, "cnp");
    } else {
        snprintf(buf, NAME_MAX_LEN, "%s.%s", service_name[service],
                 opcode_name[op]);
    }
    return true;
}

/*
 * Whether @name matches @pattern, in which * stands for any string. Only the
 * last * is tried again, so this takes at most the product of the two lengths,
 * whatever a guest writes.
 */
static bool is_like(const char *name, const char *pattern, size_t len)
{
    const char *end = pattern + len, *star = NULL, *rest = NULL;

    while (*name) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            rest = name;
        } else if (pattern < end && *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++rest;      /* the star takes one more character */
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*') {
        pattern++;
    }
    return pattern == end;
}

static void add(uint64_t kinds[4], unsigned kind)
{
    kinds[kind / 64] |= 1ull << kind % 64;
}

static bool packet_kinds(const char *name, size_t len, uint64_t kinds[4])
{
    char buf[NAME_MAX_LEN];
    bool any = false;

    for (unsigned kind = 0; kind < 256; kind++) {
        if (packet_name(kind, buf) && is_like(buf, name, len)) {
            add(kinds, kind);
            any = true;
        }
    }
    return any;
}

bool vhca_rule_kinds(unsigned points, const char *name, size_t len,
                      uint64_t kinds[4])
{
    const struct vhca_rule_name *n = points & 1u << VHCA_RULE_CQE ?
                                      cqe_names :
                                      points & 1u << VHCA_RULE_EVENT ?
                                      event_names : cmd_names;
    bool any = false;

    memset(kinds, 0, 4 * sizeof(*kinds));
    if (points & 1u << VHCA_RULE_TX) {
        return packet_kinds(name, len, kinds);
    }
    for (; n->name; n++) {
        if (is_like(n->name, name, len)) {
            add(kinds, n->value);
            any = true;
        }
    }
    return any;
}
