#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check captured RoCEv2 frames, without any code of the engine.

  capture.py [--wire] FILE    FILE: from QEMU's filter-dump (scripts/vm --pcap), or the
                              device's loopback-capture

Checks lengths, checksums, reserved fields and the ICRC of every RoCE frame, the order
and the contents of the frames of each QP (flows.py), and that tshark sees RoCE in the same
frames, reads the same numbers in all headers and finds no fault. --wire: the frames are
from pair-wire.sh, some of them wrong on purpose, with one of every opcode. Ends with:
N passed, N failed, N skipped.
"""

import os
import struct
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, 'qemu-device/tests/oracle'))
import flows    # noqa: E402
import roce     # noqa: E402

TSHARK = [os.path.join(TOP, 'scripts/build/buildroot.sh'), '--tshark', '--', 'tshark']
WRITE_ONLY, WRITE_ONLY_IMM, ACK, FLUSH, UD_SEND = 0x0a, 0x0b, 0x11, 0x1c, 0x64
WRITE_FIRST = 0x06

# Connection management: attribute identifiers (IBTA 12.6).
REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16
MAD_CM, MAD_HEADER = 0x07, 24

# tshark's names for our fields. It knows neither XRC nor our own opcodes, and takes the placement
# type of a FETH for three bits, where annex A19 has four.
THEIRS = {
    'bth.opcode': 'bth.opcode', 'bth.se': 'bth.se', 'bth.m': 'bth.m', 'bth.pad': 'bth.padcnt',
    'bth.tver': 'bth.tver', 'bth.pkey': 'bth.p_key', 'bth.destqp': 'bth.destqp',
    'bth.a': 'bth.a', 'bth.psn': 'bth.psn', 'deth.qkey': 'deth.q_key',
    'deth.srcqp': 'deth.srcqp', 'reth.va': 'reth.va', 'reth.rkey': 'reth.r_key',
    'reth.dmalen': 'reth.dmalen', 'atomiceth.va': 'reth.va', 'atomiceth.rkey': 'reth.r_key',
    'atomiceth.swapdata': 'atomiceth.swapdt', 'atomiceth.cmpdata': 'atomiceth.cmpdt',
    'aeth.syndrome': 'aeth.syndrome', 'aeth.msn': 'aeth.msn',
    'atomicacketh.origremdata': 'atomicacketh.origremdt', 'immdt.imm': 'immdt',
    'ieth.rkey': 'ieth'}
BOOLEAN = {'True': 1, 'False': 0, '': None}
IN_BYTES = ('immdt.imm', 'ieth.rkey')
TSHARK_KNOWS = ('RC', 'UC', 'UD')
# It takes some payload for a protocol that it knows.
GUESSES = ('smcr_infiniband', 'smb_direct_infiniband', 'rpcrdma_infiniband', 'nvme_rdma', 'lnet_ib',
           'iser_infiniband', 'eth_over_ib', 'mellanox_eoib', 'sdp_infiniband', 'fc_infiniband')


def set_to(key, value):
    """A function that changes a field of a frame."""
    name, field = key.split('.')
    return lambda frame: frame.headers[name].update({field: value})


# Rules of flows.py, the first frame of which kind to change, and how.
FORGED = {
    'D-004': (lambda row: row.place == 'FIRST',
              lambda frame: setattr(frame, 'payload', frame.payload[:-4])),
    'D-005': (lambda row: row.service == 'RC' and row.operation == 'RDMA_WRITE' and
              row.place == 'ONLY', set_to('reth.dmalen', 5000)),
    'D-010': (lambda row: row.response, set_to('bth.a', 1)),
    'B-045': (lambda row: row.response, set_to('bth.se', 1)),
}


# A pcap file with microseconds, or nanoseconds, in that byte order.
LITTLE = b'\xd4\xc3\xb2\xa1', b'\x4d\x3c\xb2\xa1'


def records(file):
    """The frames of a pcap file, or of a pcapng file of this machine's byte order."""
    magic = file.read(4)
    if magic == b'\n\r\r\n':
        file.seek(0)
        yield from (frame for _, frame in packets(file))
        return
    file.read(20)
    order = '<' if magic in LITTLE else '>'
    while head := file.read(16):
        yield file.read(struct.unpack(order + '4I', head)[2])


def packets(file):
    """(time, frame) of each in a pcapng file; in microseconds, unless the file says otherwise."""
    while head := file.read(8):
        kind, length = struct.unpack('=2I', head)
        body = file.read(length - 8)
        if kind == 6:       # an enhanced packet block
            high, low, size = struct.unpack_from('=3I', body, 4)
            yield high << 32 | low, body[20:20 + size]


class Captured:
    """A RoCE frame of a capture."""

    def __init__(self, frame, length, number):
        self.frame, self.length, self.number = frame, length, number
        ip = frame.headers[frame.ip]
        self.ends = ip['src'], ip['dst']
        self.tclass = ip['tos' if frame.ip == 'ipv4' else 'tclass']
        self.hop_limit = ip['ttl' if frame.ip == 'ipv4' else 'hops']
        self.sport, self.opcode = frame['udp.sport'], frame['bth.opcode']
        self.dest_qp, self.psn = frame['bth.destqp'], frame['bth.psn']
        self.payload = frame.payload
        self.row = roce.OPCODES.get(self.opcode)
        # The part that a retransmission has in common with it.
        self.message = tuple(tuple(fields.values()) for name, fields in frame.headers.items()
                             if name not in ('eth', 'vlan', frame.ip, 'udp', 'bth')), self.payload

    def reserved(self):
        """Those fields of the BTH and of what is behind it."""
        return [number for name in self.frame.layers('bth')
                for field, number in self.frame.headers[name].items() if field.startswith('resv')]

    def faults(self):
        """The names of the rules it breaks."""
        frame, row = self.frame, self.row
        if frame.ip == 'ipv4':
            ip = frame.headers['ipv4']
            yield 'E-002 IPv4 checksum', not roce.checksum(roce.pack('ipv4', ip))
            yield "E-002 don't fragment", ip['flags'] == 2
        yield 'E-003 UDP source port', self.sport >= 0xc000
        yield 'opcode', row is not None
        yield 'E-004 transport version', not frame['bth.tver']
        yield 'E-031 reserved fields', not any(self.reserved())
        yield 'E-030 padding', (len(frame.payload) + len(frame.padding)) % 4 == 0 \
            and not any(frame.padding)
        yield 'payload', row and row.min_payload <= len(frame.payload) <= row.max_payload
        # rdma_rxe, which is what says 0 in M, has its own (networks.rst).
        yield 'E-032 E-033 ICRC', frame.icrc == frame.icrc_due() or (
            self.opcode == FLUSH and not frame['bth.m'])

    def cm(self):
        """Attribute of a connection manager's MAD, or None, and what is in it."""
        if self.opcode != UD_SEND or self.dest_qp != 1 or self.payload[1] != MAD_CM:
            return None, b''
        return int.from_bytes(self.payload[16:18], 'big'), self.payload[MAD_HEADER:]


def read(path):
    """The RoCE frames of a capture, and those that should be RoCE but cannot be read."""
    frames, broken = [], []
    with open(path, 'rb') as file:
        for number, data in enumerate(records(file), 1):
            try:
                frame = roce.decode(data)
            except roce.Malformed as why:
                broken.append((number, why))
                continue
            if frame:
                frames.append(Captured(frame, len(data), number))
    return frames, broken


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, good, why=''):
        self.passed += bool(good)
        self.failed += not good
        print(f'{"ok" if good else "not ok"} capture/{name}' + (f' # {why}' if why else ''))
        return good

    def end(self):
        print(f'{self.passed} passed, {self.failed} failed, 0 skipped')
        return 0 if self.passed and not self.failed else 1


def check_checker(report, frames):
    """The checks themselves must fail for bad frames."""
    def right(captured, key, bits=1):
        changed = captured.frame.copy()
        name, field = key.split('.')
        changed.headers[name][field] ^= bits
        return changed.icrc_due() == captured.frame.icrc

    def told(f):
        return (right(f, 'ipv4.tos', 0xff) and right(f, 'ipv4.ttl', 0x55) and right(f, 'bth.b')
                and not right(f, 'ipv4.src') and not right(f, 'udp.length')
                and not right(f, 'bth.psn'))

    some = [frame for frame in frames if frame.frame.ip == 'ipv4' and frame.opcode != FLUSH][:100]
    report.check('E-034 the ICRC tells a changed frame, whatever may change on its way',
                 some and all(told(f) for f in some))


def flow_faults(frames):
    """(number, rule) of each rule for the frames of a QP that one of ours breaks: rdma_rxe, which
    is what says 0 in M, is not what is judged here."""
    heard = flows.Flows()
    return [(captured.number, rule) for captured in frames if captured.frame['bth.m']
            for rule in heard.hear(captured.frame)]


def check_flows(report, frames):
    bad = flow_faults(frames)
    report.check('D-004 D-005 D-006 D-010 B-045 the frames of each QP are right', not bad,
                 ''.join(f'; {n}: {rule}' for n, rule in bad[:5]))
    for rule, (wanted, change) in FORGED.items():
        forged = [Captured(frame.frame.copy(), frame.length, frame.number) for frame in frames]
        chosen = next((captured.frame for captured in forged if captured.frame['bth.m'] and
                       captured.row and wanted(captured.row)), None)
        if chosen:
            change(chosen)
        found = {wrong.split()[0] for _, wrong in flow_faults(forged)}
        report.check(f'a frame that breaks {rule} is found', chosen and rule in found)


def check_frames(report, frames, broken):
    bad = broken + [(frame.number, rule) for frame in frames
                    for rule, good in frame.faults() if not good]
    ends = {frame.ends for frame in frames}
    report.check('E-002 E-003 E-004 E-030 E-031 E-032 E-033 every frame is right',
                 frames and not bad,
                 f'{len(frames)} frames' + ''.join(f'; {n}: {rule}' for n, rule in bad[:5]))
    report.check('frames of both machines', ends and all((b, a) in ends for a, b in ends))


def tshark(path, fields, wanted='infiniband'):
    """Lines of its fields for each frame that is wanted, of RoCE."""
    # RoCE has no UDP checksum over IPv6 either (annex A17), which RFC 6936 allows.
    command = [*TSHARK, '-n', '-r', '-', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE',
               '-Y', wanted, '-T', 'fields', '-E', 'occurrence=f']
    for guess in GUESSES:
        command += ['--disable-heuristic', guess]
    for field in fields:
        command += ['-e', field]
    with open(path, 'rb') as file:
        out = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, check=True,
                             stderr=subprocess.DEVNULL, text=True).stdout
    return [line.split('\t') for line in out.splitlines()]


def differences(captured, seen):
    """The fields that tshark reads differently; seen: its field names to values."""
    for key, theirs in THEIRS.items():
        text = seen[theirs]
        if key.split('.')[0] in captured.frame.headers:
            number = BOOLEAN[text] if text in BOOLEAN else int(text, 16 if key in IN_BYTES else 0)
            if number != captured.frame[key]:
                yield key


def check_tshark(report, frames, path):
    """Compares with what tshark reads in the same file."""
    names = sorted(set(THEIRS.values()))
    fields = ['frame.number', '_ws.malformed', '_ws.expert.severity']
    rows = tshark(path, fields + [f'infiniband.{name}' for name in names])
    odd = sorted({int(row[0]) for row in rows} ^ {frame.number for frame in frames})[:3]
    report.check('tshark sees the same frames', rows and not odd, f'{odd}' if odd else '')
    seen = {int(row[0]): dict(zip(names, row[3:])) for row in rows}
    other = [(frame.number, key) for frame in frames
             if frame.row and frame.row.service in TSHARK_KNOWS and frame.number in seen
             for key in differences(frame, seen[frame.number])]
    report.check('E-004 E-005 E-006 E-007 E-008 E-009 tshark sees the same in all headers',
                 not other,
                 ''.join(f'{number}: {key}; ' for number, key in other[:5]))
    unhappy = [row[0] for row in rows if any(row[1:3])]
    report.check('tshark finds none malformed', not unhappy, ' '.join(unhappy[:5]))


def check_opcodes(report, frames):
    """opcodes.py has run: every opcode of RC, UC and UD, from both machines."""
    want = {op for op, row in roce.OPCODES.items() if row.service in TSHARK_KNOWS}
    ends = sorted({frame.ends[0] for frame in frames if frame.opcode == WRITE_FIRST})
    report.check('opcodes.py has run', len(ends) == 2)
    for end in ends:
        missing = want - {frame.opcode for frame in frames if frame.ends[0] == end}
        report.check(f'E-020 E-021 E-022 E-023 E-024 E-025 E-026 every opcode, from {end:x}',
                     not missing,
                     ' '.join(roce.OPCODES[op].name for op in sorted(missing)))


def qpn(message, offset):
    return int.from_bytes(message[offset:offset + 3], 'big')


def conversations(frames):
    """For each REQ: the frames from it on, between the same two machines. A
    retransmitted frame counts once: it is the same from its BTH on."""
    once = {(f.ends, f.dest_qp, f.psn, f.opcode, f.message): f for f in reversed(frames)}
    frames = sorted(once.values(), key=lambda frame: frame.number)
    requests = set()
    for index, frame in enumerate(frames):
        kind, message = frame.cm()
        if kind == REQ and message not in requests:
            requests.add(message)
            yield [f for f in frames[index:] if set(f.ends) == set(frame.ends)]


def pattern(frames):
    """Judge one connection by K-003 and K-004; None: it was refused, or did something else."""
    active = frames[0].ends
    exchange, seen = {}, []
    for frame in frames:
        kind, message = frame.cm()
        if kind and kind not in exchange:
            exchange[kind] = message
            seen.append((kind, frame.ends == active, frame.length))
        if kind in (REJ, DREQ):
            break
    if [kind for kind, _, _ in seen[:3]] != [REQ, REP, RTU]:
        return None
    client, server = qpn(exchange[REQ], 32), qpn(exchange[REP], 12)
    data = [(f.ends == active, f.opcode, f.length) for f in frames
            if f.dest_qp == (server if f.ends == active else client)]
    writes = [(forth, length) for forth, opcode, length in data if opcode == WRITE_ONLY_IMM]
    acks = [(forth, length) for forth, opcode, length in data if opcode == ACK]
    if writes != [(True, 78 + 52), (True, 78 + 16), (False, 78 + 16)]:
        return None
    return {
        'K-003 REQ, REP, RTU': [forth for _, forth, _ in seen[:3]] == [True, False, True],
        'E-011 K-003 lengths': all(length == 322 for _, _, length in seen) and all(
            length == 62 for _, length in acks),
        'K-004 both acknowledge': {forth for forth, _ in acks} == {True, False},
        'K-012 disconnected': seen[3:4] and seen[3][0] == DREQ,
    }


def check_cm(report, frames):
    found = [result for talk in conversations(frames) if (result := pattern(talk))]
    report.check('K-003 K-004 connections with WRITE_IMM', len(found) == 2, f'{len(found)}')
    for number, result in enumerate(found):
        for name, good in result.items():
            report.check(f'{name} (connection {number + 1})', good)


def check_vectors(report, frames):
    """The address vectors of pair-wire.sh."""
    for name, opcodes, label in (('RC', (WRITE_FIRST, WRITE_ONLY, ACK), 0x12345),
                                 ('UD', (UD_SEND,), None)):
        found = [f for f in frames if f.tclass == 0x6a and f.opcode in opcodes]
        report.check(f'E-037 E-040 {name}: traffic class and hop limit',
                     len({f.ends for f in found}) == 2 and all(f.hop_limit == 64 for f in found))
        if label:
            sport = 0xc000 | ((label ^ label >> 14) & 0x3fff)
            report.check(f'E-036 {name}: source port',
                         found and all(f.sport == sport for f in found))


def main():
    args = sys.argv[1:]
    wire = '--wire' in args
    if wire:
        args.remove('--wire')
    if len(args) != 1 or args[0].startswith('-'):
        print(__doc__)
        return 2
    frames, broken = read(args[0])
    report = Report()
    check_checker(report, frames)
    check_frames(report, frames, broken)
    check_flows(report, frames)
    check_tshark(report, frames, args[0])
    if wire:
        check_opcodes(report, frames)
        check_vectors(report, frames)
        check_cm(report, frames)
    return report.end()


if __name__ == '__main__':
    sys.exit(main())
