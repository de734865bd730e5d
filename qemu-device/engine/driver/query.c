/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: what the device tells about itself: limits and counters. */
#include "driver.h"
#include "../eth/eth.h"

#define FW_VERSION  ((uint64_t)0 << 32 | (uint64_t)1 << 16 | 0)

/* Modified EUI-64 of the permanent MAC, first byte most significant. */
static uint64_t node_guid(const uint8_t *mac)
{
    const uint8_t eui[8] = {
        (uint8_t)(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4],
        mac[5],
    };
    uint64_t guid = 0;

    for (unsigned i = 0; i < sizeof(eui); i++) {
        guid = guid << 8 | eui[i];
    }
    return guid;
}

int vhca_do_query_device(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_device_attr attr = {
        .fw_version = htole64(FW_VERSION),
        .node_guid = htole64(node_guid(e->cfg.mac)),
        .max_mr_size = htole64(VHCA_MAX_MR_SIZE),
        .caps = htole64((e->cfg.guest_faults ? QHCA_CAP_FAULTS : 0) |
                        (e->cfg.shadow ? QHCA_CAP_SHADOW : 0)),
        .max_pd = htole32(VHCA_MAX_PD),
        .max_mr = htole32(VHCA_MAX_MR),
        .max_cq = htole32(VHCA_MAX_CQ),
        .max_qp = htole32(e->cfg.max_qp),
        .max_ethq = htole32(2 * e->cfg.eth_queues),
        .max_uar = htole32(e->cfg.num_uars),
        .max_gid = htole32(VHCA_MAX_GID),
        .max_mcast = htole32(VHCA_MAX_MCAST),
        .max_mcast_grp = htole32(VHCA_MAX_MCAST_GRP),
        .max_mcast_qp = htole32(VHCA_MAX_MCAST_QP),
        .max_table_blocks = htole32(VHCA_MAX_TABLE_BLOCKS),
        .max_cqe_log = htole32(VHCA_CQ_LOG_MAX),
        .max_sq_wr_log = htole32(VHCA_WQ_LOG_MAX),
        .max_rq_wr_log = htole32(VHCA_WQ_LOG_MAX),
        .max_ethq_log = htole32(VHCA_ETHQ_LOG_MAX),
        .max_send_sge = htole32(QHCA_MAX_SEND_SGE),
        .max_recv_sge = htole32(QHCA_MAX_RECV_SGE),
        .max_inline = htole32(QHCA_MAX_INLINE),
        .max_rd_atomic = htole32(VHCA_MAX_RD_ATOMIC),
        .reserved_lkey = htole32(VHCA_RESERVED_LKEY),
        .max_msg_size = htole32(VHCA_MAX_MSG),
        .max_fast_reg_blocks = htole32(VHCA_MAX_FAST_REG),
        .max_mw = htole32(VHCA_MAX_MW),
        .max_srq = htole32(VHCA_MAX_SRQ),
        .max_srq_wr_log = htole32(VHCA_SRQ_LOG_MAX),
        .max_srq_sge = htole32(QHCA_MAX_RECV_SGE),
        .max_cq_count = htole32(VHCA_MAX_CQ_COUNT),
        .max_cq_period = htole32(VHCA_MAX_CQ_PERIOD),
        .max_tso = htole32(VHCA_MAX_TSO),
        .max_xrcd = htole32(VHCA_MAX_XRCD),
        .null_lkey = htole32(VHCA_NULL_LKEY),
        .max_cntset = htole32(VHCA_MAX_CNTSET),
    };

    memcpy(c->mbox, &attr, sizeof(attr));
    return QHCA_OK;
}

int vhca_do_nop(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    (void)e;
    (void)c;
    return QHCA_OK;
}
