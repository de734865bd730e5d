#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of ratios.py: phrases are found in prose, and nowhere else, and limits only fall."""

import os
import tempfile
import unittest
from unittest import mock

import ratios

C = '''/*
 * Whatever it is.
 * The lock is that
 * of the device, too.
 */
char *text = "nobody";	/* What a number */
'''
PYTHON = '''#!/usr/bin/env python3
"""What it does, at once."""


def two():
    """Whoever
    asks."""
    return "those of nobody"   # That of meanwhile
'''
SHELL = '#!/bin/sh\n# Nobody calls it: somebody\n# does.\necho "# who" nobody # whoever\n'
RST = 'Text\n\nWhat follows. See what it is; What is not?\n\n- What a list has\n'


class Ratios(unittest.TestCase):
    def counted(self, name, text):
        return ratios.count([(name, text)], ['.', 'a', 'a/b'])

    def test_languages(self):
        # Words, then PHRASES.
        self.assertEqual(self.counted('x.c', C)['.'], [14, 1, 2, 0, 0, 1])
        self.assertEqual(self.counted('x.py', PYTHON)['.'][2:5], [1, 1, 2])
        self.assertEqual(self.counted('x', SHELL)['.'][3], 3)
        self.assertEqual(self.counted('x.rst', RST)['.'][2], 3)
        self.assertEqual(self.counted('x.json', C)['.'], [0] * 6)

    def test_directories(self):
        found = self.counted('a/b/c/x.rst', 'nobody at all')
        self.assertEqual([found[room][0] for room in ('.', 'a', 'a/b')], [0, 0, 3])

    def test_limits(self):
        limits, counts = {'a': [1.0, 0.5, 0.0, 0.0, 0.0]}, {'a': [1000, 2, 0, 0, 0, 0]}
        [worse], [better], low = ratios.judge(limits, counts)
        self.assertIn('a: that-of 2.0 in 1,000 words, the limit is 1.0', worse)
        self.assertIn('a: What 0.0', better)
        self.assertEqual(low['a'], [1.0, *ratios.FLOOR[1:]])

    def test_kept(self):
        """--keep lowers limits, and raises none."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        limits = os.path.join(directory, 'limits')
        with open(limits, 'w', encoding='utf-8') as file:
            file.write('# Phrases\n\n. 0.0 600.0 0.0 0.0 0.0\n')
        text = [('x.rst', 'That of a.\n\nWhat those of b are.')]
        with mock.patch.object(ratios, 'LIMITS', limits), \
                mock.patch.object(ratios, 'files', lambda: text), \
                mock.patch('sys.argv', ['ratios.py', '--keep']), mock.patch('builtins.print'):
            self.assertEqual(ratios.main(), 1)
        with open(limits, encoding='utf-8') as file:
            self.assertEqual(file.read().split()[2:], ['.', '0.3', '125.0', '0.2', '0.3', '0.2'])


if __name__ == '__main__':
    unittest.main()
