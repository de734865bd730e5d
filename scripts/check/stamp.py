#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Copy lines, and note when each has come.

  stamp.py FILE     standard input to standard output, as it comes; FILE gets a line for each,
                    with the seconds since the start

results.py learns from FILE what a test has taken.
"""

import sys
import time


def main():
    start = time.monotonic()
    with open(sys.argv[1], 'w', encoding='ascii') as clock:
        for line in sys.stdin.buffer:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            clock.write(f'{time.monotonic() - start:.1f}\n')
            clock.flush()


if __name__ == '__main__':
    main()
