#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of vmlib/progress.py, and of the room that a first run needs."""

import collections
import io
import os
import tempfile
import unittest
from unittest import mock

from vmlib import build
from vmlib.progress import Progress

SCRIPT = ('[   0s] image: guest packages\n[  60s] image: guest packages: 60 s so far: I: gcc\n'
          '[  90s] image: guest packages: done in 90 s\n[  91s] image: warning: late\n')


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Lines(unittest.TestCase):
    def test_log(self):
        """All as it comes, and no more often than a script thinks right."""
        out = io.StringIO()
        progress = Progress(out)
        progress.follow(io.StringIO(SCRIPT))
        self.assertEqual(out.getvalue(), SCRIPT)
        self.assertNotIn('QHCA_EVERY', progress.environment())
        self.assertRegex(progress.summary(), r'^seconds, .*: guest packages 90$')

    def test_terminal(self):
        """One line moves, is never wider than the terminal, and goes; the others stay."""
        out = Terminal()
        with mock.patch.dict(os.environ, TERM='xterm', COLUMNS='30'):
            progress = Progress(out)
            progress.follow(io.StringIO(SCRIPT))
        self.assertEqual(progress.environment()['QHCA_EVERY'], '1')
        self.assertEqual(out.getvalue(), (
            '[   0s] image: guest packages\n' 'image: guest packages:  60 s \n'
            '\x1b[1A\x1b[J[  90s] image: guest packages: done in 90 s\n'
            '[  91s] image: warning: late\n'))

    def test_little(self):
        progress = Progress(io.StringIO())
        progress.follow(io.StringIO('[   3s] modules: modules: done in 3 s\n'))
        self.assertIsNone(progress.summary())


class Space(unittest.TestCase):
    def room(self, free):
        usage = collections.namedtuple('usage', 'free')(free)
        with mock.patch.object(build.shutil, 'disk_usage', return_value=usage):
            build.check_space()

    def test_space(self):
        """The first run needs more than later ones."""
        with tempfile.TemporaryDirectory() as cache, mock.patch.object(build, 'CACHE', cache):
            self.room(build.FIRST_BYTES)
            with self.assertRaisesRegex(build.BuildError, 'the first run takes'):
                self.room(build.FIRST_BYTES - 1)
            os.mkdir(os.path.join(cache, 'image-0'))
            self.room(build.LATER_BYTES)
            with self.assertRaisesRegex(build.BuildError, 'a run may take'):
                self.room(build.LATER_BYTES - 1)


if __name__ == '__main__':
    unittest.main()
