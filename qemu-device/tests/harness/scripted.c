/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scripted.h"

uint8_t data[4096];

void start_responder(const struct rc_opts *o, unsigned state)
{
    start_in(o, state);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 3 + 1);
    }
}

struct roce_packet request(uint8_t opcode, uint32_t psn, uint64_t off,
                           uint32_t dma_len)
{
    return peer_request(&qp, opcode, psn, off, dma_len);
}

void inject(uint8_t opcode, uint32_t psn, size_t len)
{
    struct roce_packet p = request(opcode, psn, 0, (uint32_t)len);

    peer_inject(&qp, &p, data, len);
}

void inject_read(uint32_t psn, uint64_t off, uint32_t len)
{
    struct roce_packet p = request(RC_READ_REQUEST, psn, off, len);

    peer_inject(&qp, &p, NULL, 0);
}

void expect_ack(uint32_t psn, uint32_t msn)
{
    struct roce_packet p = peer_expect(&qp, RC_ACKNOWLEDGE, psn);

    CHECK_EQ(p.syndrome, AETH_ACK);
    CHECK_EQ(p.msn, msn);
    CHECK(!p.ackreq);                                           /* D-010 */
}

void expect_nak(uint8_t syndrome, uint32_t psn)
{
    CHECK_EQ(peer_expect(&qp, RC_ACKNOWLEDGE, psn).syndrome, syndrome);
}

void expect_refusal(uint8_t syndrome, uint32_t psn, unsigned event)
{
    expect_nak(syndrome, psn);
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    if (event) {
        eq_expect(&node.async, event, qp.qpn);
    }
    no_event();                                                 /* H-023 */
    inject(RC_SEND_ONLY, psn, 4);
    peer_expect_none(&qp);                                      /* D-026 */
}

static void put_flags(uint8_t opcode, uint32_t len, uint8_t flags)
{
    struct rc_wr wr = rc_wr(&qp, opcode, 0, len);

    wr.flags = flags;
    rc_aim(&wr, &node, 0);
    rc_put(&qp, &wr);
}

void put(uint8_t opcode, uint32_t len)
{
    put_flags(opcode, len, QHCA_WQE_SIGNALED);
}

void go(void)
{
    rc_ring(&qp);
    guest_settle(g);
}

void post(uint8_t opcode, uint32_t len)
{
    put(opcode, len);
    go();
}

void post_flags(uint8_t opcode, uint32_t len, uint8_t flags)
{
    put_flags(opcode, len, flags);
    go();
}

void answer_read(uint8_t opcode, uint32_t psn, size_t len)
{
    static const uint8_t zeros[4096];

    peer_send(&qp, opcode, psn, zeros, len);
}

void expect_dead(void)
{
    CHECK_EQ(rc_state(&qp), QHCA_QPS_ERR);
    CHECK(g->host.deadline == UINT64_MAX);
    peer_expect_none(&qp);
    rc_expect_none(&qp.scq);
    no_event();                                                 /* H-023 */
}
