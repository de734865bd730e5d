#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Judge captures of small clusters by tshark, and the judge by captures with faults; prints TAP.
--drawn N: captures of N clusters that are drawn instead."""

import contextlib
import functools
import io
import os
import random
import sys
from dataclasses import replace

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import captures         # noqa: E402
import simulator        # noqa: E402
from captures import capture                # noqa: E402
from test_cluster import check, tap         # noqa: E402

# Pauses, marks of a queue that has 60 KB, and CNPs.
INCAST = {'hosts': 5, 'topology': 'star', 'bytes': 1500000, 'dcqcn': 1, 'pfc': '60:30',
          'red': '60:90:30', 'pcap': 'hosts,0.0,0.1,0.2,0.3,0.4'}
LOSS = {'hosts': 4, 'topology': 'star', 'bytes': 5000000, 'loss': 1, 'timeout': 6,
        'pcap': 'hosts', 'congestion': 'np_min_time_between_cnps=20', 'dcqcn': 1}
INTERVAL = 50000        # ns, of CNPs, by default


def captured(options, ranks=1):
    """A run, and for each of its captures what tshark reads and how the file begins."""
    with simulator.folder() as work:
        run = simulator.run(options, ranks, keep=work)
        files = {}
        for name in sorted(os.listdir(work)):
            path = os.path.join(work, name)
            frames, unhappy = captures.read(path)
            check(not unhappy, f'{name}: tshark is not happy with {unhappy[:5]}')
            with open(path, 'rb') as file:
                files[name.removesuffix('.pcap')] = frames, file.read()
        check(run.ok, run.values)
        return run, files


@functools.cache
def incast():
    run, files = captured(INCAST)
    return run, {name: frames for name, (frames, _) in files.items()}


@functools.cache
def lossy():
    run, files = captured(LOSS)
    return run, {name: frames for name, (frames, _) in files.items()}


def none(faults, what):
    faults = list(faults)
    check(not faults, f'{what}: {len(faults)}: {faults[:3]}')


def frames_are_right():
    """As the captures of machines: tshark and the format's own tables read the same."""
    with simulator.folder() as work:
        check(simulator.run({**INCAST, 'bytes': 200000, 'pcap': '0,1'}, keep=work).ok, 'the run')
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            for name in sorted(os.listdir(work)):
                path = os.path.join(work, name)
                frames, broken = capture.read(path)
                report = capture.Report()
                capture.check_frames(report, frames, broken)
                capture.check_tshark(report, frames, path)
                check(report.passed > 4 and not report.failed, out.getvalue())


def all_is_captured():
    run, files = incast()
    sent = sum(frame.src == captures.address(int(name[5:])) for name, frames in files.items()
               if name.startswith('host') for frame in frames)
    pauses = [frame.pause > 0 for name, frames in files.items() if name.startswith('host')
              for frame in frames if frame.pause is not None]
    check(sent == run.values['frames'], f'{sent} frames')
    check(pauses.count(True) == run.values['paused'] > 10 and
          pauses.count(False) == run.values['resumed'], pauses)


def processes_agree():
    """A file is the same, whichever process writes it."""
    options = {**INCAST, 'hosts': 9, 'topology': 'leaf-spine', 'radix': 4, 'uplinks': 2,
               'bytes': 100000, 'pcap': '0,8,0.4,3.1,4.2'}
    first, second = (captured(options, ranks) for ranks in (1, 2))
    check(sorted(first[1]) == ['host-0', 'host-8', 'switch-0-4', 'switch-3-1', 'switch-4-2'],
          sorted(first[1]))
    check(sum(bool(frames) for frames, _ in first[1].values()) > 3, 'nothing is sent')
    check(first[1] == second[1] and first[0].values['digest'] == second[0].values['digest'],
          'not the same files')


def samples_are_cut():
    """A run that moves no payload has frames of which the front is there."""
    options = {**INCAST, 'bytes': 200000, 'pcap': '0'}
    whole, front = (captured({**options, 'hollow': value})[1]['host-0'] for value in (0, 1))
    check(whole[0] == front[0] and len(front[1]) < len(whole[1]) / 10, 'not the same frames')


def switches_mark():
    """Only they do, and what has to wait longer than they are told."""
    run, files = incast()
    paths = {}
    for host in range(INCAST['hosts']):
        for frame in files[f'host-{host}']:
            if frame.src:
                own = frame.src == captures.address(host)
                path = paths.setdefault((frame.src, frame.dst, frame.opcode == captures.CNP),
                                        ([], []))
                path[not own].append(frame)
    for (source, target, _), (sent, received) in paths.items():
        none(captures.marks(sent, received), f'{source} to {target}')
    marked = sum(frame.ecn == captures.CE and frame.dst == captures.address(0)
                 for frame in files['host-0'])
    check(marked == run.values['marked'] == run.values['np_ecn_marked_roce_packets'] > 50, marked)


def queue():
    """Frames that come to the switch for host 0, and that leave to it, in order of time."""
    _, files = incast()
    first = captures.address(0)
    arriving = [frame for number in range(1, INCAST['hosts'])
                for frame in files[f'switch-0-{number}'] if frame.dst == first]
    arriving.sort(key=lambda frame: frame.time)
    return arriving, [frame for frame in files['switch-0-0'] if frame.dst == first]


def marks_follow_the_queue():
    arriving, leaving = queue()
    check(len(arriving) == len(leaving) > 1000, len(leaving))
    none(captures.by_queue(arriving, leaving, 60000, 90000), 'marks')
    for limits in ((80000, 90000), (60000, 70000)):
        check(list(captures.by_queue(arriving, leaving, *limits)), f'{limits} would do as well')


def marks_are_answered():
    run, files = incast()
    flows = captures.flows(files['host-0'])
    check(len(flows) == 4, flows.keys())
    for flow, frames in flows.items():
        none(captures.notifications(frames, INTERVAL), flow)
    sent = sum(frame.opcode == captures.CNP for frame in files['host-0'])
    check(sent == run.values['np_cnp_sent'] == run.values['rp_cnp_handled'] > 10, sent)
    _, files = lossy()
    for flow, frames in captures.flows(files['host-0']).items():
        none(captures.notifications(frames, 20000), flow)


def the_paused_are_silent():
    _, files = incast()
    for host in range(1, INCAST['hosts']):
        none(captures.silence(files[f'host-{host}'], captures.address(host)), f'host {host}')


def goes_back(frames, role):
    """Of a flow whose first packet arrives."""
    return captures.goes_back(frames, role, captures.first(frames))


def losses_are_repaired():
    run, files = lossy()
    seen = {'naks': 0, 'timeouts': 0}
    for host in range(1, LOSS['hosts']):
        for flow, frames in captures.flows(files[f'host-{host}']).items():
            faults, machine = goes_back(frames, captures.Sender)
            none(faults, flow)
            for name in seen:
                seen[name] += getattr(machine, name)
    for flow, frames in captures.flows(files['host-0']).items():
        none(goes_back(frames, captures.Receiver)[0], flow)
    # NAKs also get lost.
    check(seen['timeouts'] == run.values['timeout'] > 0 and
          10 < seen['naks'] <= run.values['tx_nak_seq'], f'{seen} {run.values}')


def ordered_without_loss():
    _, files = incast()
    for host in range(1, INCAST['hosts']):
        for flow, frames in captures.flows(files[f'host-{host}']).items():
            faults, machine = goes_back(frames, captures.Sender)
            none(faults, flow)
            check((machine.naks, machine.timeouts) == (0, 0), flow)


def faults_are_found():
    """Captures that are not right: a frame less, in another order, another mark, …"""
    _, files = incast()
    flow = next(iter(captures.flows(files['host-0']).values()))
    data = [at for at, frame in enumerate(flow) if frame.data]
    cnps = [at for at, frame in enumerate(flow) if frame.opcode == captures.CNP]
    one = random.Random(1).choice(data[10:-10])

    def without(at):
        return flow[:at] + flow[at + 1:]

    def changed(at, **fields):
        return flow[:at] + [replace(flow[at], **fields)] + flow[at + 1:]
    nak = changed(next(at for at, frame in enumerate(flow) if frame.opcode == captures.ACK),
                  syndrome=captures.NAK_SEQUENCE)
    for role in (captures.Sender, captures.Receiver):
        for what, frames in (('less', without(one)), ('a NAK', nak),
                             ('the end', flow[:data[-1]]), ('PSN', changed(one, psn=5))):
            check(goes_back(frames, role)[0], f'{role.__name__}: {what}')
        check(not goes_back(flow, role)[0], role.__name__)
    for what, frames in (('no CNP', without(cnps[1])), ('to another', changed(cnps[1], qp=1)),
                         ('two CNPs', flow[:cnps[1] + 1] + flow[cnps[1]:])):
        check(list(captures.notifications(frames, INTERVAL)), what)
    check(list(captures.notifications(flow, INTERVAL // 2)), 'fewer than there could be')
    sent = [replace(flow[at], ecn=2) for at in data]
    for what, frames in (('marked by the sender', [replace(sent[0], ecn=3), *sent[1:]]),
                         ('lost', sent[1:]), ('another order', sent[::-1])):
        check(list(captures.marks(frames, [flow[at] for at in data])), what)
    check(list(captures.marks(sent, [replace(frame, ecn=1) for frame in sent])), 'other bits')
    host = files['host-1']
    begin = next(at for at, frame in enumerate(host) if frame.pause)
    check(list(captures.silence(host[:begin + 1] + [replace(frame, pause=None) for frame in
                                                    host[begin + 1:]],
                                captures.address(1))), 'a paused one sends')


def ends_are_named():
    """Other ends of cables, or the same twice, are refused; files need a place."""
    for name in ('5', '-1', '0.5', '1.0', 'x', '0,', ',', '0,0', 'hosts,0', '0.0.0', '1e0'):
        try:
            simulator.run({'hosts': 5, 'topology': 'star', 'pcap': name})
        except simulator.Broken as err:
            check(err.refused, f'{name}: {err}')
            continue
        raise AssertionError(name)
    check(simulator.run({'hosts': 5, 'topology': 'star', 'pcap': ''}).ok, 'none')


def draw(seed):
    """Options that depend on nothing but the seed, and the interval of CNPs in ns."""
    rng = random.Random(seed)
    interval = rng.choice((4, 20, 50))
    options = {
        'hosts': rng.randint(2, 6), 'topology': 'star', 'mtu': rng.randint(1, 5), 'pcap': 'hosts',
        'workload': rng.choice(('incast', 'incast', 'permutation')),
        'window': rng.choice((1, 4, 16)),
        'message': rng.choice((300, 4096, 65536, 1 << 20)), 'timeout': rng.choice((4, 6, 8)),
        'loss': rng.choice((0, 0.1, 1, 3)), 'dcqcn': 1, 'memory': rng.choice((100000, 32000000)),
        'red': rng.choice(('5:200:1', '0:1:100', '20:21:50')), 'pfc': rng.choice(('0:0', '60:30')),
        'congestion': f'np_min_time_between_cnps={interval}', 'seed': seed, 'hollow': 1}
    packets = int(2 ** rng.uniform(0, 11))
    options['bytes'] = min(packets * (128 << options['mtu']), 1000 * options['message'])
    return options, interval * 1000


def judge(options, interval):
    """Faults of all flows in the captures of a run."""
    with simulator.folder() as work:
        run = simulator.run(options, keep=work)
        seen = [captures.read(os.path.join(work, f'host-{host}.pcap'))
                for host in range(options['hosts'])]
        flows = [captures.flows(frames) for frames, _ in seen]
        for host, (frames, unhappy) in enumerate(seen):
            yield from (f'host {host}: frame {at}' for at in unhappy)
            yield from captures.silence(frames, captures.address(host))
            for (source, qp), flow in flows[host].items():
                sender = next(at for at in range(len(seen)) if captures.address(at) == source)
                faults, _ = captures.goes_back(
                    flow, captures.Sender if sender == host else captures.Receiver,
                    captures.first(flows[sender][source, qp]))
                # Only flows that come through must end.
                yield from faults if run.ok else faults[:-1]
                yield from () if sender == host else captures.notifications(flow, interval)


def drawn(seed):
    options, interval = draw(seed)
    none(judge(options, interval), ' '.join(f'{name}={value}' for name, value in options.items()))


def drawn_ones_are_right(count=6):
    for seed in range(1, count + 1):
        drawn(seed)


def each_drawn(count):
    """A test for each."""
    for seed in range(1, count + 1):
        test = functools.partial(drawn, seed)
        test.__name__ = f'cluster {seed}'
        yield test


TESTS = (frames_are_right, all_is_captured, processes_agree, samples_are_cut, switches_mark,
         marks_follow_the_queue, marks_are_answered, the_paused_are_silent, ordered_without_loss,
         losses_are_repaired, drawn_ones_are_right, faults_are_found, ends_are_named)


if __name__ == '__main__':
    sys.exit(tap(list(each_drawn(int(sys.argv[2]))) if sys.argv[1:2] == ['--drawn'] else TESTS))
