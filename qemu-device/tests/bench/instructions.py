#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Count what an operation costs, and compare it with its limit.

  instructions.py --collect FUNCTION[,FUNCTION…] LIMITS PROGRAM
  instructions.py --collect FUNCTION… --update LIMITS PROGRAM   make the present cost the limit

LIMITS has a line for each row: its name, what is counted, and the limit; `PROGRAM ROW COUNT`
executes that operation COUNT times. Only code of the FUNCTIONs and of functions that they call
is counted; none of the FUNCTIONs may call another:

  instructions  all instructions
  behind        instructions of the first FUNCTION after the last call of landed()
  lines         first-level cache misses of 100 operations

callgrind counts, so the result is the same on a busy machine. It depends on the compiler:
the limits are for the one in the build root.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOLERANCE = 1.05
FEW, MANY = 100, 1100           # operations: only the difference of the costs counts
# A first level of a common size; the last level does not matter. It has no sets: with them
# the count includes collisions, which move when the compiler inlines a call in the test.
CACHES = ('--cache-sim=yes', '--I1=32768,8,64', '--D1=32768,512,64', '--LL=2097152,16,64')


def callgrind(program, row, count, *flags):
    return subprocess.run(['valgrind', '--tool=callgrind', *flags, program, row, str(count)],
                          check=True, capture_output=True, text=True).stderr


def per_operation(program, functions, row, pattern, *flags):
    """The number in the group of the pattern, per operation, without the cost of the setup."""
    toggles = [f'--toggle-collect={function}' for function in functions]
    few, many = (callgrind(program, row, count, '--callgrind-out-file=/dev/null', *toggles,
                           *flags) for count in (FEW, MANY))
    few, many = (int(re.search(pattern, text)[1].replace(',', '')) for text in (few, many))
    return (many - few) / (MANY - FEW)


def instructions(program, functions, row):
    return round(per_operation(program, functions, row, r'Collected : (\d+)'))


def lines(program, functions, row):
    return round(per_operation(program, functions, row, r'D1\s+misses: +([\d,]+)', *CACHES) * 100)


def behind(program, functions, row):
    with tempfile.TemporaryDirectory() as out:
        callgrind(program, row, 3, '--zero-before=landed', f'--dump-after={functions[0]}',
                  f'--callgrind-out-file={out}/dump')
        last = max(glob.glob(f'{out}/dump.*'), key=lambda name: int(name.rsplit('.', 1)[1]))
        with open(last, encoding='utf-8') as file:
            return int(re.search(r'^totals: (\d+)', file.read(), re.M)[1])


COUNTS = {'instructions': instructions, 'behind': behind, 'lines': lines}


def read(path):
    """The comment at the head of the file, and the limits by row."""
    with open(path, encoding='utf-8') as file:
        text = file.readlines()
    rows = [line.split() for line in text if not line.startswith('#')]
    return ''.join(line for line in text if line.startswith('#')), {
        (row, what): int(limit) for row, what, limit in rows}


def judge(new, old):
    """Prints a line for each row; returns how many exceed their limit."""
    failed = 0
    for row, what in old:
        now, before = new[row, what], old[row, what]
        good = 0 < now <= before * TOLERANCE
        failed += not good
        print(f'{"ok" if good else "not ok"} - {row}, {what} # {now}, {before} before')
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--update', action='store_true')
    parser.add_argument('--collect', metavar='FUNCTION', required=True,
                        type=lambda names: names.split(','))
    parser.add_argument('limits')
    parser.add_argument('program')
    args = parser.parse_args()
    head, old = read(args.limits)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = pool.map(lambda row: COUNTS[row[1]](args.program, args.collect, row[0]), old)
        new = dict(zip(old, counts))
    if args.update:
        with open(args.limits, 'w', encoding='utf-8') as file:
            file.write(head + ''.join(f'{row:14} {what:12} {count:6}\n'
                                      for (row, what), count in new.items()))
        return 0
    return 1 if judge(new, old) else 0


if __name__ == '__main__':
    sys.exit(main())
