/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: good inputs of the kinds that fuzz_device.c plays, and
 * changes to their fields.
 */
#include "harness/debug.h"
#include "harness/odp.h"
#include "fuzz_device.h"

#define NUM_OPCODES 64          /* more than the device has */

static size_t put(uint8_t *out, uint8_t kind, uint8_t fix, uint8_t aim,
                  const void *data, size_t len)
{
    return input_put(out, kind, fix, aim, data, len, device_has_data(kind));
}

static size_t put_time(uint8_t *out)
{
    return put(out, DEVICE_TIME, 0, 0, NULL, 60000);
}

/* ---- commands ---- */

/* Fills fields of a command that are not object numbers or buffers. */
static void fill_body(struct qhca_cmd *c, struct qhca_create_qp *qp)
{
    switch (le16toh(c->opcode)) {
    case QHCA_CMD_SET_PORT:
        memcpy(c->set_port.mac, test_mac, sizeof(test_mac));
        c->set_port.port = 1;
        c->set_port.flags = QHCA_PORT_ENABLE;
        c->set_port.mtu = htole32(9000);
        break;
    case QHCA_CMD_SET_GID:
        c->set_gid.port = 1;
        c->set_gid.index = htole16(1);
        break;
    case QHCA_CMD_REG_MR:
    case QHCA_CMD_REREG_MR:
        c->reg_mr.length = htole64(5000);
        c->reg_mr.rereg = QHCA_REREG_TRANS;
        c->reg_mr.buf.num_blocks = htole32(1);
        break;
    case QHCA_CMD_SET_PAGES:
    case QHCA_CMD_CLEAR_PAGES:
        c->pages.key = htole32(2);      /* after the keys of the two users */
        c->pages.num = htole64(1);
        break;
    case QHCA_CMD_ALLOC_MW:
        c->alloc_mw.type = QHCA_MW_1;
        break;
    case QHCA_CMD_CREATE_SRQ:
        c->create_srq.log_stride = 6;
        c->create_srq.log_size = 4;
        break;
    case QHCA_CMD_CREATE_QP:
        qp->type = QHCA_QPT_RC;
        qp->sq_log_stride = 7;
        qp->rq_log_stride = 6;
        qp->sq_log_size = qp->rq_log_size = 4;
        qp->rq.addr = htole64(1);
        qp->uar = htole32(1);
        break;
    case QHCA_CMD_MODIFY_QP:
        c->modify_qp.attr_mask = htole32(QHCA_QP_STATE);
        break;
    case QHCA_CMD_ATTACH_MCAST:
    case QHCA_CMD_DETACH_MCAST:
        c->mcast.gid[0] = 0xff;
        break;
    default:
        break;
    }
}

#define QHCA_CC(id, name, min, max, value)  value,
/* As after a reset, for a host that is little-endian. */
static const uint32_t congestion[] = {
#include "qhca/congestion.def"
};

/* Each command, after some that create the objects it names. */
static size_t command_seed(unsigned n, uint8_t *data)
{
    static const uint8_t before[] = {
        QHCA_CMD_ALLOC_PD, QHCA_CMD_ALLOC_XRCD, QHCA_CMD_ALLOC_CNTSET,
        QHCA_CMD_REG_MR,        /* of type ODP */
    };
    size_t len = 1;

    if (n >= NUM_OPCODES) {
        return 0;
    }
    data[0] = (uint8_t)n;
    for (unsigned i = 0; i <= sizeof(before); i++) {
        struct {
            struct qhca_cmd c;
            struct qhca_create_qp qp;
        } image = { .c = { 0 } };
        unsigned opcode = i < sizeof(before) ? before[i] :
                          device_opcode(n);

        image.c.opcode = htole16((uint16_t)opcode);
        fill_body(&image.c, &image.qp);
        if (i < sizeof(before) && opcode == QHCA_CMD_REG_MR) {
            image.c.reg_mr.type = QHCA_MR_ODP;
        } else if (opcode == QHCA_CMD_SET_PAGES) {
            image.qp.sq.addr = htole64(ODP_ALL);    /* the first page */
        } else if (opcode == QHCA_CMD_SET_CONGESTION) {
            memcpy(&image.qp, &congestion, sizeof(congestion));
        }
        len += put(data + len, DEVICE_COMMAND,
                   DEVICE_FIX_ALL & ~DEVICE_FIX_OPCODE, 0, &image,
                   sizeof(image));
    }
    return len;
}

/* ---- WQEs ---- */

/* A send WQE with @bytes of data; 0: 8 bytes inline. */
static size_t put_wqe(uint8_t *out, uint8_t aim, uint8_t opcode, uint32_t bytes)
{
    uint8_t raw[128] = { 0 };
    struct qhca_sq_wqe w = {
        .opcode = opcode,
        .flags = QHCA_WQE_SIGNALED | (bytes ? 0 : QHCA_WQE_INLINE),
        .count = htole16(bytes ? 1 : 8),
    };
    struct qhca_sge s = {       /* key 2: after the keys of the two users */
        .length = htole32(19000), .lkey = htole32(2),
    };
    size_t len = put(out, DEVICE_RECV, DEVICE_FIX_ALL, 0x11, &s, sizeof(s));

    s.length = htole32(bytes);
    memcpy(raw, &w, sizeof(w));
    memcpy(raw + sizeof(w), &s, bytes ? sizeof(s) : 0);
    return len + put(out + len, DEVICE_SEND, DEVICE_FIX_ALL, aim, raw,
                     sizeof(raw));
}

/* Each opcode, inline or not, after one that is valid for all QPs. */
static size_t wqe_seed(unsigned n, uint8_t *data)
{
    size_t len = 1;

    if (n >= 2 * QHCA_WR_MAX) {
        return 0;
    }
    data[0] = (uint8_t)n;
    len += put_wqe(data + len, 0, QHCA_WR_SEND, 60);
    len += put_time(data + len);
    len += put_wqe(data + len, 0, (uint8_t)(n / 2), n % 2 * 8);
    return len + put_time(data + len);
}

/* ---- doorbells ---- */

static size_t doorbell_seed(unsigned n, uint8_t *data)
{
    size_t len = 1;

    if (n >= 6 * 2) {
        return 0;
    }
    data[0] = (uint8_t)(n / 6);
    for (unsigned i = 0; i < 6; i++) {
        struct device_doorbell db = {
            .page = htole16((uint16_t)(i / 3)),
            .off = htole16((uint16_t)(i < 4 ? n % 6 : 3)),
            .obj = htole32(i), .index = htole32(i),
        };

        len += put(data + len, DEVICE_DOORBELL, DEVICE_FIX_ALL, 0, &db,
                   sizeof(db));
    }
    return len + put_time(data + len);
}

/* ---- tables ---- */

static size_t table_seed(unsigned n, uint8_t *data)
{
    static const uint8_t pd[64] = { QHCA_CMD_ALLOC_PD };
    uint64_t entry[8];
    size_t len = 1;

    if (n >= 32) {
        return 0;
    }
    data[0] = (uint8_t)n;
    for (unsigned i = 0; i < 8; i++) {
        entry[i] = htole64(n & 1 ? 15 - i : i);
    }
    len += put(data + len, DEVICE_TABLE, n & 2 ? 0x6f : 0x4f,
               (uint8_t)(n | (n & 1 ? 0x40 : 0)), entry,
               sizeof(entry));
    len += put(data + len, DEVICE_COMMAND, DEVICE_FIX_ADDR, 0, pd, sizeof(pd));
    for (uint8_t i = 0; i < 4; i++) {
        len += put_wqe(data + len, i & 6, i & 1 ? QHCA_WR_RDMA_WRITE :
                                                  QHCA_WR_SEND, 16384);
    }
    return len + put_time(data + len);
}

/* ---- sessions ---- */

static uint64_t session(const uint8_t *data, size_t size)
{
    struct fuzz f = { .input = data, .input_len = size };

    fuzz_session(&f, FUZZ_STEPS);
    return f.ok + f.refused;
}

/* The random numbers of a seed, for a session of the hostile guest. */
static size_t session_seed(unsigned n, uint8_t *data)
{
    uint64_t rng = n * 0x9e3779b97f4a7c15u + 1;
    size_t i;

    for (i = 0; i < 1000 && n < 8; i++) {
        data[i] = (uint8_t)(test_random(&rng) >> 20);
    }
    return i;
}

/* ---- changes ---- */

/* Changes an aligned field of one, two, four or eight bytes. */
static void change_field(uint8_t kind, uint8_t *data, size_t len, uint64_t *rng)
{
    size_t size = 1u << input_pick(rng, 4);
    size_t off = input_pick(rng, len) & ~(size - 1);
    uint64_t v = input_odd(rng);

    (void)kind;
    while (size-- && off < len) {
        data[off++] = (uint8_t)v;
        v >>= 8;
    }
}

#define DEVICE_INPUT(what, make) \
    const struct input_kind input_##what = { \
        .name = #what, .cfgs = 64, .has_data = device_has_data, \
        .play = device_session, .seed = make, .change = change_field, \
    };

DEVICE_INPUT(commands, command_seed)
DEVICE_INPUT(wqes, wqe_seed)
DEVICE_INPUT(doorbells, doorbell_seed)
DEVICE_INPUT(tables, table_seed)

const struct input_kind input_sessions = {
    .name = "sessions", .cfgs = 1, .play = session, .seed = session_seed,
};
