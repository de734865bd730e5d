#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of unseen.py: what has changed must be looked at again."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Unseen(unittest.TestCase):
    def setUp(self):
        self.top = self.enterContext(tempfile.TemporaryDirectory())
        self.write('a.c', '#include "a.h"\n')
        self.write('b.c', '#include <deep/b.h>\n')
        self.write('a.h', '')
        self.write('i/deep/b.h', '#include "c.h"\n')
        self.write('i/deep/c.h', '')

    def write(self, name, text):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def call(self, *words, text=''):
        return subprocess.run([sys.executable, os.path.join(HERE, 'unseen.py'), *words],
                              cwd=self.top, input=text, stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    def unseen(self, what='tidy 1', keep=True):
        out = self.call('list', 'm', what, '-I', 'i', 'a.c', 'b.c')
        if keep:
            self.call('keep', 'm', text=out)
        return [line for line in out.split() if not line.startswith(':')]

    def test_once(self):
        self.assertEqual(self.unseen(keep=False), ['a.c', 'b.c'])
        self.assertEqual(self.unseen(), ['a.c', 'b.c'])
        self.assertEqual(self.unseen(), [])

    def test_change(self):
        self.unseen()
        self.write('a.c', '#include "a.h"\n\n')
        self.assertEqual(self.unseen(), ['a.c'])

    def test_back(self):
        self.unseen()
        self.write('a.h', ' ')
        self.assertEqual(self.unseen(), ['a.c'])
        self.write('a.h', '')
        self.assertEqual(self.unseen(), [])

    def test_include(self):
        self.unseen()
        self.write('i/deep/c.h', ' ')
        self.assertEqual(self.unseen(), ['b.c'])

    def test_other_checker(self):
        self.unseen()
        self.assertEqual(self.unseen('tidy 2'), ['a.c', 'b.c'])


if __name__ == '__main__':
    unittest.main()
