#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The launcher's switch: its marks, its speed and its pauses."""

import os
import socket
import tempfile
import unittest
import unittest.mock

from vmlib import frames, hub

MACS = bytes(range(12))
IPV4 = bytes.fromhex('45000054a8f2400040110000c0a80001c0a80002')


def ipv4(tos):
    header = bytearray(IPV4)
    header[1] = tos
    header[10:12] = frames.checksum(bytes(header)).to_bytes(2, 'big')
    return MACS + b'\x08\x00' + bytes(header) + bytes(64)


def ipv6(tclass):
    return MACS + b'\x86\xdd' + (6 << 28 | tclass << 20).to_bytes(4, 'big') + bytes(36 + 64)


class Marks(unittest.TestCase):
    def test_ipv4(self):
        for tos, marked in ((0xb8, 0xb8), (0xb9, 0xbb), (0xba, 0xbb), (0xbb, 0xbb)):
            self.assertEqual(frames.mark(ipv4(tos)), ipv4(marked))

    def test_ipv6(self):
        for tclass, marked in ((0xb8, 0xb8), (1, 3), (2, 3), (3, 3)):
            self.assertEqual(frames.mark(ipv6(tclass)), ipv6(marked))

    def test_tagged(self):
        tagged = MACS + b'\x81\x00\x00\x05' + ipv4(2)[12:]
        self.assertEqual(frames.mark(tagged), MACS + b'\x81\x00\x00\x05' + ipv4(3)[12:])

    def test_others(self):
        for frame in (b'', MACS, MACS + b'\x08\x06' + bytes(46), MACS + b'\x08\x00\x45\x02'):
            self.assertEqual(frames.mark(frame), frame)

    def test_red(self):
        marks = frames.red('5:200:10')
        self.assertEqual(marks, (5000, 200000, 0.1))
        self.assertFalse(marks.hits(5000, 0))
        self.assertTrue(marks.hits(200000, 0.999))
        self.assertTrue(marks.hits(102500, 0.049))
        self.assertFalse(marks.hits(102500, 0.051))
        for text in ('5', '5:200', '200:5:1', '5:200:101', 'a:b:c'):
            with self.assertRaises(ValueError):
                frames.red(text)

    def test_pause(self):
        pause = frames.pause('100:50')
        self.assertEqual(pause, (100000, 50000))
        self.assertEqual([pause.holds(waiting, paused) for paused in (False, True)
                          for waiting in (50000, 50001, 100000, 100001)],
                         [False, False, False, True, False, True, True, True])
        for text in ('5', '50:100', '5:5', '-1:-2', 'a:b', '3:2:1'):
            with self.assertRaises(ValueError):
                frames.pause(text)

    def test_traffic_class(self):
        for tos in (0, 3, 0x60, 0xc2, 0xff):
            self.assertEqual(frames.traffic_class(ipv4(tos)), tos >> 5)
            self.assertEqual(frames.traffic_class(ipv6(tos)), tos >> 5)
        self.assertEqual(frames.traffic_class(MACS + b'\x81\x00\xa0\x05' + ipv4(2)[12:]), 5)
        for frame in (b'', MACS, MACS + b'\x08\x06' + bytes(46), MACS + b'\x08\x00'):
            self.assertEqual(frames.traffic_class(frame), 0)

    def test_priority_pause(self):
        frame = frames.priority_pause({3: 0xffff, 5: 0})
        self.assertEqual((len(frame), frame[:6].hex(), frame[12:18].hex()),
                         (60, '0180c2000001', '880801010028'))
        self.assertEqual(frame[18:34].hex(), '000000000000ffff' + '0' * 16)


def on_wire(frame):
    return len(frame).to_bytes(4, 'big') + frame


def back(frame):
    """A frame from whom this one is for."""
    return frame[6:12] + frame[:6] + frame[12:]


class Machine:
    """One that is plugged in, and what its network holds for it."""

    def __init__(self, sock):
        self.sock, self.unsent, self.got = sock, b'', b''
        sock.setblocking(False)

    def move(self):
        """Send and receive what is possible now."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.sock.send(self.unsent):]
        except BlockingIOError:
            pass
        try:
            while data := self.sock.recv(1 << 16):
                self.got += data
        except BlockingIOError:
            pass

    def frames(self):
        """Take out the frames that have arrived."""
        found, at = [], 0
        while (end := at + 4 + int.from_bytes(self.got[at:at + 4], 'big')) <= len(self.got):
            found.append(self.got[at + 4:end])
            at = end
        self.got = self.got[at:]
        return found


class Switch(unittest.TestCase):
    """A switch, its machines and its time, which all go on when they are told to."""

    def start(self, machines=2, **options):
        self.now = 0
        self.enterContext(unittest.mock.patch('vmlib.hub.time.monotonic', lambda: self.now))
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), 'hub')
        listener = self.enterContext(socket.socket(socket.AF_UNIX))
        listener.bind(path)
        listener.listen(machines)
        self.switch = hub.Switch(listener, loss=0, seed=1, **options)
        self.addCleanup(self.switch.close)
        self.machines = [self.plug(path) for _ in range(machines)]
        return self.machines

    def plug(self, path):
        sock = self.enterContext(socket.socket(socket.AF_UNIX))
        sock.connect(path)
        self.switch.turn(0)
        return Machine(sock)

    def until(self, done, turns=100000):
        """Let all go on until done() says so; its last answer."""
        while not (answer := done()) and turns:
            turns -= 1
            for machine in self.machines:
                machine.move()
            self.switch.turn(0)
            self.now += hub.TICK
        return answer

    def quiet(self):
        """Whether nothing is on its way any more."""
        return not any(port.outbox for port in self.switch.ports) and not any(
            machine.unsent for machine in self.machines)

    def settle(self):
        """Let all go on until nothing is on its way, nor in a socket."""
        quiet = 0
        while quiet < 10:
            self.assertTrue(self.until(self.quiet))
            self.until(lambda: False, 1)
            quiet = quiet + 1 if self.quiet() else 0

    def move(self, a, b, frame, number):
        """Seconds that so many frames take, and what arrives."""
        start, wire = self.now, on_wire(frame)
        a.unsent = wire * number
        self.assertTrue(self.until(lambda: len(b.got) >= len(wire) * number))
        return self.now - start, b.frames()

    def test_speed(self):
        frame = ipv4(2)
        took, got = self.move(*self.start(rate=250000), frame, 1000)
        self.assertEqual(got, [frame] * 1000)
        sent = 1000 * len(on_wire(frame))
        self.assertGreater(took, (sent - 20000) / 250000)
        self.assertLess(took, 1.1 * sent / 250000)

    def test_marks(self):
        frame, marked = ipv4(2), ipv4(3)
        _, got = self.move(*self.start(rate=2500000, red=frames.red('5:50:10')), frame, 1000)
        self.assertEqual({*got}, {frame, marked})
        self.assertNotIn(marked, got[:40])
        self.assertIn(frame, got[:100])

    def incast(self, **options):
        """How many arrive of 1,000 frames each that two machines send to a third."""
        *senders, to = self.start(machines=3, rate=500000, queue=20000, **options)
        self.introduce(to, senders)
        for sender in senders:
            sender.unsent = on_wire(ipv4(2)) * 1000
        self.settle()
        return len(to.frames())

    def introduce(self, to, others):
        """Let the switch learn where frames of incast() go."""
        to.unsent = on_wire(back(ipv4(2)))
        self.settle()
        for other in others:
            self.assertEqual(other.frames(), [back(ipv4(2))])

    def test_incast(self):
        self.assertLess(self.incast(), 1000)
        self.assertEqual(self.incast(pause=frames.pause('8:4')), 2000)

    def test_nothing_is_lost_with_pauses(self):
        """Each may be read once more just before it is paused, all of them at the same time."""
        *senders, to = self.start(machines=12, rate=500000, queue=20000,
                                  pause=frames.pause('4:2'))
        self.introduce(to, senders)
        for sender in senders:
            sender.unsent = on_wire(ipv4(2)) * 100
        self.settle()
        self.assertEqual(len(to.frames()), 1100)

    def test_paused_without_peer(self):
        """One that is paused goes on when what it waits for is gone."""
        a, b, c = self.start(machines=3, rate=100000, pause=frames.pause('4:2'))
        frame = ipv4(2)
        self.introduce(c, [a, b])
        a.unsent = on_wire(frame) * 500
        self.assertTrue(self.until(lambda: any(port.paused for port in self.switch.ports)))
        self.machines.remove(c)
        c.sock.close()
        other = frame[:5] + bytes([frame[5] ^ 1]) + frame[6:]
        a.unsent += on_wire(other)
        self.assertTrue(self.until(lambda: other in b.frames()))

    def test_asked_by_priority(self):
        """One class is asked to wait until little of it is left, and again after a while."""
        a, b = self.start(rate=4000000, queue=10 ** 7, pfc=frames.pause('40:20'))
        frame = ipv4(0x62)
        b.unsent = on_wire(back(frame))
        self.settle()
        self.assertEqual(a.frames(), [back(frame)])
        took, _ = self.move(a, b, frame, 40000)     # more than a second, and longer than a pause
        self.settle()
        got = a.frames()
        self.assertEqual(got[-1], frames.priority_pause({3: 0}))
        self.assertEqual({*got[:-1]}, {frames.priority_pause({3: 0xffff})})
        # Immediately, each time that half of a pause is over, and at the end.
        half = frames.LONGEST * frames.QUANTUM / 4000000 / 2
        self.assertIn(len(got), range(3, int(took / half) + 3))

    def test_pause_of_another(self):
        """A machine cannot pause another: such frames end at the switch."""
        a, b = self.start()
        a.unsent = on_wire(frames.priority_pause({3: 0xffff})) + on_wire(ipv4(2))
        self.settle()
        self.assertEqual(b.frames(), [ipv4(2)])

    def test_free(self):
        _, got = self.move(*self.start(), ipv4(2), 1000)
        self.assertEqual(got, [ipv4(2)] * 1000)


class Process(unittest.TestCase):
    """The switch as the launcher starts it."""

    def test_process(self):
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), 'hub')
        process = hub.start(path, lambda: None, loss=0, seed=1)
        self.addCleanup(process.join)
        self.addCleanup(process.terminate)
        a, b = (self.enterContext(socket.socket(socket.AF_UNIX)) for _ in 'ab')
        for sock in (a, b):
            sock.connect(path)
        wire = on_wire(ipv4(2))
        a.setblocking(False)
        data = b''
        b.settimeout(0.1)
        while not data:         # a frame that comes before b is plugged in is lost
            a.send(wire)
            try:
                data = b.recv(len(wire), socket.MSG_WAITALL)
            except TimeoutError:
                pass
        self.assertEqual(data, wire)


if __name__ == '__main__':
    unittest.main()
