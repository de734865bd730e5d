#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test the cluster simulator with small clusters; prints TAP. --numbers: what large ones take."""

import itertools
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import cluster          # noqa: E402
import simulator        # noqa: E402
import study            # noqa: E402

# Losses, marks and pauses: everything that chance or order could decide.
ROUGH = {'hosts': 32, 'topology': 'leaf-spine', 'radix': 8, 'workload': 'all-to-all',
         'bytes': 1 << 20, 'dcqcn': 1, 'loss': 0.1, 'pfc': '60:30'}
INCAST = {'hosts': 17, 'topology': 'star', 'bytes': 1 << 20}
WORKLOADS = ('incast', 'permutation', 'all-to-all', 'ring-allreduce', 'tree-allreduce')
TOPOLOGIES = ({'topology': 'star'}, {'topology': 'leaf-spine', 'radix': 4, 'uplinks': 2},
              {'topology': 'fat-tree'}, {'topology': 'fat-tree', 'radix': 8})

LARGE = {'hosts': 1024, 'topology': 'leaf-spine', 'radix': 32, 'workload': 'ring-allreduce',
         'bytes': 4 << 20, 'hollow': 1}


# Each once ended in an abort, without an end, or as if nothing were wrong.
NONSENSE = (
    *({'hosts': text} for text in (-1, '', '1e3', 16000001)), {'bytes': '1e6'}, {'bytes': '4M'},
    {'bytes': -1}, {'bytes': 1 << 60}, {'bytes': 1 << 40, 'message': 1}, {'window': 1 << 32},
    {'mtu': 6}, {'timeout': 31}, {'retries': 8}, {'rate': -5}, {'rate': 400000, 'dcqcn': 1},
    {'delay': 9300000000000}, {'red': 'nan:nan:nan'}, {'red': '5:inf:1'}, {'red': '5:200:1:7'},
    {'pfc': 'nan:1'}, {'pfc': '1e300:1'}, {'pfc': '5:4,'}, {'grey': '1:4294967297'},
    {'memory': 1 << 63}, {'loss': -1}, {'loss': 101}, {'loss': 'nan'}, {'stop': -1},
    {'stop': '1e300'}, {'width': 0}, {'message': 0, 'workload': 'idle'}, {'hollow': 2},
    {'topology': 'leaf-spine', 'radix': (1 << 32) - 1},
    {'topology': 'leaf-spine', 'uplinks': (1 << 32) - 1},
    {'topology': 'fat-tree', 'radix': 4096}, {'topology': 'star', 'hosts': 600000},
    {'hosts': 100000, 'workload': 'all-to-all'}, {'hosts': 1025}, {'workload': '/tmp'},
    {'nonsense': 1}, {'Hosts': 4}, {'PrintHelp': 1}, {'congestion': 'rp_ai_rate=5'},
    *({'dcqcn': 1, 'congestion': text} for text in (
        'foo=1', 'rp_ai_rate', 'rp_ai_rate=0', ',,', 'rp_ai_rate=5x', 'rp_ai_rate=999999999999',
        'rp_ai_rate=5,')),
)
# Lines that are not what a trace has.
LINES = ('garbage 0 1 100', '0 0 1 100 more', '0 0 1 1e6', '1e300 0 1 100', '0 0 1 -5', '0 0 1',
         '10000000000 0 1 100', '0 0 0 5', '0 -1 0 5', '# nothing', '\0\1\2')


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def all_come_through():
    for workload, topology in itertools.product(WORKLOADS, TOPOLOGIES):
        run = simulator.run({'hosts': 13, 'workload': workload, 'bytes': 130000, **topology})
        check(run.ok and run.values['bytes'] == sum(row['bytes'] for row in run.flows),
              f'{workload}: {topology}')
        check(run.values['retransmit'] == 0, f'{workload}: {topology}: retransmissions')


def line_rate():
    """A flow fills its link; headers, gaps and the way there are the rest."""
    run = simulator.run({'hosts': 2, 'topology': 'star', 'bytes': 64 << 20})
    rate = run.values['bytes'] * 8 / run.values['time_ns']
    check(95 < rate < 98.5, f'{rate} Gbit/s of 100')


def light_takes_time():
    """A packet and its way: two cables, and at each it is behind its own bits."""
    for delay in (1000, 20000):
        run = simulator.run({'hosts': 2, 'topology': 'star', 'bytes': 4096, 'delay': delay})
        took = run.values['time_ns'] - 2 * delay
        check(2 * 4096 * 8 / 100 < took < 2 * 4250 * 8 / 100, f'{took} ns')


def ranks_agree():
    digests = [simulator.run(ROUGH, ranks).values['digest'] for ranks in (1, 2, 4)]
    check(len(set(digests)) == 1, digests)
    run = simulator.run(ROUGH)
    check(run.values['digest'] == digests[0], 'a second run')
    check(all(run.values[name] for name in ('lost', 'marked', 'paused', 'retransmit')),
          f'not rough: {run.values}')
    check(simulator.run({**ROUGH, 'seed': 2}).values['digest'] != digests[0], 'another seed')


def hollow_agrees():
    full, hollow = (simulator.run({**ROUGH, 'hollow': value}) for value in (0, 1))
    check(full.ok and hollow.ok, 'not all came through')
    for name in full.values:
        check(name in simulator.COSTS or full.values[name] == hollow.values[name], name)
    check(full.flows == hollow.flows and full.series == hollow.series, 'tables')


def loss_is_repaired():
    run = simulator.run({**INCAST, 'memory': 500000, 'dcqcn': 0})
    check(run.ok and run.values['lost'] and run.values['retransmit'], run.values)


def pauses_avoid_loss():
    without, paused = (simulator.run({**INCAST, 'memory': 3000000, 'pfc': pfc})
                       for pfc in ('0:0', '100:50'))
    check(without.ok and without.values['lost'], without.values)
    check(paused.ok and paused.values['paused'] and not paused.values['lost'] and
          not paused.values['retransmit'], paused.values)
    check(paused.values['paused'] == paused.values['resumed'], 'somebody stays paused')


def control_shortens_queues():
    longest = []
    for dcqcn in (0, 1):
        run = simulator.run({**INCAST, 'bytes': 8 << 20, 'dcqcn': dcqcn})
        check(run.ok, run.values)
        half = run.series[len(run.series) // 4:len(run.series) // 2]
        longest.append(max(row['queue'] for row in half))
    check(run.values['np_cnp_sent'] and run.values['rp_cnp_handled'], run.values)
    check(longest[1] < longest[0] / 5, longest)


def grey_host():
    """The one with the slow cable is the last."""
    run = simulator.run({'hosts': 8, 'topology': 'star', 'workload': 'permutation',
                         'grey': '3:10000'})
    slow = {row['source'] for row in run.flows if row['end_ns'] > run.values['time_ns'] / 2}
    slow |= {row['destination'] for row in run.flows
             if row['end_ns'] > run.values['time_ns'] / 2}
    check(run.ok and 3 in slow and len(slow) == 3, slow)


def failures_are_found():
    """Nothing arrives: two hosts are enough for that."""
    options = {'hosts': 5, 'topology': 'star', 'bytes': 4, 'window': 1, 'loss': 100}
    run = simulator.run(options)
    check(not run.ok and run.values['errors'] == 4 and run.values['unfinished'] == 4, run.values)
    least = simulator.shrink(options, lambda less: not simulator.run(less).ok)
    check((least['hosts'], least['bytes']) == (2, 1), least)


def nonsense_is_refused():
    for options in ({'topology': 'ring'}, {'workload': '/nowhere'}, {'red': '5:4:1'},
                    {'pfc': '1:2'}, {'hosts': 1}, {'topology': 'fat-tree', 'radix': 2},
                    {'grey': '16:100'}, {'message': 0}, *NONSENSE):
        try:
            simulator.run({'hosts': 16, **options})
        except simulator.Broken as err:
            check(err.refused, f'{options}: {err}')
            continue
        raise AssertionError(options)
    for word in ('nonsense=1', 'nonsense', 'hosts=x', 'pcap=0'):
        done = subprocess.run([cluster.__file__, word], stderr=subprocess.DEVNULL, check=False)
        check(done.returncode == 2, f'{word}: {done.returncode}')


def long_runs_have_short_tables():
    """Hours without a frame cost no memory; what did not begin has no time."""
    wait = {'hosts': 2, 'bytes': 10, 'loss': 100, 'timeout': 24}
    run = simulator.run(wait)
    check(not run.ok and len(run.series) < 300000 and
          run.series[-1]['end_ns'] > 500e9, len(run.series))
    check(run.values['memory_mib'] < 200, run.values)
    check(sum(row['frames'] for row in run.series) == run.values['frames'], 'frames')
    ranks = simulator.run(wait, 2)
    check(ranks.series == run.series and ranks.flows == run.flows, 'two processes')
    run = simulator.run({'hosts': 4, 'workload': 'tree-allreduce', 'stop': 0.0001})
    check({row['start_ns'] for row in run.flows} == {0, None}, run.flows)


def failures_shrink():
    """A run that only fails in several processes is made smaller there; so is one that dies."""
    calls = []

    def fails(options, ranks):
        calls.append(ranks)
        raise simulator.Broken(134 if options['hosts'] > 3 else 2)
    run, simulator.run = simulator.run, fails
    try:
        least = simulator.shrink({'hosts': 9, 'bytes': 7, 'window': 2},
                                 lambda less: cluster.failed(less, 2))
    finally:
        simulator.run = run
    check(least == {'hosts': 4, 'bytes': 1, 'window': 1} and set(calls) == {2}, least)


def traces_are_read():
    """A good line, with each of the bad ones behind it."""
    with simulator.folder() as work:
        path = os.path.join(work, 'trace')
        for line in ('', *LINES):
            with open(path, 'w', encoding='ascii') as file:
                file.write(line if line[:1] == '#' else f'0.5 0 1 100 # half a us\n{line}\n')
            try:
                run = simulator.run({'hosts': 2, 'workload': simulator.inside(path)})
                check(not line and run.ok and run.flows[0]['start_ns'] == 500, line)
            except simulator.Broken as err:
                check(line and err.refused, f'{line}: {err}')


def a_thousand_hosts():
    """In less than a minute, and with two processes in much less."""
    runs = [simulator.run(LARGE, ranks) for ranks in (1, 2)]
    one, two = (run.values['wall_s'] for run in runs)
    print(f'# {one:.1f} s in one process, {two:.1f} s in two')
    check(runs[0].values['digest'] == runs[1].values['digest'], 'digests')
    check(one < 60 and one >= 1.6 * two, 'too slow')


def ten_thousand_hosts():
    values = simulator.run({'hosts': 10000, 'topology': 'fat-tree', 'workload': 'idle'}).values
    print(f"# {values['memory_mib']:.0f} MiB")
    check(values['memory_mib'] < 4096, 'too much')


def many_to_one():
    """With control the queue stays below where the switch pauses, in the end."""
    paused = []
    for dcqcn in (0, 1):
        run = simulator.run({**study.MANY, 'dcqcn': dcqcn, 'hollow': 1,
                             **({'congestion': study.ADAPTERS} if dcqcn else {})})
        check(run.ok, run.values)
        paused.append(sum(row['paused'] for row in run.series if row['end_ns'] > 10e6))
    print(f'# paused after 10 ms: {paused[0]:.0f} times, with control {paused[1]:.0f}')
    check(paused[0] and not paused[1], 'pauses')


TESTS = (all_come_through, line_rate, light_takes_time, ranks_agree, hollow_agrees,
         loss_is_repaired, pauses_avoid_loss, control_shortens_queues, grey_host,
         failures_are_found, nonsense_is_refused,
         traces_are_read, long_runs_have_short_tables, failures_shrink)
NUMBERS = (a_thousand_hosts, ten_thousand_hosts, many_to_one)


def tap(tests):
    """Run tests; returns whether one has failed."""
    bad = 0
    for number, test in enumerate(tests, 1):
        name = test.__name__.replace('_', ' ')
        try:
            test()
            print(f'ok {number} - {name}', flush=True)
        except (AssertionError, simulator.Broken) as err:
            bad += 1
            print(f'# {err}\nnot ok {number} - {name}', flush=True)
    print(f'1..{len(tests)}')
    return bool(bad)


if __name__ == '__main__':
    sys.exit(tap(NUMBERS if '--numbers' in sys.argv else TESTS))
