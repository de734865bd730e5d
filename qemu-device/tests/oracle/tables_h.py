#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print tables.h: A.1, A.2, A.3, B.1, E.1, E.2 and I of Documentation/conformance.md in C.

The compiler knows the names of attributes, opcodes, statuses and events, and #line leads it to the
row. A.2 is in what A.3 has rows for.
"""

import re
import sys

sys.dont_write_bytecode = True
from tables import DOCUMENT, headers, opcodes, rows   # noqa: E402

STATES = 'RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'
XRC = 'XRC_INI', 'XRC_TGT'
ALL = 'GSI', 'RC', 'UC', 'UD', *XRC
TYPES = {**{name: (name,) for name in ALL}, 'XRC': XRC, 'all': ALL}
REFUSED = 'ALT_PATH', 'PATH_MIG_STATE'      # A-068


def bits(names, prefix):
    """A mask; prefix: of the contract's names."""
    return ' | '.join(prefix.format(name) for name in names) or '0'


def macro(name):
    return re.sub(r'\W', '_', name.upper())


def types(row, text):
    return [name for word in text.split(', ') for name in TYPES[row.one_of(TYPES, word)]]


def attributes(row, text):
    """Attributes of a row of A.3, by type."""
    found = {name: [] for name in types(row, row[2])}
    for part in row.words(text, '; '):
        match = row.match(r'(?:(.+) also )?([A-Z_]+(?:, [A-Z_]+)*)', part)
        for name in types(row, match[1]) if match[1] else found:
            row.one_of(found, name)
            found[name] += [word for word in match[2].split(', ') if word not in REFUSED]
    return found


def a1():
    """Whether something is done in a state."""
    for row in rows('A.1', 10):
        does = [not row.match('(imm. error|none|(?:silently )?dropped)|'
                              '(?:accepted|processed|sent|only|as).*', cell)[1]
                for cell in row[2:4] + row[6:]]
        yield row, (f'[QHCA_QPS_{row.one_of(STATES, row[1])}] = {{ "{row.id}", '
                    f'{", ".join(str(int(word)) for word in does)} }},')


def legal():
    """State to the states that a modify may lead to, of A.2."""
    found = {}
    for row in rows('A.2', 9):
        parts = [row.words(cell) for cell in row[2:]]
        for part in sum(parts, []):
            row.match('ok|auto( [A-Z]+(/[A-Z]+)*)?', part)
        found[row.one_of(STATES, row[1])] = row, {
            state for state, words in zip(STATES, parts) if 'ok' in words}
    return found


def a3():
    """A step with its attributes."""
    steps, required, seen = legal(), {}, set()
    for row in rows('A.3', 5):
        needs = attributes(row, row[3])
        like = re.fullmatch('what (.+) requires', row[4])
        for step in row[1].split(', '):
            first, to = row.match(r'(\w+)->(\w+)', step).groups()
            for start in STATES if first == 'any' else (row.one_of(STATES, first),):
                seen.add((start, row.one_of(STATES, to)))
                if to not in steps[start][1]:
                    row.wrong(f'A.2 has no {start}->{to}')
                for name in needs:
                    required[step, name] = needs[name]
                    if like and (like[1], name) not in required:
                        row.wrong(f'no row for {like[1]} of {name} before this one')
                    may = required[like[1], name] if like else attributes(row, row[4])[name]
                    yield row, (f'{{ "{row.id}", QHCA_QPS_{start}, QHCA_QPS_{to}, QHCA_QPT_{name}, '
                                f'{bits(needs[name], "QHCA_QP_{}")}, {bits(may, "QHCA_QP_{}")} }},')
    for state, (row, others) in steps.items():
        for to in sorted(others - {to for start, to in seen if start == state}):
            row.wrong(f'A.3 has no {state}->{to}')


def b1():
    """An opcode of work requests; the types of QPs that have it; its completions."""
    for row in rows('B.1', 8):
        offer = [name for name, cell in zip(('UD', 'UC', 'RC', 'XRC_INI'), row[2:6])
                 if row.match('x?', cell)[0]]
        taken, flag = row.match(r'yes / (\w+)(?: \+ WITH_(\w+))?|no / none|-', row[7]).groups()
        if row[1] != 'others':
            yield row, (f'{{ "{row.id}", QHCA_WR_{row[1]}, QHCA_CQE_{row[6]}, '
                        f'{bits(offer, "1u << QHCA_QPT_{}")}, {bool(taken):d}, '
                        f'{bits([taken] if taken else [], "QHCA_CQE_{}")}, '
                        f'{bits([flag] if flag else [], "QHCA_CQE_{}")} }},')


def e2():
    """An opcode of packets."""
    for number, op in opcodes().items():
        ext = ', '.join(f'E1_{macro(name)}' for name in op.headers) or 'E1_NONE'
        first, last = op.place in ('FIRST', 'ONLY'), op.place in ('LAST', 'ONLY')
        yield op.row, (f'[0x{number:02x}] = {{ E2_{op.operation}, {first:d}, {last:d}, '
                       f'{op.response:d}, {{ {ext} }} }},')


def matrix():
    """NAK, statuses, event and state of a scenario, where there is one."""
    status, event = r'((?!QP_|CQ_)[A-Z_]+_ERR|SUCCESS)\b.*', r'.*?\b((?:QP|CQ)_[A-Z_]+).*'
    for row in rows('I', 6):
        for name, pattern, cell, prefix in (
                ('NAK', '.*?(0x[0-9a-f]{2}).*', row[2], ''), ('RQ', status, row[3], 'QHCA_WC_'),
                ('RS', status, row[4].split('; ')[0], 'QHCA_WC_'),
                ('EVENT', event, row[4].split('; ')[0], 'QHCA_EVENT_'),
                ('RQ_QP', r'([A-Z]+) / .*', row[5], 'QHCA_QPS_'),
                ('RS_QP', r'.* / ([A-Z]+)', row[5], 'QHCA_QPS_')):
            match = re.fullmatch(pattern, cell)
            if match:
                yield row, f'{row.id.replace("-", "_")}_{name} = {prefix}{match[1]},'


DECLARED = {
    'table_a1[]': (a1, """const char *id;
    bool post_recv, post_send;      /* is accepted */
    bool requests, responses;       /* are processed */
    bool answer, ask;               /* sends responses, requests */"""),
    'table_a3[]': (a3, """const char *id;
    uint8_t from, to, type;
    uint32_t required, optional;"""),
    'table_b1[]': (b1, """const char *id;
    uint8_t wr, cqe;
    uint32_t types;             /* of QPs, that have it */
    bool takes_recv;
    uint8_t recv_cqe;
    uint16_t recv_flags;"""),
    'table_e2[256]': (e2, """uint8_t op;                 /* E2_*; 0: reserved, or not offered */
    bool first, last;           /* in its message */
    bool response;
    uint8_t ext[3];             /* E1_* */"""),
}


def print_rows(declaration, found):
    print(f'\n{declaration} {{')
    for row, text in found:
        print(f'#line {row.line} "{DOCUMENT}"\n    {text}')
    print('};')


def print_words(declaration, words):
    print(f'\n{declaration} {{\n    ' + ',\n    '.join(words) + ',\n};')


def main():
    sizes = {f'E1_{macro(name)}': size for name, (size, _) in headers().items()}
    operations = dict.fromkeys(f'E2_{op.operation}' for op in opcodes().values())
    print(f'/* Written by oracle/tables_h.py from {DOCUMENT}. */\n'
          '#ifndef QHCA_TESTS_TABLES_H\n#define QHCA_TESTS_TABLES_H\n\n'
          '#include <stdbool.h>\n\n#include "qhca/cmd.h"')
    print_words('enum', ['E1_NONE', *sizes])
    print_words('enum', [f'{name}_LEN = {size}' for name, size in sizes.items()])
    print_words('enum', ['E2_NONE', *operations])
    print_words('static const uint8_t table_e1[] =',
                [f'[{name}] = {size}' for name, size in sizes.items()])
    for name, (found, members) in DECLARED.items():
        print_rows(f'static const struct {name.partition("[")[0]} {{\n    {members}\n}} {name} =',
                   found())
    print_rows('enum', matrix())
    print('\n#endif /* QHCA_TESTS_TABLES_H */')


if __name__ == '__main__':
    main()
