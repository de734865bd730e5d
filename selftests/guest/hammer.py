#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Access all BARs of a PCI function from several processes while a command takes it away.

  hammer.py FUNCTION COMMAND…   the kernel needs iomem=relaxed, or no driver at the function

Mappings outlast the function. Succeeds if the command does, and the function was accessed
before it and behind it.
"""

import mmap
import os
import signal
import struct
import subprocess
import sys
import time

SYSFS = '/sys/bus/pci/devices'
# BAR: size of an access, and how many of them in a row.
READS = {0: ('I', 1), 1: ('I', 64), 4: ('Q', 512)}
DOORBELLS, PAGE = 2, 4096
MAGIC = 0x41434851          # QHCA_MAGIC
LIMIT = 60                  # seconds until all have begun


def mapped(function, bar, write=False):
    fd = os.open(f'{SYSFS}/{function}/resource{bar}', os.O_RDWR)
    size = os.fstat(fd).st_size
    return mmap.mmap(fd, size, prot=mmap.PROT_READ | (mmap.PROT_WRITE if write else 0))


def read(function, bar, seen):
    """The first register is the magic number as long as there is one."""
    kind, number = READS[bar]
    words = memoryview(mapped(function, bar)).cast(kind)
    while True:
        for word in range(number):
            if bar == 0 and words[word] != MAGIC:
                seen[1] += 1
        seen[0] += number


def ring(function, bar, seen):
    """Doorbells of objects that do not exist, in all pages; page 0 is the kernel's."""
    words = memoryview(mapped(function, bar, write=True)).cast('Q')
    stride = PAGE // struct.calcsize('Q')
    while True:
        for word in range(stride, len(words), stride):
            words[word] = 0xffffff
            seen[0] += 1


def start(work, function, bar):
    """The process, and its number of accesses, and of those to nothing."""
    seen = memoryview(mmap.mmap(-1, 16)).cast('Q')
    pid = os.fork()
    if not pid:
        try:
            work(function, bar, seen)
        finally:
            os._exit(1)
    return pid, bar, seen


def main():
    function, *command = sys.argv[1:]
    processes = [start(ring if bar == DOORBELLS else read, function, bar)
                 for bar in (*READS, DOORBELLS)]
    end = time.monotonic() + LIMIT
    while not all(seen[0] for _, _, seen in processes) and time.monotonic() < end:
        time.sleep(0.1)
    before = [seen[0] > seen[1] for _, _, seen in processes]
    good = subprocess.call(command) == 0 and all(before)
    time.sleep(1)
    for pid, bar, seen in processes:
        os.kill(pid, signal.SIGKILL)
        ended = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        print(f'BAR {bar}: {seen[0]} accesses, {seen[1]} to nothing')
        good = good and ended and (bar or seen[1])
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
