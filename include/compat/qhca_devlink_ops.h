/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Operations of devlink's parameters in older kernels, whose arguments differ from the driver's
 * functions. Each replaces such a function in congestion.c.
 */
#ifndef QHCA_DEVLINK_OPS_H
#define QHCA_DEVLINK_OPS_H

#ifndef QHCA_HAVE_PARAM_GET_ACK		/* 6.19 */
static int qhca_cc_get_args(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx)
{
	return qhca_cc_get(devlink, id, ctx, NULL);
}

#define qhca_cc_get	qhca_cc_get_args
#endif

#ifndef QHCA_HAVE_PARAM_SET_ACK		/* 6.10 */
static int qhca_cc_set_args(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx)
{
	return qhca_cc_set(devlink, id, ctx, NULL);
}

#define qhca_cc_set	qhca_cc_set_args
#endif

#endif /* QHCA_DEVLINK_OPS_H */
