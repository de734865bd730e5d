# SPDX-License-Identifier: GPL-2.0
"""KVM's counters of one machine, in debugfs, which only root can read."""

import glob
import os

from .requests import Refused

WHERE = '/sys/kernel/debug/kvm'
# Documentation/virt/kvm/api.rst of the kernel, "KVM_GET_STATS_FD": mmio and io are exits to QEMU.
COUNTED = ('exits', 'mmio_exits', 'io_exits', 'halt_exits', 'irq_injections')


def counters(pid):
    """Name to number, of the machine of that process; raises Refused."""
    found = glob.glob(f'{WHERE}/{pid}-*')
    if not found:
        raise Refused(f'no counters of KVM in {WHERE}: not under KVM, or not root')
    out = dict.fromkeys(COUNTED, 0)
    for name in COUNTED:
        path = os.path.join(found[0], name)
        if os.path.exists(path):
            with open(path, encoding='ascii') as file:
                out[name] = int(file.read())
    return out
