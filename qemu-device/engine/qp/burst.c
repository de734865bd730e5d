/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: payloads of bursts and of packets that have arrived. */
#include "qp.h"

uint8_t *vhca_burst_payload(struct vhca_burst *burst, size_t len)
{
    uint8_t *payload = burst->frame + roce_payload_offset(&burst->p);

    burst->p.payload = payload;
    burst->p.payload_len = len;
    burst->p.num_pieces = 1;
    return payload;
}

static void trim(struct vhca_view *view, size_t len)
{
    while (view->len > len) {
        struct vhca_piece *last = &view->piece[view->num_pieces - 1];
        size_t cut = MIN_OF(view->len - len, last->len);

        last->len -= cut;
        view->len -= cut;
        view->num_pieces -= !last->len;
    }
}

bool vhca_burst_in_place(struct vhca_burst *burst, uint32_t mtu, uint64_t left)
{
    struct vhca_view *view = &burst->view;

    if (view->len < left) {
        trim(view, view->len - view->len % mtu);
    }
    burst->p.num_psn = vhca_packets_of((uint32_t)view->len, mtu);
    burst->p.mtu = mtu;
    burst->p.piece = view->piece;
    burst->p.num_pieces = view->num_pieces;
    burst->p.payload_len = view->len;
    return view->len > 0;
}

enum vhca_mem_result vhca_scatter(struct qhca_engine *e, uint32_t qpn,
                                  const struct vhca_key_user *user,
                                  const struct vhca_seg *segs, unsigned n,
                                  uint64_t off, const struct roce_packet *p)
{
    enum vhca_mem_result result = VHCA_MEM_OK;
    struct vhca_piece at;

    for (size_t i = 0, done = 0; done < p->payload_len && !result;
         i++, done += at.len) {
        at = roce_piece(p, i, done);
        result = vhca_segs_write(e, qpn, user, segs, n, off + done, at.base,
                                 at.len);
    }
    if (p->num_psn == 1 && result != VHCA_MEM_OK) {
        vhca_write_counted(e, result);
    }
    return result;
}
