#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The structures and constants in include/qhca/, as the compiler sees them.

  layout.py           print the page for the documentation, which docs/build.sh puts
                      beside the others
  layout.py --check   report where a table of Documentation/hardware.rst gives a field
                      another offset or size than it has, or leaves a field out, and
                      structures whose size no assertion states

Offsets, sizes, types and values come from the debugging information of an object file:
gdb of the build root reads this very file as a script, and prints them. The meaning of fields and
constants comes from the comments in the headers.
"""

import json
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.append(os.path.join(TOP, 'qemu-device/qtest'))
import contract

HEADERS = ('base.h', 'regs.h', 'cmd.h', 'flow.h', 'mr.h', 'qp.h', 'queues.h', 'counters.h',
           'congestion.h')
SPEC = 'Documentation/hardware.rst'

# The tables of SPEC with offsets and sizes, by the title of their last column.
TABLES = {
    'command': 'qhca_cmd',
    'completion': 'qhca_cmd_comp',
    'CQE': 'qhca_cqe',
    'send WQE': 'qhca_sq_wqe',
    'CQ\'s doorbell record': 'qhca_cq_dbrec',
    'receive queue\'s doorbell record': 'qhca_rq_dbrec',
    'by opcode': 'qhca_sq_wqe',
    'Ethernet WQE': 'qhca_eth_wqe',
    'RSS table': 'qhca_rss',
    'key of a flow rule': 'qhca_flow_key',
    'flow rule': 'qhca_flow',
    'counts of a flow rule': 'qhca_flow_counts',
    'spread': 'qhca_spread',
    'doorbells in memory': 'qhca_shadow',
}
# Which opcodes, as the table names them, have which part of a send WQE.
OPCODES = {
    'rdma': {'RDMA', 'ATOMIC_WRITE', 'XRC_INI'},
    'atomic': {'atomic', 'XRC_INI'},
    'flush': {'FLUSH'},
    'ud': {'UD'},
    'reg': {'REG_MR'},
    'bind': {'BIND_MW'},
}


# ---- in gdb

def in_gdb(gdb, names, numbers):
    """JSON: the fields of each structure, parts of parts included, and all values."""
    def named(kind):
        if kind.code != gdb.TYPE_CODE_ARRAY:
            return str(kind) if kind.name else ''
        count = kind.range()[1] + 1
        inner, bounds = re.match(r'([^[]*)(.*)', named(kind.target())).groups()
        return f'{inner}[{count}]{bounds}'

    def fields(kind, path, start):
        for field in kind.fields():
            at, inner = start + field.bitpos // 8, field.type.strip_typedefs()
            name = '.'.join(filter(None, (path, field.name)))
            yield name, at, inner.sizeof, named(field.type)
            if inner.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION) and not inner.name:
                yield from fields(inner, name, at)

    def whole(kind):
        return {'size': kind.sizeof, 'fields': [row for row in fields(kind, '', 0) if row[0]]}

    print(json.dumps({
        'layout': {name: whole(gdb.lookup_type(f'struct {name}')) for name in names},
        'values': {name: int(gdb.parse_and_eval(f'value_{name}')) % 2**64 for name in numbers}}))


# ---- outside

def read(name):
    if name.startswith('include/qhca/'):
        return contract.read(os.path.basename(name))
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


def compiled(names, numbers):
    script = ('gcc -Iinclude -g -fno-eliminate-unused-debug-types -x c -c -o /tmp/layout.o - && '
              'exec gdb -nx -batch -x scripts/docs/layout.py /tmp/layout.o')
    out = subprocess.run(
        [f'{TOP}/scripts/build/buildroot.sh', '--', 'env', f'STRUCTURES={" ".join(names)}',
         f'NUMBERS={" ".join(numbers)}', 'sh', '-c', script],
        input=''.join([f'#include "qhca/{header}"\n' for header in HEADERS] +
                      [f'enum {{ value_{name} = ({name}) }};\n' for name in numbers]),
        check=True, text=True, stdout=subprocess.PIPE).stdout
    both = json.loads(out)
    return both['layout'], both['values']


MACRO = re.compile(r'^#define (QHCA_\w+)[ \t]+([^\n/]*[^\n/ \t\\])[ \t]*(?:/\*(.*?)\*/)?',
                   re.M | re.S)
ENUM = re.compile(r'^enum (qhca_\w+) \{(.*?)^\}', re.M | re.S)
ENUMERATOR = re.compile(r'^\t(QHCA_\w+)[ \t]*=?[ \t]*([^,\n/]*?),?[ \t]*(?:/\*(.*?)\*/)?$',
                        re.M | re.S)


def constants(text):
    """Group (a prefix, or an enum), name, what is written there, what it means."""
    for name, written, says in MACRO.findall(text):
        yield '', name, written, plain(says)
    for group, body in ENUM.findall(text):
        for name, written, says in ENUMERATOR.findall(body):
            yield group, name, written, plain(says)


def numeral(value, written):
    """As the header has it: bits, addresses and other patterns in hexadecimal."""
    return hex(value) if '0x' in written or '<<' in written else str(value)


def listing(found, values):
    rows = [(escape(name), numeral(values[name], written), escape(says) or '\\-')
            for _, name, written, says in found]
    widths = [max(len(row[column]) for row in rows + [('constant', 'value', '')])
              for column in range(2)] + [50]
    rule = '  '.join('=' * width for width in widths)
    return [rule, *('  '.join(cell.ljust(width) for cell, width in zip(row, widths))
                    for row in [('constant', 'value', 'meaning')]), rule,
            *('  '.join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows),
            rule]


TOKEN = re.compile(r'''
    /\*(?P<comment>.*?)\*/
    | \b(?P<open>struct|union)\s*\{
    | \}\s*(?P<close>\w*)\s*;
    | \b(?P<name>\w+)\s*(?:\[\w+\])*;
    ''', re.S | re.X)


def meanings(body):
    """Path of a field to what the comment beside, or in front of it, says."""
    whole = Part()
    stack, last, line, before = [whole], None, 0, ''
    for token in TOKEN.finditer(body):
        if token['comment'] is not None:
            if last is not None and '\n' not in body[line:token.start()]:
                last.says = plain(token['comment'])
            else:
                before = plain(token['comment'])
            continue
        line = token.end()
        if token['close'] is not None:
            last = stack.pop()
            last.name = token['close']
            continue
        last = Part(token['name'] or '', before)
        stack[-1].parts.append(last)
        before = ''
        if token['open']:
            stack.append(last)
    return dict(whole.flat(''))


class Part:
    """A field, or a structure in a structure."""
    def __init__(self, name='', says=''):
        self.name, self.says, self.parts = name, says, []

    def flat(self, path):
        path = '.'.join(filter(None, (path, self.name)))
        if self.name:
            yield path, self.says
        for part in self.parts:
            yield from part.flat(path)


def plain(comment):
    text = re.sub(r'\n\s*\*?', ' ', comment).strip()
    return re.sub(r'\s+', ' ', text)


def structures(text):
    """Name, what it is, and what its fields mean, as a header says."""
    pattern = r'(?:/\*((?:(?!\*/).)*)\*/\n)?^struct (qhca_\w+) \{(?:[ \t]*/\*(.*?)\*/)?\n(.*?)^\};'
    for comment, name, beside, body in re.findall(pattern, text, re.S | re.M):
        told = meanings(body)
        intro, *described = re.split(r'\n \* @(?=\w+:)', comment)
        for part in described:
            field, _, what = part.partition(':')
            told[field] = plain(what.split('\n *\n')[0])
        intro = re.sub(rf'^\s*\*?\s*struct {name} - ', '', intro)
        yield name, plain(beside or ''), plain(intro), told


def escape(text):
    text = re.sub(r'([*`\\])', r'\\\1', text)
    text = re.sub(r'(\w)_(?=\W|$)', r'\1\\_', text)
    return re.sub(r'@(\w+)', r'*\1*', text)


def sentence(text):
    text = escape(text)
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith('.') else text + '.'


def render(known, layout, values):
    lines = [
        # REUSE-IgnoreStart
        '.. SPDX-License-Identifier: GPL-2.0-or-later',
        # REUSE-IgnoreEnd
        '',
        '========================', 'Structures and constants', '========================', '',
        'Every constant and structure of ``include/qhca/``, with value, or offset and size of each',
        'field in bytes, as a compiler sees them. :doc:`hardware` says what they are for; a driver',
        'can be written from both alone (``qemu-device/qtest/manual.py`` is one). All fields are',
        'little-endian, but for those typed ``__be`` or as bytes. ``struct qhca_cmd_…`` are the',
        'bodies of commands: they begin at byte 16 of ``struct qhca_cmd``.']
    for header, numbers, found in known:
        title = f'include/qhca/{header}'
        lines += ['', title, '=' * len(title)]
        for group in dict.fromkeys(number[0] for number in numbers):
            kind = f'enum {group}' if group else f'Constants of {header}'
            lines += ['', kind, '-' * len(kind), '',
                      *listing([number for number in numbers if number[0] == group], values)]
        for name, beside, intro, told in found:
            kind = f'struct {name}'
            lines += ['', kind, '-' * len(kind), '', f'{layout[name]["size"]} bytes. ' + ' '.join(
                ([f'{escape(beside)}.'] if beside else []) + [sentence(intro)]), '']
            lines += table(layout[name]['fields'], told)
    return '\n'.join(line.rstrip() for line in lines) + '\n'


def table(fields, told):
    rows = [('offset', 'size', 'field', 'type', 'meaning')]
    for field, at, length, kind in fields:
        says = 'reserved' if 'rsvd' in field else told.get(field) or '\\-'
        rows.append((str(at), str(length), escape(field), f'``{kind}``' if kind else '\\-',
                     says if says == '\\-' else escape(says)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)] + [50]
    rule = '  '.join('=' * width for width in widths)
    lines = ['  '.join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows]
    return [rule, lines[0], rule, *lines[1:], rule]


# ---- the tables of the specification

def tables(text):
    """(line, title, rows), a row being (line, offset, size, meaning)."""
    lines, number = text.splitlines(), 0
    while number < len(lines):
        if re.match(r'=+  =+', lines[number]) and ''.join(
                lines[number + 1:number + 2]).startswith('offset  size'):
            rule = lines[number]
            ends = [match.span() for match in re.finditer('=+', rule)]
            title, rows, start = lines[number + 1][ends[2][0]:].strip(), [], number
            number += 3
            while lines[number] != rule:
                cells = [lines[number][first:last].strip() for first, last in ends[:2]]
                rest = lines[number][ends[2][0]:].strip()
                if cells[0]:
                    rows.append([number + 1, int(cells[0]), int(cells[1] or 0), rest])
                elif rows:
                    rows[-1][3] += ' ' + rest
                number += 1
            yield start + 1, title, rows
        number += 1


def tagged(field, what):
    """Whether the row of the table `by opcode` is about this field of a send WQE."""
    part = field.partition('.')[0]
    return bool(OPCODES.get(part, set()) & set(re.findall(r'\w+', what)))


def judge(title, rows, fields, size):
    """Report what is wrong with the rows, which are of one structure."""
    names = {field.rpartition('.')[2]: None for field, *_ in fields}
    for number, at, length, what in rows:
        here = [field for field, first, count, _ in fields if (first, count) == (at, length)]
        if title[number] == 'by opcode':
            here = [field for field in here if tagged(field, what)]
        if not here and (at, length) != (size, 0):
            yield number, f'no field of {length} bytes at {at}: {what}'
            continue
        word = re.match(r'\w+', what)[0]
        last_words = [field.rpartition('.')[2] for field in here]
        if title[number] != 'by opcode' and length and word in names and word not in last_words:
            yield number, f'{word} is not the field of {length} bytes at {at}'


def missing(title, rows, fields):
    def covered(field, at, length):
        for number, first, count, what in rows:
            if first <= at and at + length <= first + count:
                if title[number] != 'by opcode' or tagged(field, what):
                    return True
        return False
    for field, at, length, kind in fields:
        if 'rsvd' not in field and kind and not covered(field, at, length):
            yield f'no row for {field}, {length} bytes at {at}'


def specification(layout):
    """Findings in SPEC, as file:line: message."""
    by_struct, titles = {}, {}
    for line, title, rows in tables(read(SPEC)):
        if title not in TABLES:
            yield f'{SPEC}:{line}: of which structure is "{title}"?'
            continue
        by_struct.setdefault(TABLES[title], []).extend(rows)
        titles.update((row[0], title) for row in rows)
    for name in dict.fromkeys(TABLES.values()):
        rows, fields = by_struct.get(name, []), layout[name]['fields']
        for number, what in judge(titles, rows, fields, layout[name]['size']):
            yield f'{SPEC}:{number}: {what}'
        for what in missing(titles, rows, fields):
            yield f'{SPEC}:{rows[0][0] if rows else 1}: struct {name}: {what}'


def unstated(texts):
    """Structures without the assertion that makes a change of their size an error."""
    for header, text in texts:
        for name, *_ in structures(text):
            if f'\nQHCA_ASSERT_SIZE(struct {name}, ' not in text:
                yield f'include/qhca/{header}:1: struct {name} needs a QHCA_ASSERT_SIZE'


def main():
    texts = [(header, read(f'include/qhca/{header}')) for header in HEADERS]
    known = [(header, list(constants(text)), list(structures(text))) for header, text in texts]
    layout, values = compiled([name for *_, found in known for name, *_ in found],
                              [name for _, numbers, _ in known for _, name, *_ in numbers])
    if '--check' not in sys.argv:
        print(render(known, layout, values), end='')
        return 0
    wrong = [*specification(layout), *unstated(texts)]
    print('\n'.join(wrong), end='\n' if wrong else '')
    return 1 if wrong else 0


if 'STRUCTURES' in os.environ:
    import gdb
    in_gdb(gdb, os.environ['STRUCTURES'].split(), os.environ['NUMBERS'].split())
elif __name__ == '__main__':
    sys.exit(main())
