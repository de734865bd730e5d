# SPDX-License-Identifier: GPL-2.0
"""How long things may take, by what this machine is: one that is slow or busy gets QHCA_PATIENCE
times as long as usual."""

import os

BOOT = {'kvm': 25, 'tcg': 120}      # seconds to the guest's first output
SLOW_BOOT = 3                       # times that, for a kernel or a QEMU that is slow
# What it concerns of the guest's scripts and programs: seconds for what must come, and a factor.
GUEST = {'PATIENCE': 120, 'KSELFTEST_PATIENCE': 1}


def factor():
    """How many times as long as usual."""
    return int(os.environ.get('QHCA_PATIENCE') or 1)


def boot_limit(accel, slow):
    """Seconds for a machine with this accelerator."""
    return BOOT[accel] * (SLOW_BOOT if slow else 1)


def for_guest(env):
    """The variables that tell a guest, whose others are in @env."""
    return {'QHCA_PATIENCE': factor(),
            **{name: int(env.get(name, usual)) * factor() for name, usual in GUEST.items()}}
