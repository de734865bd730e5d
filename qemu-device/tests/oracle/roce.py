# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCEv2 frames, to fields and back.

Headers and opcodes are those of Documentation/conformance.md, E.1 and E.2, from the tables of the
IBTA specification (volume 1, chapter 9; annexes A17, RoCEv2, and A19, FLUSH and ATOMIC WRITE). The
codec shares nothing with the engine, so it shows errors that the engine makes both in building and
in parsing. scapy's module for RoCE has only BTH, AETH and CNP, and none of the other extended
headers.
"""

import struct
import zlib

import tables

UDP_PORT = 4791
ETHERTYPES = {0x0800: 'ipv4', 0x86dd: 'ipv6'}
ETHERTYPE_VLAN = 0x8100
PROTO_UDP = 17
ICRC_LEN = 4

# Fields in the order of their bits, with their widths.
LAYOUT = {
    'eth': (('dmac', 48), ('smac', 48), ('type', 16)),
    'vlan': (('pcp', 3), ('dei', 1), ('vid', 12), ('type', 16)),
    'ipv4': (('version', 4), ('ihl', 4), ('tos', 8), ('length', 16), ('id', 16), ('flags', 3),
             ('offset', 13), ('ttl', 8), ('protocol', 8), ('checksum', 16), ('src', 32),
             ('dst', 32)),
    'ipv6': (('version', 4), ('tclass', 8), ('label', 20), ('length', 16), ('protocol', 8),
             ('hops', 8), ('src', 128), ('dst', 128)),
    'udp': (('sport', 16), ('dport', 16), ('length', 16), ('checksum', 16)),
    'rdeth': (('resv', 8), ('eecontext', 24)),
    **{name: fields for name, (_, fields) in tables.headers().items() if fields},
}
SIZE = {name: sum(bits for _, bits in fields) // 8 for name, fields in LAYOUT.items()}
WIDTH = {f'{name}.{field}': bits for name, fields in LAYOUT.items() for field, bits in fields}

# Fields that may change in transit count as ones in the ICRC (A17.3.3), and so do eight
# bytes before the IP header in place of the LRH.
VARIANT = {'ipv4': ('tos', 'ttl', 'checksum'), 'ipv6': ('tclass', 'label', 'hops'),
           'udp': ('checksum',), 'bth': ('f', 'b', 'resv6')}

# Minimal and maximal bytes of payload.
PAYLOAD = {'SEND': (0, 4096), 'RDMA_WRITE': (0, 4096), 'RDMA_READ_RESPONSE': (0, 4096),
           'ATOMIC_WRITE': (8, 8), 'CNP': (16, 16)}


class Opcode:
    """An opcode, and what its packets carry."""

    def __init__(self, op, service, first=()):
        self.service, self.operation, self.place = service, op.operation, op.place
        self.headers, self.response = [*first, *op.headers], op.response
        self.min_payload, self.max_payload = PAYLOAD.get(op.operation, (0, 0))
        self.name = '_'.join([service, op.operation, op.place, *self.headers])


OPCODES = {number: Opcode(op, op.service) for number, op in tables.opcodes().items()}
# RD, which the document only mentions, has RC's (table 38), with other headers before theirs.
OPCODES.update({0x40 | number: Opcode(op, 'RD', ['rdeth'] if op.response else ['rdeth', 'deth'])
                for number, op in tables.opcodes().items() if number <= 0x14})


class Malformed(Exception):
    """A frame that cannot be split into headers."""


def pack(name, values):
    """The bytes of a header; fields that are not given are 0."""
    number = 0
    for field, bits in LAYOUT[name]:
        value = values.get(field, 0)
        if value >> bits:
            raise ValueError(f'{name}.{field}: {value:#x} in {bits} bits')
        number = number << bits | value
    return number.to_bytes(SIZE[name], 'big')


def unpack(name, data):
    """The fields of a header at the start of data."""
    if len(data) < SIZE[name]:
        raise Malformed(f'ends in {name}')
    number, values = int.from_bytes(data[:SIZE[name]], 'big'), {}
    for field, bits in reversed(LAYOUT[name]):
        values[field] = number & ((1 << bits) - 1)
        number >>= bits
    return {field: values[field] for field, _ in LAYOUT[name]}


def checksum(data):
    """The checksum of RFC 1071; it is 0 for a header with a correct checksum."""
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


class Frame:
    """headers: name to fields, in the order of the frame; payload without padding; icrc: None
    stands for the correct one."""

    def __init__(self, headers, payload=b''):
        self.headers, self.payload = headers, payload
        self.padding, self.icrc, self.trailer = b'', None, b''

    def __getitem__(self, key):
        name, field = key.split('.')
        return self.headers[name][field]

    def copy(self):
        """A copy that can be changed."""
        new = Frame({name: dict(fields) for name, fields in self.headers.items()}, self.payload)
        new.padding, new.icrc, new.trailer = self.padding, self.icrc, self.trailer
        return new

    @property
    def ip(self):
        """The network header that the frame has."""
        return 'ipv4' if 'ipv4' in self.headers else 'ipv6'

    def layers(self, first):
        """The names of the header @first and all after it."""
        names = list(self.headers)
        return names[names.index(first):]

    def fit(self):
        """Sets padding, lengths and the IP checksum to their correct values."""
        self.padding = bytes(-len(self.payload) % 4)
        self.headers['bth']['pad'] = len(self.padding)
        return self.measure()

    def measure(self):
        """Sets lengths and IP checksum to match the rest of the frame."""
        length = sum(SIZE[name] for name in self.layers('udp')) + len(self.payload) + \
            len(self.padding) + ICRC_LEN
        self.headers['udp']['length'] = length
        self.headers[self.ip]['length'] = length + (SIZE['ipv4'] if self.ip == 'ipv4' else 0)
        return self.sum_up()

    def sum_up(self):
        """Sets the IP checksum."""
        if self.ip == 'ipv4':
            ip = self.headers['ipv4']
            ip['checksum'] = checksum(pack('ipv4', {**ip, 'checksum': 0}))
        return self

    def icrc_due(self, variant=VARIANT):
        """The correct ICRC: the bytes of the frame, as a number."""
        data = b'\xff' * 8
        for name in self.layers(self.ip):
            ones = {field: (1 << WIDTH[f'{name}.{field}']) - 1 for field in variant.get(name, ())}
            data += pack(name, {**self.headers[name], **ones})
        return int.from_bytes(zlib.crc32(data + self.payload + self.padding).to_bytes(4, 'little'),
                              'big')

    def pack(self):
        """The bytes of the frame."""
        icrc = self.icrc_due() if self.icrc is None else self.icrc
        return b''.join(pack(name, fields) for name, fields in self.headers.items()) + \
            self.payload + self.padding + icrc.to_bytes(ICRC_LEN, 'big') + self.trailer


def decode(data):
    """Parses bytes into a Frame, valid or not; None: not to RoCE's port. Raises Malformed."""
    headers, at = {}, 0

    def take(name):
        nonlocal at
        headers[name] = unpack(name, data[at:])
        at += SIZE[name]
        return headers[name]

    kind = take('eth')['type']
    if kind == ETHERTYPE_VLAN:
        kind = take('vlan')['type']
    if kind not in ETHERTYPES:
        return None
    start, name = at, ETHERTYPES[kind]
    ip = take(name)
    if f'ipv{ip["version"]}' != name or ip['protocol'] != PROTO_UDP or ip.get('offset'):
        return None
    end = start + ip['length'] + (SIZE['ipv6'] if name == 'ipv6' else 0)
    options = ip.get('ihl', 5) * 4 - 20
    at += options
    if take('udp')['dport'] != UDP_PORT:
        return None
    if options or ip.get('flags', 0) & 1:
        raise Malformed('IPv4 options or fragment')
    if end > len(data):
        raise Malformed('IP length')
    if headers['udp']['length'] != end - start - SIZE[name]:
        raise Malformed('UDP length')
    bth = take('bth')
    for extended in OPCODES[bth['opcode']].headers if bth['opcode'] in OPCODES else ():
        take(extended)
    last = end - ICRC_LEN - bth['pad']
    if at > last:
        raise Malformed('payload')
    frame = Frame(headers, data[at:last])
    frame.padding = data[last:end - ICRC_LEN]
    frame.icrc = int.from_bytes(data[end - ICRC_LEN:end], 'big')
    frame.trailer = data[end:]
    return frame
