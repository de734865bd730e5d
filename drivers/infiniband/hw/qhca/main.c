// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca_ib.ko: bind to the function and register its verbs. */
#include <linux/auxiliary_bus.h>
#include <linux/module.h>

#include "qhca_ib.h"
#include <qhca_ib_ops.h>	/* needed only for older kernels */

MODULE_DESCRIPTION("QHCA virtual RDMA host channel adapter: verbs");
MODULE_LICENSE("Dual BSD/GPL");

static const struct ib_device_ops qhca_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = (enum rdma_driver_id)QHCA_RDMA_DRIVER_ID,
	.uverbs_abi_ver = QHCA_UVERBS_ABI_VERSION,
#ifdef QHCA_HAVE_ROBUST_UDATA
	.uverbs_robust_udata = true,
#endif

	.add_gid = qhca_ib_add_gid,
#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
	.advise_mr = qhca_ib_advise_mr,
#endif
#ifdef QHCA_HAVE_REG_MR_DMAH
	.alloc_dmah = qhca_ib_alloc_dmah,
#endif
	.alloc_hw_device_stats = qhca_ib_alloc_hw_device_stats,
	.alloc_hw_port_stats = qhca_ib_alloc_hw_port_stats,
	.alloc_mr = qhca_ib_alloc_mr,
	.alloc_mw = qhca_ib_alloc_mw,
	.alloc_pd = qhca_ib_alloc_pd,
	.alloc_ucontext = qhca_ib_alloc_ucontext,
	.alloc_xrcd = qhca_ib_alloc_xrcd,
	.attach_mcast = qhca_ib_attach_mcast,
	.create_ah = qhca_ib_create_ah,
	.create_counters = qhca_ib_create_counters,
	.create_cq = qhca_ib_create_cq,
	.create_flow = qhca_ib_create_flow,
	.create_qp = qhca_ib_create_qp,
	.create_rwq_ind_table = qhca_ib_create_rwq_ind_table,
	.create_srq = qhca_ib_create_srq,
	.create_user_ah = qhca_ib_create_ah,
	.create_wq = qhca_ib_create_wq,
#ifdef QHCA_HAVE_REG_MR_DMAH
	.dealloc_dmah = qhca_ib_dealloc_dmah,
#endif
	.dealloc_mw = qhca_ib_dealloc_mw,
	.dealloc_pd = qhca_ib_dealloc_pd,
	.dealloc_ucontext = qhca_ib_dealloc_ucontext,
	.dealloc_xrcd = qhca_ib_dealloc_xrcd,
	.del_gid = qhca_ib_del_gid,
	.dereg_mr = qhca_ib_dereg_mr,
	.destroy_ah = qhca_ib_destroy_ah,
	.destroy_counters = qhca_ib_destroy_counters,
	.destroy_cq = qhca_ib_destroy_cq,
	.destroy_flow = qhca_ib_destroy_flow,
	.destroy_qp = qhca_ib_destroy_qp,
	.destroy_rwq_ind_table = qhca_ib_destroy_rwq_ind_table,
	.destroy_srq = qhca_ib_destroy_srq,
	.destroy_wq = qhca_ib_destroy_wq,
	.detach_mcast = qhca_ib_detach_mcast,
	.disassociate_ucontext = qhca_ib_disassociate_ucontext,
	.fill_res_cq_entry = qhca_ib_fill_res_cq_entry,
	.fill_res_cq_entry_raw = qhca_ib_fill_res_cq_entry_raw,
	.fill_res_mr_entry = qhca_ib_fill_res_mr_entry,
	.fill_res_qp_entry = qhca_ib_fill_res_qp_entry,
	.fill_res_qp_entry_raw = qhca_ib_fill_res_qp_entry_raw,
#ifdef QHCA_HAVE_FILL_RES_SRQ
	.fill_res_srq_entry = qhca_ib_fill_res_srq_entry,
	.fill_res_srq_entry_raw = qhca_ib_fill_res_srq_entry_raw,
#endif
	.get_dev_fw_str = qhca_ib_get_dev_fw_str,
	.get_dma_mr = qhca_ib_get_dma_mr,
	.get_hw_stats = qhca_ib_get_hw_stats,
	.get_link_layer = qhca_ib_get_link_layer,
	.get_port_immutable = qhca_ib_get_port_immutable,
	.map_mr_sg = qhca_ib_map_mr_sg,
	.mmap = qhca_ib_mmap,
	.mmap_free = qhca_ib_mmap_free,
#ifdef QHCA_HAVE_MMAP_GET_PFNS
	.mmap_get_pfns = qhca_ib_mmap_get_pfns,
#endif
	.modify_cq = qhca_ib_modify_cq,
	.modify_device = qhca_ib_modify_device,
	.modify_qp = qhca_ib_modify_qp,
	.modify_srq = qhca_ib_modify_srq,
	.modify_wq = qhca_ib_modify_wq,
#ifdef QHCA_HAVE_MMAP_GET_PFNS
	.pgoff_to_mmap_entry = qhca_ib_pgoff_to_mmap_entry,
#endif
	.poll_cq = qhca_ib_poll_cq,
	.post_recv = qhca_ib_post_recv,
	.post_send = qhca_ib_post_send,
	.post_srq_recv = qhca_ib_post_srq_recv,
	.process_mad = qhca_ib_process_mad,
	.query_ah = qhca_ib_query_ah,
	.query_device = qhca_ib_query_device,
	.query_pkey = qhca_ib_query_pkey,
	.query_port = qhca_ib_query_port,
#ifdef QHCA_HAVE_QUERY_PORT_SPEED
	.query_port_speed = qhca_ib_query_port_speed,
#endif
	.query_qp = qhca_ib_query_qp,
	.query_srq = qhca_ib_query_srq,
	.query_ucontext = qhca_ib_query_ucontext,
	.read_counters = qhca_ib_read_counters,
	.reg_user_mr = qhca_ib_reg_user_mr,
	.reg_user_mr_dmabuf = qhca_ib_reg_user_mr_dmabuf,
#ifdef QHCA_HAVE_REPORT_PORT_EVENT
	.report_port_event = qhca_ib_report_port_event,
#endif
	.req_notify_cq = qhca_ib_req_notify_cq,
	.rereg_user_mr = qhca_ib_rereg_user_mr,
	.resize_user_cq = qhca_ib_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, qhca_ib_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_counters, qhca_ib_flow_counters, ibcounters),
	INIT_RDMA_OBJ_SIZE(ib_cq, qhca_ib_cq, ibcq),
#ifdef QHCA_HAVE_REG_MR_DMAH
	INIT_RDMA_OBJ_SIZE(ib_dmah, qhca_ib_dmah, ibdmah),
#endif
	INIT_RDMA_OBJ_SIZE(ib_mw, qhca_ib_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, qhca_ib_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, qhca_ib_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, qhca_ib_rwq_table, ibtable),
	INIT_RDMA_OBJ_SIZE(ib_srq, qhca_ib_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, qhca_ib_ucontext, ibucontext),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, qhca_ib_xrcd, ibxrcd),
};

#ifdef QHCA_HAVE_COUNTER_INIT
/* Empty, but the core calls it without a check for NULL. */
static void qhca_ib_counter_init(struct rdma_counter *counter)
{
}
#endif

static const struct ib_device_ops qhca_ib_counter_ops = {
	.counter_alloc_stats = qhca_ib_counter_alloc_stats,
	.counter_bind_qp = qhca_ib_counter_bind_qp,
	.counter_dealloc = qhca_ib_counter_dealloc,
#ifdef QHCA_HAVE_COUNTER_INIT
	.counter_init = qhca_ib_counter_init,
#endif
	.counter_unbind_qp = qhca_ib_counter_unbind_qp,
	.counter_update_stats = qhca_ib_counter_update_stats,

#ifdef QHCA_HAVE_COUNTER_INIT
	INIT_RDMA_OBJ_SIZE(rdma_counter, qhca_ib_counter, counter),
#endif
};

/* The driver's own additions to the user interface. */
static const struct uapi_definition qhca_ib_defs[] = {
	UAPI_DEF_CHAIN(qhca_ib_ucontext_defs),
	UAPI_DEF_CHAIN(qhca_ib_pd_defs),
	UAPI_DEF_CHAIN(qhca_ib_dm_defs),
	{},
};

static void qhca_ib_set_ops(struct qhca_ib_dev *dev)
{
	ib_set_device_ops(&dev->ibdev, &qhca_ib_ops);
	if (dev->limits->max_cntset)
		ib_set_device_ops(&dev->ibdev, &qhca_ib_counter_ops);
}

static void qhca_ib_init(struct qhca_ib_dev *dev, struct qhca_dev *core)
{
	struct ib_device *ibdev = &dev->ibdev;

	dev->core = core;
	dev->limits = qhca_limits(core);
	dev->ndev = qhca_netdev(core);
	mutex_init(&dev->gid_lock);
	spin_lock_init(&dev->cqs_lock);
	INIT_LIST_HEAD(&dev->kernel_cqs);

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->node_guid = cpu_to_be64(dev->limits->node_guid);
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = qhca_num_comp_vectors(core);
	ibdev->local_dma_lkey = dev->limits->reserved_lkey;
	ibdev->dev.parent = &qhca_pdev(core)->dev;
	strscpy(ibdev->node_desc, "qhca virtual HCA", sizeof(ibdev->node_desc));
	ibdev->driver_def = qhca_ib_defs;
	qhca_ib_set_ops(dev);
}

static void qhca_ib_unregister(struct qhca_ib_dev *dev)
{
	WRITE_ONCE(dev->leaving, true);
	qhca_ib_pagers_leave(dev);
	ib_unregister_device(&dev->ibdev);
}

static int qhca_ib_register(struct qhca_ib_dev *dev)
{
	int ret;

	ret = qhca_ib_port_init(dev);
	if (ret)
		return ret;
	ret = ib_device_set_netdev(&dev->ibdev, dev->ndev, QHCA_IB_PORT);
	if (ret)
		return ret;
	ret = ib_register_device(&dev->ibdev, "qhca%d", &qhca_pdev(dev->core)->dev);
	if (ret)
		return ret;
	ret = qhca_ib_announce(dev);
	if (ret)
		qhca_ib_unregister(dev);
	return ret;
}

static int qhca_ib_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct qhca_adev *qadev = container_of(adev, struct qhca_adev, adev);
	struct qhca_ib_dev *dev;
	int ret;

	dev = ib_alloc_device(qhca_ib_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	qhca_ib_init(dev, qadev->dev);
	qhca_ib_mmap_init(dev);
	ret = qhca_ib_dm_init(dev);
	if (ret)
		goto err_dealloc;
	ret = qhca_ib_events_init(dev);
	if (ret)
		goto err_dm;
	ret = qhca_ib_register(dev);
	if (ret)
		goto err_events;
	auxiliary_set_drvdata(adev, dev);
	return 0;

err_events:
	qhca_ib_events_cleanup(dev);
err_dm:
	qhca_ib_dm_cleanup(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return ret;
}

static void qhca_ib_remove(struct auxiliary_device *adev)
{
	struct qhca_ib_dev *dev = auxiliary_get_drvdata(adev);

	qhca_ib_silence(dev);
	qhca_ib_unregister(dev);
	qhca_ib_events_cleanup(dev);
	qhca_ib_dm_cleanup(dev);
	ib_dealloc_device(&dev->ibdev);
}

static const struct auxiliary_device_id qhca_ib_id_table[] = {
	{ .name = QHCA_DRV_NAME "." QHCA_RDMA_DEV_NAME },
	{ }
};
MODULE_DEVICE_TABLE(auxiliary, qhca_ib_id_table);

static struct auxiliary_driver qhca_ib_driver = {
	.name = QHCA_RDMA_DEV_NAME,
	.probe = qhca_ib_probe,
	.remove = qhca_ib_remove,
	.id_table = qhca_ib_id_table,
};

static int __init qhca_ib_module_init(void)
{
	int ret = qhca_ib_pagers_init();

	if (ret)
		return ret;
	ret = auxiliary_driver_register(&qhca_ib_driver);
	if (ret)
		qhca_ib_pagers_exit();
	return ret;
}
module_init(qhca_ib_module_init);

static void __exit qhca_ib_module_exit(void)
{
	auxiliary_driver_unregister(&qhca_ib_driver);
	qhca_ib_pagers_exit();
}
module_exit(qhca_ib_module_exit);
