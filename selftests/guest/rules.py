#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Rules of ethtool -N by its ioctl, those too that the program would not ask for.

  rules.py check IF               what must be refused, and a full table, whose rules can be
                                  replaced; there are no rules before and after
  rules.py storm IF SECONDS SEED  adds, replaces, deletes and lists rules at random, whatever
                                  comes of it
"""

import ctypes
import errno
import fcntl
import random
import socket
import struct
import sys
import time

SIOCETHTOOL = 0x8946
GET_COUNT, GET_RULE, GET_ALL, DELETE, INSERT = 0x2e, 0x2f, 0x30, 0x31, 0x32
TCP4, UDP4, SCTP4, TCP6, UDP6, IP4, IP6, ETHER = 1, 2, 3, 5, 6, 0xd, 0xe, 0x12
EXT, MAC_EXT, RSS = 0x80000000, 0x40000000, 0x20000000
DROP, PLACES = 2**64 - 1, 256
# Offsets in a struct ethtool_rx_flow_spec: key, its extension, mask, its extension, the rest.
KEY, KEY_EXT, MASK, MASK_EXT, REST, SPEC = 4, 56, 76, 128, 152, 168


class Card:
    def __init__(self, interface):
        self.name = interface.encode()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def call(self, command, spec=bytes(SPEC), number=0, places=0):
        """The answer, or -errno. @number: of the RSS context, or how many places to list."""
        data = ctypes.create_string_buffer(
            struct.pack('IIQ', command, 0, 0) + spec + struct.pack('I', number) + bytes(4) +
            bytes(4 * places))
        request = struct.pack('16sQ8x', self.name, ctypes.addressof(data))
        try:
            fcntl.ioctl(self.sock, SIOCETHTOOL, request)
        except OSError as error:
            return -error.errno
        return data.raw

    def insert(self, spec, context=0):
        answer = self.call(INSERT, spec, context)
        return answer if isinstance(answer, int) else 0

    def delete(self, place):
        answer = self.call(DELETE, rule(TCP4, place))
        return answer if isinstance(answer, int) else 0

    def queue(self, place):
        """Where the rule of that place sends frames, or -errno."""
        answer = self.call(GET_RULE, rule(TCP4, place))
        return answer if isinstance(answer, int) else struct.unpack_from('Q', answer, 16 + REST)[0]

    def places(self, room):
        """The places of all rules, or -errno."""
        answer = self.call(GET_ALL, number=room, places=room)
        if isinstance(answer, int):
            return answer
        # Without room it is only their number.
        number = min(room, struct.unpack_from('I', answer, 16 + SPEC)[0])
        return list(struct.unpack_from(f'{number}I', answer, 20 + SPEC))


def rule(kind, place, queue=0, **parts):
    """Parts: (offset, key, mask), of the specification or, by "ext", of what is behind it."""
    spec = bytearray(struct.pack('I', kind).ljust(REST, b'\0') + struct.pack('QI4x', queue, place))
    for name, (offset, key, mask) in parts.items():
        for base, data in ((KEY_EXT, key), (MASK_EXT, mask)) if name == 'ext' else \
                          ((KEY, key), (MASK, mask)):
            spec[base + offset:base + offset + len(data)] = data
    return bytes(spec)


def port(kind, place, queue=0):
    """A rule that looks at a source port."""
    return rule(kind, place, queue, ports=(8, struct.pack('!H', (9 + place) & 0xffff), b'\xff\xff'))


ONES, MAC, OTHER = b'\xff' * 6, b'\x02\0\0\0\0\1', b'\x02\0\0\0\0\2'
VERSION = (13, b'\1', b'')      # of IP4: ETH_RX_NFC_IP4
# Rules that make no sense, or cannot be: name, rule, error.
REFUSED = [
    ('a type that there is not', rule(0x7f, 0), 'EOPNOTSUPP'),
    ('SCTP', port(SCTP4, 0), 'EOPNOTSUPP'),
    ('a queue that there is not', port(TCP4, 0, 1000), 'EINVAL'),
    ('the queue of a virtual function', port(TCP4, 0, 1 << 32), 'EINVAL'),
    ('a place behind the last', port(TCP4, PLACES), 'EINVAL'),
    ('any place', port(TCP4, 0xffffffff), 'EINVAL'),
    ('user data', rule(TCP4 | EXT, 0, ext=(12, b'\1', b'\1')), 'EOPNOTSUPP'),
    ('the type of a tag', rule(TCP4 | EXT, 0, ext=(8, b'\x81\0', b'\xff\xff')), 'EOPNOTSUPP'),
    ('two addresses', rule(ETHER | MAC_EXT, 0, it=(0, MAC, ONES), ext=(2, OTHER, ONES)), 'EINVAL'),
    ('no version of IP', rule(IP4, 0), 'EINVAL'),
    ('another version of IP', rule(IP4, 0, it=(13, b'\6', b'')), 'EINVAL'),
    ('a mask of the version', rule(IP4, 0, it=(13, b'\1', b'\xff')), 'EOPNOTSUPP'),
    ('the first bytes behind IP', rule(IP4, 0, v=VERSION, it=(8, b'\7', b'\xff')), 'EOPNOTSUPP'),
    ('a queue beside a context', port(TCP4 | RSS, 0, 1), 'EINVAL EOPNOTSUPP'),
    ('dropping beside a context', port(TCP4 | RSS, 0, DROP), 'EINVAL EOPNOTSUPP'),
    ('a context that there is not', (port(TCP4 | RSS, 0), 32), 'EINVAL ENOENT'),
    ('a context far away', (port(TCP4 | RSS, 0), 0xfffffffe), 'EINVAL ENOENT'),
]
TAKEN = [
    ('the same address twice', rule(ETHER | MAC_EXT, 0, it=(0, MAC, ONES), ext=(2, MAC, ONES))),
    ('half an address each', rule(ETHER | MAC_EXT, 0, it=(0, MAC[:3], ONES[:3]),
                                  ext=(5, MAC[3:], ONES[3:]))),
    ('IPv4', rule(IP4, 0, it=VERSION)),
    ('IPv6', rule(IP6, 0)),
    ('a tag', rule(TCP4 | EXT, 0, ext=(10, b'\0\7', b'\x0f\xff'))),
    ('the context of all frames', port(TCP4 | RSS, 0)),
]


class Checks:
    bad = 0

    def same(self, what, got, *wanted):
        if got not in [-getattr(errno, w) if isinstance(w, str) else w for w in wanted]:
            print(f'{what}: {got}, not {" or ".join(map(str, wanted))}')
            self.bad += 1


def refused(card, checks):
    for name, spec, wanted in REFUSED:
        spec, context = spec if isinstance(spec, tuple) else (spec, 0)
        checks.same(name, card.insert(spec, context), *wanted.split())
    checks.same('nothing', card.delete(0), 'ENOENT')
    for name, spec in TAKEN:
        checks.same(name, card.insert(spec), 0)
        checks.same(name + ', deleted', card.delete(0), 0)


def full(card, checks):
    """Replacing needs no place of its own, and what is refused leaves the rule there was."""
    for place in range(PLACES):
        checks.same(f'rule {place}', card.insert(port(TCP4, place)), 0)
    checks.same('rules in force', len(card.places(PLACES)), PLACES)
    for place in (0, 7, PLACES - 1):
        checks.same(f'replace {place}', card.insert(port(UDP4, place, DROP)), 0)
        checks.same(f'rule {place}', card.queue(place), DROP)
        checks.same(f'bad for {place}', card.insert(port(UDP4, place, 1000)), 'EINVAL')
        checks.same(f'rule {place}', card.queue(place), DROP)
    checks.same('places', card.places(PLACES), list(range(PLACES)))
    checks.same('too little room', card.places(PLACES - 1), 'EMSGSIZE')
    for place in range(PLACES):
        checks.same(f'rule {place}, deleted', card.delete(place), 0)


def check(interface):
    card, checks = Card(interface), Checks()
    checks.same('before', card.places(PLACES), [])
    refused(card, checks)
    full(card, checks)
    checks.same('after', card.places(PLACES), [])
    sys.exit(checks.bad != 0)


def one(rnd):
    kind = rnd.choice((TCP4, UDP4, TCP6, UDP6, IP4, IP6, ETHER, rnd.randrange(32)))
    place = rnd.randrange(rnd.choice((4, 4, 32, PLACES + 1)))
    parts = {'it': (rnd.randrange(24), bytes([rnd.randrange(256)]), b'\xff')}
    if kind == IP4:
        parts['version'] = VERSION
    kind |= rnd.choice((0, 0, 0, RSS, RSS, EXT, MAC_EXT, EXT | MAC_EXT | RSS))
    queue = 0 if kind & RSS else rnd.choice((0, 1, rnd.randrange(9), DROP))
    if rnd.random() < 0.1:
        parts['ext'] = (rnd.randrange(20), bytes([rnd.randrange(256)]), b'\xff')
    return rule(kind, place, queue, **parts)


def storm(interface, seconds, seed):
    card, rnd, end = Card(interface), random.Random(int(seed)), time.monotonic() + float(seconds)
    done = dict.fromkeys(range(4), 0)
    while time.monotonic() < end:
        what = rnd.choice((0, 0, 0, 1, 1, 2))
        if what == 0:
            done[0] += card.insert(one(rnd), rnd.randrange(4)) == 0
        elif what == 1:
            done[1] += card.delete(rnd.randrange(rnd.choice((4, 32, PLACES)))) == 0
        else:
            done[2] += not isinstance(card.places(rnd.randrange(PLACES + 1)), int)
        if rnd.random() < 0.01:
            time.sleep(0.01)
    for place in range(PLACES):
        card.delete(place)
    print(f'{done[0]} rules, {done[1]} deleted, {done[2]} lists')


if __name__ == '__main__':
    {'check': check, 'storm': storm}[sys.argv[1]](*sys.argv[2:])
