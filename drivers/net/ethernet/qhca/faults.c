// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca.ko: fault rules of the device, in debugfs, for developers who must see what their software
 * does when the network or the adapter misbehaves. The file exists only if the operator of the
 * device allows it.
 */
#include <linux/debugfs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "qhca.h"

static struct dentry *qhca_debugfs;

/* Each write replaces all rules; an empty one, or a newline alone, clears them. */
static ssize_t qhca_faults_write(struct file *file, const char __user *buf, size_t len,
				 loff_t *pos)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_SET_FAULTS) };
	struct qhca_mbox mbox = {};
	char *text;
	int ret;

	if (len >= sizeof(struct qhca_faults_text))
		return -E2BIG;
	text = memdup_user_nul(buf, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mbox.in = text;
	mbox.in_len = len + 1;
	ret = qhca_cmd_exec(file->private_data, &cmd, &mbox, NULL);
	kfree(text);
	return ret ?: len;
}

static ssize_t qhca_faults_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_QUERY_FAULTS) };
	struct qhca_mbox mbox = { .out_len = sizeof(struct qhca_faults_text) };
	char *text;
	ssize_t ret;

	text = kmalloc(mbox.out_len, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	mbox.out = text;
	ret = qhca_cmd_exec(file->private_data, &cmd, &mbox, NULL);
	if (!ret)
		ret = simple_read_from_buffer(buf, len, pos, text, strnlen(text, mbox.out_len));
	kfree(text);
	return ret;
}

static const struct file_operations qhca_faults_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = qhca_faults_read,
	.write = qhca_faults_write,
	.llseek = default_llseek,
};

/**
 * qhca_faults_add - create the file if the device supports fault rules
 * @dev: the function, up
 */
void qhca_faults_add(struct qhca_dev *dev)
{
	if (!(dev->limits.caps & QHCA_CAP_FAULTS))
		return;
	dev->debugfs = debugfs_create_dir(pci_name(dev->pdev), qhca_debugfs);
	debugfs_create_file("faults", 0600, dev->debugfs, dev, &qhca_faults_fops);
}

/**
 * qhca_faults_del - remove the file; returns when no process uses it any more
 * @dev: the function
 */
void qhca_faults_del(struct qhca_dev *dev)
{
	debugfs_remove(dev->debugfs);
	dev->debugfs = NULL;
}

/* qhca_faults_init - create the driver's folder in debugfs */
void qhca_faults_init(void)
{
	qhca_debugfs = debugfs_create_dir(QHCA_DRV_NAME, NULL);
}

/* qhca_faults_exit - remove the driver's folder in debugfs */
void qhca_faults_exit(void)
{
	debugfs_remove(qhca_debugfs);
}
