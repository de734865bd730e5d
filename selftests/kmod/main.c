// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of verbs in the kernel. Reading the file "run" in the directory qhca_kverbs_test of debugfs
 * runs the tests and prints their report, KTAP. Some tests have files of their own: "death" waits
 * until the device is broken from outside; "flush" and "last" break it themselves, "last" with a
 * fault rule that loses an event; "stop" needs a device that refuses to stop a QP; "load" needs
 * adaptive moderation on, "received" pings that are answered. The file "lies" is for a device that
 * lies, see lies.c.
 *
 *	insmod qhca_kverbs_test.ko device=qhca0 gid_index=1
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "kverbs.h"

MODULE_DESCRIPTION("Tests of verbs as kernel consumers use them");
MODULE_LICENSE("GPL");

static char *device = "qhca0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device to test");

static int gid_index;
module_param(gid_index, int, 0444);
MODULE_PARM_DESC(gid_index, "GID to connect with");

static DEFINE_MUTEX(kv_lock);	/* kv_dev; held while tests run */
static struct ib_device *kv_dev;
static struct dentry *kv_dir;

static const struct kv_test *const kv_lists[] = {
	kv_arm_tests, kv_cq_tests, kv_fast_tests, kv_handler_tests, kv_lost_tests,
	kv_place_tests, kv_refused_tests, kv_restrack_tests, kv_rings_tests, kv_srq_tests,
	kv_txq_tests, kv_xrc_tests,
};

/* Further files and their tests. */
static const struct {
	const char *name;
	const struct kv_test *tests;
} kv_files[] = {
	{ "death", kv_death_tests },
	{ "flush", kv_flush_tests },
	{ "last", kv_last_tests },
	{ "load", kv_dim_tests },
	{ "received", kv_rxq_tests },
	{ "stop", kv_stop_tests },
};

static void kv_run(struct kv *kv, const struct kv_test *t, unsigned int n)
{
	kv->failed = false;
	kv->skip = NULL;
	t->fn(kv);
	if (kv->skip && !kv->failed)
		seq_printf(kv->m, "ok %u - %s # SKIP %s\n", n, t->name, kv->skip);
	else
		seq_printf(kv->m, "%sok %u - %s\n", kv->failed ? "not " : "", n, t->name);
}

static void kv_run_lists(struct seq_file *m, const struct kv_test *const *lists,
			 unsigned int num)
{
	struct kv kv = { .gid_index = gid_index, .m = m };
	const struct kv_test *t;
	unsigned int i, n = 0;

	mutex_lock(&kv_lock);
	kv.dev = kv_dev;
	seq_puts(m, "KTAP version 1\n");
	for (i = 0; kv.dev && i < num; i++)
		for (t = lists[i]; t->name && !fatal_signal_pending(current); t++)
			kv_run(&kv, t, ++n);
	seq_printf(m, "1..%u\n", n);
	mutex_unlock(&kv_lock);
}

static int kv_run_show(struct seq_file *m, void *unused)
{
	kv_run_lists(m, kv_lists, ARRAY_SIZE(kv_lists));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kv_run);

static int kv_file_show(struct seq_file *m, void *unused)
{
	const struct kv_test *tests = m->private;

	kv_run_lists(m, &tests, 1);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kv_file);

static int kv_lies_show(struct seq_file *m, void *unused)
{
	struct kv kv = { .gid_index = gid_index, .m = m };

	mutex_lock(&kv_lock);
	kv.dev = kv_dev;
	if (kv.dev)
		kv_lies(&kv);
	mutex_unlock(&kv_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kv_lies);

static int kv_add(struct ib_device *dev)
{
	if (strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	mutex_lock(&kv_lock);
	kv_dev = dev;
	mutex_unlock(&kv_lock);
	return 0;
}

static void kv_remove(struct ib_device *dev, void *data)
{
	mutex_lock(&kv_lock);
	kv_dev = NULL;
	mutex_unlock(&kv_lock);
}

static struct ib_client kv_client = {
	.name = "qhca_kverbs_test",
	.add = kv_add,
	.remove = kv_remove,
};

static int __init kv_init(void)
{
	int ret = kv_mads_slow();
	size_t i;

	if (ret)
		return ret;
	ret = ib_register_client(&kv_client);
	if (ret) {
		kv_mads_fast();
		return ret;
	}
	kv_dir = debugfs_create_dir("qhca_kverbs_test", NULL);
	debugfs_create_file("run", 0400, kv_dir, NULL, &kv_run_fops);
	debugfs_create_file("lies", 0400, kv_dir, NULL, &kv_lies_fops);
	for (i = 0; i < ARRAY_SIZE(kv_files); i++)
		debugfs_create_file(kv_files[i].name, 0400, kv_dir,
				    (void *)kv_files[i].tests, &kv_file_fops);
	return 0;
}
module_init(kv_init);

static void __exit kv_exit(void)
{
	debugfs_remove(kv_dir);
	ib_unregister_client(&kv_client);
	kv_mads_fast();
}
module_exit(kv_exit);
