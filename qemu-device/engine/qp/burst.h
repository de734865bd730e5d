/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: packets that a half of a QP hands out to be sent. */
#ifndef QHCA_ENGINE_QP_BURST_H
#define QHCA_ENGINE_QP_BURST_H

#include "../memory/memory.h"
#include "../wire/wire.h"

/*
 * struct vhca_burst - the next packet that a QP sends, or several of a message
 * @p: the packet; the link has filled in where it goes
 * @crosses: it goes to another QP of this port, and its payload stays where it
 *          is, so it can stand for many packets
 * @unsent: its WR goes on, but nothing is sent (B-030)
 * @fatal: the QP goes to ERR when it has been sent, with @event, or 0
 * @view: the payload, if it goes across
 * @frame: else: room for the headers, and the payload
 */
struct vhca_burst {
    struct roce_packet p;
    bool crosses, unsent, fatal;
    uint8_t event;
    struct vhca_view view;
    uint8_t frame[ROCE_MAX_FRAME];
};

/* Return where in the frame a payload of @len bytes goes; opcode is set. */
uint8_t *vhca_burst_payload(struct vhca_burst *burst, size_t len);
/*
 * Use the view as payload, of a message that has @left bytes more: as many
 * packets as it fills. Returns false if it does not fill one.
 */
bool vhca_burst_in_place(struct vhca_burst *burst, uint32_t mtu, uint64_t left);
/*
 * Scatter the payload of @p over @segs, from byte @off on. A failure is not
 * counted if @p stands for several packets.
 */
enum vhca_mem_result vhca_scatter(struct qhca_engine *e, uint32_t qpn,
                                  const struct vhca_key_user *user,
                                  const struct vhca_seg *segs, unsigned n,
                                  uint64_t off, const struct roce_packet *p);

#endif /* QHCA_ENGINE_QP_BURST_H */
