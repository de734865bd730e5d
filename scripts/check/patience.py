#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print how many times longer than usual tests may take here and now, a whole number of at least 1.

Limits in the tests hold for a machine that does REFERENCE's work in that time. A slower one, or
one that has something else to do, gets more: it would fail for nothing but its speed.
"""

import hashlib
import os
import statistics
import time

REFERENCE = 0.04    # seconds of one CPU of 2020
MOST = 8


def work():
    number, data = 0, bytes(1 << 20)
    for count in range(150000):
        number = (number * 31 + count) & 0xffffffff
    for _ in range(50):
        hashlib.sha256(data).digest()


def seconds():
    start = time.monotonic()
    work()
    return time.monotonic() - start


def main():
    # On all CPUs together, like the tests.
    for _ in range(1, os.cpu_count() or 1):
        if os.fork() == 0:
            break
    else:
        took = statistics.median(seconds() for _ in range(5))
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        print(min(MOST, max(1, round(took / REFERENCE))))
        return
    for _ in range(5):
        work()
    os._exit(0)


if __name__ == '__main__':
    main()
