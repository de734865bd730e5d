#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of qhca-server(1): it has the options and the properties that the program takes."""

import os
import re
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = 'Documentation/pages/server.rst'
# For tests only, and in no manual.
UNTOLD = {'frames'}


def read(name):
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


def quoted(page):
    """The part of QEMU's page that @page includes."""
    after = re.search(r':start-after: (.*)', page)[1]
    before = re.search(r':end-before: (.*)', page)[1]
    return read('qemu-device/docs/qhca.rst').split(after, 1)[1].split(before, 1)[0]


class Page(unittest.TestCase):
    def test_options(self):
        code = read('qemu-device/server/options.c')
        taken = set(re.findall(r'\{ "([\w-]+)", (?:no|required)_argument', code))
        table = re.search(r'^Options\n=+\n(.*?)\n\w.*\n=+\n', read(PAGE), re.M | re.S)[1]
        self.assertIn('socket', taken)
        rows = ' '.join(re.findall(r'^``--.*', table, re.M))
        self.assertEqual(set(re.findall(r'``--([\w-]+)', rows)), taken)

    def test_properties(self):
        taken = set(re.findall(r'^QHCA_(?:LIVE_)?PROP\(\w+, "([\w-]+)"',
                               read('qemu-device/common/props.def'), re.M))
        text = read(PAGE)
        told = set(re.findall(r'^``([\w-]+)`` \(default', quoted(text), re.M))
        self.assertIn('vectors', taken)
        self.assertLessEqual(taken - UNTOLD, told)
        not_here = set(re.findall(r'``([\w-]+)``',
                                  re.search(r'All but (.*?)\sare', text, re.S)[1]))
        own = {'mac', 'faults'}
        self.assertEqual(told - not_here - own, taken - UNTOLD)


if __name__ == '__main__':
    unittest.main()
