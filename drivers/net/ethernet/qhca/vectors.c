// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: which completion vectors RDMA and the Ethernet channels have. */
#include "qhca.h"

/**
 * qhca_max_channels - how many Ethernet channels there can be
 * @dev: the function, with its limits known
 *
 * Return: at least 1; no more than there are CPUs.
 */
unsigned int qhca_max_channels(struct qhca_dev *dev)
{
	const struct qhca_limits *l = &dev->limits;
	u32 n = min3(l->max_ethq / 2, dev->num_comp, QHCA_CHANNELS_MAX);
	/* Each has two CQs, and twice as many while it is replaced; some are left for RDMA. */
	return clamp_t(u32, n, 1, max(l->max_cq / 8, 1u));
}

/**
 * qhca_num_eth_cqs - how many of the device's CQs are kept for the network interface
 * @dev: the function
 *
 * Each channel has two, and its successor exists before it goes.
 *
 * Return: number of CQs, less than the device has.
 */
u32 qhca_num_eth_cqs(struct qhca_dev *dev)
{
	return min(4 * qhca_max_channels(dev), dev->limits.max_cq - 1);
}
EXPORT_SYMBOL(qhca_num_eth_cqs);

/**
 * qhca_num_comp_vectors - how many completion vectors RDMA has
 * @dev: the function
 *
 * Return: at least 1.
 */
unsigned int qhca_num_comp_vectors(struct qhca_dev *dev)
{
	return dev->num_comp;
}
EXPORT_SYMBOL(qhca_num_comp_vectors);

/**
 * qhca_eth_comp_vector - completion vector of an Ethernet channel
 * @dev: the function
 * @channel: index of the channel, less than qhca_max_channels()
 *
 * Return: the vector, as in &struct qhca_cq_core.
 */
unsigned int qhca_eth_comp_vector(struct qhca_dev *dev, unsigned int channel)
{
	unsigned int own = dev->num_comp + channel;

	return QHCA_VECTOR_COMP + own < dev->num_eqs ? own : channel % dev->num_comp;
}

/**
 * qhca_comp_irq - interrupt of a completion vector
 * @dev: the function
 * @vector: completion vector
 *
 * Return: number of the interrupt in Linux.
 */
int qhca_comp_irq(struct qhca_dev *dev, unsigned int vector)
{
	return dev->eqs[QHCA_VECTOR_COMP + vector].irq;
}

/**
 * qhca_comp_eqn - number of the event queue of a completion vector
 * @dev: the function
 * @vector: completion vector of RDMA or of an Ethernet channel
 *
 * Return: EQN.
 */
u32 qhca_comp_eqn(struct qhca_dev *dev, unsigned int vector)
{
	return dev->eqs[QHCA_VECTOR_COMP + vector].eqn;
}
