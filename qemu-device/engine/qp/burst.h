/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what a half of a QP hands out to be sent. */
#ifndef QHCA_ENGINE_QP_BURST_H
#define QHCA_ENGINE_QP_BURST_H

#include "../memory/memory.h"
#include "../wire/wire.h"

/*
 * struct vhca_burst - a packet that a QP sends next, or several of one message
 * @p: the packet; whoever moves it has filled in where it goes
 * @across: it goes to another QP of this port, and its payload can stay where
 *          it is; then it can be that of many packets
 * @unsent: its WR is done with it, but nothing leaves (B-030)
 * @fatal: its QP goes to ERR when it leaves
 * @event: of the QP, then; or 0
 * @view: the payload of one that goes across
 * @frame: that of any other, behind the room for its headers
 */
struct vhca_burst {
    struct roce_packet p;
    bool across, unsent, fatal;
    uint8_t event;
    struct vhca_view view;
    uint8_t frame[ROCE_MAX_FRAME];
};

/* Where the payload of @len bytes goes in the frame; the opcode is known. */
uint8_t *vhca_burst_payload(struct vhca_burst *burst, size_t len);
/*
 * The payload is what is in view of the @left bytes from here to the end of the
 * message, in as many packets as that fills. False: not even one.
 */
bool vhca_burst_in_place(struct vhca_burst *burst, uint32_t mtu, uint64_t left);

#endif /* QHCA_ENGINE_QP_BURST_H */
