#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Judge captured RoCEv2 frames, with nothing of the engine's.

  capture.py [--wire] FILE    FILE: of QEMU's filter-dump (scripts/vm --pcap)

Every RoCE frame: lengths, checksums, reserved fields and the ICRC; the same
frames must be RoCE, with the same numbers in them, to tshark, which must have
nothing to complain about. --wire: the frames are those of pair-wire.sh, which
also has some that are wrong on purpose. Ends with: N passed, N failed, N skipped.
"""

import os
import struct
import subprocess
import sys
import zlib

TSHARK = [os.path.join(os.path.dirname(os.path.abspath(__file__)), 'buildroot.sh'),
          '--tshark', '--', 'tshark']
ROCE_PORT = 4791
IP_LEN = {4: 20, 6: 40}
BTH_LEN, UDP_LEN, ICRC_LEN = 12, 8, 4

# Extension headers by name, and which opcodes have them (IBTA, table 38).
EXT = {'deth': 8, 'reth': 16, 'atomiceth': 28, 'aeth': 4, 'atomicack': 8, 'imm': 4, 'ieth': 4,
       'feth': 4, 'xrceth': 4, 'masketh': 16}
CONNECTED = {0x00: '', 0x01: '', 0x02: '', 0x03: 'imm', 0x04: '', 0x05: 'imm', 0x06: 'reth',
             0x07: '', 0x08: '', 0x09: 'imm', 0x0a: 'reth', 0x0b: 'reth imm'}
REQUESTS = {**CONNECTED, 0x0c: 'reth', 0x13: 'atomiceth', 0x14: 'atomiceth', 0x16: 'ieth',
            0x17: 'ieth', 0x1c: 'feth reth', 0x1d: 'reth'}
RESPONSES = {0x0d: 'aeth', 0x0e: '', 0x0f: 'aeth', 0x10: 'aeth', 0x11: 'aeth',
             0x12: 'aeth atomicack'}
OPCODES = {**REQUESTS, **RESPONSES,
           **{0x20 | op: ext for op, ext in CONNECTED.items()},
           0x64: 'deth', 0x65: 'deth imm', 0x81: '',
           0xd3: 'atomiceth masketh', 0xd4: 'atomiceth masketh',    # our own
           **{0xa0 | op: f'xrceth {ext}' for op, ext in REQUESTS.items()},
           **{0xa0 | op: ext for op, ext in RESPONSES.items()}}
WRITE_ONLY_IMM, ACK, UD_SEND = 0x0b, 0x11, 0x64

# Connection management: attribute identifiers (IBTA 12.6).
REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16
MAD_CM, MAD_HEADER = 0x07, 24


def records(file):
    """The frames of a pcap file."""
    magic = file.read(24)[:4]
    order = '<' if magic == b'\xd4\xc3\xb2\xa1' else '>'
    while head := file.read(16):
        yield file.read(struct.unpack(order + '4I', head)[2])


def ones_sum(data):
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


class Frame:
    """A RoCE frame; parse() makes one, or None of what is none."""

    def __init__(self, data, number, start):
        self.length, self.number = len(data), number
        self.ip, self.version = data[start:], data[start] >> 4
        size = IP_LEN[self.version]
        header, udp = self.ip[:size], self.ip[size:]
        if self.version == 4:
            self.ip_len = int.from_bytes(header[2:4], 'big')
            self.ends = header[12:16], header[16:20]
            self.tclass, self.hop_limit = header[1], header[8]
        else:
            self.ip_len = size + int.from_bytes(header[4:6], 'big')
            self.ends = header[8:24], header[24:40]
            self.tclass, self.hop_limit = header[0] << 4 & 0xf0 | header[1] >> 4, header[7]
        self.udp, self.bth = udp[:UDP_LEN], udp[UDP_LEN:UDP_LEN + BTH_LEN]
        self.sport = int.from_bytes(udp[:2], 'big')
        self.udp_len = int.from_bytes(udp[4:6], 'big')
        self.opcode, self.pad = self.bth[0], self.bth[1] >> 4 & 3
        self.dest_qp = int.from_bytes(self.bth[5:8], 'big')
        self.psn = int.from_bytes(self.bth[9:12], 'big')
        self.ext = OPCODES.get(self.opcode, '').split()
        self.body = self.ip[size + UDP_LEN + BTH_LEN:self.ip_len - ICRC_LEN]
        self.payload = self.body[sum(EXT[name] for name in self.ext):]

    def faults(self):
        """What is wrong with it: names of rules it breaks."""
        size = IP_LEN[self.version]
        if self.version == 4:
            yield 'E-002 IPv4 checksum', ones_sum(self.ip[:size]) == 0xffff
            yield 'E-002 IPv4 options or fragment', (
                self.ip[0] == 0x45 and not self.ip[6] & 0x3f and not self.ip[7])
            yield "E-002 don't fragment", bool(self.ip[6] & 0x40)
        yield 'IP length', self.ip_len <= len(self.ip)
        yield 'E-003 UDP length', self.udp_len == self.ip_len - size
        yield 'E-003 UDP source port', self.sport >= 0xc000
        yield 'opcode', self.opcode in OPCODES
        yield 'E-004 transport version', not self.bth[1] & 0xf
        yield 'E-031 reserved fields', not self.bth[4] & 0x3f and not self.bth[8] & 0x7f
        yield 'E-030 padding', (len(self.payload) % 4 == 0 and len(self.payload) >= self.pad
                                and not any(self.payload[len(self.payload) - self.pad:]))
        yield 'E-032 E-033 ICRC', self.icrc() == self.ip[self.ip_len - ICRC_LEN:self.ip_len]

    def icrc(self):
        """Variant fields count as ones."""
        data, size = bytearray(self.ip[:self.ip_len - ICRC_LEN]), IP_LEN[self.version]
        if self.version == 4:
            data[1] = data[8] = data[10] = data[11] = 0xff
        else:
            data[0] |= 0x0f
            data[1] = data[2] = data[3] = data[7] = 0xff
        data[size + 6] = data[size + 7] = data[size + UDP_LEN + 4] = 0xff
        return struct.pack('<I', zlib.crc32(b'\xff' * 8 + data))

    def cm(self):
        """Attribute of a connection manager's MAD, or None, and what is in it."""
        if self.opcode != UD_SEND or self.dest_qp != 1 or self.payload[1] != MAD_CM:
            return None, b''
        return int.from_bytes(self.payload[16:18], 'big'), self.payload[MAD_HEADER:]


def parse(data, number):
    start = 18 if data[12:14] == b'\x81\0' else 14
    kind = data[start - 2:start]
    if kind not in (b'\x08\0', b'\x86\xdd') or len(data) < start + 60 - 14:
        return None
    size = IP_LEN[4 if kind == b'\x08\0' else 6]
    protocol = data[start + (9 if size == 20 else 6)]
    dport = int.from_bytes(data[start + size + 2:start + size + 4], 'big')
    if protocol != 17 or dport != ROCE_PORT or len(data) < start + size + UDP_LEN + BTH_LEN:
        return None
    return Frame(data, number, start)


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
    """Whoever always says yes is no judge."""
    def good(frame, at, bits):
        data = bytearray(frame.ip)
        data[at] ^= bits
        data = bytes(14) + bytes(data)
        return all(verdict for rule, verdict in Frame(data, 0, 14).faults() if 'ICRC' in rule)

    some = [frame for frame in frames if frame.version == 4][:100]
    report.check('E-034 the ICRC tells a changed frame, whatever may change on its way', some and all(
        good(f, 1, 0xff) and good(f, 8, 0x55) and good(f, 32, 0x40)
        and not good(f, 15, 1) and not good(f, 39, 1) and not good(f, f.ip_len - 1, 0x80)
        for f in some))


def check_frames(report, frames):
    bad = [(frame.number, rule) for frame in frames
           for rule, good in frame.faults() if not good]
    ends = {frame.ends for frame in frames}
    report.check('E-002..E-004 E-030..E-033 every frame is right', frames and not bad,
                 f'{len(frames)} frames' + ''.join(f'; {n}: {rule}' for n, rule in bad[:5]))
    report.check('frames of both machines', ends and all((b, a) in ends for a, b in ends))


def check_tshark(report, frames, path):
    """What tshark makes of the same file."""
    fields = ['frame.number', 'infiniband.bth.opcode', 'infiniband.bth.destqp',
              'infiniband.bth.psn', '_ws.malformed', '_ws.expert.severity']
    # RoCE has no UDP checksum over IPv6 either (annex A17), which RFC 6936 allows.
    command = [*TSHARK, '-n', '-r', '-', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE',
               '-Y', 'infiniband', '-T', 'fields', '-E', 'occurrence=f']
    for field in fields:
        command += ['-e', field]
    with open(path, 'rb') as file:
        out = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, check=True,
                             stderr=subprocess.DEVNULL, text=True).stdout
    rows = [line.split('\t') for line in out.splitlines()]
    theirs = [tuple(int(word, 0) for word in row[:4]) for row in rows]
    ours = [(f.number, f.opcode, f.dest_qp, f.psn) for f in frames]
    odd = sorted(set(ours) ^ set(theirs))[:3]
    report.check('tshark sees the same frames', ours == theirs, f'{odd}' if odd else '')
    unhappy = [row[0] for row in rows if any(row[4:])]
    report.check('tshark finds none malformed', not unhappy, ' '.join(unhappy[:5]))


def qpn(message, offset):
    return int.from_bytes(message[offset:offset + 3], 'big')


def conversations(frames):
    """For each REQ: the frames from it on, between the same two machines. What a
    machine had to repeat counts once: it is the same from its BTH on."""
    once = {(f.ends, f.dest_qp, f.psn, f.opcode, f.body): f for f in reversed(frames)}
    frames = sorted(once.values(), key=lambda frame: frame.number)
    requests = set()
    for index, frame in enumerate(frames):
        kind, message = frame.cm()
        if kind == REQ and message not in requests:
            requests.add(message)
            yield [f for f in frames[index:] if set(f.ends) == set(frame.ends)]


def pattern(frames):
    """What K-003 and K-004 say of one connection; None: it was refused, or did
    something else."""
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
        'E-011 K-003 lengths': all(length == 322 for _, _, length in seen)
                               and all(length == 62 for _, length in acks),
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
    for name, opcodes, label in (('RC', (0x06, 0x0a, ACK), 0x12345), ('UD', (UD_SEND,), None)):
        found = [f for f in frames if f.tclass == 0x6a and f.opcode in opcodes]
        report.check(f'E-037 E-040 {name}: traffic class and hop limit',
                     len({f.ends for f in found}) == 2 and all(f.hop_limit == 64 for f in found))
        if label:
            sport = 0xc000 | ((label ^ label >> 14) & 0x3fff)
            report.check(f'E-036 {name}: source port', found and all(f.sport == sport for f in found))


def main():
    args = sys.argv[1:]
    wire = '--wire' in args
    if wire:
        args.remove('--wire')
    if len(args) != 1 or args[0].startswith('-'):
        print(__doc__)
        return 2
    with open(args[0], 'rb') as file:
        found = [parse(data, number + 1) for number, data in enumerate(records(file))]
    frames = [frame for frame in found if frame]
    report = Report()
    check_checker(report, frames)
    check_frames(report, frames)
    check_tshark(report, frames, args[0])
    if wire:
        check_vectors(report, frames)
        check_cm(report, frames)
    return report.end()


if __name__ == '__main__':
    sys.exit(main())
