// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: helpers for commands, shared by all verbs. */
#include "qhca_ib.h"

/**
 * qhca_ib_query - run a query command
 * @dev: the HCA
 * @opcode: the command
 * @obj: object number or port
 * @out: filled in with the answer
 * @len: bytes of @out
 *
 * After the device has destroyed an object the core still lists it for a moment. On -EAGAIN the
 * core skips the object.
 *
 * Context: process.
 * Return: 0 or a negative errno; -EAGAIN if the device does not know the object.
 */
int qhca_ib_query(struct qhca_ib_dev *dev, enum qhca_cmd_opcode opcode, u32 obj, void *out,
		  size_t len)
{
	struct qhca_cmd cmd = {
		.opcode = cpu_to_le16(opcode),
		.obj.obj = cpu_to_le32(obj),
	};
	struct qhca_mbox mbox = {
		.out = out,
		.out_len = len,
	};
	int ret = qhca_cmd_exec(dev->core, &cmd, &mbox, NULL);

	return ret == -ENOENT ? -EAGAIN : ret;
}

/**
 * qhca_ib_dereg - deregister a region that a window may refer to
 * @dev: the HCA
 * @key: the region
 * @pd: PD of the region and its windows
 *
 * The core makes sure that nothing else uses the region, but a process can allocate and bind a
 * window at any time, even while this command is queued. If the device refuses without such a
 * reason, it is declared dead.
 *
 * Context: process.
 * Return: 0; or -EBUSY, and the region lives on.
 */
int qhca_ib_dereg(struct qhca_ib_dev *dev, u32 key, struct qhca_ib_pd *pd)
{
	int gone = atomic_read(&pd->mw_gone);
	int ret = qhca_cmd_obj(dev->core, QHCA_CMD_DEREG_MR, key);

	if (!ret)
		return 0;
	/* If equal, every window was freed before the command was posted, so -EBUSY is a lie. */
	if (ret == -EBUSY && atomic_read(&pd->mw_made) != gone)
		return ret;
	qhca_cmd_destroy(dev->core, QHCA_CMD_DEREG_MR, key);
	return 0;
}
