// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: helpers of all verbs for commands and the user ABI. */
#include "qhca_ib.h"

/**
 * qhca_ib_query - run a query command
 * @dev: the HCA
 * @opcode: the command
 * @obj: object number or port
 * @out: where the answer goes
 * @len: bytes of @out
 *
 * The core lists an object for a moment after the device has destroyed it; with
 * -EAGAIN it leaves that one out and goes on.
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
 * qhca_ib_destroy - destroy an object that windows may keep
 * @dev: the HCA
 * @opcode: the command
 * @obj: the object
 * @pd: the PD whose windows can keep it, or NULL
 *
 * The core sees to all other users. A process can make and bind a window at any time,
 * even while the command waits for its turn. A device that has no reason to refuse is
 * stopped.
 *
 * Context: process.
 * Return: 0; or -EBUSY, and the object lives on.
 */
int qhca_ib_destroy(struct qhca_ib_dev *dev, enum qhca_cmd_opcode opcode, u32 obj,
		    struct qhca_ib_pd *pd)
{
	int gone = pd ? atomic_read(&pd->mw_gone) : 0;
	int ret = qhca_cmd_obj(dev->core, opcode, obj);

	if (!ret)
		return 0;
	/* Equal: all windows there ever were had gone before the device was asked. */
	if (ret == -EBUSY && pd && atomic_read(&pd->mw_made) != gone)
		return ret;
	qhca_cmd_destroy(dev->core, opcode, obj);
	return 0;
}

/**
 * qhca_ib_udata_check - whether a user's request fits this ABI
 * @dev: the HCA
 * @udata: from the user; NULL from the kernel, which asks for nothing
 * @inlen: bytes that the request has here
 *
 * A longer request comes from a newer provider; what it adds must be zero, so
 * that nothing that was asked for is ignored.
 *
 * Return: 0, -EINVAL if something is missing, -EOPNOTSUPP if there is too much.
 */
int qhca_ib_udata_check(struct qhca_ib_dev *dev, struct ib_udata *udata, size_t inlen)
{
	if (!udata)
		return 0;
	if (udata->inlen < inlen)
		return qhca_ib_refuse(dev, -EINVAL, "ABI: request of %zu bytes, needed are %zu",
				      udata->inlen, inlen);
	if (udata->inlen > inlen && !ib_is_udata_cleared(udata, inlen, udata->inlen - inlen))
		return qhca_ib_refuse(dev, -EOPNOTSUPP, "ABI: request of %zu bytes, known are %zu",
				      udata->inlen, inlen);
	return 0;
}

/**
 * qhca_ib_udata_in - take the driver's part of a user's request
 * @dev: the HCA
 * @udata: from the user
 * @req: where to
 * @inlen: bytes of @req
 *
 * Return: 0, as qhca_ib_udata_check(), or -EFAULT.
 */
int qhca_ib_udata_in(struct qhca_ib_dev *dev, struct ib_udata *udata, void *req, size_t inlen)
{
	int ret = qhca_ib_udata_check(dev, udata, inlen);

	return ret ? ret : ib_copy_from_udata(req, udata, inlen);
}

/**
 * qhca_ib_udata_out - give the driver's part of the response to a user
 * @udata: the user's; NULL of the kernel, which gets none
 * @resp: the response
 * @len: bytes of @resp
 *
 * An older provider has room for less and gets what it knows; a newer one has room for
 * more and finds zeroes there.
 *
 * Return: 0 or -EFAULT.
 */
int qhca_ib_udata_out(struct ib_udata *udata, const void *resp, size_t len)
{
	if (!udata)
		return 0;
	if (ib_copy_to_udata(udata, (void *)resp, min(len, udata->outlen)))
		return -EFAULT;
	if (udata->outlen > len && clear_user(udata->outbuf + len, udata->outlen - len))
		return -EFAULT;
	return 0;
}
