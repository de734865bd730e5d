# SPDX-License-Identifier: GPL-2.0
"""Differences of machines of another architecture than the host's."""

import copy
import platform
from typing import NamedTuple


class Arch(NamedTuple):
    debian: str             # what build/cross.sh and Debian call it
    system: str             # QEMU's program
    host: str               # where KVM runs it, as uname says it
    board: str
    cpu: str                # without KVM
    tty: str                # the guest's serial port
    bus: str = 'pci'        # of virtio's devices
    kernel: bool = False    # one of ours, of build/kernel.sh, in place of Debian's
    clock: bool = False     # Linux measures the CPU's by another one when it starts
    ports: bool = True      # functions are at root ports, and can be pulled


ARCHES = {
    'amd64': Arch('amd64', 'qemu-system-x86_64', 'x86_64',
                  'q35,vmport=off,smbus=off,sata=off', 'max', 'ttyS0', clock=True),
    # Pages of 16 KiB, and of 64.
    'arm64': Arch('arm64', 'qemu-system-aarch64', 'aarch64',
                  'virt,gic-version=max', 'max,pauth-impdef=on', 'ttyAMA0'),
    'arm64-64k': Arch('arm64', 'qemu-system-aarch64', 'aarch64',
                      'virt,gic-version=max', 'max,pauth-impdef=on', 'ttyAMA0', kernel=True),
    # Big-endian. Each function has its own zPCI device, of which Linux makes a PCI domain.
    's390x': Arch('s390x', 'qemu-system-s390x', 's390x',
                  's390-ccw-virtio', 'max', 'ttysclp0', bus='ccw', ports=False),
}
NATIVE = 'amd64'


def parse(items, roles):
    """--arch as a dictionary: machines by their letters, of which there are ROLES, and those
    without under ''."""
    named = dict(item.rpartition(':')[::2] for item in items)
    for role, name in named.items():
        if role not in ('', *roles):
            raise ValueError(f'there is no machine {role}')
        if name not in ARCHES:
            raise ValueError(f'{name or "nothing"} is none of {", ".join(ARCHES)}')
    return {'': NATIVE, **named}


def for_role(opts, role):
    """The options as they are for this machine."""
    mine = copy.copy(opts)
    mine.arch = opts.arches.get(role, opts.arch)
    return mine


def of(opts):
    return ARCHES[opts.arch]


def is_foreign(opts):
    """Whether its image and programs are cross compiled."""
    return of(opts).debian != ARCHES[NATIVE].debian


def why_not_kvm(name):
    """None: nothing is known yet."""
    if name != NATIVE and platform.machine() != ARCHES[name].host:
        return f'this machine is no {ARCHES[name].debian}'
    return None
