#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the engine's instructions per message inside a port, against what it may take.

  instructions.py PROGRAM            PROGRAM: bench/messages.c, optimised
  instructions.py --update PROGRAM   what it takes now is what it may take

callgrind counts, so the result is the same on a busy machine. It depends on the compiler:
the limits are those of the one in the build root.
"""

import argparse
import os
import re
import subprocess
import sys

LIMITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'instructions.txt')
HEAD = '''\
# SPDX-License-Identifier: GPL-2.0-or-later
# Instructions per message of bench/messages.c; instructions.py --update writes them.
'''
TOLERANCE = 1.05
FEW, MANY = 100, 1100           # messages: the difference is what they cost


def collected(program, row, count):
    """Instructions of so many messages, and of what comes before them."""
    done = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null',
                           '--toggle-collect=qhca_engine_doorbell', program, row, str(count)],
                          check=True, capture_output=True, text=True)
    return int(re.search(r'Collected : (\d+)', done.stderr)[1])


def per_message(program, row):
    return round((collected(program, row, MANY) - collected(program, row, FEW)) / (MANY - FEW))


def limits():
    with open(LIMITS, encoding='utf-8') as file:
        rows = [line.split() for line in file if not line.startswith('#')]
    return {row: int(limit) for row, limit in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--update', action='store_true')
    parser.add_argument('program')
    args = parser.parse_args()
    old = limits()
    new = {row: per_message(args.program, row) for row in old}
    if args.update:
        with open(LIMITS, 'w', encoding='utf-8') as file:
            file.write(HEAD + ''.join(f'{row:10} {count:6}\n' for row, count in new.items()))
        return 0
    failed = 0
    for row, count in new.items():
        good = count <= old[row] * TOLERANCE
        failed += not good
        print(f'{"ok" if good else "not ok"} - {row} # {count} instructions, {old[row]} before')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
