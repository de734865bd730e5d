#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Verified data over SMC sockets.

  smc.py eid                          give SMC-Rv2 an EID, which it does without
  smc.py server ADDRESS PORT          serve until the client says so
  smc.py client ADDRESS PORT TEST N   TEST: messages, bulk, parallel, idle, stop
  smc.py modes                        how the sockets that are connected move data

Python knows no addresses for AF_SMC; its sockets take IP addresses through libc.
"""

import ctypes
import hashlib
import os
import random
import socket
import struct
import sys
import threading

AF_SMC, SMCPROTO_SMC = 43, 0
LIBC = ctypes.CDLL(None, use_errno=True)
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 4, 0x300, 2, 3
SOCK_DIAG_BY_FAMILY, SMC_ACTIVE, SMC_DIAG_LGRINFO, SMC_DIAG_FALLBACK = 20, 1, 2, 5
MODES = {0: 'SMC-R', 1: 'TCP', 2: 'SMC-D'}


def call(name, sock, *args):
    value = getattr(LIBC, name)(sock.fileno(), *args)
    if value < 0:
        code = ctypes.get_errno()
        raise OSError(code, f'{name}: {os.strerror(code)}')
    return value


def sockaddr(address, port):
    return struct.pack('=HH4s8x', socket.AF_INET, socket.htons(port), socket.inet_aton(address))


def connect(address, port):
    sock = socket.socket(AF_SMC, socket.SOCK_STREAM, SMCPROTO_SMC)
    where = sockaddr(address, port)
    call('connect', sock, where, len(where))
    return sock


def listen(address, port):
    sock = socket.socket(AF_SMC, socket.SOCK_STREAM, SMCPROTO_SMC)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    where = sockaddr(address, port)
    call('bind', sock, where, len(where))
    call('listen', sock, 1024)
    return sock


def accept(sock):
    return socket.socket(AF_SMC, socket.SOCK_STREAM, SMCPROTO_SMC,
                         fileno=call('accept', sock, None, None))


def receive(sock, count):
    parts = []
    while count:
        part = sock.recv(min(count, 1 << 16))
        if not part:
            raise EOFError(f'{count} bytes early')
        parts.append(part)
        count -= len(part)
    return b''.join(parts)


def serve(conn):
    """Each connection starts with what it wants."""
    with conn:
        what = receive(conn, 1)
        if what == b'm':        # messages come back as they are
            while head := conn.recv(4, socket.MSG_WAITALL):
                conn.sendall(head + receive(conn, struct.unpack('>I', head)[0]))
        elif what == b'b':      # all data, until the other side is done; then its digest
            digest = hashlib.sha256()
            while part := conn.recv(77777):
                digest.update(part)
            conn.sendall(digest.digest())
        return what


def server(address, port):
    sock, threads = listen(address, port), []
    print('listening', flush=True)

    def work(conn):
        try:
            if serve(conn) == b's':
                os._exit(0)
        except (OSError, EOFError) as err:
            print(f'server: {err}', flush=True)
    while True:
        threads.append(threading.Thread(target=work, args=(accept(sock),), daemon=True))
        threads[-1].start()


def messages(sock, count, rng):
    """Both ways, one at a time: every size up to 300, then random ones."""
    sock.sendall(b'm')
    for number in range(count):
        size = number if number < 300 else rng.choice((rng.randrange(4096), rng.randrange(200000)))
        text = rng.randbytes(size)
        sock.sendall(struct.pack('>I', size) + text)
        if receive(sock, 4 + size) != struct.pack('>I', size) + text:
            sys.exit(f'message {number} of {size} bytes comes back different')


def bulk(sock, megabytes, rng):
    """One way, as fast as possible, in pieces of all sizes; ends with a half-close."""
    sock.sendall(b'b')
    digest, left = hashlib.sha256(), megabytes << 20
    while left:
        part = rng.randbytes(min(left, rng.choice((1, 100, 5000, 65536, 300001))))
        digest.update(part)
        sock.sendall(part)
        left -= len(part)
    sock.shutdown(socket.SHUT_WR)
    if receive(sock, 32) != digest.digest():
        sys.exit('the server has received something else')
    if sock.recv(1):
        sys.exit('more than the digest')


def parallel(address, port, count):
    """COUNT connections together, of which all are open before the first has data."""
    socks = [connect(address, port) for _ in range(count)]
    failed = []

    def work(number):
        try:
            messages(socks[number], 40, random.Random(number))
        except (OSError, EOFError, SystemExit) as err:
            failed.append(f'connection {number}: {err}')
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    modes()
    for thread in threads:
        thread.join()
    for sock in socks:
        sock.close()
    if failed:
        sys.exit('\n'.join(failed[:5]))


def client(address, port, test, count):
    if test == 'parallel':
        parallel(address, port, count)
        return
    with connect(address, port) as sock:
        modes()
        if test == 'stop':
            sock.sendall(b's')
        elif test == 'idle':
            sock.recv(1)
        else:
            {'messages': messages, 'bulk': bulk}[test](sock, count, random.Random(count))


def netlink(family, kind, flags, payload):
    """The payloads of the answers to one request."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family) as sock:
        sock.send(struct.pack('=IHHII', 16 + len(payload), kind, NLM_F_REQUEST | flags, 1, 0) +
                  payload)
        while True:
            data = sock.recv(1 << 18)
            while data:
                length, kind = struct.unpack_from('=IH', data)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    if code := -struct.unpack_from('=i', data, 16)[0]:
                        raise OSError(code, f'netlink: {os.strerror(code)}')
                    return
                yield data[16:length]
                data = data[(length + 3) & ~3:]


def attribute(kind, value):
    return struct.pack('=HH', 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(data):
    """Kind to value."""
    out = {}
    while data:
        length, kind = struct.unpack_from('=HH', data)
        out[kind] = data[4:length]
        data = data[(length + 3) & ~3:]
    return out


def eid():
    """SMC_NETLINK_ADD_UEID, after CTRL_CMD_GETFAMILY."""
    ask = struct.pack('=BBH', 3, 1, 0) + attribute(2, b'SMC_GEN_NETLINK\0')
    family = next(attributes(answer[4:])[1] for answer in netlink(16, 16, NLM_F_ACK, ask))
    entry = struct.pack('=BBH', 10, 1, 0) + attribute(1, b'QHCA'.ljust(32) + b'\0')
    list(netlink(16, struct.unpack('=H', family)[0], NLM_F_ACK, entry))


def modes():
    """Of all sockets that are connected, by sock_diag: how many of each mode, and why or
    on which device."""
    found = {}
    for message in netlink(4, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP,
                           struct.pack('=B2xB48x', AF_SMC, 0x12)):
        if message[1] != SMC_ACTIVE:
            continue
        mode, more = MODES[message[2]], attributes(message[64:])
        if SMC_DIAG_LGRINFO in more:
            mode += ' ' + more[SMC_DIAG_LGRINFO][1:65].rstrip(b'\0').decode()
        elif SMC_DIAG_FALLBACK in more:
            mode += ' because of %#x, peer %#x' % struct.unpack('=II', more[SMC_DIAG_FALLBACK])
        found[mode] = found.get(mode, 0) + 1
    print(', '.join(f'{count} {mode}' for mode, count in sorted(found.items())) or 'none',
          flush=True)


def main():
    what, *args = sys.argv[1:]
    if what == 'client':
        client(args[0], int(args[1]), args[2], int(args[3]))
    elif what == 'server':
        server(args[0], int(args[1]))
    else:
        {'eid': eid, 'modes': modes}[what]()


if __name__ == '__main__':
    main()
