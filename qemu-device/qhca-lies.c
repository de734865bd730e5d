/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca PCIe device: lies by name, in test builds only. There is one for each
 * thing that the drivers check before they trust it; selftests/guest/lies.sh
 * knows the effect of each.
 */
#include "qemu/osdep.h"

#include "qhca.h"

#ifdef QHCA_HOSTILE
#include "qemu/log.h"

/* How a field changes; numbers are little-endian. */
typedef enum QHCAHow {
    LIE_SET,
    LIE_ADD,
    LIE_XOR,
    LIE_ONES,                   /* all bits are set, whatever the size */
    LIE_AGAIN,                  /* the value that was told first */
    LIE_COUNT,                  /* a new value each time */
} QHCAHow;

/*
 * struct QHCALie - a field that a lie changes; a lie may change several
 * @name: name of the lie
 * @kind: 1 << enum qhca_told, or QHCA_HOSTILE_*
 * @of: type of data: opcode of the command or CQE, type of the event, size of
 *      the answer in a mailbox, register, vector
 * @offset: offset of the field
 * @size: bytes of the field
 */
typedef struct QHCALie {
    const char *name;
    unsigned kind;
    unsigned of;
    size_t offset, size;
    QHCAHow how;
    uint64_t val;
} QHCALie;

#define LIE(lie, kind, of, type, field, how, val) \
    { lie, kind, of, offsetof(type, field), sizeof_field(type, field), how, \
      val }
#define CMD(lie, op, field, how, val) \
    LIE(lie, 1 << VHCA_TOLD_CMD, QHCA_CMD_##op, struct qhca_cmd_comp, field, \
        LIE_##how, val)
#define MBOX(lie, type, field, how, val) \
    LIE(lie, 1 << VHCA_TOLD_MBOX, sizeof(type), type, field, LIE_##how, val)
#define EQE(lie, type, field, how, val) \
    LIE(lie, 1 << VHCA_TOLD_EQE, QHCA_EVENT_##type, struct qhca_eqe, field, \
        LIE_##how, val)
#define CQE(lie, op, field, how, val) \
    LIE(lie, 1 << VHCA_TOLD_CQE, QHCA_CQE_##op, struct qhca_cqe, field, \
        LIE_##how, val)
#define REG(lie, reg, val) \
    { lie, QHCA_HOSTILE_REG, QHCA_REG_##reg, 0, 4, LIE_SET, val }
#define REG_COUNT(lie, reg) \
    { lie, QHCA_HOSTILE_REG, QHCA_REG_##reg, 0, 4, LIE_COUNT, 0 }
#define NO_IRQ(lie, vector) \
    { lie, QHCA_HOSTILE_IRQ, vector, 0, 4, LIE_SET, UINT32_MAX }
/* A QP's page fault of @kind. */
#define PAGE_FAULT(lie, kind, field, how, val) \
    MBOX(lie, struct qhca_page_faults, fault[QHCA_PAGE_##kind].field, how, val)
/* A limit that leaves nothing to work with. */
#define LIMIT(field, val) \
    MBOX("limit-" #field, struct qhca_device_attr, field, SET, val)

static const QHCALie qhca_lies[] = {
    REG("reg-magic", MAGIC, 0),
    REG("reg-version", VERSION, QHCA_VERSION + (1 << 16)),
    REG("reg-no-reset", STATUS, QHCA_STATE_RUNNING),
    REG("reg-no-start", STATUS, QHCA_STATE_RESET),
    REG("reg-stopped", STATUS, QHCA_STATE_FATAL),
    REG("reg-gone", STATUS, UINT32_MAX),
    REG("reg-gone", MAGIC, UINT32_MAX),
    REG("reg-one-vector", VECTORS, 1),
    REG("reg-no-eq", EQ_CAPS, 0),
    REG("reg-no-page", DB_CAPS, 0),
    REG("reg-stride", DB_CAPS, UINT32_MAX),
    REG("reg-mac", MAC_LO, UINT32_MAX),
    REG("reg-small", CMD_CAPS, 0),
    REG("reg-small", EQ_CAPS, 64),
    REG("reg-huge", CMD_CAPS, UINT32_MAX),
    REG("reg-huge", CMD_TIMEOUT, UINT32_MAX),
    REG("reg-huge", DB_CAPS, UINT16_MAX),
    REG("reg-huge", EQ_CAPS, UINT32_MAX),
    REG("reg-huge", VECTORS, UINT32_MAX),

    LIMIT(max_uar, 0),
    LIMIT(max_gid, 0),
    LIMIT(max_table_blocks, 0),
    LIMIT(max_cqe_log, 5),
    LIMIT(max_ethq_log, 5),
    LIMIT(max_ethq, 2),
    LIMIT(max_send_sge, 0),
    LIMIT(max_recv_sge, 0),
    LIMIT(max_srq_sge, 0),
    LIMIT(max_fast_reg_blocks, 0),
    LIMIT(max_tso, 1),
    LIMIT(max_mcast_grp, 0),
    { "limits-huge", 1 << VHCA_TOLD_MBOX, sizeof(struct qhca_device_attr),
      offsetof(struct qhca_device_attr, max_pd),
      offsetof(struct qhca_device_attr, reserved_lkey) -
      offsetof(struct qhca_device_attr, max_pd), LIE_ONES, 0 },
    { "limits-huge", 1 << VHCA_TOLD_MBOX, sizeof(struct qhca_device_attr),
      offsetof(struct qhca_device_attr, max_msg_size),
      offsetof(struct qhca_device_attr, null_lkey) -
      offsetof(struct qhca_device_attr, max_msg_size), LIE_ONES, 0 },
    MBOX("port-mtu", struct qhca_port_attr, max_mtu, SET, 0),
    MBOX("qp-state", struct qhca_qpc, attr.state, SET, 3),

    CMD("cmd-opcode", ALLOC_PD, opcode, ADD, 1),
    CMD("cmd-slot", ALLOC_PD, slot, SET, UINT16_MAX),
    CMD("cmd-slot-idle", ALLOC_PD, slot, XOR, 1),
    CMD("cmd-token", ALLOC_PD, token, ADD, 1),
    CMD("cmd-status", ALLOC_PD, status, SET, 0xee),
    CMD("cmd-destroy", DEALLOC_PD, status, SET, QHCA_ERR_BUSY),
    CMD("cmd-left", DETACH_MCAST, status, SET, QHCA_ERR_STATE),
    CMD("cmd-modify", MODIFY_QP, status, SET, QHCA_ERR_STATE),
    CMD("cmd-no-number", ALLOC_PD, obj, SET, 0),
    CMD("cmd-big-number", CREATE_CQ, obj, SET, 1 << 24),
    CMD("cmd-no-key", REG_MR, obj, SET, 0),
    CMD("cmd-same-cq", CREATE_CQ, obj, AGAIN, 0),
    CMD("cmd-same-qp", CREATE_QP, obj, AGAIN, 0),
    CMD("cmd-lost", ALLOC_PD, owner, XOR, QHCA_OWNER_PHASE),
    REG("cmd-lost", CMD_TIMEOUT, 0),
    CMD("cmd-busy", ALLOC_PD, owner, XOR, QHCA_OWNER_PHASE),
    REG("cmd-busy", CMD_TIMEOUT, 0),
    REG_COUNT("cmd-busy", CMD_PROGRESS),

    CMD("cc-refused", SET_CONGESTION, status, SET, QHCA_ERR_PARAM),

    CMD("flow-number", CREATE_FLOW, obj, SET, 0),
    CMD("flow-kept", DESTROY_FLOW, status, SET, QHCA_ERR_BUSY),
    CMD("spread-number", CREATE_SPREAD, obj, SET, 1 << 24),
    CMD("spread-kept", DESTROY_SPREAD, status, SET, QHCA_ERR_BUSY),
    CMD("wq-number", CREATE_QP, obj, AGAIN, 0),
    CMD("wq-state", MODIFY_QP, status, SET, QHCA_ERR_STATE),

    CMD("page-kept", CLEAR_PAGES, status, SET, QHCA_ERR_BUSY),
    CMD("page-lost", SET_PAGES, status, SET, QHCA_ERR_OBJ),
    CMD("page-answer", RESUME_QP, status, SET, QHCA_ERR_STATE),
    PAGE_FAULT("page-first", REQUEST, first, ONES, 0),
    PAGE_FAULT("page-behind", REQUEST, first, ADD, 64),
    PAGE_FAULT("page-number", REQUEST, num, ONES, 0),
    PAGE_FAULT("page-none", REQUEST, num, SET, 0),
    PAGE_FAULT("page-open", SEND, open, SET, 1),
    PAGE_FAULT("page-open", RESPONSE, open, SET, 1),
    PAGE_FAULT("page-stranger", REQUEST, key, XOR, 0x100),
    PAGE_FAULT("page-stranger", REQUEST, sn, SET, 0),

    EQE("event-cq", COMP, obj, ADD, 1),
    EQE("event-comp", COMP, type, SET, QHCA_EVENT_QP_FATAL),
    EQE("event-unknown", LINK_DOWN, type, SET, 0xff),
    EQE("event-qp", LINK_DOWN, type, SET, QHCA_EVENT_QP_FATAL),
    EQE("event-srq", LINK_DOWN, type, SET, QHCA_EVENT_SRQ_ERR),
    EQE("event-cq-err", LINK_DOWN, type, SET, QHCA_EVENT_CQ_ERR),
    EQE("event-page", LINK_DOWN, type, SET, QHCA_EVENT_PAGE_FAULT),
    EQE("event-fatal", LINK_DOWN, type, SET, QHCA_EVENT_DEVICE_FATAL),

    NO_IRQ("irq-async", 0),
    NO_IRQ("irq-comp", 1),

    CQE("cqe-qp", SEND, qpn, XOR, 1),
    CQE("cqe-queue", RECV, flags, XOR, QHCA_CQE_SQ),
    CQE("cqe-xrc", RECV, flags, XOR, QHCA_CQE_XRC),
    CQE("cqe-late", SEND, wqe_index, ADD, 1),
    CQE("cqe-early", SEND, wqe_index, ADD, -2),
    CQE("cqe-unsignaled", SEND, wqe_index, ADD, -1),
    CQE("cqe-slot", RECV, wr_id, SET, UINT64_MAX),
    CQE("cqe-slot-idle", RECV, wr_id, ADD, 1),
    CQE("cqe-length", RECV, byte_len, SET, UINT32_MAX),
    CQE("cqe-no-grh", RECV, flags, XOR, QHCA_CQE_GRH),
    CQE("cqe-half-grh", RECV, byte_len, SET, 39),
    CQE("cqe-imm", RECV, opcode, SET, QHCA_CQE_RECV_RDMA_WITH_IMM),
    CQE("cqe-status", SEND, status, SET, 0xff),

    CQE("eth-rx-index", ETH_RX, wqe_index, ADD, 1 << 20),
    CQE("eth-rx-again", ETH_RX, wqe_index, ADD, -1),
    CQE("eth-rx-more", ETH_RX, wqe_index, ADD, 1),
    CQE("eth-rx-long", ETH_RX, byte_len, SET, UINT32_MAX),
    CQE("eth-rx-short", ETH_RX, byte_len, SET, 13),
    CQE("eth-rx-status", ETH_RX, status, SET, 0xff),
    CQE("eth-tx-index", ETH_TX, wqe_index, ADD, 1 << 20),
    CQE("eth-tx-status", ETH_TX, status, SET, 0xff),
};

static void qhca_lie(QHCAHostile *h, const QHCALie *lie, uint8_t *field)
{
    uint64_t val = 0;

    if (lie->how == LIE_ONES) {
        memset(field, 0xff, lie->size);
        return;
    }
    memcpy(&val, field, lie->size);
    val = le64_to_cpu(val);
    switch (lie->how) {
    case LIE_ADD:
        val += lie->val;
        break;
    case LIE_XOR:
        val ^= lie->val;
        break;
    case LIE_AGAIN:
        val = h->first = h->first ?: val;
        break;
    case LIE_COUNT:
        val = h->lies;
        break;
    default:
        val = lie->val;
        break;
    }
    val = cpu_to_le64(val);
    memcpy(field, &val, lie->size);
}

void qhca_dev_tell(QHCAState *s, unsigned kind, unsigned of, void *data)
{
    QHCAHostile *h = &s->hostile;
    const QHCALie *lie;

    if (!h->lie) {
        return;
    }
    for (lie = qhca_lies; lie < qhca_lies + ARRAY_SIZE(qhca_lies); lie++) {
        if (lie->kind == kind && lie->of == of && !strcmp(lie->name, h->lie)) {
            qhca_lie(h, lie, (uint8_t *)data + lie->offset);
            h->lies++;
            qemu_log("%s: a lie: %s\n", s->id, lie->name);
        }
    }
}

/* Return the table's own copy of a name, or NULL. */
const char *qhca_dev_find_lie(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(qhca_lies); i++) {
        if (!strcmp(qhca_lies[i].name, name)) {
            return qhca_lies[i].name;
        }
    }
    return NULL;
}

/* Return all names, separated by spaces. */
char *qhca_dev_lie_names(Object *obj, Error **errp)
{
    GString *names = g_string_new(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(qhca_lies); i++) {
        if (!i || strcmp(qhca_lies[i].name, qhca_lies[i - 1].name)) {
            g_string_append_printf(names, "%s%s", i ? " " : "",
                                   qhca_lies[i].name);
        }
    }
    return g_string_free(names, FALSE);
}
#endif /* QHCA_HOSTILE */
