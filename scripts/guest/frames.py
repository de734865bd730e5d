#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Ethernet frames by hand.

  frames.py send IF ADDRESS COUNT     frames of an experimental EtherType
  frames.py udp IP PORT COUNT         datagrams
  frames.py count IF [roce]           says "ready"; then, for every line on
                                      stdin, how many of them (roce: how many
                                      to UDP port 4791) came since the last
"""

import select
import socket
import sys

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


def udp(address, port, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number in range(int(count)):
            sock.sendto(number.to_bytes(2, 'big') * 100, (address, int(port)))


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
    {'send': send, 'udp': udp, 'count': count}[sys.argv[1]](*sys.argv[2:])
