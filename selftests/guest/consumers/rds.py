#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Verified datagrams over RDS.

  rds.py exchange ADDRESS PEER PORT COUNT SIZE…
                          send COUNT datagrams of each size to the peer, which runs the
                          same, and check what it sends
  rds.py info ADDRESS     the connections over RDMA: addresses, up or down

RDS delivers each datagram once, whole and in order for a pair of sockets.
"""

import ctypes
import errno
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

SOL_RDS, RDS_INFO_IB_CONNECTIONS, SO_SNDBUFFORCE, SO_RCVBUFFORCE = 276, 10008, 32, 33
LIMIT = 90


def text(sender, number, size):
    """The contents of datagram NUMBER of that address."""
    return random.Random(f'{sender} {number}').randbytes(size)


def exchange(address, peer, port, count, sizes):
    sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET, 0)
    sock.bind((address, port))
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        sock.setsockopt(socket.SOL_SOCKET, option, 8 << 20)
    sock.setblocking(False)
    # Datagrams to an unbound port are dropped.
    subprocess.run(['qhca-host', 'sync', 'rds-bound'], check=True)
    total = count * len(sizes)
    sent = got = 0
    deadline = time.monotonic() + LIMIT
    while sent < total or got < total:
        if time.monotonic() > deadline:
            sys.exit(f'{sent} of {total} sent, {got} received after {LIMIT} s')
        select.select([sock], [sock] if sent < total else [], [], 1)
        if sent < total:
            try:
                sock.sendto(text(address, sent, sizes[sent % len(sizes)]), (peer, port))
                sent += 1
            except OSError as err:      # the send buffer, or the peer's receive buffer, is full
                if err.errno not in (errno.EAGAIN, errno.ENOBUFS):
                    raise
        try:
            data, sender = sock.recvfrom(1 << 21)
        except BlockingIOError:
            continue
        if sender != (peer, port) or data != text(peer, got, sizes[got % len(sizes)]):
            sys.exit(f'datagram {got} of {sender} is not what was sent: {len(data)} bytes')
        got += 1
    # Both have everything: neither closes while the other one's last datagrams are in flight.
    print(f'{got} datagrams, {sum(sizes) * count} bytes each way')
    time.sleep(1)
    sock.close()


def info(address):
    """RDS_INFO_IB_CONNECTIONS: getsockopt() fills the buffer and returns the size of one."""
    sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET, 0)
    sock.bind((address, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    buffer, length = ctypes.create_string_buffer(1 << 16), ctypes.c_int(1 << 16)
    each = libc.getsockopt(sock.fileno(), SOL_RDS, RDS_INFO_IB_CONNECTIONS, buffer,
                           ctypes.byref(length))
    if each <= 0:
        code = ctypes.get_errno()
        sys.exit(f'RDS_INFO_IB_CONNECTIONS: {os.strerror(code)}')
    for at in range(0, length.value, each):
        here, there, gid, peer = struct.unpack_from('4s4s16s16s', buffer, at)
        print(socket.inet_ntoa(here), socket.inet_ntoa(there),
              *('up' if any(one) else 'down' for one in (gid, peer)))


def main():
    what, address, *rest = sys.argv[1:]
    if what == 'info':
        info(address)
    else:
        peer, port, count, *sizes = rest
        exchange(address, peer, int(port), int(count), [int(size) for size in sizes])


if __name__ == '__main__':
    main()
