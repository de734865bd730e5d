# SPDX-License-Identifier: GPL-2.0
"""How long things may take, by what this machine is: one that is slow or busy gets QHCA_PATIENCE
times as long as usual, and the outer machine of `vm nested`, which is emulated, NESTED times as
long as that."""

import os

NESTED = 6
INSIDE = 'QHCA_NESTED'              # a variable that is set in that machine
BOOT = {'kvm': 25, 'tcg': 120}      # seconds to the guest's first output
NESTED_BOOT = 600                   # the same, in there
SLOW_BOOT = 3                       # times that, for a kernel or a QEMU that is slow
# Of the guest's scripts and programs it concerns these: seconds for what must come, and a factor.
GUEST = {'PATIENCE': 120, 'KSELFTEST_PATIENCE': 1}


def inside():
    """Whether this is the outer machine of `vm nested`."""
    return bool(os.environ.get(INSIDE))


def factor():
    """How many times as long as usual."""
    return int(os.environ.get('QHCA_PATIENCE') or 1) * (NESTED if inside() else 1)


def boot_limit(accel, slow):
    """Seconds for a machine with this accelerator."""
    return (NESTED_BOOT if inside() else BOOT[accel]) * (SLOW_BOOT if slow else 1)


def for_guest(env):
    """The variables that tell a guest, whose others are in @env."""
    return {'QHCA_PATIENCE': factor(),
            **{name: int(env.get(name, usual)) * factor() for name, usual in GUEST.items()}}
