// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: helpers for commands and the user ABI, shared by all verbs. */
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
 * qhca_ib_destroy - destroy an object that a window may refer to
 * @dev: the HCA
 * @opcode: the command
 * @obj: the object
 * @pd: the PD of those windows, or NULL
 *
 * The core makes sure that nothing else uses the object, but a process can allocate and bind a
 * window at any time, even while this command is queued. If the device refuses without such a
 * reason, it is declared dead.
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
	/* If equal, every window was freed before the command was posted, so -EBUSY is a lie. */
	if (ret == -EBUSY && pd && atomic_read(&pd->mw_made) != gone)
		return ret;
	qhca_cmd_destroy(dev->core, opcode, obj);
	return 0;
}

/**
 * qhca_ib_udata_check - whether a user's request fits this ABI
 * @dev: the HCA
 * @udata: the user's, or NULL for a kernel consumer, which has no request
 * @inlen: bytes of the request in this version of the ABI
 *
 * A longer request comes from a newer provider. Its additional bytes must be zero, so that no
 * feature is requested and silently ignored.
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
 * @req: filled in
 * @inlen: bytes of @req
 *
 * Return: 0, -EFAULT, or an error of qhca_ib_udata_check().
 */
int qhca_ib_udata_in(struct qhca_ib_dev *dev, struct ib_udata *udata, void *req, size_t inlen)
{
	int ret = qhca_ib_udata_check(dev, udata, inlen);

	return ret ? ret : ib_copy_from_udata(req, udata, inlen);
}

/**
 * qhca_ib_udata_out - copy the driver's part of the response to a user
 * @udata: the user's, or NULL for a kernel consumer, which gets none
 * @resp: the response
 * @len: bytes of @resp
 *
 * An older provider has less room and gets the members that it knows; a newer one has more room and
 * finds zeroes behind them.
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
