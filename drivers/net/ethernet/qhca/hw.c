// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the registers, and what the device says of itself. */
#include <linux/etherdevice.h>
#include <linux/iopoll.h>

#include "qhca.h"

#define QHCA_HW_POLL_US		1000
#define QHCA_HW_TIMEOUT_US	(2 * USEC_PER_SEC)

/**
 * qhca_hw_identify - check that registers are those this driver was written for
 * @dev: the function
 *
 * Return: 0, or -ENODEV.
 */
int qhca_hw_identify(struct qhca_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	u32 magic, version, pages;

	magic = qhca_read_reg(dev, QHCA_REG_MAGIC);
	if (magic != QHCA_MAGIC)
		return dev_err_probe(d, -ENODEV, "not a qhca: magic %#x\n", magic);

	version = qhca_read_reg(dev, QHCA_REG_VERSION);
	if (FIELD_GET(QHCA_VERSION_MAJOR, version) !=
	    FIELD_GET(QHCA_VERSION_MAJOR, QHCA_VERSION))
		return dev_err_probe(d, -ENODEV, "interface version %#x is not supported\n",
				     version);

	pages = FIELD_GET(QHCA_DB_CAPS_PAGES, qhca_read_reg(dev, QHCA_REG_DB_CAPS));
	dev->num_uars = min_t(u64, pages, pci_resource_len(dev->pdev, QHCA_BAR_DB) /
					  QHCA_DB_PAGE_SIZE);
	return 0;
}

/**
 * qhca_hw_present - whether registers can be read
 * @dev: the function
 *
 * What other reads give when the device is gone is up to the bridge above it: all
 * ones most of the time, which no register but the clock has; or zero, which would
 * look like a device in reset.
 *
 * Context: any.
 * Return: false if the device is gone.
 */
bool qhca_hw_present(struct qhca_dev *dev)
{
	return qhca_read_reg(dev, QHCA_REG_MAGIC) == QHCA_MAGIC;
}

/**
 * qhca_hw_reset - reset the device and see that it is done
 * @dev: the function
 *
 * Context: process.
 * Return: 0 when the device has said that nothing exists and no DMA follows;
 * -ENODEV when it is gone, which stops DMA as well; -ETIMEDOUT when it stays
 * silent.
 */
int qhca_hw_reset(struct qhca_dev *dev)
{
	u32 status;
	int ret;

	qhca_write_reg(dev, QHCA_REG_RESET, QHCA_RESET_KEY);
	ret = read_poll_timeout(qhca_read_reg, status,
				status == U32_MAX ||
				FIELD_GET(QHCA_STATUS_STATE, status) == QHCA_STATE_RESET,
				QHCA_HW_POLL_US, QHCA_HW_TIMEOUT_US, false,
				dev, QHCA_REG_STATUS);
	return qhca_hw_present(dev) ? ret : -ENODEV;
}

static void qhca_write_base(struct qhca_dev *dev, unsigned int reg_lo, dma_addr_t addr)
{
	qhca_write_reg(dev, reg_lo, lower_32_bits(addr));
	qhca_write_reg(dev, reg_lo + 4, upper_32_bits(addr));
}

/**
 * qhca_hw_enable - give the device its command queue and start it
 * @dev: the function, reset before
 *
 * Return: 0, -EIO if the device refuses, -ETIMEDOUT if it stays silent.
 */
int qhca_hw_enable(struct qhca_dev *dev)
{
	u32 state, status;
	int ret;

	qhca_write_base(dev, QHCA_REG_CMD_SQ_LO, dev->cmdq.sq.dma);
	qhca_write_base(dev, QHCA_REG_CMD_CQ_LO, dev->cmdq.cq.dma);
	qhca_write_reg(dev, QHCA_REG_CMD_LOG_SIZE, dev->cmdq.log_size);
	qhca_write_reg(dev, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);

	ret = read_poll_timeout(qhca_read_reg, status,
				FIELD_GET(QHCA_STATUS_STATE, status) != QHCA_STATE_RESET,
				QHCA_HW_POLL_US, QHCA_HW_TIMEOUT_US, false,
				dev, QHCA_REG_STATUS);
	state = FIELD_GET(QHCA_STATUS_STATE, status);
	if (!ret && state != QHCA_STATE_RUNNING)
		ret = -EIO;
	if (ret)
		dev_err(&dev->pdev->dev, "not started: state %u, reason %u\n", state,
			qhca_read_reg(dev, QHCA_REG_FATAL));
	return ret;
}

/**
 * qhca_hw_link_up - whether the port has a carrier
 * @dev: the function
 *
 * Context: any.
 * Return: true if it has.
 */
bool qhca_hw_link_up(struct qhca_dev *dev)
{
	return (qhca_read_reg(dev, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP) &&
	       qhca_hw_present(dev);
}

/**
 * qhca_hw_mac - read the permanent MAC address
 * @dev: the function
 * @mac: where it goes, ETH_ALEN bytes
 */
void qhca_hw_mac(struct qhca_dev *dev, u8 *mac)
{
	u32 lo = qhca_read_reg(dev, QHCA_REG_MAC_LO);
	u32 hi = qhca_read_reg(dev, QHCA_REG_MAC_HI);

	put_unaligned_le32(lo, mac);
	put_unaligned_le16(hi, mac + 4);
}

/**
 * qhca_read_clock - read the device's clock
 * @dev: the function
 *
 * Context: any.
 * Return: device time in ns.
 */
u64 qhca_read_clock(struct qhca_dev *dev)
{
	unsigned long flags;
	u64 lo, hi;

	/* Reading the low half latches the high one: nobody may come between. */
	spin_lock_irqsave(&dev->clock_lock, flags);
	lo = qhca_read_reg(dev, QHCA_REG_CLOCK_LO);
	hi = qhca_read_reg(dev, QHCA_REG_CLOCK_HI);
	spin_unlock_irqrestore(&dev->clock_lock, flags);
	return hi << 32 | lo;
}
EXPORT_SYMBOL(qhca_read_clock);

/**
 * qhca_dm_phys - where device memory is
 * @dev: the function
 *
 * Return: its physical address.
 */
phys_addr_t qhca_dm_phys(struct qhca_dev *dev)
{
	return pci_resource_start(dev->pdev, QHCA_BAR_DM);
}
EXPORT_SYMBOL(qhca_dm_phys);

/**
 * qhca_dm_size - how much device memory there is
 * @dev: the function
 *
 * Return: bytes, a power of two; or 0.
 */
size_t qhca_dm_size(struct qhca_dev *dev)
{
	return pci_resource_len(dev->pdev, QHCA_BAR_DM);
}
EXPORT_SYMBOL(qhca_dm_size);

static void qhca_limits_parse(struct qhca_limits *l, const struct qhca_device_attr *a)
{
	l->fw_version = le64_to_cpu(a->fw_version);
	l->node_guid = le64_to_cpu(a->node_guid);
	l->max_mr_size = le64_to_cpu(a->max_mr_size);
	l->caps = le64_to_cpu(a->caps);
	l->max_pd = le32_to_cpu(a->max_pd);
	l->max_mr = le32_to_cpu(a->max_mr);
	l->max_cq = le32_to_cpu(a->max_cq);
	l->max_qp = le32_to_cpu(a->max_qp);
	l->max_ethq = le32_to_cpu(a->max_ethq);
	l->max_uar = le32_to_cpu(a->max_uar);
	l->max_gid = le32_to_cpu(a->max_gid);
	l->max_mcast = le32_to_cpu(a->max_mcast);
	l->max_table_blocks = le32_to_cpu(a->max_table_blocks);
	l->max_cqe_log = le32_to_cpu(a->max_cqe_log);
	l->max_sq_wr_log = le32_to_cpu(a->max_sq_wr_log);
	l->max_rq_wr_log = le32_to_cpu(a->max_rq_wr_log);
	l->max_ethq_log = le32_to_cpu(a->max_ethq_log);
	l->max_send_sge = le32_to_cpu(a->max_send_sge);
	l->max_recv_sge = le32_to_cpu(a->max_recv_sge);
	l->max_inline = le32_to_cpu(a->max_inline);
	l->max_rd_atomic = le32_to_cpu(a->max_rd_atomic);
	l->reserved_lkey = le32_to_cpu(a->reserved_lkey);
	l->max_msg_size = le32_to_cpu(a->max_msg_size);
	l->max_fast_reg_blocks = le32_to_cpu(a->max_fast_reg_blocks);
	l->max_mw = le32_to_cpu(a->max_mw);
	l->max_srq = le32_to_cpu(a->max_srq);
	l->max_srq_wr_log = le32_to_cpu(a->max_srq_wr_log);
	l->max_srq_sge = le32_to_cpu(a->max_srq_sge);
	l->max_cq_count = le32_to_cpu(a->max_cq_count);
	l->max_cq_period = le32_to_cpu(a->max_cq_period);
	l->max_mcast_grp = le32_to_cpu(a->max_mcast_grp);
	l->max_mcast_qp = le32_to_cpu(a->max_mcast_qp);
	l->max_tso = le32_to_cpu(a->max_tso);
	l->null_lkey = le32_to_cpu(a->null_lkey);
	l->max_cntset = le32_to_cpu(a->max_cntset);
}

/**
 * qhca_hw_query - ask the device for its limits
 * @dev: the function, running
 *
 * Context: process.
 * Return: 0 or the error of the command.
 */
int qhca_hw_query(struct qhca_dev *dev)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_QUERY_DEVICE) };
	struct qhca_device_attr attr;
	struct qhca_mbox mbox = { .out = &attr, .out_len = sizeof(attr) };
	int ret;

	ret = qhca_cmd_exec(dev, &cmd, &mbox, NULL);
	if (ret)
		return ret;
	qhca_limits_parse(&dev->limits, &attr);
	dev->limits.max_uar = min(dev->limits.max_uar, dev->num_uars);
	return 0;
}

/**
 * qhca_pdev - the PCI device of a function
 * @dev: the function
 *
 * Return: the device, without a reference.
 */
struct pci_dev *qhca_pdev(struct qhca_dev *dev)
{
	return dev->pdev;
}
EXPORT_SYMBOL(qhca_pdev);

/**
 * qhca_netdev - the network device of a function's port
 * @dev: the function
 *
 * Return: the netdev, without a reference: it outlives the auxiliary device.
 */
struct net_device *qhca_netdev(struct qhca_dev *dev)
{
	return dev->netdev;
}
EXPORT_SYMBOL(qhca_netdev);

/**
 * qhca_limits - what the device can do
 * @dev: the function
 *
 * Return: limits, constant while an auxiliary driver is bound.
 */
const struct qhca_limits *qhca_limits(struct qhca_dev *dev)
{
	return &dev->limits;
}
EXPORT_SYMBOL(qhca_limits);
