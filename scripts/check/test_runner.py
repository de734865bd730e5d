#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of how vm judges the end of its machines."""

import types
import unittest

from vmlib import runner


class Panic(unittest.TestCase):
    """Only a kernel that dies before init is started again."""

    def test_early(self):
        dead = types.SimpleNamespace(role='b', accel='tcg', up_after=None,
                                     tail=lambda *_: 'Kernel panic')
        with self.assertRaises(runner.EarlyPanic):
            runner.check_panic([dead])

    def test_others(self):
        for up_after, console in ((3, 'Kernel panic'), (None, 'nothing')):
            runner.check_panic([types.SimpleNamespace(role='b', up_after=up_after,
                                                      tail=lambda *_, c=console: c)])


if __name__ == '__main__':
    unittest.main()
