# SPDX-License-Identifier: GPL-2.0
"""A small Ethernet switch for QEMU's stream netdevs, which can lose frames.

It speaks what `-netdev stream` does: each frame after its length, 4 bytes, big
endian. It runs as a process of its own, so that the launcher need not be quick.
"""

import multiprocessing
import random
import selectors
import signal
import socket
import struct

HEAD = struct.Struct('>I')
FULL = 8 << 20      # bytes queued for one machine; beyond that, frames are dropped


class Port:
    """The connection of one machine: partial input, pending output."""

    def __init__(self, sock):
        self.sock, self.inbox, self.outbox = sock, bytearray(), bytearray()
        sock.setblocking(False)

    def frames(self):
        """Take out the complete frames, each with its length in front."""
        start = 0
        while len(self.inbox) - start >= HEAD.size:
            end = start + HEAD.size + HEAD.unpack_from(self.inbox, start)[0]
            if end > len(self.inbox):
                break
            yield bytes(self.inbox[start:end])
            start = end
        del self.inbox[:start]

    def flush(self):
        """Send what the socket takes; False if the machine is gone."""
        try:
            while self.outbox:
                del self.outbox[:self.sock.send(self.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True


class Switch:
    def __init__(self, listener, loss, seed):
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.ports, self.where = [], {}
        self.loss, self.random = loss, random.Random(seed)

    def serve(self):
        while True:
            for key, mask in self.selector.select():
                if key.data is None:
                    self._plug(key.fileobj.accept()[0])
                elif mask & selectors.EVENT_READ and not self._read(key.data):
                    self._unplug(key.data)
            for port in list(self.ports):
                self._write(port)

    def _plug(self, sock):
        port = Port(sock)
        self.ports.append(port)
        self.selector.register(sock, selectors.EVENT_READ, port)

    def _unplug(self, port):
        self.ports.remove(port)
        self.where = {mac: at for mac, at in self.where.items() if at is not port}
        self.selector.unregister(port.sock)
        port.sock.close()

    def _read(self, port):
        try:
            data = port.sock.recv(1 << 18)
        except BlockingIOError:
            return True
        except OSError:
            return False
        port.inbox += data
        for frame in port.frames():
            if self.loss == 0 or self.random.random() >= self.loss:
                self._forward(port, frame)
        return bool(data)

    def _forward(self, source, frame):
        to, sender = frame[HEAD.size:HEAD.size + 6], frame[HEAD.size + 6:HEAD.size + 12]
        self.where[sender] = source
        known = None if to[:1] and to[0] & 1 else self.where.get(to)
        for port in [known] if known else self.ports:
            if port is not source and len(port.outbox) < FULL:
                port.outbox += frame

    def _write(self, port):
        if port.outbox and not port.flush():
            self._unplug(port)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if port.outbox else 0)
        if self.selector.get_key(port.sock).events != wanted:
            self.selector.modify(port.sock, wanted, port)


def _serve(listener, loss, seed, die_with_parent):
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.SIG_DFL)
    die_with_parent()
    Switch(listener, loss, seed).serve()


def start(path, loss, seed, die_with_parent):
    """Start a switch that listens at path; returns its process. It drops the given
    share of the frames, the same ones for the same seed and order of arrival."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    process = multiprocessing.get_context('fork').Process(
        target=_serve, args=(listener, loss, seed, die_with_parent), daemon=True)
    process.start()
    listener.close()
    return process
