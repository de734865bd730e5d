/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qhca device interface: the names under which everyone shows the counters:
 * QEMU's properties, ethtool, and hw_counters of the RDMA port.
 */
#ifndef QHCA_COUNTERS_H
#define QHCA_COUNTERS_H

#include "cmd.h"

static const char *const qhca_counter_names[QHCA_CNT_MAX] = {
	[QHCA_CNT_TX_PKTS] = "tx_pkts",
	[QHCA_CNT_TX_BYTES] = "tx_bytes",
	[QHCA_CNT_RX_PKTS] = "rx_pkts",
	[QHCA_CNT_RX_BYTES] = "rx_bytes",
	[QHCA_CNT_RX_ICRC] = "rx_icrc",
	[QHCA_CNT_RX_MALFORMED] = "rx_malformed",
	[QHCA_CNT_RX_NO_QP] = "rx_no_qp",
	[QHCA_CNT_RX_BAD_STATE] = "rx_bad_state",
	[QHCA_CNT_RX_BAD_ADDR] = "rx_bad_addr",
	[QHCA_CNT_RX_BAD_PKEY] = "rx_bad_pkey",
	[QHCA_CNT_RX_BAD_QKEY] = "rx_bad_qkey",
	[QHCA_CNT_RX_DUPLICATE] = "rx_duplicate",
	[QHCA_CNT_RX_OUT_OF_SEQ] = "rx_out_of_seq",
	[QHCA_CNT_TX_ACK] = "tx_ack",
	[QHCA_CNT_TX_NAK_SEQ] = "tx_nak_seq",
	[QHCA_CNT_TX_NAK_INV_REQ] = "tx_nak_inv_req",
	[QHCA_CNT_TX_NAK_ACCESS] = "tx_nak_access",
	[QHCA_CNT_TX_NAK_OP] = "tx_nak_op",
	[QHCA_CNT_TX_RNR_NAK] = "tx_rnr_nak",
	[QHCA_CNT_RX_NAK_SEQ] = "rx_nak_seq",
	[QHCA_CNT_RX_NAK_FATAL] = "rx_nak_fatal",
	[QHCA_CNT_RX_RNR_NAK] = "rx_rnr_nak",
	[QHCA_CNT_TIMEOUT] = "timeout",
	[QHCA_CNT_RETRANSMIT] = "retransmit",
	[QHCA_CNT_RETRY_EXC] = "retry_exc",
	[QHCA_CNT_RNR_RETRY_EXC] = "rnr_retry_exc",
	[QHCA_CNT_CQ_OVERRUN] = "cq_overrun",
	[QHCA_CNT_BAD_DOORBELL] = "bad_doorbell",
	[QHCA_CNT_BAD_CMD] = "bad_cmd",
	[QHCA_CNT_BAD_WQE] = "bad_wqe",
	[QHCA_CNT_BAD_KEY] = "bad_key",
	[QHCA_CNT_DMA_ERR] = "dma_err",
	[QHCA_CNT_BAD_REG] = "bad_reg",
	[QHCA_CNT_ETH_TX_PKTS] = "eth_tx_pkts",
	[QHCA_CNT_ETH_TX_BYTES] = "eth_tx_bytes",
	[QHCA_CNT_ETH_RX_PKTS] = "eth_rx_pkts",
	[QHCA_CNT_ETH_RX_BYTES] = "eth_rx_bytes",
	[QHCA_CNT_ETH_RX_NO_BUF] = "eth_rx_no_buf",
	[QHCA_CNT_ETH_TX_ERR] = "eth_tx_err",
	[QHCA_CNT_RX_REFUSED] = "rx_refused",
	[QHCA_CNT_RX_ECN_MARKED] = "rx_ecn_marked",
	[QHCA_CNT_RX_CNP] = "rx_cnp",
	[QHCA_CNT_TX_DROPPED] = "tx_dropped",
};

#endif /* QHCA_COUNTERS_H */
