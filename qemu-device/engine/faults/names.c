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

const struct qhca_fault_name qhca_fault_cqe_statuses[] = {
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

const struct qhca_fault_name qhca_fault_cmd_statuses[] = {
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

static const struct qhca_fault_name cqe_names[] = {
    { "send", QHCA_CQE_SEND },
    { "rdma_write", QHCA_CQE_RDMA_WRITE },
    { "rdma_read", QHCA_CQE_RDMA_READ },
    { "comp_swap", QHCA_CQE_COMP_SWAP },
    { "fetch_add", QHCA_CQE_FETCH_ADD },
    { "bind_mw", QHCA_CQE_BIND_MW },
    { "local_inv", QHCA_CQE_LOCAL_INV },
    { "reg_mr", QHCA_CQE_REG_MR },
    { "flush", QHCA_CQE_FLUSH },
    { "atomic_write", QHCA_CQE_ATOMIC_WRITE },
    { "masked_comp_swap", QHCA_CQE_MASKED_COMP_SWAP },
    { "masked_fetch_add", QHCA_CQE_MASKED_FETCH_ADD },
    { "recv", QHCA_CQE_RECV },
    { "recv_rdma_with_imm", QHCA_CQE_RECV_RDMA_WITH_IMM },
    { NULL, 0 }
};

/* All but DEVICE_FATAL: that one must be heard. */
static const struct qhca_fault_name event_names[] = {
    { "comp", QHCA_EVENT_COMP },
    { "cq_err", QHCA_EVENT_CQ_ERR },
    { "qp_fatal", QHCA_EVENT_QP_FATAL },
    { "qp_req_err", QHCA_EVENT_QP_REQ_ERR },
    { "qp_access_err", QHCA_EVENT_QP_ACCESS_ERR },
    { "comm_est", QHCA_EVENT_COMM_EST },
    { "sq_drained", QHCA_EVENT_SQ_DRAINED },
    { "last_wqe_reached", QHCA_EVENT_LAST_WQE_REACHED },
    { "srq_limit_reached", QHCA_EVENT_SRQ_LIMIT_REACHED },
    { "srq_err", QHCA_EVENT_SRQ_ERR },
    { "link_up", QHCA_EVENT_LINK_UP },
    { "link_down", QHCA_EVENT_LINK_DOWN },
    { NULL, 0 }
};

/* As in enum qhca_cmd_opcode. */
static const struct qhca_fault_name cmd_names[] = {
    { "nop", QHCA_CMD_NOP },
    { "query_device", QHCA_CMD_QUERY_DEVICE },
    { "query_port", QHCA_CMD_QUERY_PORT },
    { "set_port", QHCA_CMD_SET_PORT },
    { "set_mcast", QHCA_CMD_SET_MCAST },
    { "set_gid", QHCA_CMD_SET_GID },
    { "query_counters", QHCA_CMD_QUERY_COUNTERS },
    { "allow_gid", QHCA_CMD_ALLOW_GID },
    { "set_faults", QHCA_CMD_SET_FAULTS },
    { "query_faults", QHCA_CMD_QUERY_FAULTS },
    { "create_eq", QHCA_CMD_CREATE_EQ },
    { "destroy_eq", QHCA_CMD_DESTROY_EQ },
    { "create_ethq", QHCA_CMD_CREATE_ETHQ },
    { "destroy_ethq", QHCA_CMD_DESTROY_ETHQ },
    { "alloc_pd", QHCA_CMD_ALLOC_PD },
    { "dealloc_pd", QHCA_CMD_DEALLOC_PD },
    { "alloc_xrcd", QHCA_CMD_ALLOC_XRCD },
    { "dealloc_xrcd", QHCA_CMD_DEALLOC_XRCD },
    { "reg_mr", QHCA_CMD_REG_MR },
    { "rereg_mr", QHCA_CMD_REREG_MR },
    { "dereg_mr", QHCA_CMD_DEREG_MR },
    { "alloc_mw", QHCA_CMD_ALLOC_MW },
    { "dealloc_mw", QHCA_CMD_DEALLOC_MW },
    { "create_cq", QHCA_CMD_CREATE_CQ },
    { "destroy_cq", QHCA_CMD_DESTROY_CQ },
    { "query_cq", QHCA_CMD_QUERY_CQ },
    { "resize_cq", QHCA_CMD_RESIZE_CQ },
    { "modify_cq", QHCA_CMD_MODIFY_CQ },
    { "create_srq", QHCA_CMD_CREATE_SRQ },
    { "destroy_srq", QHCA_CMD_DESTROY_SRQ },
    { "modify_srq", QHCA_CMD_MODIFY_SRQ },
    { "query_srq", QHCA_CMD_QUERY_SRQ },
    { "resize_srq", QHCA_CMD_RESIZE_SRQ },
    { "create_qp", QHCA_CMD_CREATE_QP },
    { "modify_qp", QHCA_CMD_MODIFY_QP },
    { "query_qp", QHCA_CMD_QUERY_QP },
    { "destroy_qp", QHCA_CMD_DESTROY_QP },
    { "attach_mcast", QHCA_CMD_ATTACH_MCAST },
    { "detach_mcast", QHCA_CMD_DETACH_MCAST },
    { "alloc_cntset", QHCA_CMD_ALLOC_CNTSET },
    { "dealloc_cntset", QHCA_CMD_DEALLOC_CNTSET },
    { "query_cntset", QHCA_CMD_QUERY_CNTSET },
    { "bind_cntset", QHCA_CMD_BIND_CNTSET },
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
    } else if (service == SVC_VENDOR >> 5) {
        snprintf(buf, NAME_MAX_LEN, "rc.masked_%s", opcode_name[op]);
    } else {
        snprintf(buf, NAME_MAX_LEN, "%s.%s", service_name[service],
                 opcode_name[op]);
    }
    return true;
}

/*
 * Each * stands for anything. Only the last one is tried again, so this takes
 * no longer than the name times the pattern, whatever a guest writes.
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
            name = ++rest;      /* the star stands for one more */
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

bool qhca_fault_kinds(unsigned points, const char *name, size_t len,
                      uint64_t kinds[4])
{
    const struct qhca_fault_name *n = points & 1u << QHCA_FAULT_CQE ?
                                      cqe_names :
                                      points & 1u << QHCA_FAULT_EVENT ?
                                      event_names : cmd_names;
    bool any = false;

    memset(kinds, 0, 4 * sizeof(*kinds));
    if (points & 1u << QHCA_FAULT_TX) {
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
