#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare the engine's reaction point with other simulators'; prints TAP.

  by_models.py CHECKOUT…
      of https://github.com/bobzhuyb/ns3-rdma, by the first author of the DCQCN paper (SIGCOMM
      2015), and of https://github.com/alibaba-edu/High-Precision-Congestion-Control, of the HPCC
      paper (SIGCOMM 2019)

Their functions are compiled as they are. sim/judge/judge.cc lets flows of each into one queue: the
network is the same, so what differs is the reaction point.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import judge            # noqa: E402
from test_cluster import check, tap         # noqa: E402

# By name: where it is, what the functions begin with and end before, and how far the engine may
# be from it.
MODELS = {
    'authors': ('src/point-to-point/model/qbb-net-device.cc',
                '\tvoid\n\t\tQbbNetDevice::rpr_adjust_rates',
                '\tint\n\t\tQbbNetDevice::ReceiverCheckSeq', 0.03),
    'hpcc': ('simulation/src/point-to-point/model/rdma-hw.cc',
             "/******************************\n * Mellanox's version of DCQCN\n",
             '/***********************\n * High Precision CC\n', 0.05),
}
FLOWS = (2, 4, 8, 16, 32, 64, 128, 256)
# 5 % at 400 KB, and on like that; and a line with which many flows swing.
RESTS, SWINGS = '7905 100 soon', '400 100'


def functions(wanted):
    """Functions of the models that have a checkout."""
    texts = {}
    for name in wanted:
        source, begin, end, _ = MODELS[name]
        for checkout in sys.argv[1:]:
            path = os.path.join(checkout, source)
            if os.path.exists(path):
                with open(path, encoding='utf-8') as file:
                    texts[name] = begin + file.read().split(begin)[1].split(end)[0]
    return texts


def compare(network, wanted, many=FLOWS):
    """So many flows of the engine are where these models' flows are."""
    models = functions(wanted)
    if not models:
        print(f'# no checkout with {" or ".join(wanted)}')
        return
    for flows, (ours, *theirs) in zip(many, judge.run(
            [f'{flows} {network}' for flows in many], models)):
        print(f'# {flows} flows: engine {ours}, ' + ', '.join(
            f'{name} {their}' for name, their in zip(models, theirs)), flush=True)
        for name, their in zip(models, theirs):
            check(ours.apart(their) < MODELS[name][-1], f'{flows} flows: {ours}, {name} {their}')
            check(ours.fairness > 0.998, f'{flows} flows: fairness {ours.fairness}')


def rests_where_they_do():
    check(functions(MODELS), f'no known sources in {sys.argv[1:]}')
    compare(RESTS, MODELS)


def swings_as_the_authors_does():
    """Alpha, which differs, swings otherwise in the other one; 256 flows depend on their start."""
    compare(SWINGS, ('authors',), FLOWS[:-1])


if __name__ == '__main__':
    if len(sys.argv) < 2 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    sys.exit(tap((rests_where_they_do, swings_as_the_authors_does)))
