#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The launcher's switch: its marks and its speed."""

import os
import socket
import tempfile
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


class Switch(unittest.TestCase):
    """A switch with two machines."""

    def start(self, **options):
        top = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(top, 'hub')
        process = hub.start(path, lambda: None, loss=0, seed=1, **options)
        self.addCleanup(process.join)
        self.addCleanup(process.terminate)
        return [self.plug(path) for _ in range(2)]

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

    def test_free(self):
        _, data, wire = self.move(*self.start(), ipv4(2), 1000)
        self.assertEqual(data, wire * 1000)


if __name__ == '__main__':
    unittest.main()
