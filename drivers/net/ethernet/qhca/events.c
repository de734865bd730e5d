// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: pass asynchronous events to a notifier chain. */
#include "qhca.h"

/**
 * qhca_event - pass an asynchronous event to the notifiers
 * @dev: the function
 * @type: type of the event
 * @obj: number of the object
 *
 * Context: under the lock of an event queue; process for DEVICE_FATAL.
 */
void qhca_event(struct qhca_dev *dev, enum qhca_event type, u32 obj)
{
	atomic_notifier_call_chain(&dev->events, type, &obj);
}

int qhca_register_events(struct qhca_dev *dev, struct notifier_block *nb)
{
	return atomic_notifier_chain_register(&dev->events, nb);
}
EXPORT_SYMBOL(qhca_register_events);

/**
 * qhca_unregister_events - undo qhca_register_events()
 * @dev: the function
 * @nb: the notifier; it is not running any more when this returns
 *
 * Context: process.
 */
void qhca_unregister_events(struct qhca_dev *dev, struct notifier_block *nb)
{
	atomic_notifier_chain_unregister(&dev->events, nb);
}
EXPORT_SYMBOL(qhca_unregister_events);
