#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run random clusters in several ways, which must not show; prints TAP.

  fuzz.py [--seed N] [--count N] [--seconds N]

Each is run in one process, in 2 and in 4, and with all bytes of the payload where the first
run had a sample. All counters and tables have to be the same. A cluster with which they are not
is made smaller before it is reported.
"""

import argparse
import os
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import simulator        # noqa: E402

WORKLOADS = ('incast', 'permutation', 'all-to-all', 'ring-allreduce', 'tree-allreduce')
FRAMES = 20000          # a run has so many at most, if nothing is sent again
MEETINGS = 40000        # of processes, after each delay of a cable: those have to be few
CONTROL = ('np_min_time_between_cnps=4', 'rp_time_reset=300,rp_ai_rate=5', 'rp_min_dec_fac=90',
           'rp_rate_reduce_monitor_period=0', 'rp_dce_tcp_rtt=1')


def topology(rng):
    name = rng.choice(('star', 'leaf-spine', 'fat-tree'))
    if name == 'leaf-spine':
        return {'topology': name, 'radix': rng.randint(1, 9), 'uplinks': rng.randint(1, 6)}
    return {'topology': name, **({'radix': rng.choice((0, 6, 8))} if name == 'fat-tree' else {})}


def rough(rng):
    """Properties that make a network interesting."""
    some = {'loss': rng.choice((0.01, 0.1, 1, 5)), 'pfc': rng.choice(('60:30', '5:4', '200:0')),
            'red': rng.choice(('0:0:0', '0:1:100', '20:21:50')), 'dcqcn': 1,
            'memory': rng.choice((20000, 100000, 1000000)), 'retries': rng.randint(0, 7),
            'timeout': rng.randint(0, 10), 'stop': rng.choice((0.001, 0.05, 0.5)),
            'grey': f"0:{rng.choice((1000, 40000, 100000))}"}
    return {name: value for name, value in some.items() if rng.random() < 0.4}


def cluster(seed):
    """Options that depend on nothing but the seed."""
    rng = random.Random(seed)
    options = {'workload': rng.choice(WORKLOADS), 'hosts': rng.randint(2, 40), **topology(rng),
               'mtu': rng.randint(1, 5), 'window': rng.choice((1, 2, 3, 4, 16)),
               'rate': rng.choice((1000, 25000, 40000, 99999, 100000)),
               'delay': rng.choice((100, 500, 1000, 1000, 5000)),
               'width': rng.choice((1000, 10000)), 'seed': rng.randint(1, 1 << 30), **rough(rng)}
    if options.get('dcqcn') and rng.random() < 0.5:
        options['congestion'] = rng.choice(CONTROL)
    if options['topology'] == 'fat-tree' and options['radix'] == 6:
        options['hosts'] = min(options['hosts'], 54)
    packet, hosts = 128 << options['mtu'], options['hosts']
    # Of these each host sends several times as much.
    many = hosts * 2 if 'reduce' in options['workload'] else hosts
    options['bytes'] = int(2 ** rng.uniform(0, 20)) % (packet * FRAMES // many) + 1
    options['message'] = rng.choice((65536, 65536, 1 << 20, max(options['bytes'] // 7, 1)))
    return options


def differences(options):
    """Names of what is not the same in all ways to run this."""
    first = simulator.run({**options, 'hollow': 1})
    meetings = sum(row['frames'] > 0 for row in first.series) * options['width'] / options['delay']
    for hollow, ranks in ((0, 1), (1, 2), (0, 4)):
        if ranks * meetings > MEETINGS:
            continue
        run = simulator.run({**options, 'hollow': hollow}, ranks)
        found = [name for name in first.values
                 if name not in simulator.COSTS and first.values[name] != run.values.get(name)]
        found += [name for name in ('ok', 'flows', 'series')
                  if getattr(first, name) != getattr(run, name)]
        if found:
            return [f'hollow={hollow}, {ranks} processes', *found]
    return []


def fails(options):
    try:
        return bool(differences(options))
    except simulator.Broken:
        return False


def judge(seed):
    options = cluster(seed)
    try:
        found = differences(options)
        if found:
            options = simulator.shrink(options, fails)
    except simulator.Broken as err:
        found = [str(err)]
    name = f'cluster {seed}: {options["workload"]} of {options["hosts"]}, {options["topology"]}'
    if found:
        print('# ' + ', '.join(found))
        print('# ' + ' '.join(f'{name}={value}' for name, value in options.items()))
    print(f'{"not ok" if found else "ok"} - {name}', flush=True)
    return not found


def main():
    parser = argparse.ArgumentParser(prog='fuzz.py', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1, help='of the first cluster')
    parser.add_argument('--count', type=int, default=20, help='how many clusters')
    parser.add_argument('--seconds', type=float, default=0, help='begin none after that')
    opts = parser.parse_args()
    begin, bad, done = time.monotonic(), 0, 0
    while done < opts.count and not (opts.seconds and time.monotonic() - begin > opts.seconds):
        bad += not judge(opts.seed + done)
        done += 1
    print(f'1..{done}')
    return bool(bad)


if __name__ == '__main__':
    sys.exit(main())
