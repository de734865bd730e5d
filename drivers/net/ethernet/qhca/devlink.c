// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: devlink: what the device is, why it has failed, and restarts of it. */
#include <net/devlink.h>

#include "qhca.h"

/*
 * A device that fails again so soon after a restart stays as it is: endless restarts would keep its
 * users, and the administrator of the netdev, from working.
 */
#define QHCA_GRACE_MS		1000

/* ---- on demand ---- */

static int qhca_devlink_info(struct devlink *devlink, struct devlink_info_req *req,
			     struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_priv(devlink);
	char version[32];
	int ret;

	qhca_fw_text(&dev->limits, version, sizeof(version));
	ret = devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, version);
	if (ret)
		return ret;
	snprintf(version, sizeof(version), "%u.%u", FIELD_GET(QHCA_VERSION_MAJOR, dev->version),
		 FIELD_GET(QHCA_VERSION_MINOR, dev->version));
	return devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW_MGMT_API,
						version);
}

static int qhca_devlink_may_start(struct qhca_dev *dev, struct netlink_ext_ack *extack)
{
	int ret = qhca_may_start(dev);

	if (ret)
		NL_SET_ERR_MSG(extack, "the function is being reset, or the machine goes down");
	return ret;
}

static int qhca_devlink_reload_down(struct devlink *devlink, bool netns_change,
				    enum devlink_reload_action action,
				    enum devlink_reload_limit limit,
				    struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_priv(devlink);
	int ret;

	if (netns_change) {
		NL_SET_ERR_MSG(extack, "the network device has a namespace of its own");
		return -EOPNOTSUPP;
	}
	ret = qhca_devlink_may_start(dev, extack);
	if (!ret)
		qhca_detach(dev);
	return ret;
}

static int qhca_devlink_reload_up(struct devlink *devlink, enum devlink_reload_action action,
				  enum devlink_reload_limit limit, u32 *actions_performed,
				  struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_priv(devlink);
	int ret = qhca_attach(dev);

	qhca_devlink_started(dev, ret);
	if (ret) {
		NL_SET_ERR_MSG(extack, "the device does not start");
		return ret;
	}
	*actions_performed = BIT(action);
	return 0;
}

static const struct devlink_ops qhca_devlink_ops = {
	.info_get = qhca_devlink_info,
	.reload_actions = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down = qhca_devlink_reload_down,
	.reload_up = qhca_devlink_reload_up,
};

/* ---- failures ---- */

static int qhca_reporter_dump(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			      void *priv_ctx, struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_health_reporter_priv(reporter);

	devlink_fmsg_string_pair_put(fmsg, "reason", dev->health.reason ?: "none");
	devlink_fmsg_u32_pair_put(fmsg, "fatal", dev->health.fatal);
	devlink_fmsg_u32_pair_put(fmsg, "status", dev->health.status);
	devlink_fmsg_u32_pair_put(fmsg, "cmd_progress", dev->health.cmd_progress);
	return 0;
}

static int qhca_reporter_diagnose(struct devlink_health_reporter *reporter,
				  struct devlink_fmsg *fmsg, struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_health_reporter_priv(reporter);
	static const char *const states[] = {
		[QHCA_DEV_DOWN] = "down", [QHCA_DEV_RUNNING] = "running", [QHCA_DEV_DEAD] = "dead",
	};

	devlink_fmsg_string_pair_put(fmsg, "state", states[atomic_read(&dev->state)]);
	return 0;
}

/* Bring a dead device back, as a reset by hand does. */
static int qhca_reporter_recover(struct devlink_health_reporter *reporter, void *priv_ctx,
				 struct netlink_ext_ack *extack)
{
	struct qhca_dev *dev = devlink_health_reporter_priv(reporter);
	int ret = qhca_devlink_may_start(dev, extack);

	if (ret)
		return ret;
	if (dev->up && !qhca_is_dead(dev))
		return 0;
	qhca_detach(dev);
	return qhca_attach(dev);
}

static const struct devlink_health_reporter_ops qhca_reporter_ops = {
	.name = "hca",
#ifdef QHCA_HAVE_DEFAULT_PERIOD
	.default_graceful_period = QHCA_GRACE_MS,
#endif
	.dump = qhca_reporter_dump,
	.diagnose = qhca_reporter_diagnose,
	.recover = qhca_reporter_recover,
};

static void qhca_devlink_report(struct work_struct *work)
{
	struct qhca_dev *dev = container_of(work, struct qhca_dev, health.report);
	bool failed;
	int ret;

	if (!READ_ONCE(dev->health.watched))
		return;
	/* Wait for a restart that is under way: it may mend the failure, or have caused it. */
	qhca_lock(dev);
	failed = dev->up ? qhca_is_dead(dev) : dev->health.failed && !qhca_may_start(dev);
	qhca_unlock(dev);
	if (!failed)
		return;
	ret = devlink_health_report(dev->health.reporter, dev->health.reason ?: "unknown", dev);
	if (ret)
		dev_warn(&dev->pdev->dev, "not restarted: %d\n", ret);
	/* A reset may have been faster. */
	qhca_lock(dev);
	if (dev->up && !qhca_is_dead(dev))
		qhca_devlink_started(dev, 0);
	qhca_unlock(dev);
}

/**
 * qhca_devlink_started - tell devlink that the device works again, or does not
 * @dev: the function
 * @ret: what qhca_attach() has returned
 *
 * One that has failed while it started may be restarted, as one that fails later. One that does not
 * start for another reason needs an administrator.
 *
 * Context: process, under qhca_lock().
 */
void qhca_devlink_started(struct qhca_dev *dev, int ret)
{
	if (!dev->health.watched)
		return;
	if (ret && dev->health.failed)
		schedule_work(&dev->health.report);
	else
		devlink_health_reporter_state_update(dev->health.reporter,
						     ret ? DEVLINK_HEALTH_REPORTER_STATE_ERROR :
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

/* ---- life ---- */

/**
 * qhca_devlink_alloc - allocate the function, as part of its devlink instance
 * @pdev: its PCI device
 *
 * Return: the function, zeroed, or NULL.
 */
struct qhca_dev *qhca_devlink_alloc(struct pci_dev *pdev)
{
	struct devlink *devlink = devlink_alloc(&qhca_devlink_ops, sizeof(struct qhca_dev),
						&pdev->dev);
	struct qhca_dev *dev;

	if (!devlink)
		return NULL;
	dev = devlink_priv(devlink);
	INIT_WORK(&dev->health.report, qhca_devlink_report);
	return dev;
}

/**
 * qhca_devlink_free - undo qhca_devlink_alloc()
 * @dev: the function
 */
void qhca_devlink_free(struct qhca_dev *dev)
{
	cancel_work_sync(&dev->health.report);
	devlink_free(priv_to_devlink(dev));
}

/**
 * qhca_devlink_register - let users see the function, and restart it
 * @dev: the function, up
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int qhca_devlink_register(struct qhca_dev *dev)
{
	struct devlink *devlink = priv_to_devlink(dev);
	int ret = qhca_cc_register(dev);

	if (ret)
		return ret;
	dev->health.reporter = devlink_health_reporter_create(devlink, &qhca_reporter_ops, dev);
	if (IS_ERR(dev->health.reporter)) {
		qhca_cc_unregister(dev);
		return PTR_ERR(dev->health.reporter);
	}
	devlink_register(devlink);
	WRITE_ONCE(dev->health.watched, true);
	/* It may have failed before. */
	if (qhca_is_dead(dev))
		schedule_work(&dev->health.report);
	return 0;
}

/**
 * qhca_devlink_unregister - undo qhca_devlink_register(): neither users nor a failure restart it
 * @dev: the function
 *
 * Context: process.
 */
void qhca_devlink_unregister(struct qhca_dev *dev)
{
	WRITE_ONCE(dev->health.watched, false);
	cancel_work_sync(&dev->health.report);
	devlink_unregister(priv_to_devlink(dev));
	devlink_health_reporter_destroy(dev->health.reporter);
	qhca_cc_unregister(dev);
}

/**
 * qhca_lock - keep restarts of the function apart
 * @dev: the function
 *
 * Context: process; under the lock of the PCI device, or of nothing.
 */
void qhca_lock(struct qhca_dev *dev)
{
	devl_lock(priv_to_devlink(dev));
}

/**
 * qhca_unlock - undo qhca_lock()
 * @dev: the function
 */
void qhca_unlock(struct qhca_dev *dev)
{
	devl_unlock(priv_to_devlink(dev));
}
