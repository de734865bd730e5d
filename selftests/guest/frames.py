#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Ethernet frames by hand.

  frames.py send IF ADDRESS COUNT     frames of an experimental EtherType
  frames.py blast IF SECONDS          as many of them as the interface takes, from
                                      each CPU, to an address that no machine has
  frames.py bypass IF SECONDS         the same past the queueing disciplines
  frames.py udp IP PORT COUNT         datagrams
  frames.py flows IF IP COUNT         TCP connections that are refused, from as many
                                      ports; checks the hash of each answer with the
                                      key and the table of ethtool -x, and prints how
                                      many each queue has received
  frames.py echo IP COUNT             ICMP echo requests at once, whoever answers
  frames.py hostile IF IP MAC COUNT   bad RoCE frames, COUNT of each of the kinds in
                                      HOSTILE; without arguments: the counters
                                      where they show
  frames.py count IF [roce]           says "ready"; then, for every line on
                                      stdin, how many of them (roce: how many
                                      to UDP port 4791) came since the last
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time

import roce     # of qemu-device/tests/oracle

ETHERTYPE = 0x88b5      # IEEE 802, local experiments
OUTGOING = 4            # PACKET_OUTGOING
SOL_PACKET, QDISC_BYPASS = 263, 20
QUIET = 0.3             # seconds after which no more frames are expected


def is_roce(data):
    """Whether it is addressed to that port, valid or not."""
    try:
        return roce.decode(data) is not None
    except roce.Malformed:
        return True


def send(interface, address, count):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((interface, 0))
        own = sock.getsockname()[4]
        head = bytes.fromhex(address.replace(':', '')) + own + ETHERTYPE.to_bytes(2, 'big')
        for number in range(int(count)):
            sock.send(head + number.to_bytes(2, 'big') * 100)


def bypass(interface, seconds):
    blast(interface, seconds, True)


def blast(interface, seconds, past=False):
    cpus = os.cpu_count()               # not all of them may be there later
    for _ in range(cpus):
        if os.fork():
            continue
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
            sock.setsockopt(SOL_PACKET, QDISC_BYPASS, past)
            sock.bind((interface, 0))
            frame = b'\x52\x54\0\xaa\xbb\xcc' + sock.getsockname()[4] \
                + ETHERTYPE.to_bytes(2, 'big') + bytes(50)
            end = time.monotonic() + float(seconds)
            while time.monotonic() < end:
                for _ in range(100):
                    with contextlib.suppress(OSError):      # the interface is down
                        sock.send(frame)
        os._exit(0)
    for _ in range(cpus):
        os.wait()


def udp(address, port, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number in range(int(count)):
            sock.sendto(number.to_bytes(2, 'big') * 100, (address, int(port)))


def echo(address, count):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        request = b'\x08\0\xf7\xff' + bytes(60)     # type, code, checksum
        for _ in range(int(count)):
            sock.sendto(request, (address, 0))


def toeplitz(key, data):
    window, value = int.from_bytes(key, 'big'), int.from_bytes(data, 'big')
    bits, result = len(data) * 8, 0
    for bit in range(bits):
        if value >> (bits - 1 - bit) & 1:
            result ^= window >> (len(key) * 8 - 32 - bit) & 0xffffffff
    return result


def rss(interface):
    """Key and table of the interface."""
    text = subprocess.run(['ethtool', '-x', interface], check=True, capture_output=True,
                          text=True).stdout
    rows = re.findall(r'^ *\d+: (.*)$', text, re.M)
    table = [int(word) for row in rows for word in row.split()]
    key = re.search(r'hash key:\s+([0-9a-f:]+)$', text, re.M).group(1)
    return bytes.fromhex(key.replace(':', '')), table


def with_hash(value):
    """A classic BPF program that accepts frames whose skb has this hash."""
    ops = [(0x20, 0, 0, 0xfffff000 + 32),           # A = SKF_AD_RXHASH
           (0x15, 0, 1, value), (0x06, 0, 0, 0xffff), (0x06, 0, 0, 0)]
    return b''.join(struct.pack('HBBI', *op) for op in ops)


def flows(interface, address, count):
    key, table = rss(interface)
    queues, bad = collections.Counter(), 0
    for port in range(20000, 20000 + int(count)):
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as tap, \
                socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
            tcp.bind(('', port))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ask:
                ask.connect((address, 9))
                own = ask.getsockname()[0]
            value = toeplitz(key, socket.inet_aton(address) + socket.inet_aton(own) +
                             struct.pack('!HH', 9, port))
            program = ctypes.create_string_buffer(with_hash(value))
            tap.setsockopt(socket.SOL_SOCKET, 26,   # SO_ATTACH_FILTER
                           struct.pack('HL', 4, ctypes.addressof(program)))
            tap.bind((interface, 0x0800))
            if tcp.connect_ex((address, 9)) != errno.ECONNREFUSED:
                sys.exit('no answer')
            if not select.select([tap], [], [], 1)[0]:
                bad += 1
            queues[table[value % len(table)]] += 1
    print(' '.join(str(queues[queue]) for queue in range(max(queues) + 1)))
    if bad:
        sys.exit(f'{bad} answers without the right hash')


# For QP 1: the counter it goes to, and what is wrong with it.
SEND, CNP = 0x64, 0x81
HOSTILE = [
    ('rp_cnp_ignored', {'opcode': CNP}),
    ('np_ecn_marked_roce_packets', {'tclass': 0x03}),
    ('rx_icrc', {'icrc': 1}),
    ('rx_malformed', {'version': 1}),
    ('rx_malformed', {'opcode': CNP, 'length': 12}),
    ('rx_malformed', {'udp_len': 4}),
    ('rx_no_qp', {'qpn': 0}),
    ('rx_no_qp', {'qpn': 0x7fffff}),
    ('rx_no_qp', {'qpn': 0xffffff}),
    ('rx_no_qp', {'opcode': 0x04}),
    ('rx_no_qp', {'opcode': 0xc0}),
    ('rx_bad_pkey', {'pkey': 0x1234}),
    ('rx_bad_qkey', {'qkey': 0x11111111}),
]


def hostile_frame(macs, ends, odd):
    """A datagram of zeros, or a notification, to QP 1."""
    opcode = odd.get('opcode', SEND)
    headers = {
        'eth': {'dmac': macs[1], 'smac': macs[0], 'type': 0x0800},
        'ipv4': {'version': 4, 'ihl': 5, 'tos': odd.get('tclass', 0), 'flags': 2, 'ttl': 64,
                 'protocol': roce.PROTO_UDP, 'src': ends[0], 'dst': ends[1]},
        'udp': {'sport': 0xc000, 'dport': roce.UDP_PORT},
        'bth': {'opcode': opcode, 'm': 1, 'tver': odd.get('version', 0),
                'pkey': odd.get('pkey', 0xffff), 'destqp': odd.get('qpn', 1)}}
    if opcode == SEND:
        headers['deth'] = {'qkey': odd.get('qkey', 0x80010000), 'srcqp': 1}
    frame = roce.Frame(headers, bytes(odd.get('length', 16 if opcode == CNP else 256))).fit()
    headers['udp']['length'] = odd.get('udp_len', frame['udp.length'])
    frame.icrc = frame.icrc_due() ^ odd.get('icrc', 0)
    return frame.pack()


def hostile(interface=None, ip='', mac='', count=0):
    if not interface:
        print('\n'.join(counter for counter, _ in HOSTILE))
        return
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((interface, 0))
        macs = int.from_bytes(sock.getsockname()[4], 'big'), int(mac.replace(':', ''), 16)
        request = struct.pack('256s', interface.encode())
        own = fcntl.ioctl(sock, 0x8915, request)[20:24]     # SIOCGIFADDR
        ends = [int.from_bytes(address, 'big') for address in (own, socket.inet_aton(ip))]
        ends[0] ^= 64       # in its own name the card sends no RoCE for the stack
        for _, odd in HOSTILE:
            frame = hostile_frame(macs, ends, odd)
            for _ in range(int(count)):
                sock.send(frame)


def count(interface, what=''):
    number = 0
    kind = 3 if what == 'roce' else ETHERTYPE       # ETH_P_ALL
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(kind)) as sock:
        sock.bind((interface, kind))
        print('ready', flush=True)
        asked = False
        while True:
            ready = select.select([sock] if asked else [sock, sys.stdin], [], [],
                                  QUIET if asked else None)[0]
            if sock in ready:
                frame, origin = sock.recvfrom(10000)
                number += origin[2] != OUTGOING and (kind != 3 or is_roce(frame))
            elif sys.stdin in ready:
                if not sys.stdin.readline():
                    return
                asked = True
            else:
                print(number, flush=True)
                asked, number = False, 0


if __name__ == '__main__':
    jobs = {'send': send, 'blast': blast, 'bypass': bypass, 'udp': udp, 'echo': echo,
            'flows': flows, 'hostile': hostile, 'count': count}
    jobs[sys.argv[1]](*sys.argv[2:])
