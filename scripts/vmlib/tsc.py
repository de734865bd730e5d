# SPDX-License-Identifier: GPL-2.0
"""The rate of the TSC under TCG, which is the host's.

A guest that has to measure it does so against the PIT, in loops that a busy host
interrupts. Where the result differs from the HPET's, Linux believes the PIT: then the guest's clock
runs ten times too fast, and all its time limits are a tenth.
"""

import ctypes
import mmap
import platform
import time

READ_TSC = bytes.fromhex('0f31'         # rdtsc
                         '48c1e220'     # shl $32, %rdx
                         '4809d0'       # or %rdx, %rax
                         'c3')          # ret


def _sample(read):
    """A moment by both clocks; of several tries, the quickest."""
    samples = []
    for _ in range(20):
        before = time.monotonic_ns()
        ticks = read()
        after = time.monotonic_ns()
        samples.append((after - before, before, ticks))
    return min(samples)[1:]


def khz():
    """None if it cannot be measured."""
    if platform.machine() != 'x86_64':
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE,
                         prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:     # not allowed
        return None
    page.write(READ_TSC)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    start, first = _sample(read)
    time.sleep(0.05)
    end, last = _sample(read)
    return round((last - first) * 1e6 / (end - start))
