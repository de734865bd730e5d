#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of mutants/page.py: what a run of the mutants that lived changes in what is kept."""

import json
import os
import tempfile
import unittest

from mutants import page

HEAD = '# 4 of 90 mutants by seed 7; 2 programs with 9 tests\n'
LIVES, CAUGHT, SAME, GONE = (f'{c * 8}\ta/b.c:f\tdrop\tx = {c}\t' for c in 'abcd')


class Again(unittest.TestCase):
    def setUp(self):
        self.where = self.enterContext(tempfile.TemporaryDirectory())
        data, here = page.DATA, page.HERE
        page.DATA = page.HERE = self.where
        self.addCleanup(setattr, page, 'DATA', data)
        self.addCleanup(setattr, page, 'HERE', here)
        self.write('equivalent.txt', 'Of them:\n\ncccccccc a trace point\n')
        self.write('engine.txt', HEAD + LIVES + '\n' + CAUGHT + 'test_a:1\n' + SAME + '\n' +
                   GONE + '\n')

    def write(self, name, text):
        with open(os.path.join(self.where, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def keep(self, by, **plan):
        mutant = {'name': 'a' * 8, 'path': 'a/b.c', 'function': 'f', 'operator': 'drop',
                  'text': 'x = a'}
        self.write('mutants.json', json.dumps({'of': 95, 'seed': '1', 'mutants': [mutant], **plan}))
        self.write('results.json', json.dumps({**mutant, 'by': by}))
        self.write('proofs.json', json.dumps({'test_a': [0, [], 8, []], 'test_b': [0, [], 3, []],
                                              'test_bad': [0, [1], 5, []]}))
        page.keep('engine', self.where)
        return page.read('engine')

    def test_live(self):
        self.assertEqual(page.live('engine'), {'a' * 8, 'd' * 8})

    def test_caught(self):
        head, lines = self.keep({'test_b in frames': [2, 3]}, gone=['d' * 8])
        self.assertEqual(head, '# 3 of 95 mutants by seed 7; 2 programs with 9 tests\n')
        self.assertEqual(lines, [LIVES + 'test_b_in_frames:2,3\n', CAUGHT + 'test_a:1\n',
                                 SAME + '\n'])

    def test_keeps_what_others_caught(self):
        self.keep({'test_b': [2]}, gone=[])
        self.assertEqual(self.keep({}, gone=[])[1][0], LIVES + 'test_b:2\n')

    def test_first_run(self):
        head, lines = self.keep({'test_a': [1]})
        self.assertEqual(head, '# 1 of 95 mutants by seed 1; 2 programs with 11 tests\n')
        self.assertEqual(lines, [LIVES + 'test_a:1\n'])


if __name__ == '__main__':
    unittest.main()
