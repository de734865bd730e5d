#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the instructions of an operation, against what it may take.

  instructions.py --collect FUNCTION LIMITS PROGRAM
  instructions.py --collect FUNCTION --update LIMITS PROGRAM   what it takes now, it may take

LIMITS has a line for each row: its name and the instructions; `PROGRAM ROW COUNT` does that
operation so many times. What FUNCTION and all that it calls execute counts.

callgrind counts, so the result is the same on a busy machine. It depends on the compiler:
the limits are those of the one in the build root.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TOLERANCE = 1.05
FEW, MANY = 100, 1100           # operations: the difference is what they cost


def collected(program, function, row, count):
    """Instructions of so many operations, and of what comes before them."""
    done = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null',
                           f'--toggle-collect={function}', program, row, str(count)],
                          check=True, capture_output=True, text=True)
    return int(re.search(r'Collected : (\d+)', done.stderr)[1])


def per_operation(program, function, row):
    few, many = (collected(program, function, row, count) for count in (FEW, MANY))
    return round((many - few) / (MANY - FEW))


def read(path):
    """The comment at its head, and the limits by row."""
    with open(path, encoding='utf-8') as file:
        lines = file.readlines()
    rows = [line.split() for line in lines if not line.startswith('#')]
    return ''.join(line for line in lines if line.startswith('#')), {
        row: int(limit) for row, limit in rows}


def judge(new, old):
    """One line for each row; returns how many take too much."""
    failed = 0
    for row in old:
        good = 0 < new[row] <= old[row] * TOLERANCE
        failed += not good
        print(f'{"ok" if good else "not ok"} - {row} # {new[row]} instructions, '
              f'{old[row]} before')
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--update', action='store_true')
    parser.add_argument('--collect', metavar='FUNCTION', required=True)
    parser.add_argument('limits')
    parser.add_argument('program')
    args = parser.parse_args()
    head, old = read(args.limits)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = pool.map(lambda row: per_operation(args.program, args.collect, row), old)
        new = dict(zip(old, counts))
    if args.update:
        with open(args.limits, 'w', encoding='utf-8') as file:
            file.write(head + ''.join(f'{row:14} {count:6}\n' for row, count in new.items()))
        return 0
    return 1 if judge(new, old) else 0


if __name__ == '__main__':
    sys.exit(main())
