#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of conformance.py: what is a title, and which ranges it may have."""

import unittest

import conformance

TABLE = 'static const struct row rows[] = { { "A-001 RESET", 1 }, { "A-002 INIT", 2 } };\n'


class Conformance(unittest.TestCase):
    def swept(self, name, text):
        return list(conformance.swept(name, text))

    def test_expand(self):
        self.assertEqual(conformance.expand('A-009..A-011 B-001'),
                         {'A-009', 'A-010', 'A-011', 'B-001'})

    def test_titles(self):
        self.assertEqual(conformance.titles('selftests/a.c', '/* A-001 */ TEST(b, "A-002 c")'),
                         '"A-002 c"')
        self.assertEqual(conformance.titles('a.sh', '\t# A-001\nok "A-002"\n'), '\nok "A-002"\n')
        self.assertEqual(conformance.titles('tests/harness/a.c', '"A-001"'), '')

    def test_ranges(self):
        title = 'TEST_ROWS(a, "A-001..A-002 posting", rows)'
        self.assertEqual(self.swept('a.c', TABLE + title), [])
        self.assertEqual(self.swept('a.c', title), ['A-001..A-002'])
        self.assertEqual(self.swept('a.c', TABLE + title.replace('A-002', 'A-003')),
                         ['A-001..A-003'])
        title = '"A-030..A-036 B-001..B-014"'
        self.assertEqual(self.swept('a.c', '#include "tables.h"\n' + title), [])
        self.assertEqual(self.swept('a.c', title), ['A-030..A-036', 'B-001..B-014'])
        self.assertEqual(self.swept('a.sh', 'ok A-001..A-002'), ['A-001..A-002'])
        self.assertEqual(self.swept('a.c', '/* A-001..A-002 */'), [])


if __name__ == '__main__':
    unittest.main()
