#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of tour.py without a machine."""

import unittest

import tour
from tourlib import drawing, steps

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


class Tour(unittest.TestCase):
    def read(self, log):
        return [step.key for step in steps.Reader(A, B).read(log)]

    def test_places(self):
        """The lines of code that the page shows are in the sources."""
        self.assertEqual(list(tour.places()), [])

    def test_write(self):
        others = 'qhca_doorbell qhca0: page 0 off 0x50 val 0x0000000500000001\nnoise\n'
        self.assertEqual(self.read(others + WRITE + DONE), [
            'post-write', 'wqe', 'ring-sq', 'fetch', 'tx-request', 'rx-write', 'tx-ack', 'rx-ack',
            'cqe-send', 'poll'])

    def test_unfinished(self):
        for log in '', WRITE:
            with self.assertRaises(steps.Wrong):
                self.read(log)

    def test_error(self):
        with self.assertRaises(steps.Wrong):
            self.read(WRITE + entry(1, 12) + 'qhca_cqe qhca0: cqn 0x1 qpn 0xa0 status 12\n')

    def test_same(self):
        """Other numbers are the same page, other steps are not."""
        old = drawing.text(steps.Reader(A, B).read(WRITE + DONE))
        moved = WRITE.replace('0x000100', '0x000777')
        self.assertEqual(tour.same(old),
                         tour.same(drawing.text(steps.Reader(A, B).read(moved + DONE))))
        twice = WRITE + WRITE.splitlines()[2] + '\n'
        self.assertNotEqual(tour.same(old),
                            tour.same(drawing.text(steps.Reader(A, B).read(twice + DONE))))


if __name__ == '__main__':
    unittest.main()
