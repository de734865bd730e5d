#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of layout.py: a table that says something else than the compiler is found."""

import os
import tempfile
import unittest

import layout

# struct qhca_cmd_comp, as it might be: name, offset, size, type.
FIELDS = [('opcode', 0, 2, '__le16'), ('slot', 2, 2, '__le16'), ('rsvd0', 4, 4, '__u8[4]'),
          ('obj', 8, 4, '__le32')]
TABLE = '''
======  =======  ======================
offset  size     completion
======  =======  ======================
0       2        opcode of the command
2       2        ring position of the
                 command
8       4        object number
======  =======  ======================
'''
NUMBERS = '''
#define QHCA_Y_H

#define QHCA_GET(mask, val)	((val) & (mask))
#define QHCA_MASK		0x0fu
#define QHCA_BITS		(1u << 3)	/* up to
						 * eight
						 */
enum qhca_state {
	QHCA_STATE_OFF = 0,
	/* QHCA_STATE_NOT is none */
	QHCA_STATE_ON,		/* it runs */
};
'''
LISTED = '''
#define QHCA_ROW(id, num, ...)	QHCA_X_##id = num,
enum qhca_x {
#include "x.def"
	QHCA_X_MAX
};
'''
ROWS = '''
/* QHCA_ROW(id, num, name) - a row */
QHCA_ROW(ONE, 1, "one")	/* the first */
QHCA_ROW(TWO, 2, "two")
#undef QHCA_ROW
'''
HEADER = '''
/*
 * struct qhca_x - a thing.
 * @first: what it
 *         begins with
 */
struct qhca_x {	/* QHCA_CMD_X */
	__le32	first;
	union {
		__u8	raw[8];		/* as bytes */
		struct {
			/* In front of it. */
			__le32	inner;
		} part;			/* or in parts */
	};
};
'''


class Layout(unittest.TestCase):
    def findings(self, text, fields=FIELDS):
        [(_, title, rows)] = layout.tables(text)
        titles = {row[0]: title for row in rows}
        return ([what for _, what in layout.judge(titles, rows, fields, 12)]
                + list(layout.missing(titles, rows, fields)))

    def test_right(self):
        self.assertEqual(self.findings(TABLE), [])

    def test_offset(self):
        found = self.findings(TABLE.replace('8       4 ', '4       4 '))
        self.assertEqual(len(found), 1)     # rsvd0 is there; obj has lost its row
        self.assertIn('obj, 4 bytes at 8', found[0])

    def test_size(self):
        found = self.findings(TABLE.replace('0       2 ', '0       4 '))
        self.assertIn('no field of 4 bytes at 0', found[0])

    def test_names(self):
        found = self.findings(TABLE.replace('ring position', 'opcode, or'))
        self.assertEqual(found, ['opcode is not the field of 2 bytes at 2'])

    def test_forgotten(self):
        found = self.findings(TABLE, FIELDS + [('status', 12, 1, '__u8')])
        self.assertEqual(found, ['no row for status, 1 bytes at 12'])

    def test_comments(self):
        [(name, beside, intro, told)] = layout.structures(HEADER)
        self.assertEqual((name, beside, intro), ('qhca_x', 'QHCA_CMD_X', 'a thing.'))
        self.assertEqual(told, {
            'first': 'what it begins with', 'raw': 'as bytes', 'part': 'or in parts',
            'part.inner': 'In front of it.'})

    def test_constants(self):
        self.assertEqual(list(layout.constants(NUMBERS)), [
            ('', 'QHCA_MASK', '0x0fu', ''), ('', 'QHCA_BITS', '(1u << 3)', 'up to eight'),
            ('qhca_state', 'QHCA_STATE_OFF', '0', ''),
            ('qhca_state', 'QHCA_STATE_ON', '', 'it runs')])
        self.assertEqual([layout.numeral(8, '(1u << 3)'), layout.numeral(8, '8')], ['0x8', '8'])

    def test_unstated(self):
        """A structure needs the assertion that states its size."""
        stated = HEADER + 'QHCA_ASSERT_SIZE(struct qhca_x, 12);\n'
        self.assertEqual(list(layout.unstated([('x.h', stated)])), [])
        [found] = layout.unstated([('x.h', HEADER)])
        self.assertIn('struct qhca_x', found)

    def test_rows(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in (('x.h', LISTED), ('x.def', ROWS)):
                with open(os.path.join(directory, name), 'w', encoding='utf-8') as file:
                    file.write(text)
            text = layout.contract.read('x.h', directory)
        self.assertEqual(list(layout.constants(text)), [
            ('qhca_x', 'QHCA_X_ONE', '1', 'the first'), ('qhca_x', 'QHCA_X_TWO', '2', ''),
            ('qhca_x', 'QHCA_X_MAX', '', '')])


if __name__ == '__main__':
    unittest.main()
