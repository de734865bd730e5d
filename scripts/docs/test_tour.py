#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of tour.py without a machine."""

import os
import tempfile
import unittest

import tour
from tour import capture
from tourlib import drawing, steps
from tourlib.record import Record

A, B = 0xa0, 0xb0


def entry(opcode, status=0):
    cqe = bytearray(64)
    cqe[61], cqe[62], cqe[63] = opcode, status, 1
    return f'qhca_dma_entry qhca0: addr 0x1000 {cqe.hex(" ")}\n'


WRITE = ('qhca_doorbell qhca0: page 1 off 0x00 val 0x00000001000000a0\n'
         'qhca_wqe qhca0: qpn 0xa0 index 0 opcode 3\n'
         'qhca_tx qhca0: qpn 0xa0 opcode 0x0a psn 0x000100\n'
         'qhca_rx qhca0: qpn 0xb0 opcode 0x0a psn 0x000100\n'
         'qhca_tx qhca0: qpn 0xb0 opcode 0x11 psn 0x000100\n'
         'qhca_rx qhca0: qpn 0xa0 opcode 0x11 psn 0x000100\n')
DONE = entry(1) + 'qhca_cqe qhca0: cqn 0x1 qpn 0xa0 status 0\n'


def read(log):
    return steps.Reader(A, B).read(steps.events(log, (A, B)))


class Tour(unittest.TestCase):
    def read(self, log):
        return [step.key for step in read(log)]

    def test_places(self):
        """The lines of code that the page shows are in the sources."""
        self.assertEqual(list(tour.places()), [])

    def test_write(self):
        others = 'qhca_doorbell qhca0: page 0 off 0x50 val 0x0000000500000001\nnoise\n'
        self.assertEqual(self.read(others + WRITE + DONE), [
            'post-write', 'wqe', 'ring-sq', 'fetch', 'tx-request', 'rx-write', 'tx-ack', 'rx-ack',
            'cqe-send', 'poll'])

    def test_kept(self):
        """The documentation keeps a whole run, and its frames are right."""
        record = Record.load(tour.KEPT)
        keys = [step.key for step in record.read().steps]
        self.assertEqual((keys.count('poll'), len(record.frames)), (3, 4))
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'frames')
            record.write_capture(path)
            with open(path, 'rb') as file:
                self.assertEqual(list(capture.packets(file)), record.frames)
            frames, broken = capture.read(path)
        self.assertEqual((len(frames), broken), (4, []))
        self.assertEqual([rule for frame in frames for rule, good in frame.faults() if not good],
                         [])

    def test_save(self):
        """A run that is saved and loaded tells the same."""
        output = 'QP a is 0xa0 with CQ 0x3, QP b is 0xb0 with CQ 0x4\nthere: \u2026\n'
        record = Record.of_run(output, 'noise\n' + WRITE + DONE, [(5, b'abc'), (9, b'defgh')])
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'kept')
            record.save(path)
            again = Record.load(path)
        self.assertEqual([step.label for step in again.read().steps],
                         [step.label for step in record.read().steps])
        self.assertEqual(again.read().entries, record.read().entries)
        self.assertEqual(again.output, output.strip())
        self.assertEqual(again.frames, [(0, b'abc'), (4, b'defgh')])

    def test_unfinished(self):
        for log in '', WRITE:
            with self.assertRaises(steps.Wrong):
                self.read(log)

    def test_error(self):
        with self.assertRaises(steps.Wrong):
            self.read(WRITE + entry(1, 12) + 'qhca_cqe qhca0: cqn 0x1 qpn 0xa0 status 12\n')

    def test_same(self):
        """Other numbers are the same page, other steps are not."""
        old = drawing.text(read(WRITE + DONE))
        moved = WRITE.replace('0x000100', '0x000777')
        self.assertEqual(tour.same(old),
                         tour.same(drawing.text(read(moved + DONE))))
        twice = WRITE + WRITE.splitlines()[2] + '\n'
        self.assertNotEqual(tour.same(old),
                            tour.same(drawing.text(read(twice + DONE))))


if __name__ == '__main__':
    unittest.main()
