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

    def test_owners(self):
        text = ('\n## Owners\n\n| Stage | Statements |\n|---|---|\n| engine | A-001..A-003 |\n'
                '| guest | A-003, A-004 |\n\n| Program | Adds |\n|---|---|\n'
                '| `selftests/a.c` | errno |\n| `selftests/b.c` | nothing |\n\n## Not covered\n')
        known = dict.fromkeys(('A-001', 'A-002', 'A-003', 'A-004', 'A-005'))
        titled = {'A-001': {'qemu-device/tests/a.c', 'selftests/a.c'}, 'A-002': {'selftests/c.c'},
                  'A-003': {'selftests/a.c'}, 'A-004': {'selftests/a.c'}}
        said = [line.partition(':1: ')[2] for line in
                conformance.owned(known, {}, text, titled)]
        self.assertEqual(said[:3], ['A-002: no title in its stage, engine, names it',
                                    'A-003: has 2 owners', 'A-005: has 0 owners'])
        self.assertIn('A-002: another stage owns this', said[3])
        self.assertEqual(said[4:], ['selftests/b.c: names nothing that another stage owns'])


if __name__ == '__main__':
    unittest.main()
