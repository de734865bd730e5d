#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of Documentation/journeys.rst: the parts that it names are there, and in check-full."""

import os
import re
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(TOP, 'scripts/check'))
import parts      # noqa: E402  pylint: disable=wrong-import-position


def read(name):
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


def cells(text, column):
    """Return this cell of each row of the list table."""
    for row in text.split('\n   * - ')[2:]:
        yield row.split('\n     -')[column]


class Journeys(unittest.TestCase):
    def test_parts(self):
        full = {name for name, _, runs, *_ in parts.PARTS if 'full' in runs}
        for cell in cells(read('Documentation/journeys.rst'), 2):
            named = re.findall(r'``([\w.-]+)``', re.sub(r'\(.*?\)', '', cell))
            self.assertTrue(named, cell)
            self.assertLessEqual(set(named), full, cell)


if __name__ == '__main__':
    unittest.main()
