#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print QEMU's table of trace events, the file trace-events, as rows for the preprocessor:

    QHCA_EVENT(NAME, ROW(PARAMETER, …), ROW(ARGUMENT, …), FORMAT)

  trace.py FILE [NAME…]       all but the events with these names
"""

import re
import sys

EVENT = re.compile(r'(\w+)\((.*?)\) (".*)')


def main(path, *absent):
    names = set()
    with open(path, encoding='utf-8') as file:
        for line in map(str.strip, file):
            if not line or line.startswith('#'):
                continue
            name, parameters, form = EVENT.fullmatch(line).groups()
            names.add(name)
            if name not in absent:
                arguments = ', '.join(re.findall(r'(\w+)(?:,|$)', parameters))
                print(f'QHCA_EVENT({name}, ROW({parameters}), ROW({arguments}), {form})')
    assert names >= set(absent), f'{path} does not have all of {absent}'


main(*sys.argv[1:])
