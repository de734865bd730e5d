#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of prose.py: a sentence with another number than the code is found."""

import unittest

import prose

CODE = '#define FEW\t\t0x10\n#define FEWER  (FEW - 1)\n#define MANY 65536u\n'
TEXT = 'It takes at most\n16 of them, and 65,536\nof those. Later it takes at most 17 of them.\n'


class Prose(unittest.TestCase):
    def findings(self, name, pattern, text=TEXT):
        return list(prose.judge('a.h', name, 'b.rst', pattern, CODE, text))

    def test_right(self):
        self.assertEqual(self.findings('MANY', r'# of those'), [])

    def test_wrong(self):
        self.assertEqual(self.findings('FEW', r'at most # of them'),
                         ['b.rst:3: 17, but FEW of a.h is 16'])

    def test_gone(self):
        [found] = self.findings('FEW', r'nobody says #')
        self.assertIn('no sentence', found)
        [found] = self.findings('NONE', r'# of those')
        self.assertIn('NONE is no number', found)

    def test_no_number(self):
        [found] = self.findings('FEWER', r'at most # of them', 'at most 15 of them')
        self.assertIn('FEWER is no number', found)

    def test_documents(self):
        for row in prose.ROWS:
            self.assertEqual(list(prose.judge(*row, prose.read(row[0]), prose.read(row[2]))), [])


if __name__ == '__main__':
    unittest.main()
