/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: input for fuzz_frames.h: good sessions, and mutations of
 * records, frames and headers.
 */
#include "harness/debug.h"
#include "harness/frames.h"
#include "fuzz_frames.h"

/* ---- good input ---- */

static bool has_data(uint8_t kind)
{
    return kind % FRAMES_KINDS == FRAMES_FRAME;
}

static size_t put_rec(uint8_t *out, uint8_t kind, uint8_t fix, uint8_t aim,
                      const uint8_t *frame, size_t len)
{
    return input_put(out, kind, fix, aim, frame, len, has_data(kind));
}

/* A packet whose numbers and addresses are filled in when it is sent. */
static size_t put_packet(uint8_t *out, uint8_t cfg, uint8_t opcode,
                         uint8_t aim, size_t payload)
{
    struct roce_packet p = {
        .vlan = cfg & FRAMES_CFG_VLAN ? 7 : QHCA_NO_VLAN,
        .ipv4 = !(cfg & FRAMES_CFG_IPV6), .hop_limit = 64, .sport = 0xc123,
        .opcode = opcode, .pkey = PKEY_DEFAULT, .syndrome = AETH_ACK,
        .dma_len = opcode == RC_ATOMIC_WRITE ? 8 : 100,
        .payload_len = payload, .ackreq = true, .flush_type = QHCA_FLUSH_GLOBAL,
    };
    uint8_t frame[MAX_FRAME] = { 0 };

    return put_rec(out, FRAMES_FRAME, FRAMES_FIX_ALL, aim, frame,
                   roce_finish(&p, frame));
}

static bool is_opcode(unsigned opcode)
{
    return roce_opcode((uint8_t)opcode)->op != OP_NONE;
}

/* A session in which every packet of opcode @opcode is valid. */
static size_t opcode_seed(uint8_t cfg, uint8_t opcode, uint8_t *data)
{
    const struct roce_opcode_info *info = roce_opcode(opcode);
    uint8_t service = opcode & SVC_MASK;
    uint8_t qp = service == SVC_UC ? 1 : service == SVC_UD ? 3 :
                 service == SVC_RC ? 0 :
                 info->flags & OPF_RESPONSE ? 9 : 8;
    uint8_t aim = 0x40 | qp;
    size_t mtu = cfg & FRAMES_CFG_SMALL ? 256 : 1024, n = 0;
    size_t payload = info->flags & OPF_PAYLOAD ? 100 : 0;
    uint8_t kind;

    if (payload && !(info->flags & OPF_LAST)) {
        payload = mtu;
    } else if (info->op == OP_CNP) {
        payload = CNP_LEN;
    }
    if (info->op == OP_ATOMIC_WRITE) {
        payload = 8;
    }
    data[n++] = cfg | (info->op == OP_CNP ? FRAMES_CFG_RATES : 0);
    n += put_rec(data + n, FRAMES_RECV, 0, qp, NULL, 5000);
    for (kind = 0; kind < 6 && info->flags & OPF_RESPONSE; kind++) {
        n += put_rec(data + n, FRAMES_SEND, 0, (uint8_t)(kind << 4 | qp), NULL,
                     mtu + 100);
    }
    if (!(info->flags & OPF_FIRST)) {
        n += put_packet(data + n, cfg, service, aim, mtu);
    }
    n += put_packet(data + n, cfg, opcode, aim, payload);
    n += put_packet(data + n, cfg, opcode, aim - 0x10, payload);
    n += put_rec(data + n, FRAMES_TIME, 0, 0, NULL, 60000);
    return n;
}

/* Frames that are not RoCE: for the Ethernet queue. */
static size_t plain_seed(unsigned n, uint8_t *data)
{
    static const uint8_t mac[6] = { 0x52, 0x54, 0, 0, 0, 1 };
    static const uint8_t ip6[16] = { 0xfd, [15] = 1 };
    struct frame f = n & 1 ? udp6_frame(mac, ip6, 99, 200) :
                             udp_frame(mac, 2, 1, 99, 200);

    if (n & 2) {
        frame_add_vlan(&f, 0x6007);
    }
    data[0] = (uint8_t)(n & 8);
    return 1 + put_rec(data + 1, FRAMES_FRAME, FRAMES_FIX_ADDR, 0, f.data,
                       f.len);
}

static size_t frames_seed(unsigned n, uint8_t *data)
{
    unsigned opcode, cfg;

    for (cfg = 0; cfg < 8; cfg++) {
        for (opcode = 0; opcode < 256; opcode++) {
            if (is_opcode(opcode) && n-- == 0) {
                return opcode_seed((uint8_t)cfg, (uint8_t)opcode, data);
            }
        }
    }
    return n < 16 ? plain_seed(n, data) : 0;
}

/* ---- changes ---- */

/* Fields of an IPv4 frame from the Ethernet header on; offset, bytes. */
static const struct {
    uint8_t off, len;
} fields[] = {
    { 0, 6 }, { 12, 2 },                                    /* Ethernet */
    { 14, 1 }, { 15, 1 }, { 16, 2 }, { 20, 2 }, { 23, 1 },  /* IPv4 */
    { 30, 4 },
    { 36, 2 }, { 38, 2 },                                   /* UDP */
    { 42, 1 }, { 43, 1 }, { 44, 2 }, { 47, 3 }, { 50, 1 }, { 51, 3 }, /* BTH */
    { 54, 8 }, { 54, 1 }, { 57, 1 }, { 58, 4 }, { 62, 4 },  /* FETH, RETH … */
    { 66, 4 }, { 66, 8 }, { 74, 8 },
};

static void change_field(uint8_t kind, uint8_t *frame, size_t len,
                         uint64_t *rng)
{
    unsigned which = (unsigned)input_pick(rng, ARRAY_SIZE(fields));
    size_t off = fields[which].off, n = fields[which].len;
    uint64_t v = input_odd(rng);

    (void)kind;
    if (off >= 14 && len > 14 && frame[12] == 0x81) {
        off += VLAN_LEN;
    }
    if (off >= 34 && len > 14 && frame[12] != 0x08) {
        off += IPV6_LEN - IPV4_LEN;
    }
    while (n-- && off < len) {
        frame[off++] = (uint8_t)v;
        v >>= 8;
    }
}

const struct input_kind input_frames = {
    .name = "frames",
    .cfgs = FRAMES_CFG_ALL + 1,
    .has_data = has_data,
    .play = frames_session,
    .seed = frames_seed,
    .change = change_field,
};
