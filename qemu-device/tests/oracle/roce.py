# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCEv2 frames, to fields and back.

Written from the tables of the IBTA specification (volume 1, chapter 9; annexes A17,
RoCEv2, and A19, FLUSH and ATOMIC WRITE) and sharing nothing with the engine, so that it
shows errors that the engine makes both in building and in parsing. scapy's module for
RoCE has only BTH, AETH and CNP, and none of the other extended headers.
"""

import struct
import zlib

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
    'bth': (('opcode', 8), ('se', 1), ('m', 1), ('pad', 2), ('tver', 4), ('pkey', 16),
            ('f', 1), ('b', 1), ('resv6', 6), ('destqp', 24), ('a', 1), ('resv7', 7),
            ('psn', 24)),
    'rdeth': (('resv', 8), ('eecontext', 24)),
    'deth': (('qkey', 32), ('resv', 8), ('srcqp', 24)),
    'xrceth': (('resv', 8), ('xrcsrq', 24)),
    'reth': (('va', 64), ('rkey', 32), ('dmalen', 32)),
    'atomiceth': (('va', 64), ('rkey', 32), ('swapdata', 64), ('cmpdata', 64)),
    'aeth': (('syndrome', 8), ('msn', 24)),
    'atomicacketh': (('origremdata', 64),),
    'immdt': (('imm', 32),),
    'ieth': (('rkey', 32),),
    'feth': (('resv', 26), ('sel', 2), ('plt', 4)),
}
SIZE = {name: sum(bits for _, bits in fields) // 8 for name, fields in LAYOUT.items()}
WIDTH = {f'{name}.{field}': bits for name, fields in LAYOUT.items() for field, bits in fields}

# Fields that may change in transit count as ones in the ICRC (A17.3.3), and so do eight
# bytes before the IP header in place of the LRH.
VARIANT = {'ipv4': ('tos', 'ttl', 'checksum'), 'ipv6': ('tclass', 'label', 'hops'),
           'udp': ('checksum',), 'bth': ('f', 'b', 'resv6')}

# Table 38: operation, place in its message and extended headers.
MESSAGES = {
    0x00: ('SEND', 'FIRST', ''),
    0x01: ('SEND', 'MIDDLE', ''),
    0x02: ('SEND', 'LAST', ''),
    0x03: ('SEND', 'LAST', 'immdt'),
    0x04: ('SEND', 'ONLY', ''),
    0x05: ('SEND', 'ONLY', 'immdt'),
    0x06: ('RDMA_WRITE', 'FIRST', 'reth'),
    0x07: ('RDMA_WRITE', 'MIDDLE', ''),
    0x08: ('RDMA_WRITE', 'LAST', ''),
    0x09: ('RDMA_WRITE', 'LAST', 'immdt'),
    0x0a: ('RDMA_WRITE', 'ONLY', 'reth'),
    0x0b: ('RDMA_WRITE', 'ONLY', 'reth immdt'),
}
READS_ATOMICS = {
    0x0c: ('RDMA_READ_REQUEST', 'ONLY', 'reth'),
    0x0d: ('RDMA_READ_RESPONSE', 'FIRST', 'aeth'),
    0x0e: ('RDMA_READ_RESPONSE', 'MIDDLE', ''),
    0x0f: ('RDMA_READ_RESPONSE', 'LAST', 'aeth'),
    0x10: ('RDMA_READ_RESPONSE', 'ONLY', 'aeth'),
    0x11: ('ACKNOWLEDGE', 'ONLY', 'aeth'),
    0x12: ('ATOMIC_ACKNOWLEDGE', 'ONLY', 'aeth atomicacketh'),
    0x13: ('CMP_SWAP', 'ONLY', 'atomiceth'),
    0x14: ('FETCH_ADD', 'ONLY', 'atomiceth'),
}
INVALIDATE = {0x16: ('SEND', 'LAST', 'ieth'), 0x17: ('SEND', 'ONLY', 'ieth')}
PLACEMENT = {0x1c: ('FLUSH', 'ONLY', 'feth reth'), 0x1d: ('ATOMIC_WRITE', 'ONLY', 'reth')}
RELIABLE = {**MESSAGES, **READS_ATOMICS, **INVALIDATE}
DATAGRAM = {op: MESSAGES[op] for op in (0x04, 0x05)}
RESYNC = {0x15: ('RESYNC', 'ONLY', '')}
CNP = {0x01: ('CNP', 'ONLY', '')}

# Service, its bits of the opcode, packets, and the first extended headers of requests and of
# responses.
SERVICES = (
    ('RC', 0x00, {**RELIABLE, **PLACEMENT}, '', ''),
    ('UC', 0x20, MESSAGES, '', ''),
    ('RD', 0x40, {**MESSAGES, **READS_ATOMICS, **RESYNC}, 'rdeth deth', 'rdeth'),
    ('UD', 0x60, DATAGRAM, 'deth', ''),
    ('CNP', 0x80, CNP, '', ''),
    ('XRC', 0xa0, RELIABLE, 'xrceth', ''),
)
RESPONSES = ('RDMA_READ_RESPONSE', 'ACKNOWLEDGE', 'ATOMIC_ACKNOWLEDGE')
# Minimal and maximal bytes of payload.
PAYLOAD = {'SEND': (0, 4096), 'RDMA_WRITE': (0, 4096), 'RDMA_READ_RESPONSE': (0, 4096),
           'ATOMIC_WRITE': (8, 8), 'CNP': (16, 16)}


class Opcode:
    """A row of the table."""

    def __init__(self, service, operation, place, headers):
        self.service, self.operation, self.place = service, operation, place
        self.headers = headers.split()
        self.response = operation in RESPONSES
        self.min_payload, self.max_payload = PAYLOAD.get(operation, (0, 0))
        self.name = '_'.join([service, operation, place, *self.headers])


OPCODES = {
    bits | low: Opcode(service, operation, place,
                       f'{answered if operation in RESPONSES else asked} {headers}')
    for service, bits, packets, asked, answered in SERVICES
    for low, (operation, place, headers) in packets.items()}


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
