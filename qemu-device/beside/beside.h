/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca.so: included before each source of the device. Keeps the functions that
 * QEMU would call at its start until beside.c knows that the object was made
 * for this QEMU.
 */
#ifndef HW_NET_QHCA_BESIDE_H
#define HW_NET_QHCA_BESIDE_H

/*
 * Data of QEMU, which the loader looks for before beside.c has judged the
 * program; functions are looked for when they are called.
 */
#pragma weak current_cpu
#pragma weak error_abort
#pragma weak error_fatal
#pragma weak message_with_timestamp
#pragma weak qdev_prop_bool
#pragma weak qdev_prop_macaddr
#pragma weak qdev_prop_netdev
#pragma weak qdev_prop_size
#pragma weak qdev_prop_string
#pragma weak qdev_prop_uint32
#pragma weak qdev_prop_uint64
#pragma weak qemu_loglevel
#pragma weak rcu_gp_ctr
#pragma weak rcu_gp_event
#pragma weak tcg_allowed
#pragma weak trace_events_enabled_count
#pragma weak vmstate_info_uint32
#pragma weak vmstate_info_uint64
#pragma weak vmstate_msix
#pragma weak vmstate_pci_device
#pragma weak vmstate_pcie_aer_log
#pragma weak xen_allowed

#include "qemu/osdep.h"
#include "qemu/module.h"

#undef module_init
#define module_init(function, type)                                         \
static void __attribute__((constructor)) keep_ ## function(void)            \
{                                                                           \
    static QHCABesideInit init = { function };                              \
                                                                            \
    qhca_beside_keep(&init);                                                \
}

typedef struct QHCABesideInit QHCABesideInit;
struct QHCABesideInit {
    void (*function)(void);
    bool last;                      /* it needs types of the device itself */
    QHCABesideInit *next;
};

/* Call init->function() as soon as the types of QEMU itself exist. */
void qhca_beside_keep(QHCABesideInit *init);

#endif /* HW_NET_QHCA_BESIDE_H */
