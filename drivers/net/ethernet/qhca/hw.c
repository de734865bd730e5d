// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: the registers and BARs. */
#include <linux/etherdevice.h>
#include <linux/iopoll.h>

#include "qhca.h"

#define QHCA_HW_POLL_US		1000
#define QHCA_HW_TIMEOUT_US	(2 * USEC_PER_SEC)

/**
 * qhca_hw_identify - check that this is a qhca of a version that the driver knows
 * @dev: the function
 *
 * Return: 0, or -ENODEV.
 */
int qhca_hw_identify(struct qhca_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	u32 magic, version;

	magic = qhca_read_reg(dev, QHCA_REG_MAGIC);
	if (magic != QHCA_MAGIC)
		return dev_err_probe(d, -ENODEV, "not a qhca: magic %#x\n", magic);

	version = qhca_read_reg(dev, QHCA_REG_VERSION);
	if (FIELD_GET(QHCA_VERSION_MAJOR, version) !=
	    FIELD_GET(QHCA_VERSION_MAJOR, QHCA_VERSION) || version < QHCA_VERSION)
		return dev_err_probe(d, -ENODEV, "interface version %#x is not supported\n",
				     version);
	dev->version = version;
	return 0;
}

/**
 * qhca_hw_present - whether registers can be read
 * @dev: the function
 *
 * When the device is gone, the bridge above it answers reads: mostly with all ones, a value that no
 * register but the clock can have; or with zero, which would look like a device in reset.
 *
 * Context: any.
 * Return: false if the device is gone.
 */
bool qhca_hw_present(struct qhca_dev *dev)
{
	return qhca_read_reg(dev, QHCA_REG_MAGIC) == QHCA_MAGIC;
}

/**
 * qhca_hw_reset - reset the device and wait until it is done
 * @dev: the function
 *
 * Context: process.
 *
 * Return: 0 if the device confirms that no object exists and no DMA follows; -ENODEV if it is gone,
 * which stops DMA as well; -ETIMEDOUT if it does not answer.
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
 * @dev: the function, after a reset
 *
 * Return: 0, -EIO if the device refuses, -ETIMEDOUT if it does not answer.
 */
int qhca_hw_enable(struct qhca_dev *dev)
{
	const u32 order = IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) ? QHCA_CONTROL_BIG_ENDIAN : 0;
	u32 state, status;
	int ret;

	qhca_write_base(dev, QHCA_REG_CMD_SQ_LO, dev->cmdq.sq.dma);
	qhca_write_base(dev, QHCA_REG_CMD_CQ_LO, dev->cmdq.cq.dma);
	qhca_write_reg(dev, QHCA_REG_CMD_LOG_SIZE, dev->cmdq.log_size);
	qhca_write_reg(dev, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE | order);

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
 * Return: whether it has.
 */
bool qhca_hw_link_up(struct qhca_dev *dev)
{
	return (qhca_read_reg(dev, QHCA_REG_STATUS) & QHCA_STATUS_LINK_UP) &&
	       qhca_hw_present(dev);
}

/**
 * qhca_hw_mac - read the permanent MAC address
 * @dev: the function
 * @mac: filled in, ETH_ALEN bytes
 */
void qhca_hw_mac(struct qhca_dev *dev, u8 *mac)
{
	u32 lo = qhca_read_reg(dev, QHCA_REG_MAC_LO);
	u32 hi = qhca_read_reg(dev, QHCA_REG_MAC_HI);

	put_unaligned_le32(lo, mac);
	put_unaligned_le16(hi, mac + 4);
}

/**
 * qhca_hw_clock - read the device's clock, between two looks at the system's
 * @dev: the function
 * @sts: filled in, or NULL
 *
 * Context: any.
 * Return: device time in ns.
 */
u64 qhca_hw_clock(struct qhca_dev *dev, struct ptp_system_timestamp *sts)
{
	unsigned long flags;
	u64 lo, hi;

	/* Reading the low half latches the high one, so no other read may come in between. */
	spin_lock_irqsave(&dev->clock_lock, flags);
	ptp_read_system_prets(sts);
	lo = qhca_read_reg(dev, QHCA_REG_CLOCK_LO);
	ptp_read_system_postts(sts);
	hi = qhca_read_reg(dev, QHCA_REG_CLOCK_HI);
	spin_unlock_irqrestore(&dev->clock_lock, flags);
	return hi << 32 | lo;
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
	return qhca_hw_clock(dev, NULL);
}
EXPORT_SYMBOL(qhca_read_clock);

/**
 * qhca_dm_phys - physical address of the device memory
 * @dev: the function
 *
 * Return: the address.
 */
phys_addr_t qhca_dm_phys(struct qhca_dev *dev)
{
	return pci_resource_start(dev->pdev, QHCA_BAR_DM);
}
EXPORT_SYMBOL(qhca_dm_phys);

/**
 * qhca_dm_size - size of the device memory
 * @dev: the function
 *
 * Return: bytes, a power of two; 0 if there is none.
 */
size_t qhca_dm_size(struct qhca_dev *dev)
{
	/* Programs on s390x cannot load from what they map of a device, or store there. */
	if (IS_ENABLED(CONFIG_S390))
		return 0;
	if (!(pci_resource_flags(dev->pdev, QHCA_BAR_DM) & IORESOURCE_MEM))
		return 0;
	return min_t(resource_size_t, pci_resource_len(dev->pdev, QHCA_BAR_DM),
		     QHCA_DM_SIZE_MAX);
}
EXPORT_SYMBOL(qhca_dm_size);
