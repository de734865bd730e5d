// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: congestion control: its parameters, for devlink. */
#include <net/devlink.h>

#include "qhca.h"

#define QHCA_CC_FIRST_ID	(DEVLINK_PARAM_GENERIC_ID_MAX + 1)

#define QHCA_CC(id, name, min, max, value)	\
	[QHCA_CC_##id] = { name, min, max, value },
static const struct {
	const char *name;
	u32 min, max, value;
} qhca_cc_limits[] = {
#include "qhca/congestion.def"
};

static int qhca_cc_send(struct qhca_dev *dev)
{
	struct qhca_cmd cmd = { .opcode = cpu_to_le16(QHCA_CMD_SET_CONGESTION) };
	struct qhca_congestion cc;
	struct qhca_mbox mbox = { .in = &cc, .in_len = sizeof(cc) };
	unsigned int i;

	for (i = 0; i < QHCA_CC_MAX; i++)
		cc.value[i] = cpu_to_le32(dev->cc[i]);
	return qhca_cmd_exec(dev, &cmd, &mbox, NULL);
}

static int qhca_cc_get(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
		       struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_priv(devlink);

	ctx->val.vu32 = dev->cc[id - QHCA_CC_FIRST_ID];
	return 0;
}

/* A function that is down gets its parameters when it comes up. */
static int qhca_cc_set(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
		       struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_priv(devlink);
	unsigned int i = id - QHCA_CC_FIRST_ID;
	u32 before = dev->cc[i];
	int ret;

	if (ctx->val.vu32 < qhca_cc_limits[i].min || ctx->val.vu32 > qhca_cc_limits[i].max) {
		dev_dbg(&dev->pdev->dev, "%s: %u is not between %u and %u\n",
			qhca_cc_limits[i].name, ctx->val.vu32, qhca_cc_limits[i].min,
			qhca_cc_limits[i].max);
		NL_SET_ERR_MSG(extack, "the value is not between the limits of this parameter");
		return -EINVAL;
	}
	dev->cc[i] = ctx->val.vu32;
	if (!dev->up)
		return 0;
	ret = qhca_cc_send(dev);
	if (ret)
		dev->cc[i] = before;
	return ret;
}

#include <qhca_devlink_ops.h>	/* needed only for older kernels */

#define QHCA_CC(number, name, ...)							\
	DEVLINK_PARAM_DRIVER(QHCA_CC_FIRST_ID + QHCA_CC_##number, name,			\
			     DEVLINK_PARAM_TYPE_U32, BIT(DEVLINK_PARAM_CMODE_RUNTIME),	\
			     qhca_cc_get, qhca_cc_set, NULL),
static const struct devlink_param qhca_cc_params[] = {
#include "qhca/congestion.def"
};

/**
 * qhca_cc_init - start with the values that a device has after a reset
 * @dev: the function
 */
void qhca_cc_init(struct qhca_dev *dev)
{
	unsigned int i;

	for (i = 0; i < QHCA_CC_MAX; i++)
		dev->cc[i] = qhca_cc_limits[i].value;
}

/**
 * qhca_cc_restore - give the device the parameters that it had before a reset
 * @dev: the function, whose limits are known
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_cc_restore(struct qhca_dev *dev)
{
	int ret = qhca_cc_send(dev);

	if (ret)
		dev_err(&dev->pdev->dev, "parameters of congestion control: %d\n", ret);
	return ret;
}

/**
 * qhca_cc_register - let users see and set the parameters
 * @dev: the function, before devlink_register()
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_cc_register(struct qhca_dev *dev)
{
	return devlink_params_register(priv_to_devlink(dev), qhca_cc_params,
				       ARRAY_SIZE(qhca_cc_params));
}

/**
 * qhca_cc_unregister - undo qhca_cc_register()
 * @dev: the function, after devlink_unregister()
 *
 * Context: process.
 */
void qhca_cc_unregister(struct qhca_dev *dev)
{
	devlink_params_unregister(priv_to_devlink(dev), qhca_cc_params,
				  ARRAY_SIZE(qhca_cc_params));
}
