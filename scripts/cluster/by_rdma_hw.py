#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare the engine's reaction point with that of another model; prints TAP.

  by_rdma_hw.py CHECKOUT
      of https://github.com/alibaba-edu/High-Precision-Congestion-Control

That is the simulator of the HPCC paper (SIGCOMM 2019), whose rdma-hw.cc has DCQCN as adapters have
it. Its functions are compiled as they are. sim/judge/judge.cc lets flows of both into one queue:
the network is the same, so what differs is the reaction point.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import simulator        # noqa: E402
from test_cluster import check, tap         # noqa: E402
from vmlib.build import SCRIPTS     # noqa: E402

SOURCE = 'simulation/src/point-to-point/model/rdma-hw.cc'
FROM, TO = " * Mellanox's version of DCQCN\n", '/***********************\n * High Precision CC\n'
BUILD = '''cd {work}
I="-I. -I/qhca/include -I/qhca/qemu-device/engine -I/qhca/sim/judge"
gcc -std=c11 -O2 -c $I -D_DEFAULT_SOURCE /qhca/sim/judge/rp.c \
    /qhca/qemu-device/engine/congestion/dcqcn.c
g++ -std=c++17 -O2 $I /qhca/sim/judge/judge.cc rp.o dcqcn.o -o judge
for flows in 2 4 8 16; do ./judge $flows engine; ./judge $flows model; done
'''
NAMES = ('marked packets', 'notifications', 'queue')


def functions(checkout):
    with open(os.path.join(checkout, SOURCE), encoding='utf-8') as file:
        return '/*\n' + file.read().split(FROM)[1].split(TO)[0]


def runs(checkout):
    with simulator.folder() as work:
        with open(os.path.join(work, 'mlx.inc'), 'w', encoding='utf-8') as file:
            file.write(functions(checkout))
        done = subprocess.run(
            [os.path.join(SCRIPTS, 'build/buildroot.sh'), '--', 'sh', '-ec',
             BUILD.format(work=simulator.inside(work))], text=True, check=True,
            stdout=subprocess.PIPE)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def rests_where_the_model_does():
    lines = runs(sys.argv[1])
    for flows, (ours, theirs) in zip((2, 4, 8, 16), zip(lines[::2], lines[1::2])):
        print(f'# {flows} flows: {ours[0]:.2%} for {theirs[0]:.2%} marked, {ours[1]:,.0f} for '
              f'{theirs[1]:,.0f} CNPs per second, {ours[2] / 1000:.1f} for {theirs[2] / 1000:.1f} '
              'KB')
        for name, our, their in zip(NAMES, ours, theirs):
            check(abs(our / their - 1) < 0.1, f'{flows} flows: {name}: {our} for {their}')
    check(len(lines) == 8, lines)


if __name__ == '__main__':
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    sys.exit(tap((rests_where_the_model_does,)))
