# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of Documentation/conformance.md.

A cell that makes no sense ends the program. Text in parentheses is for readers, and so is text
behind a semicolon, but in A.3.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENT = os.path.join(HERE, 'conformance.md')     # where vmlib/payload.py puts it
if not os.path.exists(DOCUMENT):
    DOCUMENT = os.path.normpath(os.path.join(HERE, '../../../Documentation/conformance.md'))
OUTER = 'E-001', 'E-002', 'E-003', 'E-010'
PLACES = 'FIRST', 'MIDDLE', 'LAST', 'ONLY'
SERVICES = 'RC', 'UC', 'RD', 'UD', 'CNP', 'XRC'     # by the upper three bits of an opcode


class Row(list):
    """The cells of a row, without what is in parentheses."""

    def __init__(self, line, cells):
        super().__init__(re.sub(r' *\([^)]*\)', '', cell).strip() for cell in cells)
        self.line, self.id = line, self[0]

    def wrong(self, what):
        sys.exit(f'{DOCUMENT}:{self.line}: {self.id}: {what}')

    def match(self, pattern, text):
        return re.fullmatch(pattern, text) or self.wrong(f'"{text}" is none of {pattern}')

    def one_of(self, words, text):
        return text if text in words else self.wrong(f'"{text}" is none of {", ".join(words)}')

    def words(self, text, sep=', '):
        """The parts of a list, which "-" is if it is empty."""
        return [] if text in ('', '-') else text.split(sep)


def rows(name, columns):
    """The rows of the table in the section that begins with @name."""
    inside, found = False, []
    with open(DOCUMENT, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            if line.startswith('#'):
                inside = re.match(rf'#+ {name}\.? ', line)
            elif inside and line.startswith(f'| {name[0]}-'):
                found.append(Row(number, line.strip().split('|')[1:-1]))
                if len(found[-1]) != columns:
                    found[-1].wrong(f'{len(found[-1])} columns instead of {columns}')
    return found or sys.exit(f'{DOCUMENT}: no table {name}')


def headers():
    """Header of E.1 to its size and fields, (name, bits) each; outer headers have none."""
    found = {}
    for row in rows('E.1', 4):
        names, sizes = row.words(row[1], ' / '), row.words(row[2], ' / ')
        contents = [''] * len(names) if row.id in OUTER else row[3].split(' / ')
        if sizes and not len(names) == len(sizes) == len(contents):
            row.wrong('not as many headers as sizes and contents')
        for name, size, content in zip(names, sizes, contents):
            size = int(row.match(r'\d+', size)[0])
            fields = tuple((match[1].replace('_', '').lower(), int(match[2])) for match in (
                row.match(r'(\w+) (\d+)', field) for field in row.words(content)))
            if fields and sum(bits for _, bits in fields) != 8 * size:
                row.wrong(f'the fields of {name} do not have {size} bytes')
            found[name.lower()] = size, fields
    return found


class Opcode:
    """An opcode of E.2. @headers: the extension headers, in their order."""

    def __init__(self, row, number, operation, place, names):
        self.row, self.number, self.service = row, number, SERVICES[number >> 5]
        self.operation, self.place, self.headers = operation, place, names
        self.response = bool(re.search('RESPONSE|ACKNOWLEDGE', operation))


def opcodes():
    """Number to opcode, of E.2."""
    known, found = headers(), {}
    for row in rows('E.2', 3):
        for text in re.split(r', (?![^[]*\])', row[2].split('; ')[0]):
            match = row.match(r'([0-9A-F]{2})(?:-([0-9A-F]{2}) as ([0-9A-F]{2})-([0-9A-F]{2})|'
                              r' ([A-Z_]+)(?: ([A-Z]+))?)(?: \[(.*)\])?', text)
            names = [row.one_of(known, name.lower()) for name in row.words(match[7] or '')]
            first = int(match[1], 16)
            if match[5]:
                new = [Opcode(row, first, match[5], row.one_of(PLACES, match[6] or 'ONLY'), names)]
            else:
                last, like, end = (int(match[n], 16) for n in (2, 3, 4))
                if last - first != end - like:
                    row.wrong(f'"{text}": ranges of different lengths')
                new = [Opcode(row, op.number - like + first, op.operation, op.place,
                              op.headers if op.response else names + op.headers)
                       for op in found.values() if like <= op.number <= end]
            for opcode in new:
                if opcode.number in found:
                    row.wrong(f'{opcode.number:02X} has been there before')
                found[opcode.number] = opcode
    return dict(sorted(found.items()))
