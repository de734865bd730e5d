/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, eth: the network card: queues in pairs, segmentation and
 * checksum offload, VLAN tags, and spreading of received frames.
 */
#ifndef QHCA_ENGINE_ETH_H
#define QHCA_ENGINE_ETH_H

#include "../port/port.h"

#define VHCA_MAX_ETHQ       (2 * VHCA_MAX_ETH_PAIRS)
#define VHCA_ETHQ_LOG_MAX   12
#define VHCA_RSS_TYPES      0x3fu
/* A frame to be segmented: 64 KiB of IP and the headers in front of it. */
#define VHCA_MAX_TSO        (65536 + 64)

/*
 * struct vhca_ethq - an Ethernet queue
 * @frags: a frame may take so many WQEs, and begins only if there are as many;
 *         1 when sending, where a frame says itself where it ends
 */
struct vhca_ethq {
    bool used;
    uint8_t log_size, frags;
    uint32_t number, pi, ci;
    struct vhca_cq *cq;
    struct vhca_mem mem;
};

/*
 * The most frames in a segment that is sent whole: 64 KiB with the smallest MSS
 * that IPv4 promises. The network may cut it without a pause between them.
 */
#define VHCA_TSO_WHOLE  128u
#define VHCA_TSO_HDR    256     /* Ethernet, IP and TCP headers with options */

/*
 * struct vhca_tso - a large TCP segment being sent
 *
 * The headers of each frame, made from @hdr, are written in front of its part
 * of the payload, over what has been sent before.
 */
struct vhca_tso {
    bool active;                /* not all of it has been sent */
    bool ipv4;
    uint16_t l3, l4, hdr_len;   /* offsets in @hdr, its length */
    uint16_t mss, pieces;       /* @pieces: frames sent */
    uint32_t payload;           /* where it starts in the gathered data */
    uint32_t len, done;         /* bytes of payload: all, sent */
    uint32_t wire_len;          /* bytes of all frames sent */
    uint8_t hdr[VHCA_TSO_HDR + VHCA_VLAN_ROOM];
};

/*
 * struct vhca_eth_gather - the Ethernet frame being put together
 *
 * It outlives a doorbell: each WQE is read once, with its data, however many
 * doorbells a frame is spread over.
 */
struct vhca_eth_gather {
    bool active;
    uint8_t status;             /* enum qhca_cqe_status of the CQE to come */
    /* From the first fragment: */
    uint16_t flags, vlan_tci, csum_start, csum_offset, mss;
    uint32_t frags;
    uint32_t len;
    uint64_t wr_id;             /* of the last fragment, in guest byte order */
    struct vhca_tso tso;
    uint8_t data[VHCA_VLAN_ROOM + VHCA_MAX_TSO];    /* room to insert a tag */
};

/*
 * struct vhca_rss - an RSS context: how received frames are spread
 * @types: what is hashed; 0: nothing, and the rest is not used
 * @users: flow rules
 * @queue: indices; in context 0 of queues that exist
 */
struct vhca_rss {
    uint8_t types;
    uint16_t users;
    uint8_t key[QHCA_RSS_KEY_LEN];
    uint8_t queue[QHCA_RSS_ENTRIES];
};

/*
 * struct vhca_eth_to - which receive queue gets a frame
 * @direct: the one with index @target, otherwise RSS context @target chooses
 */
struct vhca_eth_to {
    bool direct;
    uint8_t target;
};

/*
 * struct vhca_eth - the queues, by number less 1, see vhca_ethq_at()
 * @tx_busy: a bit for each send queue that may have something to send
 * @tx_next: the send queue whose turn it is
 * @gather: of each send queue; pages that are never used take no memory
 */
struct vhca_eth {
    struct vhca_ethq queue[VHCA_MAX_ETHQ];
    uint32_t tx_busy, tx_next;
    struct vhca_rss rss[1 + QHCA_RSS_CONTEXTS];
    struct vhca_eth_gather gather[VHCA_MAX_ETH_PAIRS];
};

/* Return queue @index of direction @dir, which may not exist. */
static inline struct vhca_ethq *vhca_ethq_at(const struct qhca_engine *e,
                                             unsigned index, unsigned dir)
{
    return &e->eth->queue[2 * index + dir];
}

extern const struct vhca_room vhca_eth_room;

/* ---- queue.c ---- */

/* Check the parameters of CREATE_ETHQ; returns enum qhca_cmd_status. */
int vhca_ethq_check_create(struct qhca_engine *e,
                           const struct qhca_cmd_create_ethq *r);
/* Return queue @number, which may come from the guest, or NULL. */
struct vhca_ethq *vhca_ethq_get(struct qhca_engine *e, uint32_t number);

/* ---- rss.c ---- */

/* Whether context @n may have the queues of the table. */
bool vhca_rss_ok(const struct qhca_engine *e, const struct vhca_rss *rss,
                 unsigned n);
/* Whether receive queue @q is one of those for frames that match no rule. */
bool vhca_rss_uses(const struct qhca_engine *e, const struct vhca_ethq *q);
/* Return RSS context @n, which may come from the guest, or NULL. */
struct vhca_rss *vhca_rss_get(struct qhca_engine *e, uint32_t n);
/*
 * Return the queue for a frame, which may not exist, and put the hash of the
 * frame, if it has one, in @cqe.
 */
struct vhca_ethq *vhca_rss_choose(struct qhca_engine *e, const uint8_t *frame,
                                  size_t len, struct vhca_eth_to to,
                                  struct qhca_cqe *cqe);

/* ---- eth.c ---- */

/* Take the producer index of a queue. */
bool vhca_eth_doorbell(struct qhca_engine *e, const struct vhca_db *db);
/* Note that there may be something to send in the queue. */
void vhca_eth_tx_wake(struct qhca_engine *e, const struct vhca_ethq *q);
/* Take WQEs off the send queues in turn, a frame each, within the budget. */
void vhca_eth_tx_work(struct qhca_engine *e);
/* Whether there may be a send WQE that can be taken, or continued, now. */
bool vhca_eth_tx_ready(const struct qhca_engine *e);
/* Receive a frame for the Ethernet queues. */
void vhca_eth_rx(struct qhca_engine *e, const uint8_t *frame, size_t len,
                 struct vhca_eth_to to, bool csum_ok);
/*
 * Pad a frame of at least ETH_LEN bytes to what Ethernet needs, in a buffer of
 * ETH_MIN_LEN. Returns false if it is too long for the MTU.
 */
bool vhca_eth_fit(const struct qhca_engine *e, uint8_t *frame, uint32_t *len);
/*
 * Whether a frame speaks for a QP. Any program can send UDP: from one of the
 * port's GIDs to RoCE's port, peers elsewhere cannot tell the difference. Only
 * devices make aggregates, which may contain such frames.
 */
bool vhca_eth_speaks_for_qp(const struct qhca_engine *e, const uint8_t *frame,
                            uint32_t len);
/*
 * Send and count a frame of a send queue, whole or segmented. Fails with
 * LOC_QP_OP_ERR if it speaks for a QP, with GENERAL_ERR if there is no room.
 */
enum qhca_cqe_status vhca_eth_send(struct qhca_engine *e, const uint8_t *frame,
                                   uint32_t len);

/*
 * Send a frame that counts as the frames that @cut tells. Returns false if it
 * has to be cut: then vhca_eth_send() says what is wrong, if anything is.
 */
bool vhca_eth_send_long(struct qhca_engine *e, const uint8_t *frame,
                        uint32_t len, const struct qhca_long_frame *how,
                        const struct vhca_cut *cut);

/* ---- scatter.c ---- */

/*
 * Write a received frame without the @tag bytes behind its addresses to the
 * buffers of @wqe, which have room for it. Returns false if one is not memory.
 */
bool vhca_eth_scatter(struct qhca_engine *e, const struct qhca_eth_wqe *wqe,
                      const uint8_t *frame, size_t len, size_t tag);

/* ---- snapshot.c ---- */

void vhca_eth_walk(struct vhca_snap *s);

/* ---- tso.c ---- */

/*
 * For a state that was loaded: whether the headers are at the offsets at which
 * a frame that was gathered as @g has them.
 */
bool vhca_tso_headers_ok(const struct vhca_tso *t,
                         const struct vhca_eth_gather *g);
/* Whether its frames fit a port with this MTU. */
bool vhca_tso_fits(const struct vhca_tso *t, uint32_t mtu);
/* Begin to segment the gathered frame; vhca_tso_send() sends a piece. */
enum qhca_cqe_status vhca_tso_start(struct vhca_eth_gather *g, uint32_t mtu);
enum qhca_cqe_status vhca_tso_send(struct qhca_engine *e,
                                   struct vhca_eth_gather *g);

#endif /* QHCA_ENGINE_ETH_H */
