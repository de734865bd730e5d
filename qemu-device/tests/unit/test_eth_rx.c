/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet queues: receiving.
 */
#include "harness/frames.h"
#include "harness/harness.h"

struct setup {
    struct guest *g;
    struct eth_rx rx;
};

static struct setup start(void)
{
    struct setup s = { .g = guest_start() };
    struct geq eq = eq_create(s.g, 1, 6, 0);

    s.rx = eth_rx_create(s.g, &eq, 4, 1600);
    port_enable(s.g, test_mac, 0, 1500);
    return s;
}

static void simple_rx(void)
{
    struct setup s = start();
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500);
    struct qhca_cqe cqe;
    unsigned i;

    for (i = 0; i < 100; i++) {
        f.data[6] = (uint8_t)i;
        guest_rx(s.g, f.data, f.len);
        REQUIRE(cq_poll(&s.rx.cq, &cqe));
        CHECK_EQ(cqe.status, 0);
        CHECK_EQ(cqe.opcode, QHCA_CQE_ETH_RX);
        CHECK_EQ(le32toh(cqe.byte_len), f.len);
        CHECK_EQ(le32toh(cqe.wqe_index), i);
        CHECK_EQ(le16toh(cqe.flags), QHCA_CQE_CSUM_OK);
        CHECK_EQ(le32toh(cqe.qpn), s.rx.number);
        CHECK(memcmp(guest_ptr(s.g, s.rx.buf[le64toh(cqe.wr_id)], f.len),
                     f.data, f.len) == 0);
        s.rx.cq.ci--;               /* refill polls again */
        eth_rx_refill(&s.rx);
    }
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_RX_PKTS), 100);
}

static void rx_vlan(void)
{
    struct setup s = start();
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500), plain = f;
    struct qhca_cqe cqe;

    frame_add_vlan(&f, 0x6123);
    guest_rx(s.g, f.data, f.len);
    REQUIRE(cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(le16toh(cqe.flags), QHCA_CQE_VLAN | QHCA_CQE_CSUM_OK);
    CHECK_EQ(le16toh(cqe.vlan_tci), 0x6123);
    CHECK_EQ(le32toh(cqe.byte_len), plain.len);
    CHECK(memcmp(guest_ptr(s.g, s.rx.buf[le64toh(cqe.wr_id)], plain.len),
                 plain.data, plain.len) == 0);
    /* A frame that ends in its tag. */
    guest_rx(s.g, f.data, 16);
    REQUIRE(cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(le32toh(cqe.byte_len), 16);
    guest_rx(s.g, f.data, 18);
    REQUIRE(cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(le32toh(cqe.byte_len), 14);
}

/* Tags do not reduce the payload; only the outer one is in the CQE. */
static void rx_stacked(void)
{
    struct setup s = start();
    struct frame f = udp_frame(test_mac, 1, 2, 99, 1472);
    struct qhca_cqe cqe;
    size_t tags;

    for (tags = 1; tags <= 3; tags++) {
        frame_add_vlan(&f, 100);
        f.data[12] = tags == 3 ? 0x81 : 0x88;
        f.data[13] = tags == 3 ? 0x00 : 0xa8;
        guest_rx(s.g, f.data, f.len);
        if (tags == 3) {
            break;
        }
        REQUIRE(cq_poll(&s.rx.cq, &cqe));
        CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
        CHECK_EQ(le16toh(cqe.flags) & QHCA_CQE_VLAN, 0);
        CHECK_EQ(le32toh(cqe.byte_len), 1514 + 4 * tags);
    }
    CHECK(!cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(counter(s.g, QHCA_CNT_RX_LENGTH), 1);
    /* A frame that ends in its header; the network pads those that it may. */
    guest_rx(s.g, f.data, 13);
    CHECK(!cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(counter(s.g, QHCA_CNT_RX_LENGTH), 2);
    CHECK_EQ(counter(s.g, QHCA_CNT_RX_MALFORMED), 0);
}

static void rx_checksums(void)
{
    static const uint8_t v6[16] = { 0xfd, [15] = 9 };
    struct setup s = start();
    struct qhca_cqe cqe;
    struct frame f;

#define TRY(make, change, ok) \
    do { \
        f = make; \
        change; \
        guest_rx(s.g, f.data, f.len); \
        REQUIRE(cq_poll(&s.rx.cq, &cqe)); \
        CHECK_EQ(le16toh(cqe.flags) & QHCA_CQE_CSUM_OK, \
                 (ok) ? QHCA_CQE_CSUM_OK : 0); \
        s.rx.cq.ci--; \
        eth_rx_refill(&s.rx); \
    } while (0)
    TRY(udp_frame(test_mac, 1, 2, 5, 101), (void)0, true);
    TRY(udp_frame(test_mac, 1, 2, 5, 101), f.data[60] ^= 1, false);
    TRY(udp_frame(test_mac, 1, 2, 5, 101), f.data[22] ^= 1, false);   /* TTL */
    TRY(udp_frame(test_mac, 1, 2, 5, 101), f.len -= 1, false);
    TRY(udp_frame(test_mac, 1, 2, 5, 101), f.len += 20, true);        /* pad */
    TRY(udp_frame(test_mac, 1, 2, 5, 101), f.data[40] = f.data[41] = 0, false);
    TRY(udp6_frame(test_mac, v6, 5, 77), (void)0, true);
    TRY(udp6_frame(test_mac, v6, 5, 77), f.data[70] ^= 4, false);
    TRY(udp6_frame(test_mac, v6, 5, 77), f.data[19] = 200, false);
#undef TRY
}

static void rx_no_buffer(void)
{
    struct setup s = start();
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500);
    struct qhca_cqe cqe;
    unsigned i, n = 0;

    CHECK(qhca_engine_can_receive(s.g->e));
    for (i = 0; i < 20; i++) {
        guest_rx(s.g, f.data, f.len);
    }
    CHECK(!qhca_engine_can_receive(s.g->e));
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_RX_NO_BUF), 4);
    while (cq_poll(&s.rx.cq, &cqe)) {
        n++;
    }
    CHECK_EQ(n, 16);
}

static void rx_bad_buffers(void)
{
    struct setup s = start();
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500);
    struct qhca_eth_wqe *w = guest_ptr(s.g, gbuf_addr(&s.rx.ring, 0), 128);
    struct qhca_cqe cqe;

    w[0].length = htole32((uint32_t)f.len - 1);
    w[1].length = htole32((uint32_t)f.len);
    w[2].addr = htole64(UINT64_MAX - 5);
    w[3].addr = htole64(RAM_BASE + RAM_SIZE - 100);
    for (unsigned i = 0; i < 4; i++) {
        guest_rx(s.g, f.data, f.len);
    }
    CHECK(cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_LOC_LEN_ERR);
    CHECK(cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
    CHECK(cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_LOC_PROT_ERR);
    CHECK(cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(cqe.status, QHCA_WC_LOC_PROT_ERR);
    CHECK_EQ(counter(s.g, QHCA_CNT_BAD_WQE), 3);
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_RX_PKTS), 1);
}

/* A queue that replaces another uses the WQEs in its ring from the start. */
static void replacement(void)
{
    struct setup s = start();
    struct geq eq = eq_create(s.g, 2, 6, 0);
    struct gcq cq = cq_create(s.g, &eq, 0, 5);
    struct gbuf ring_buf = guest_buf(s.g, 32 << 5, 12, 1);
    struct qhca_eth_wqe *w = guest_ptr(s.g, gbuf_addr(&ring_buf, 0), 32 << 5);
    struct frame f = udp_frame(test_mac, 1, 2, 99, 500);
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_ETHQ) };
    struct qhca_cqe cqe;
    uint32_t number;

    for (unsigned i = 0; i < 3; i++) {
        w[i].wr_id = htole64(100 + i);
        w[i].addr = htole64(guest_alloc(s.g, 1600, 64));
        w[i].length = htole32(1600);
    }
    guest_rx(s.g, f.data, f.len);
    cmd.create_ethq.buf = ring_buf.desc;
    cmd.create_ethq.cqn = htole32(cq.cqn);
    cmd.create_ethq.log_size = 5;
    cmd.create_ethq.dir = QHCA_ETH_RX;
    cmd.create_ethq.pi = htole32(3);
    cmd.create_ethq.flags = 4;
    CHECK_EQ(guest_cmd(s.g, &cmd, NULL), QHCA_ERR_PARAM);
    cmd.create_ethq.flags = QHCA_ETHQ_REPLACE;
    cmd.create_ethq.pi = htole32(33);
    CHECK_EQ(guest_cmd(s.g, &cmd, NULL), QHCA_ERR_PARAM);
    cmd.create_ethq.pi = htole32(3);
    cmd.create_ethq.log_size = 9;               /* more than the buffer holds */
    CHECK_EQ(guest_cmd(s.g, &cmd, NULL), QHCA_ERR_PARAM);
    guest_rx(s.g, f.data, f.len);               /* the old queue goes on */
    cmd.create_ethq.log_size = 5;
    CHECK_EQ(guest_cmd(s.g, &cmd, &number), QHCA_OK);
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_CQ, cq.cqn), QHCA_ERR_BUSY);
    guest_rx(s.g, f.data, f.len);

    CHECK(cq_poll(&s.rx.cq, &cqe));
    CHECK(cq_poll(&s.rx.cq, &cqe));
    CHECK(!cq_poll(&s.rx.cq, &cqe));
    CHECK_EQ(guest_cmd_obj(s.g, QHCA_CMD_DESTROY_CQ, s.rx.cq.cqn), QHCA_OK);
    REQUIRE(cq_poll(&cq, &cqe));
    CHECK_EQ(le64toh(cqe.wr_id), 100);
    CHECK_EQ(le32toh(cqe.qpn), number);
    CHECK(memcmp(guest_ptr(s.g, le64toh(w[0].addr), f.len), f.data,
                 f.len) == 0);
    ring(s.g, 0, QHCA_DB_ETH, number, 2);       /* backwards */
    CHECK_EQ(counter(s.g, QHCA_CNT_BAD_DOORBELL), 1);
    guest_rx(s.g, f.data, f.len);
    guest_rx(s.g, f.data, f.len);
    CHECK(!qhca_engine_can_receive(s.g->e));
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_RX_PKTS), 5);
    CHECK_EQ(counter(s.g, QHCA_CNT_ETH_RX_NO_BUF), 0);
}

static const struct test tests[] = {
    { "frames and buffers", simple_rx },
    { "the VLAN tag is in the CQE", rx_vlan },
    { "stacked tags", rx_stacked },
    { "checksums", rx_checksums },
    { "without buffers", rx_no_buffer },
    { "bad buffers", rx_bad_buffers },
    { "a queue replaces another", replacement },
};

TEST_MAIN(tests)
