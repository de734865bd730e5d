#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Ethernet frames by hand.

  frames.py send IF ADDRESS COUNT     frames of an experimental EtherType
  frames.py blast IF SECONDS          as many of them as it takes, to nobody, from
                                      each CPU
  frames.py udp IP PORT COUNT         datagrams
  frames.py hostile IF IP MAC COUNT   RoCE frames that deserve to be counted, COUNT
                                      of each of the kinds in HOSTILE; without
                                      arguments: the counters these belong to
  frames.py count IF [roce]           says "ready"; then, for every line on
                                      stdin, how many of them (roce: how many
                                      to UDP port 4791) came since the last
"""

import fcntl
import os
import select
import socket
import struct
import sys
import time
import zlib

ETHERTYPE = 0x88b5      # IEEE 802, local experiments
ROCE_PORT = 4791
OUTGOING = 4            # PACKET_OUTGOING
QUIET = 0.3             # seconds after which no more frames are expected


def is_roce(frame):
    l3 = 18 if frame[12:14] == b'\x81\0' else 14
    kind = frame[l3 - 2:l3]
    if kind == b'\x08\0' and frame[l3 + 9] == 17:
        l4 = l3 + 4 * (frame[l3] & 15)
    elif kind == b'\x86\xdd' and frame[l3 + 6] == 17:
        l4 = l3 + 40
    else:
        return False
    return int.from_bytes(frame[l4 + 2:l4 + 4], 'big') == ROCE_PORT


def send(interface, address, count):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((interface, 0))
        own = sock.getsockname()[4]
        head = bytes.fromhex(address.replace(':', '')) + own + ETHERTYPE.to_bytes(2, 'big')
        for number in range(int(count)):
            sock.send(head + number.to_bytes(2, 'big') * 100)


def blast(interface, seconds):
    for _ in range(os.cpu_count()):
        if os.fork():
            continue
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
            sock.bind((interface, 0))
            frame = b'\x52\x54\0\xaa\xbb\xcc' + sock.getsockname()[4] \
                + ETHERTYPE.to_bytes(2, 'big') + bytes(50)
            end = time.monotonic() + float(seconds)
            while time.monotonic() < end:
                for _ in range(100):
                    sock.send(frame)
        os._exit(0)
    for _ in range(os.cpu_count()):
        os.wait()


def udp(address, port, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number in range(int(count)):
            sock.sendto(number.to_bytes(2, 'big') * 100, (address, int(port)))


# For QP 1: counter it goes to, and what is odd about it.
SEND, CNP = 0x64, 0x81
HOSTILE = [
    ('rx_cnp', {'opcode': CNP}),
    ('rx_ecn_marked', {'tclass': 0x03}),
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


def roce(src, dst, odd):
    """IP packet with a datagram of zeros, or a notification, to QP 1."""
    opcode = odd.get('opcode', SEND)
    body = struct.pack('>II', odd.get('qkey', 0x80010000), 1) + bytes(256)
    if opcode == CNP:
        body = bytes(odd.get('length', 16))
    bth = struct.pack('>BBHII', opcode, 0x40 | odd.get('version', 0), odd.get('pkey', 0xffff),
                      odd.get('qpn', 1), 0)
    udp_len = 8 + len(bth) + len(body) + 4
    udp = struct.pack('>HHHH', 0xc000, ROCE_PORT, odd.get('udp_len', udp_len), 0)
    fixed = struct.pack('>HHH', 20 + udp_len, 0, 0x4000)
    masked = b'\x45\xff' + fixed + b'\xff\x11\xff\xff' + src + dst + udp[:6] + b'\xff\xff' \
        + bth[:4] + b'\xff' + bth[5:] + body
    icrc = zlib.crc32(b'\xff' * 8 + masked) ^ odd.get('icrc', 0)
    header = bytes([0x45, odd.get('tclass', 0)]) + fixed + b'\x40\x11\0\0' + src + dst
    total = sum(struct.unpack('>10H', header))
    header = header[:10] + struct.pack('>H', ~(total + (total >> 16)) & 0xffff) + header[12:]
    return header + udp + bth + body + struct.pack('<I', icrc)


def hostile(interface=None, ip='', mac='', count=0):
    if not interface:
        print('\n'.join(counter for counter, _ in HOSTILE))
        return
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((interface, 0))
        own = sock.getsockname()[4]
        request = struct.pack('256s', interface.encode())
        src = fcntl.ioctl(sock, 0x8915, request)[20:24]     # SIOCGIFADDR
        for _, odd in HOSTILE:
            packet = roce(src, socket.inet_aton(ip), odd)
            for _ in range(int(count)):
                sock.send(bytes.fromhex(mac.replace(':', '')) + own + b'\x08\0' + packet)


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
    {'send': send, 'blast': blast, 'udp': udp, 'hostile': hostile, 'count': count}[sys.argv[1]](*sys.argv[2:])
