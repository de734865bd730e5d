#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The launcher's switch: its marks, its speed and its pauses."""

import contextlib
import os
import socket
import tempfile
import threading
import time
import unittest

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


class Switch(unittest.TestCase):
    """A switch with two machines."""

    def start(self, machines=2, **options):
        top = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(top, 'hub')
        process = hub.start(path, lambda: None, loss=0, seed=1, **options)
        self.addCleanup(process.join)
        self.addCleanup(process.terminate)
        return [self.plug(path) for _ in range(machines)]

    def plug(self, path):
        sock = self.enterContext(socket.socket(socket.AF_UNIX))
        sock.connect(path)
        sock.settimeout(10)
        return sock

    def receive(self, sock, count):
        data = b''
        while len(data) < count:
            data += sock.recv(count - len(data))
        return data

    def move(self, a, b, frame, number):
        """Seconds that so many frames take, and what arrives."""
        wire = len(frame).to_bytes(4, 'big') + frame
        time.sleep(0.1)         # the other machine is plugged in
        start = time.monotonic()
        a.sendall(wire * number)
        data = self.receive(b, len(wire) * number)
        return time.monotonic() - start, data, wire

    def test_speed(self):
        took, data, wire = self.move(*self.start(rate=250000), ipv4(2), 1000)
        self.assertEqual(data, wire * 1000)
        self.assertGreater(took, (len(data) - 20000) / 250000)
        self.assertLess(took, 3 * len(data) / 250000)

    def test_marks(self):
        _, data, wire = self.move(*self.start(rate=2500000, red=frames.red('5:50:10')),
                                  ipv4(2), 1000)
        marked = wire[:4] + ipv4(3)
        got = [data[at:at + len(wire)] for at in range(0, len(data), len(wire))]
        self.assertEqual({*got}, {wire, marked})
        self.assertNotIn(marked, got[:40])
        self.assertIn(wire, got[:100])

    def incast(self, **options):
        """What arrives of 1,000 frames each that two machines send to a third."""
        *senders, to = self.start(machines=3, rate=500000, queue=20000, **options)
        frame = ipv4(2)
        wire = len(frame).to_bytes(4, 'big') + frame
        self.introduce(to, senders)
        threads = [threading.Thread(target=sender.sendall, args=(wire * 1000,))
                   for sender in senders]
        for thread in threads:
            thread.start()
        to.settimeout(0.5)
        got = 0
        with contextlib.suppress(TimeoutError):
            while got < 2000 * len(wire):
                got += len(to.recv(1 << 16))
        for thread in threads:
            thread.join()
        return got // len(wire)

    def introduce(self, to, others):
        """Let the switch learn where frames of incast() go."""
        frame = ipv4(2)
        hello = len(frame).to_bytes(4, 'big') + frame[6:12] + frame[:6] + frame[12:]
        time.sleep(0.1)
        to.sendall(hello)
        for other in others:
            self.receive(other, len(hello))

    def test_incast(self):
        self.assertLess(self.incast(), 1000)
        self.assertEqual(self.incast(pause=frames.pause('8:4')), 2000)

    def test_paused_without_peer(self):
        """One that is paused goes on when what it waits for is gone."""
        a, b, c = self.start(machines=3, rate=100000, pause=frames.pause('4:2'))
        frame = ipv4(2)
        self.introduce(c, [a, b])
        a.sendall((len(frame).to_bytes(4, 'big') + frame) * 500)
        time.sleep(0.1)
        c.close()
        other = frame[:5] + bytes([frame[5] ^ 1]) + frame[6:]
        a.sendall(len(other).to_bytes(4, 'big') + other)
        self.assertTrue(self.receive(b, 4 + len(other)))

    def test_asked_by_priority(self):
        """One class is asked to wait until little of it is left, and again after a while."""
        a, b = self.start(rate=4000000, queue=10 ** 7, pfc=frames.pause('40:20'))
        frame = ipv4(0x62)
        wire = len(frame).to_bytes(4, 'big') + frame
        time.sleep(0.1)
        b.sendall(len(frame).to_bytes(4, 'big') + frame[6:12] + frame[:6] + frame[12:])
        self.receive(a, len(wire))
        start = time.monotonic()
        a.sendall(wire * 40000)     # more than a second, and longer than a pause
        got = []
        a.settimeout(0.2)
        while not got or got[-1] != frames.priority_pause({3: 0}):
            b.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                while True:
                    b.recv(1 << 16)
            with contextlib.suppress(TimeoutError):
                length = int.from_bytes(self.receive(a, 4), 'big')
                got.append(self.receive(a, length))
        self.assertEqual({*got[:-1]}, {frames.priority_pause({3: 0xffff})})
        # At once, each time that half of a pause is over, and at the end.
        half = frames.LONGEST * frames.QUANTUM / 4000000 / 2
        self.assertIn(len(got), range(3, int((time.monotonic() - start) / half) + 3))

    def test_pause_of_another(self):
        """A machine cannot pause another: such frames end at the switch."""
        a, b = self.start()
        asks = frames.priority_pause({3: 0xffff})
        time.sleep(0.1)
        a.sendall(len(asks).to_bytes(4, 'big') + asks)
        frame = ipv4(2)
        a.sendall(len(frame).to_bytes(4, 'big') + frame)
        self.assertEqual(self.receive(b, 4 + len(frame))[4:], frame)

    def test_free(self):
        _, data, wire = self.move(*self.start(), ipv4(2), 1000)
        self.assertEqual(data, wire * 1000)


if __name__ == '__main__':
    unittest.main()
