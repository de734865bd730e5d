/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: what a driver and a verbs program do with queue pairs,
 * and a scripted peer that sends and looks at single packets.
 */
#ifndef QHCA_TESTS_RC_H
#define QHCA_TESTS_RC_H

#include "debug.h"
#include "net.h"

#define NODE_MEM    (1u << 20)

/* struct node - a guest, ready to make queue pairs */
struct node {
    struct guest *g;
    unsigned host;              /* last 24 bits of its addresses */
    bool ipv6;
    uint16_t vlan;
    struct geq async, comp;
    uint32_t pdn;
    struct gmr mr;              /* NODE_MEM bytes, every right */
};

/* A new guest on @net; NULL: on no network, for a scripted peer. */
struct node node_new(struct net *net, unsigned host);
/* Creates only the objects, on a guest that runs already. */
struct node node_on(struct guest *g, unsigned host);
/* Sets GID entry 0 according to @ipv6 and @vlan. */
void node_set_gid(struct node *n, bool ipv6, uint16_t vlan);
void node_gid(const struct node *n, uint8_t *gid, uint8_t *mac);

/* struct rc_opts - how QPs are made and connected; RC_OPTS is a good start */
struct rc_opts {
    uint8_t type;               /* enum qhca_qp_type */
    unsigned sq_log, rq_log, cq_log, sges, max_inline, qp_flags;
    uint8_t mtu;                /* 1 to 5 */
    uint8_t rd_atomic, dest_rd_atomic;
    uint8_t timeout, retry, rnr_retry, min_rnr;
    uint16_t access;
    uint32_t sq_psn, rq_psn;
    uint32_t srqn;              /* instead of a receive queue */
    uint32_t xrcdn;             /* of XRC_TGT */
    uint32_t qkey;
    uint32_t uar;               /* doorbell page */
};

#define REMOTE_ALL (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ | \
                    QHCA_ACCESS_REMOTE_ATOMIC | QHCA_ACCESS_FLUSH_GLOBAL)
/* For o.qp_flags: a QP of the kernel's. */
#define KERNEL_QP   QHCA_QP_FLAG_RESERVED_LKEY
#define RC_OPTS ((struct rc_opts) { \
    .type = QHCA_QPT_RC, .sq_log = 6, .rq_log = 6, .cq_log = 8, .sges = 4, \
    .max_inline = 64, .mtu = 3, .rd_atomic = 4, .dest_rd_atomic = 4, \
    .timeout = 10, .retry = 7, .rnr_retry = 7, .min_rnr = 1, \
    .access = REMOTE_ALL, .sq_psn = 0x111111, .rq_psn = 0x222222, \
    .qkey = 0x12345678, .uar = 1 })

/* struct rc_qp - a queue pair with completion queues of its own */
struct rc_qp {
    struct node *n;
    uint32_t qpn;
    struct rc_opts o;
    struct gcq scq, rcq;
    struct gbuf sq, rq;
    unsigned sq_stride, rq_stride;  /* log2 */
    uint32_t sq_pi, rq_pi;
    uint32_t peer_qpn;
    uint8_t peer_gid[16], peer_mac[6];
};

struct rc_qp rc_create(struct node *n, const struct rc_opts *o);
/* A QP that uses @q's CQs. */
struct rc_qp rc_create_shared(const struct rc_qp *q, const struct rc_opts *o);
/* CREATE_QP with the parameters as they are; returns its status. */
int rc_create_raw(struct guest *g, const struct qhca_create_qp *c,
                  uint32_t *qpn);
int rc_modify(struct rc_qp *q, const struct qhca_qp_attr *a, uint32_t mask);
int rc_set_state(struct rc_qp *q, unsigned state);
struct qhca_qpc rc_query(struct rc_qp *q);
unsigned rc_state(struct rc_qp *q);
/* The attributes for all steps, from @q->o and the peer. */
struct qhca_qp_attr rc_attr(const struct rc_qp *q);
/* The row of A.3 of conformance.md; NULL: it has no such step. */
const struct table_a3 *rc_a3(unsigned type, unsigned from, unsigned to);
/* STATE, and what the step to @to requires from the state before it. */
uint32_t rc_step_mask(uint8_t type, unsigned to);
/* From RESET up to @state (INIT, RTR, RTS; SQD and ERR through RTS). */
void rc_bring_up(struct rc_qp *q, unsigned state);
void rc_set_peer(struct rc_qp *q, const struct node *n, uint32_t qpn);
/* A QP in RTS whose peer is the test: QPN 0x77 of @far. */
struct rc_qp rc_scripted(struct node *n, const struct rc_opts *o,
                         const struct node *far);
/* Both to RTS; @b's PSNs are made to match @a's. */
void rc_connect(struct rc_qp *a, struct rc_qp *b);
/* Creates both, and connects them to each other. */
void rc_pair(struct node *n, const struct rc_opts *o, struct rc_qp *a,
             struct rc_qp *b);
/* To SQD, with the event SQ_DRAINED; returns the status of the command. */
int rc_drain(struct rc_qp *q);
int rc_destroy(struct rc_qp *q);
/* ATTACH_MCAST or DETACH_MCAST; returns the status of the command. */
int rc_mcast(const struct rc_qp *q, unsigned opcode, const uint8_t *gid);
bool rc_is_datagram(const struct rc_qp *q);

/* ---- work requests ---- */

struct rc_wr {
    uint64_t wr_id;
    uint8_t opcode, flags;
    uint32_t imm;
    unsigned num_sge;
    struct qhca_seg_le {
        uint64_t addr;
        uint32_t length, lkey;
    } sge[8];
    const void *inline_data;    /* with QHCA_WQE_INLINE */
    unsigned inline_len;
    uint64_t raddr;
    uint32_t rkey;
    uint32_t srqn;              /* XRC */
    uint64_t swap_add, compare;
    uint32_t flush_len;         /* FLUSH: this and the next two */
    uint8_t flush_type, flush_level;
    /* REG_MR, BIND_MW: */
    uint32_t key, mr_key, num_blocks, offset;
    uint64_t addr, length, table;
    unsigned access, block_shift;
    struct qhca_av av;          /* UD: these three */
    uint32_t qpn, qkey;
};

/*
 * A signaled WR with one SGE at @off of the node's memory; on a UD QP it is
 * addressed to the QP's peer.
 */
struct rc_wr rc_wr(const struct rc_qp *q, uint8_t opcode, uint64_t off,
                   uint32_t len);
/* Aims @wr at @off of @n's memory. */
void rc_aim(struct rc_wr *wr, const struct node *n, uint64_t off);
void rc_put(struct rc_qp *q, const struct rc_wr *wr);
void rc_ring(struct rc_qp *q);
void rc_post(struct rc_qp *q, const struct rc_wr *wr);  /* put and ring */
void rc_do(struct rc_qp *q, const struct rc_wr *wr);    /* post and settle */
/* The row of B.1 of conformance.md; NULL: it has no such opcode. */
const struct table_b1 *rc_b1(uint8_t opcode);
/* The opcode that its CQE has on success, from there. */
uint8_t rc_cqe_opcode(const struct rc_wr *wr);
/*
 * Does @wr, which must end with @status, and on success with the opcode above;
 * returns its CQE.
 */
struct qhca_cqe rc_finish(struct rc_qp *q, const struct rc_wr *wr,
                          unsigned status);
/* Does a SEND of the first @len bytes of the node's memory. */
void rc_send(struct rc_qp *q, uint32_t len);
void rc_recv(struct rc_qp *q, uint64_t wr_id, uint64_t off, uint32_t len);
void rc_recv_raw(struct rc_qp *q, uint64_t wr_id, unsigned num_sge,
                 const struct qhca_seg_le *sge);

/* The next CQE must exist and match; returns it. */
struct qhca_cqe rc_expect(struct gcq *cq, uint64_t wr_id, unsigned status);
void rc_expect_none(struct gcq *cq);

/* ---- the scripted peer of a node without a network ---- */

/* A packet from @q's peer to @q. */
struct roce_packet peer_packet(const struct rc_qp *q, uint8_t opcode,
                               uint32_t psn);
/* A request from the peer; RETH, AtomicETH name @off of the node's region. */
struct roce_packet peer_request(const struct rc_qp *q, uint8_t opcode,
                                uint32_t psn, uint64_t off, uint32_t dma_len);
/* A datagram from @q's peer to the addresses of a group. */
struct roce_packet peer_to_group(const struct rc_qp *q, uint32_t psn,
                                 const uint8_t *gid);
void peer_inject(struct rc_qp *q, const struct roce_packet *p,
                 const void *payload, size_t len);
/* Injects a packet with this payload, and nothing else to set. */
void peer_send(struct rc_qp *q, uint8_t opcode, uint32_t psn,
               const void *payload, size_t len);
/* Inject an ACK or a NAK. */
void peer_ack(struct rc_qp *q, uint32_t psn);
void peer_nak(struct rc_qp *q, uint8_t syndrome, uint32_t psn);
/* The next frame @q's guest has sent, parsed; false: no more. */
bool peer_next(struct rc_qp *q, struct roce_packet *p);
/* The next frame must exist and have this opcode and PSN. */
struct roce_packet peer_expect(struct rc_qp *q, uint8_t opcode, uint32_t psn);
void peer_expect_none(struct rc_qp *q);
/* Drops all frames that wait; returns how many. */
unsigned peer_drain(struct rc_qp *q);

#endif /* QHCA_TESTS_RC_H */
