#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Vectors for unit/test_vectors.c, by the codec in roce.py.

  vectors.py CORPUS             all of them, to standard output; CORPUS: captured
                                frames, see corpus/wire/README
  vectors.py --reduce PCAP      a frame of each kind in a capture, for a CORPUS
  vectors.py --pcap FILE        the valid frames, to a capture

Each vector is a line:

  opcode NUMBER NAME op=… place=… headers=… response=… payload=… offered=…
  flips NAME same=MASK data=FRAME
                        the frame is refused if any bit changes that is not in the
                        mask
  frame NAME WHAT [HEADER.FIELD=…] data=FRAME
  end LINES

Numbers and bytes are in hex. WHAT: exact, a frame with these fields has these bytes; read,
the frame has these fields, but the device would send other bytes; malformed and icrc, the
frame is refused for its form or for its ICRC.
"""

import hashlib
import struct
import sys

sys.dont_write_bytecode = True
from roce import (  # noqa: E402
    ETHERTYPE_VLAN, ETHERTYPES, LAYOUT, OPCODES, PROTO_UDP, SIZE, UDP_PORT, VARIANT, WIDTH, Frame,
    Malformed, decode, pack)

SEND_ONLY = 0x04
NOT_OFFERED = ('RD',)
IPS = {name: kind for kind, name in ETHERTYPES.items()}
FIXED = {
    'eth': {}, 'vlan': {'dei': 0},
    'ipv4': {'version': 4, 'ihl': 5, 'id': 0, 'flags': 2, 'offset': 0, 'protocol': PROTO_UDP,
             'length': 0, 'checksum': 0},
    'ipv6': {'version': 6, 'protocol': PROTO_UDP, 'length': 0},
    'udp': {'dport': UDP_PORT, 'length': 0, 'checksum': 0},
    'bth': {'m': 1, 'pad': 0, 'tver': 0, 'f': 0, 'b': 0, 'resv6': 0, 'resv7': 0},
}
LARGE = (63, 64, 65, 256, 1023, 1024, 4096)

# Frames that others have published: source, headers, payload, ICRC.
PUBLISHED = (
    # scapy, test/contrib/roce.uts, "an example UC packet"
    ('UC_SEND_ONLY', {
        'eth': {'dmac': 0x248a07a8fa22, 'smac': 0x248a07a8fa22},
        'ipv4': {'tos': 1, 'id': 1144, 'ttl': 64, 'src': 0xc0a80007, 'dst': 0xc0a80007},
        'udp': {'sport': 49152, 'checksum': 0xaca2},
        'bth': {'opcode': 0x24, 'pkey': 0xffff, 'destqp': 211, 'psn': 13571856}},
     '4630818be28935d90e9a95505401be885e50', 0x78f353f3),
    # scapy, test/contrib/roce.uts, "CNP captured on ConnectX-4 Lx"
    ('CNP', {
        'eth': {'dmac': 0xe41d2dab2bc2, 'smac': 0x7cfe90643b32},
        'ipv4': {'tos': 0xc2, 'id': 0x718c, 'ttl': 64, 'src': 0x0a001101, 'dst': 0x0a001201},
        'udp': {'sport': 0},
        'bth': {'opcode': 0x81, 'm': 0, 'pkey': 0xffff, 'b': 1, 'destqp': 0x118}},
     '00' * 16, 0x82fd002a),
)


def value(name, field, bits, mode, salt):
    """A field's value: all ones, all zeros, or one that no other field has."""
    key = f'{name}.{field}'
    if field in FIXED.get(name, {}) or field == 'resv':
        return FIXED.get(name, {}).get(field, 0)
    if mode == 'zeros':
        return 1 if key == 'vlan.vid' else 0
    if mode == 'ones':
        return 0xffe if key == 'vlan.vid' else (1 << bits) - 1
    digest = hashlib.sha256(f'{key} {salt}'.encode()).digest()
    return (int.from_bytes(digest, 'big') & (1 << bits) - 1) or 1


def is_notification(opcode):
    """The value of BECN."""
    return int(OPCODES[opcode].service == 'CNP')


def make(opcode, ip, vlan=False, size=0, mode='mixed', salt=0):
    """A valid frame."""
    names = ['eth', *(['vlan'] if vlan else []), ip, 'udp', 'bth', *OPCODES[opcode].headers]
    headers = {name: {field: value(name, field, bits, mode, salt)
                      for field, bits in LAYOUT[name]} for name in names}
    headers['bth'].update(opcode=opcode, b=is_notification(opcode))
    headers['eth']['type'] = IPS[ip]
    if vlan:
        headers['eth']['type'], headers['vlan']['type'] = ETHERTYPE_VLAN, IPS[ip]
    # Neither zeros, like padding, nor the same byte twice.
    payload = bytes((salt + i) % 255 + 1 for i in range(size))
    return Frame(headers, payload).fit()


def sizes(opcode, most=4):
    """Payload lengths to try with an opcode."""
    row = OPCODES[opcode]
    return range(row.min_payload, min(row.max_payload, row.min_payload + most) + 1)


def right_frames():
    """Each opcode in each encapsulation, and each boundary."""
    salt = 0
    for opcode, row in OPCODES.items():
        for ip in IPS:
            for vlan in (False, True):
                for size in sizes(opcode):
                    salt += 1
                    yield f'{row.name}/{ip}{"/vlan" * vlan}/{size}', make(opcode, ip, vlan, size,
                                                                          salt=salt)
            for mode in ('ones', 'zeros'):
                yield (f'{row.name}/{ip}/{mode}',
                       make(opcode, ip, mode == 'ones', max(sizes(opcode)), mode))
    for ip in IPS:
        for size in LARGE:
            yield f'length/{ip}/{size}', make(SEND_ONLY, ip, False, size)


def with_fields(frame, **fields):
    """A copy with other fields and the same lengths; ip_…: of either IP header."""
    new = frame.copy()
    for key, number in fields.items():
        name, field = key.split('_')
        new.headers[frame.ip if name == 'ip' else name][field] = number
    return new.sum_up()


def tolerated(frame):
    """Names and frames of oddities that receivers tolerate (9.2, A17)."""
    changes = {'M 0': {'bth_m': 0}, 'FECN': {'bth_f': 1}, 'BECN': {'bth_b': 1},
               'reserved': {'bth_resv6': 0x3f, 'bth_resv7': 0x7f},
               'UDP checksum': {'udp_checksum': 0x1234}}
    if frame.ip == 'ipv4':
        changes |= {'IPv4 id': {'ipv4_id': 0xabcd}, 'IPv4 DF 0': {'ipv4_flags': 0}}
    if 'vlan' in frame.headers:
        changes |= {'DEI': {'vlan_dei': 1}, 'priority tag': {'vlan_vid': 0}}
    for name in frame.headers:
        if 'resv' in frame.headers[name]:
            changes[f'{name} reserved'] = {f'{name}_resv': (1 << WIDTH[f'{name}.resv']) - 1}
    for name, fields in changes.items():
        yield name, with_fields(frame, **fields)
    new = frame.copy()
    new.trailer = b'\xee' * 7
    yield 'behind the datagram', new
    if frame.padding:
        new = frame.copy()
        new.padding = b'\xee' * len(frame.padding)
        yield 'padding', new


def short(frame):
    """Frames with correct lengths and ICRC that lack part of the extended headers."""
    extended = b''.join(pack(name, frame.headers[name])
                        for name in OPCODES[frame['bth.opcode']].headers)
    ends, at = set(), 0
    for name in OPCODES[frame['bth.opcode']].headers:
        ends |= {at, at + SIZE[name] - 1}
        at += SIZE[name]
    for end in sorted(ends):
        new = frame.copy()
        for name in OPCODES[frame['bth.opcode']].headers:
            del new.headers[name]
        new.payload, new.padding = extended[:end], b''
        new.headers['bth']['pad'] = 0
        yield f'short {end}', new.measure().pack()


def cut(frame):
    """The frame cut off after each header."""
    data, at = frame.pack(), 0
    for name in frame.headers:
        at += SIZE[name]
        yield f'cut {at}', data[:at]
    yield 'cut ICRC', data[:-1]


def malformed(frame):
    """Names and bytes of invalid frames, for any opcode."""
    yield from cut(frame)
    for version in (1, 2, 4, 8, 15):
        yield f'TVer {version}', with_fields(frame, bth_tver=version).pack()
    if OPCODES[frame['bth.opcode']].service in NOT_OFFERED:
        return
    yield from short(frame)
    empty = frame.copy()
    empty.payload = b''
    for pad in (1, 2, 3):
        new = with_fields(empty.fit(), bth_pad=pad)
        yield f'pad {pad} of nothing', new.pack()


def wrong_lower(frame):
    """Invalid headers below the BTH."""
    length = frame['udp.length']
    changes = {'UDP longer': {'udp_length': length + 4}, 'UDP shorter': {'udp_length': length - 4},
               'UDP length 0': {'udp_length': 0}, 'port': {'udp_dport': UDP_PORT + 1},
               'TCP': {'ip_protocol': 6}, 'IP version': {'ip_version': 5}}
    if frame.ip == 'ipv4':
        changes |= {'IHL 6': {'ipv4_ihl': 6}, 'IHL 4': {'ipv4_ihl': 4},
                    'more fragments': {'ipv4_flags': 1}, 'fragment': {'ipv4_offset': 1}}
    for name, fields in changes.items():
        yield name, with_fields(frame, **fields).pack()
    for more in (-4, 4):
        yield (f'IP length {more:+}',
               with_fields(frame, ip_length=frame[f'{frame.ip}.length'] + more).pack())
    new = frame.copy()
    new.headers['vlan' if 'vlan' in new.headers else 'eth']['type'] ^= 1
    yield 'EtherType', new.pack()


def wrong_icrc(frame):
    """ICRCs computed differently, and corruption that the ICRC detects."""
    due = frame.icrc_due()
    others = {'bit 0': due ^ 1, 'bit 31': due ^ 1 << 31, 'zero': 0, 'complement': due ^ 0xffffffff,
              'byte order': int.from_bytes(due.to_bytes(4, 'big'), 'little')}
    for name, fields in LAYOUT.items():
        for field, _ in fields if name in frame.headers and name not in ('eth', 'vlan') else ():
            mine = set(VARIANT.get(name, ())) ^ {field}
            others[f'{name}.{field}'] = frame.icrc_due({**VARIANT, name: tuple(mine)})
    for name, icrc in others.items():
        if icrc != due:
            new = frame.copy()
            new.icrc = icrc
            yield name, new.pack()
    if frame.payload:
        new = frame.copy()
        new.icrc, new.payload = due, bytes([frame.payload[0] ^ 1]) + frame.payload[1:]
        yield 'payload', new.pack()
    if frame.padding:
        new = frame.copy()
        new.icrc, new.padding = due, b'\1' * len(frame.padding)
        yield 'padding', new.pack()


def mask_of_variant(frame):
    """Ones for bits that may change in transit: the ICRC's variant fields, and the headers
    that it does not cover, except their EtherTypes."""
    mask = b''
    for name in frame.headers:
        ones = {field: (1 << bits) - 1 for field, bits in LAYOUT[name]
                if field in VARIANT.get(name, ()) or name in ('eth', 'vlan') and field != 'type'}
        mask += pack(name, ones)
    return mask.ljust(len(frame.pack()), b'\0')


def published():
    """Published frames of other devices, whose ICRC must be as computed here."""
    for name, headers, payload, icrc in PUBLISHED:
        full = {layer: {field: headers[layer].get(field, FIXED.get(layer, {}).get(field, 0))
                        for field, _ in LAYOUT[layer]} for layer in headers}
        full['eth']['type'] = IPS['ipv4']
        frame = Frame(full, bytes.fromhex(payload)).fit()
        if frame.icrc_due() != icrc:
            sys.exit(f'published {name}: ICRC {frame.icrc_due():08x}, not {icrc:08x}')
        yield name, frame


def captured(path):
    """Frames of a corpus; exits if a line describes its frame wrongly."""
    with open(path, encoding='ascii') as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith('#')]
    for what, name, data in lines:
        frame = decode(bytes.fromhex(data))
        if not name.startswith(OPCODES[frame['bth.opcode']].name):
            sys.exit(f'{path}: {name} is {OPCODES[frame["bth.opcode"]].name}')
        if what != ('read' if frame.icrc == frame.icrc_due() else 'icrc'):
            sys.exit(f'{path}: {name}: ICRC {frame.icrc:08x}, not {frame.icrc_due():08x}')
        yield what, name, frame


def as_ours(frame):
    """The frame that the device would build from the same fields."""
    new = frame.copy()
    new.icrc, new.trailer = None, b''
    for name, fields in FIXED.items():
        new.headers.get(name, {}).update({f: n for f, n in fields.items() if f != 'pad'})
    new.headers['bth']['b'] = is_notification(frame['bth.opcode'])
    return new.fit()


def show(name, what, frame):
    """The line of a frame with its fields."""
    if decode(frame.pack()).pack() != frame.pack():
        sys.exit(f'{name}: not the same when read')
    row = OPCODES[frame['bth.opcode']]
    payload, headers = frame.payload, dict(frame.headers)
    if row.service in NOT_OFFERED:
        payload = b''.join(pack(ext, headers.pop(ext)) for ext in row.headers) + payload
        what = 'read'
    words = [f'{header}.{field}={fields[field]:0{(bits + 3) // 4}x}'
             for header, fields in headers.items() for field, bits in LAYOUT[header]]
    return (f'frame {name.replace(" ", "_")} {what} {" ".join(words)} payload={payload.hex()} '
            f'data={frame.pack().hex()}')


def lines(corpus):
    """All vectors."""
    for number, row in OPCODES.items():
        yield (f'opcode {number:02x} {row.name} op={row.operation} place={row.place} '
               f'headers={",".join(row.headers)} response={row.response:d} '
               f'payload={row.max_payload > 0:d} offered={row.service not in NOT_OFFERED:d}')
    for name, frame in right_frames():
        yield show(name, 'exact', frame)
    for opcode, row in OPCODES.items():
        for ip in IPS:
            size = max(row.min_payload, min(5, row.max_payload))
            frame = make(opcode, ip, size=size, salt=opcode)
            name = f'{row.name}/{ip}/'
            for odd, new in tolerated(frame):
                yield show(name + odd, 'read', new)
            for odd, data in malformed(frame):
                yield f'frame {name}{odd.replace(" ", "_")} malformed data={data.hex()}'
            for odd, data in wrong_icrc(frame):
                yield f'frame {name}ICRC_{odd.replace(" ", "_")} icrc data={data.hex()}'
    for ip in IPS:
        for vlan in (False, True):
            frame = make(SEND_ONLY, ip, vlan, size=5)
            name = f'SEND_ONLY/{ip}{"/vlan" * vlan}'
            yield f'flips {name} same={mask_of_variant(frame).hex()} data={frame.pack().hex()}'
            for odd, data in wrong_lower(frame):
                yield f'frame {name}/{odd.replace(" ", "_")} malformed data={data.hex()}'
            for odd, new in tolerated(frame) if vlan else ():
                yield show(f'{name}/{odd}', 'read', new)
    for name, frame in published():
        yield show(f'published/{name}', 'read', frame)
        yield show(f'published/{name}/ours', 'exact', as_ours(frame))
    for what, name, frame in captured(corpus):
        if what == 'icrc':
            yield f'frame rxe/{name} icrc data={frame.pack().hex()}'
        else:
            yield show(f'rxe/{name}', 'read', frame)
        yield show(f'rxe/{name}/ours', 'exact', as_ours(frame))


def reduce(path):
    """A line for a corpus for each kind of RoCE frame in a capture of QEMU's."""
    seen = set()
    with open(path, 'rb') as file:
        file.read(24)
        while head := file.read(16):
            try:
                frame = decode(file.read(struct.unpack('<4I', head)[2]))
            except Malformed:
                continue
            if not frame or frame['bth.opcode'] not in OPCODES:
                continue
            row, plain = OPCODES[frame['bth.opcode']], frame.ip == 'ipv4' and \
                'vlan' not in frame.headers
            kind = frame['aeth.syndrome'] >> 5 if row.operation == 'ACKNOWLEDGE' else 0
            name = '/'.join([row.name, *(['nak'] if kind else []), frame.ip,
                             *(['vlan'] if 'vlan' in frame.headers else []),
                             *([f'pad{frame["bth.pad"]}'] if row.max_payload else [])])
            # Long frames, and each padding, only once.
            key = (name if plain else (row.name, frame.ip, 'vlan' in frame.headers), kind)
            if key in seen or not plain and len(frame.payload) > 64:
                continue
            seen.add(key)
            what = 'read' if frame.icrc == frame.icrc_due() else 'icrc'
            yield f'{what} {name} {frame.pack().hex()}'


def pcap(path):
    """A capture of the valid frames, for other programs."""
    with open(path, 'wb') as file:
        file.write(struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for _, frame in right_frames():
            data = frame.pack()
            file.write(struct.pack('<4I', 0, 0, len(data), len(data)) + data)


def main(words):
    """Does what the first argument says."""
    if words == ['--help']:
        print(__doc__)
    elif words[:1] == ['--pcap'] and len(words) == 2:
        pcap(words[1])
    elif words[:1] == ['--reduce'] and len(words) == 2:
        print('\n'.join(reduce(words[1])))
    elif len(words) == 1 and not words[0].startswith('-'):
        out = list(lines(words[0]))
        print('\n'.join([*out, f'end {len(out):x}']))
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main(sys.argv[1:])
