#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Numbers of the code in the sentences of Documentation/.

  prose.py    say where a sentence has another number than the code

Constants of include/qhca/ are in tables, which layout.py and qtest/test_doc.py check. Others are in
sentences: each has a row here, with its pattern.
"""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENGINE = 'qemu-device/engine/'
HARDWARE, BOUNDS = 'Documentation/hardware.rst', 'Documentation/bounds.rst'
ARCHITECTURE, FAULTS = 'Documentation/architecture.rst', 'Documentation/faults.rst'

# Where it is defined, name, document, what stands around it. Spaces stand for any space.
ROWS = (
    (ENGINE + 'responder/unreliable.c', 'LATE_WINDOW', HARDWARE,
     r'up to # PSNs behind the expected one'),
    (ENGINE + 'responder/unreliable.c', 'LATE_WINDOW', ARCHITECTURE,
     r'Up to # PSNs behind the expected'),
    (ENGINE + 'requester/requester.h', 'VHCA_WINDOW', HARDWARE, r'with a window of # packets'),
    (ENGINE + 'requester/requester.h', 'VHCA_ACKREQ_EVERY', HARDWARE,
     r'of a message and at least every #\.'),
    (ENGINE + 'responder/responder.h', 'VHCA_ADD_TRIES', HARDWARE, r'gives up after # attempts'),
    ('include/qhca/queues.h', 'QHCA_ETH_MAX_FRAGS', HARDWARE,
     r'all but the last have MORE, up to #'),
    (ENGINE + 'events/events.h', 'VHCA_MAX_EQ', HARDWARE, r'and # event queues can exist'),
    ('drivers/net/ethernet/qhca/cmd.c', 'QHCA_CMD_PATIENCE', HARDWARE,
     r'gives up after # times CMD_TIMEOUT'),
    (ENGINE + 'qp/qp.h', 'VHCA_SPAN', ARCHITECTURE, r'stand for up to # that follow each other'),
    (ENGINE + 'device/run.c', 'ENTRY_UNITS', ARCHITECTURE, r'An entry point does # units at most'),
    (ENGINE + 'device/run.c', 'SLICE_UNITS', ARCHITECTURE, r'all of them together # in a slice'),
    (ENGINE + 'device/run.c', 'TURN_UNITS', ARCHITECTURE, r'gives each of them # units'),
    (ENGINE + 'core/core.h', 'VHCA_UNIT_OBJECTS', ARCHITECTURE, r'a look at # objects'),
    (ENGINE + 'device/run.c', 'ENTRY_UNITS', BOUNDS, r'worked on for at most # units'),
    (ENGINE + 'device/run.c', 'ENTRY_UNITS', BOUNDS, r'by the bottom half, # units at a time'),
    (ENGINE + 'device/run.c', 'SLICE_UNITS', BOUNDS,
     r'until QEMU\'s main loop has had its turn, for #'),
    (ENGINE + 'device/run.c', 'TURN_UNITS', BOUNDS, r'up to # units for each turn of the QP'),
    (ENGINE + 'core/core.h', 'VHCA_UNIT_OBJECTS', BOUNDS, r'a look at # objects of a table'),
    (ENGINE + 'core/core.h', 'VHCA_UNIT_BLOCKS', BOUNDS, r'one for # block addresses freed'),
    (ENGINE + 'core/fifo.h', 'VHCA_FIFO_FRAMES', BOUNDS, r'at # frames: requests wait'),
    (ENGINE + 'rules/rules.h', 'VHCA_RULE_HELD', BOUNDS, r'with fault rules: at #, lost'),
    (ENGINE + 'rules/rules.h', 'VHCA_MAX_RULES', BOUNDS, r'The rules themselves, # at most'),
    (ENGINE + 'rules/rules.h', 'VHCA_RULE_HELD', FAULTS, r'Up to # packets can be on their way'),
    (ENGINE + 'port/port.h', 'VHCA_MAX_MCAST_QP', BOUNDS, r'each member of a group \(# at most\)'),
)


def read(name):
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


def defined(text, name):
    """Return the number that a macro stands for, or None if it is no number."""
    found = re.search(rf'^#define {name}[ \t]+(0x[0-9a-f]+|[0-9]+)u?\b', text, re.M)
    return int(found[1], 0) if found else None


def told(text, pattern):
    """(line, number) of each sentence."""
    regex = re.sub(r' ', r'\\s+', pattern).replace('#', r'([0-9,]*[0-9])')
    for found in re.finditer(regex, text):
        yield text[:found.start(1)].count('\n') + 1, int(found[1].replace(',', ''))


def judge(source, name, document, pattern, code, text):
    value = defined(code, name)
    sentences = list(told(text, pattern))
    if value is None:
        yield f'{source}:1: {name} is no number, or is not here'
    elif not sentences:
        yield f'{document}:1: no sentence "{pattern}", for {name} of {source}'
    for line, number in sentences:
        if value is not None and number != value:
            yield f'{document}:{line}: {number}, but {name} of {source} is {value}'


def main():
    wrong = [what for row in ROWS for what in judge(*row, read(row[0]), read(row[2]))]
    print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
