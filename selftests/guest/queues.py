#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The queues of a network interface, as the kernel's netlink family "netdev" has them (6.12).

  queues.py IF   prints "KIND INDEX PACKETS BYTES INTERRUPT" for each queue, KIND is rx or tx, and
                 "KIND all PACKETS BYTES -" for the interface as a whole
  queues.py IF drops     prints how many received frames the device has dropped, and how many of
                         them for want of buffers
  queues.py IF SECONDS   asks for the NAPI instances all the time; prints how often one was there
                         twice
"""

import socket
import struct
import sys
import time

NETLINK_GENERIC, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLMSG_ERROR, NLMSG_DONE = 16, 16, 3, 2, 3
REQUEST, DUMP = 1, 0x300
FAMILY_ID, FAMILY_NAME = 1, 2
QUEUE_GET, NAPI_GET, QSTATS_GET = 10, 11, 12
# Attributes by name, of each of these commands.
ATTRS = {
    QUEUE_GET: {'id': 1, 'ifindex': 2, 'type': 3, 'napi': 4},
    NAPI_GET: {'ifindex': 1, 'id': 2, 'irq': 3},
    QSTATS_GET: {'ifindex': 1, 'type': 2, 'id': 3, 'scope': 4, 0: 8, 1: 10, 'drops': 13,
                 'overruns': 14},
}
KINDS = ('rx', 'tx')


def attribute(number, value):
    length = 4 + len(value)
    return struct.pack('HH', length, number) + value + bytes(-length % 4)


def parse(data):
    attrs = {}
    while len(data) >= 4:
        length, number = struct.unpack_from('HH', data)
        attrs[number & 0x3fff] = data[4:length]
        data = data[(length + 3) & ~3:]
    return attrs


def ask(sock, family, command, flags, attrs):
    """The attributes of all answers."""
    body = struct.pack('BBH', command, 1, 0) + attrs
    sock.send(struct.pack('IHHII', 16 + len(body), family, REQUEST | flags, 1, 0) + body)
    answers, more = [], True
    while more:
        data = sock.recv(65536)
        while data:
            length, kind = struct.unpack_from('IH', data)
            if kind == NLMSG_ERROR:
                sys.exit(f'error {-struct.unpack_from("i", data, 16)[0]}')
            if kind == NLMSG_DONE:
                return answers
            answers.append(parse(data[20:length]))
            data = data[(length + 3) & ~3:]
        more = flags & DUMP
    return answers


def dump(sock, family, command, index, scope=None):
    names = ATTRS[command]
    attrs = attribute(names['ifindex'], struct.pack('I', index))
    if scope:
        attrs += attribute(names['scope'], struct.pack('I', scope))
    return [{name: int.from_bytes(answer[number], 'little')
             for name, number in names.items() if number in answer} |
            {'raw': answer} for answer in ask(sock, family, command, DUMP, attrs)]


def figures(row, kind):
    """Packets and bytes."""
    first = ATTRS[QSTATS_GET][kind]
    return ' '.join(str(int.from_bytes(row['raw'][first + i], 'little')) for i in (0, 1))


def watch(sock, family, index, seconds):
    twice, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        ids = [row['id'] for row in dump(sock, family, NAPI_GET, index)]
        twice += len(ids) != len(set(ids))
    print(twice)


def main(interface, seconds=None):
    index = socket.if_nametoindex(interface)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC) as sock:
        sock.bind((0, 0))
        family = int.from_bytes(ask(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0,
                                    attribute(FAMILY_NAME, b'netdev\0'))[0][FAMILY_ID], 'little')
        if seconds == 'drops':
            row = dump(sock, family, QSTATS_GET, index)[0]
            print(row.get('drops', '-'), row.get('overruns', '-'))
            return
        if seconds:
            watch(sock, family, index, float(seconds))
            return
        irqs = {row['id']: row.get('irq', '-') for row in dump(sock, family, NAPI_GET, index)}
        napi = {(row['type'], row['id']): irqs[row['napi']]
                for row in dump(sock, family, QUEUE_GET, index)}
        for row in dump(sock, family, QSTATS_GET, index, 1):
            print(KINDS[row['type']], row['id'], figures(row, row['type']),
                  napi[row['type'], row['id']])
        for row in dump(sock, family, QSTATS_GET, index):
            for kind in (0, 1):
                print(KINDS[kind], 'all', figures(row, kind), '-')


if __name__ == '__main__':
    main(*sys.argv[1:])
