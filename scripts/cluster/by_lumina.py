#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Let Lumina's checkers judge captures of clusters; prints TAP.

  by_lumina.py CHECKOUT      of https://github.com/lumina-test/lumina; needs Python's dpkt

Lumina (SIGCOMM 2023) tests adapters: a switch between two of them loses and marks packets, and
notes that, and the time, in the copies that it takes. Its checkers find these where we put them
here. test_captures.py has the same rules, and is what `pytest -m cluster-captures` runs.
"""

import logging
import os
import struct
import sys
import types

sys.dont_write_bytecode = True
sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), *part)
             for part in (('..',), ('..', 'bench'))]
# pylint: disable=wrong-import-position
import captures         # noqa: E402
import simulator        # noqa: E402
import test_captures    # noqa: E402
from test_cluster import check, tap         # noqa: E402

MARKED = 2              # Lumina's word for that in the TTL
TTL = 14 + 8


def packets(path):
    """As Lumina's switch writes them: time for MAC of the destination, a mark for TTL."""
    from lumina.analyzer.packet_parser.roce_packet import RRoCEPacket
    frames, _ = captures.read(path)
    with open(path, 'rb') as file:
        for frame, data in zip(frames, captures.capture.records(file)):
            data = bytearray(data)
            data[:6] = struct.pack('>Q', frame.time)[2:]
            if frame.ecn == captures.CE:
                data[TTL] = MARKED
            if frame.src:
                yield RRoCEPacket((0, bytes(data)))


def ends(frames):
    """Lumina's description of each flow."""
    for (source, qp), flow in captures.flows(frames).items():
        first = next(frame for frame in flow if frame.data)
        back = next(frame for frame in flow if frame.opcode == captures.ACK)
        last = max((captures.after(frame.psn, first.psn) for frame in flow if frame.data))
        yield {'ip_snd': source, 'ip_rcv': first.dst, 'qpn_snd': back.qp, 'qpn_rcv': qp,
               'psn_snd': first.psn, 'psn_rcv': 0}, last + 1


def each(options):
    """Name, packets and flows of each host of a run."""
    with simulator.folder() as work:
        check(simulator.run({**options, 'pcap': 'hosts'}, keep=work).ok, 'the run')
        for host in range(options['hosts']):
            path = os.path.join(work, f'host-{host}.pcap')
            yield host, list(packets(path)), list(ends(captures.read(path)[0]))


def go_back(options):
    """The receiver, host 0, and the senders of an incast, each by its own capture."""
    from lumina.analyzer.checker.gbn_check import GBNCheck
    number = 0
    for host, frames, flows in each(options):
        for flow, packets_of in flows:
            def judge(seen, host=host, flow=flow, packets_of=packets_of):
                checker = GBNCheck(seen, [flow], packets_of)
                return (checker.check_sender(0) if host else checker.check_receiver(0)), checker
            good, checker = judge(frames)
            check(good, f'host {host}: {flow}')
            number += checker.num_nacks[0] or 0
            last = flow['psn_snd'] + packets_of - 1
            check(not judge([frame for frame in frames if frame.get_roce_pkt_seq() != last])[0],
                  'it does not miss a packet')
    return number


def go_back_n():
    check(go_back(test_captures.LOSS) > 10, 'too few NAKs')
    for seed in range(2, 12):
        go_back({**test_captures.LOSS, 'seed': seed})


def notifications():
    from lumina.analyzer.checker.cnp_check import CNP_PACING_MODE, CNPCheck
    for options, interval in ((test_captures.INCAST, 50), (test_captures.LOSS, 20)):
        _, frames, flows = next(each(options))
        checker = CNPCheck(frames, [flow for flow, _ in flows])
        check(checker.check_cnp_behavior(CNP_PACING_MODE.PER_IP_PAIR, False, interval), interval)
        check(checker.get_total_num_cnps() > 10, checker.get_total_num_cnps())
        check(not checker.check_cnp_behavior(CNP_PACING_MODE.PER_IP_PAIR, False, interval / 2),
              'half the interval')


if __name__ == '__main__':
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    sys.path.append(sys.argv[1])
    # It reads counters of adapters over SSH, with modules that the checkers do without.
    sys.modules['lumina.analyzer.counter.host_counter'] = types.SimpleNamespace(
        MLNXHostCounter=object, IntelHostCounter=object)
    logging.disable(logging.CRITICAL)
    sys.exit(tap((go_back_n, notifications)))
