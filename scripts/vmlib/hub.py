# SPDX-License-Identifier: GPL-2.0
"""A small Ethernet switch for QEMU's stream netdevs, which can lose, delay and mark frames, and
pause machines: it takes nothing from one, whose network then takes no frames from the device; or
by priority, with frames that ask for it.

It speaks what `-netdev stream` does: each frame after its length, 4 bytes, big
endian. It runs as a process of its own, so that the launcher need not be quick.
"""

import collections
import multiprocessing
import random
import selectors
import signal
import socket
import struct
import time

from . import frames

HEAD = struct.Struct('>I')
QUEUE = 8000000     # bytes that wait for one machine
CHUNK = 1 << 18     # bytes of one read
LAST = 1 << 11      # with pauses: that much comes at most when one is due
TICK = 0.001        # how long a link rests before it sends what it may by then


class Port:
    """The connection of one machine: partial input, pending output, of which so many bytes
    may be sent now, and which [port, bytes, class] it is from; bytes from here that wait at
    others, by class; until when which class is paused."""

    def __init__(self, sock):
        self.sock, self.inbox, self.outbox = sock, bytearray(), bytearray()
        self.parts, self.paused = collections.deque(), False
        self.by_class, self.until = [0] * frames.CLASSES, {}
        self.events = selectors.EVENT_READ
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

    @property
    def waiting(self):
        return sum(self.by_class)

    def add(self, source, frame):
        kind = frames.traffic_class(frame[HEAD.size:])
        self.outbox += frame
        self.parts.append([source, len(frame), kind])
        source.by_class[kind] += len(frame)

    def hurry(self, frame):
        """Put it in front of all but the frame that is leaving."""
        wire, at = HEAD.pack(len(frame)) + frame, self.parts[0][1] if self.parts else 0
        self.outbox[at:at] = wire
        self.parts.insert(1, [self, len(wire), 0])
        self.by_class[0] += len(wire)

    def remove(self, count):
        """Forget the first bytes of the output."""
        del self.outbox[:count]
        while count:
            source, length, kind = self.parts[0]
            now = min(count, length)
            source.by_class[kind] -= now
            count -= now
            self.parts[0][1] -= now
            if now == length:
                self.parts.popleft()

    def flush(self, rate):
        """Send what the socket takes, and the rate allows; False if the machine is gone."""
        if rate:
            self.earn(rate)
        try:
            while self.outbox and (self.credit >= 1 or not rate):
                sent = self.sock.send(self.outbox[:int(self.credit)] if rate else self.outbox)
                self.remove(sent)
                self.credit -= sent
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True


class Switch:
    """Loss is a share of the frames, rate in bytes per second (0: none), red a frames.Red or
    None, pause and pfc (by priority) a frames.Pause or None; so many bytes wait for a machine,
    others get lost. With pause none do: of each machine at most xoff bytes, LAST and a frame
    wait."""

    def __init__(self, listener, loss, seed, rate=0, red=None, pause=None, pfc=None, queue=QUEUE):
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.ports, self.where = [], {}
        self.loss, self.random = loss, random.Random(seed)
        self.rate, self.red, self.pause, self.queue = rate, red, pause, queue
        # How long a frame asks a machine with links of this rate to wait at most.
        self.pfc, self.longest = pfc, rate and frames.LONGEST * frames.QUANTUM / rate

    def serve(self):
        while True:
            busy = self.rate and any(port.outbox for port in self.ports)
            self.turn(TICK if busy else None)

    def turn(self, wait):
        """Do what can be done, after waiting at most so many seconds for something to do."""
        for key, mask in self.selector.select(wait):
            if key.data is None:
                self._plug(key.fileobj.accept()[0])
            elif mask & selectors.EVENT_READ and not self._read(key.data):
                self._unplug(key.data)
        for port in self.ports if self.pfc else ():
            self._ask(port)
        for port in list(self.ports):
            if port.outbox and not port.flush(self.rate):
                self._unplug(port)
        for port in self.ports:
            self._watch(port)

    def close(self):
        """Unplug all machines."""
        for port in list(self.ports):
            self._unplug(port)
        self.selector.close()

    def _plug(self, sock):
        port = Port(sock)
        self.ports.append(port)
        self.selector.register(sock, selectors.EVENT_READ, port)

    def _unplug(self, port):
        self.ports.remove(port)
        self.where = {mac: at for mac, at in self.where.items() if at is not port}
        if port.events:
            self.selector.unregister(port.sock)
        port.sock.close()
        port.remove(len(port.outbox))

    def _read(self, port):
        try:
            data = port.sock.recv(
                min(max(self.pause.xoff - port.waiting, LAST), CHUNK) if self.pause else CHUNK)
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
        if frames.is_control(frame[HEAD.size:]):
            return      # for the other end of the cable
        to, sender = frame[HEAD.size:HEAD.size + 6], frame[HEAD.size + 6:HEAD.size + 12]
        self.where[sender] = source
        known = None if to[:1] and to[0] & 1 else self.where.get(to)
        for port in [known] if known else self.ports:
            if port is not source and (self.pause or len(port.outbox) < self.queue):
                port.add(source, self._marked(frame, len(port.outbox)))

    def _marked(self, frame, queued):
        if self.red and self.red.hits(queued, self.random.random()):
            return frame[:HEAD.size] + frames.mark(frame[HEAD.size:])
        return frame

    def _ask(self, port):
        """Ask a machine to let classes wait of which too much waits here, or to go on."""
        now, quanta = time.monotonic(), {}
        for kind, waiting in enumerate(port.by_class):
            until = port.until.get(kind, 0)
            if self.pfc.holds(waiting, until > now):
                if until - now < self.longest / 2:
                    quanta[kind], port.until[kind] = frames.LONGEST, now + self.longest
            elif port.until.pop(kind, None):
                quanta[kind] = 0
        if quanta:
            port.hurry(frames.priority_pause(quanta))

    def _watch(self, port):
        """Wait for what may be done next: a paused machine is not listened to."""
        port.paused = self.pause is not None and self.pause.holds(port.waiting, port.paused)
        wanted = 0 if port.paused else selectors.EVENT_READ
        if port.outbox and not self.rate:
            wanted |= selectors.EVENT_WRITE
        if wanted == port.events:
            return
        if port.events:
            self.selector.unregister(port.sock)
        if wanted:
            self.selector.register(port.sock, wanted, port)
        port.events = wanted


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
