# SPDX-License-Identifier: GPL-2.0
"""A small Ethernet switch for QEMU's stream netdevs, which can lose, delay and mark frames.

It speaks what `-netdev stream` does: each frame after its length, 4 bytes, big
endian. It runs as a process of its own, so that the launcher need not be quick.
"""

import multiprocessing
import random
import selectors
import signal
import socket
import struct
import time

from . import frames

HEAD = struct.Struct('>I')
FULL = 8 << 20      # bytes queued for one machine; beyond that, frames are dropped
TICK = 0.001        # how long a link rests before it sends what it may by then


class Port:
    """The connection of one machine: partial input, pending output, of which so many bytes
    may be sent now."""

    def __init__(self, sock):
        self.sock, self.inbox, self.outbox = sock, bytearray(), bytearray()
        self.credit, self.paid = 0, time.monotonic()
        sock.setblocking(False)

    def earn(self, rate):
        """Earn the bytes that a link of this rate, in bytes per second, has had time for."""
        now = time.monotonic()
        self.credit = min(self.credit + (now - self.paid) * rate, max(rate * 5 * TICK, 1 << 14))
        self.paid = now

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

    def flush(self, rate):
        """Send what the socket takes, and the rate allows; False if the machine is gone."""
        if rate:
            self.earn(rate)
        try:
            while self.outbox and (self.credit >= 1 or not rate):
                sent = self.sock.send(self.outbox[:int(self.credit)] if rate else self.outbox)
                del self.outbox[:sent]
                self.credit -= sent
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True


class Switch:
    """Loss is a share of the frames, rate in bytes per second (0: none), red a frames.Red or
    None."""

    def __init__(self, listener, loss, seed, rate=0, red=None):
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.ports, self.where = [], {}
        self.loss, self.random = loss, random.Random(seed)
        self.rate, self.red = rate, red

    def serve(self):
        while True:
            busy = self.rate and any(port.outbox for port in self.ports)
            for key, mask in self.selector.select(TICK if busy else None):
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
                port.outbox += self._marked(frame, len(port.outbox))

    def _marked(self, frame, queued):
        if self.red and self.red.hits(queued, self.random.random()):
            return frame[:HEAD.size] + frames.mark(frame[HEAD.size:])
        return frame

    def _write(self, port):
        if port.outbox and not port.flush(self.rate):
            self._unplug(port)
            return
        waits = port.outbox and not self.rate
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if waits else 0)
        if self.selector.get_key(port.sock).events != wanted:
            self.selector.modify(port.sock, wanted, port)


def _serve(listener, die_with_parent, options):
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.SIG_DFL)
    die_with_parent()
    Switch(listener, **options).serve()


def start(path, die_with_parent, **options):
    """Start a switch with these options that listens at path; returns its process. The same
    seed and order of arrival lose and mark the same frames."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    process = multiprocessing.get_context('fork').Process(
        target=_serve, args=(listener, die_with_parent, options), daemon=True)
    process.start()
    listener.close()
    return process
