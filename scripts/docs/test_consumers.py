#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of consumers.py: results of a run take the place of kept ones, others stay."""

import os
import tempfile
import unittest
from unittest import mock

import consumers

ROWS = [('nvme', 'a disk', '``make check``', ''), ('smc', 'sockets', '``make check``', 'slow')]
KEPT = 'consumer,qhca,rdma_rxe\nnvme,1 passed,2 passed\n'
RUN = 'ok consumers/nvme/a\nok consumers/nvme/b # SKIP why\nnot ok consumers/nvme/c # why\n'


class Consumers(unittest.TestCase):
    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(directory, 'kept.csv')
        for name, text in (('kept.csv', KEPT), ('consumers/full/nvme', RUN)):
            os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
            with open(os.path.join(directory, name), 'w', encoding='utf-8') as file:
                file.write(text)
        for name, value in (('CACHE', directory), ('RESULTS', path), ('listed', lambda: ROWS)):
            self.enterContext(mock.patch.object(consumers, name, value))

    def test_table(self):
        """Each consumer of the list has a row, whether it has results or not."""
        rows = consumers.render().split('   * - ')[2:]
        self.assertEqual([row.split('\n')[0] for row in rows], ['nvme', 'smc'])
        self.assertIn('1 passed', rows[0])
        self.assertEqual(rows[1].count(consumers.NOT_RUN), 2)

    def test_keep(self):
        consumers.keep()
        self.assertEqual(consumers.kept()['nvme'], {
            'consumer': 'nvme', 'qhca': '1 passed, 1 failed, 1 skipped: ``c``',
            'rdma_rxe': '2 passed'})
        self.assertEqual(consumers.kept()['smc']['qhca'], consumers.NOT_RUN)

    def test_unknown(self):
        """A result of a consumer that is not in the list is reported."""
        with mock.patch.object(consumers, 'listed', lambda: ROWS[1:]):
            self.assertIn('nvme is not in', consumers.check()[0])


if __name__ == '__main__':
    unittest.main()
