// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: hw_counters of the port. The names are those of enum qhca_counter. */
#include "qhca_ib.h"

static const struct rdma_stat_desc qhca_ib_counters[] = {
	[QHCA_CNT_TX_PKTS].name = "tx_pkts",
	[QHCA_CNT_TX_BYTES].name = "tx_bytes",
	[QHCA_CNT_RX_PKTS].name = "rx_pkts",
	[QHCA_CNT_RX_BYTES].name = "rx_bytes",
	[QHCA_CNT_RX_ICRC].name = "rx_icrc",
	[QHCA_CNT_RX_MALFORMED].name = "rx_malformed",
	[QHCA_CNT_RX_NO_QP].name = "rx_no_qp",
	[QHCA_CNT_RX_BAD_STATE].name = "rx_bad_state",
	[QHCA_CNT_RX_BAD_ADDR].name = "rx_bad_addr",
	[QHCA_CNT_RX_BAD_PKEY].name = "rx_bad_pkey",
	[QHCA_CNT_RX_BAD_QKEY].name = "rx_bad_qkey",
	[QHCA_CNT_RX_DUPLICATE].name = "rx_duplicate",
	[QHCA_CNT_RX_OUT_OF_SEQ].name = "rx_out_of_seq",
	[QHCA_CNT_TX_ACK].name = "tx_ack",
	[QHCA_CNT_TX_NAK_SEQ].name = "tx_nak_seq",
	[QHCA_CNT_TX_NAK_INV_REQ].name = "tx_nak_inv_req",
	[QHCA_CNT_TX_NAK_ACCESS].name = "tx_nak_access",
	[QHCA_CNT_TX_NAK_OP].name = "tx_nak_op",
	[QHCA_CNT_TX_RNR_NAK].name = "tx_rnr_nak",
	[QHCA_CNT_RX_NAK_SEQ].name = "rx_nak_seq",
	[QHCA_CNT_RX_NAK_FATAL].name = "rx_nak_fatal",
	[QHCA_CNT_RX_RNR_NAK].name = "rx_rnr_nak",
	[QHCA_CNT_TIMEOUT].name = "timeout",
	[QHCA_CNT_RETRANSMIT].name = "retransmit",
	[QHCA_CNT_RETRY_EXC].name = "retry_exc",
	[QHCA_CNT_RNR_RETRY_EXC].name = "rnr_retry_exc",
	[QHCA_CNT_CQ_OVERRUN].name = "cq_overrun",
	[QHCA_CNT_BAD_DOORBELL].name = "bad_doorbell",
	[QHCA_CNT_BAD_CMD].name = "bad_cmd",
	[QHCA_CNT_BAD_WQE].name = "bad_wqe",
	[QHCA_CNT_BAD_KEY].name = "bad_key",
	[QHCA_CNT_DMA_ERR].name = "dma_err",
	[QHCA_CNT_BAD_REG].name = "bad_reg",
	[QHCA_CNT_ETH_TX_PKTS].name = "eth_tx_pkts",
	[QHCA_CNT_ETH_TX_BYTES].name = "eth_tx_bytes",
	[QHCA_CNT_ETH_RX_PKTS].name = "eth_rx_pkts",
	[QHCA_CNT_ETH_RX_BYTES].name = "eth_rx_bytes",
	[QHCA_CNT_ETH_RX_NO_BUF].name = "eth_rx_no_buf",
	[QHCA_CNT_ETH_TX_ERR].name = "eth_tx_err",
};

static_assert(ARRAY_SIZE(qhca_ib_counters) == QHCA_CNT_MAX);

/**
 * qhca_ib_alloc_hw_port_stats - alloc_hw_port_stats verb
 * @ibdev: the HCA
 * @port: port number
 */
struct rdma_hw_stats *qhca_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(qhca_ib_counters, ARRAY_SIZE(qhca_ib_counters),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/**
 * qhca_ib_get_hw_stats - get_hw_stats verb
 * @ibdev: the HCA
 * @stats: filled in
 * @port: port number
 * @index: of the one that is wanted; all are read
 *
 * Return: how many were read, or a negative errno.
 */
int qhca_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index)
{
	__le64 values[QHCA_CNT_MAX];
	unsigned int i;
	int ret;

	if (!port)
		return -EINVAL;
	ret = qhca_ib_query(to_qdev(ibdev), QHCA_CMD_QUERY_COUNTERS, port, values,
			    sizeof(values));
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(values); i++)
		stats->value[i] = le64_to_cpu(values[i]);
	return ARRAY_SIZE(values);
}
