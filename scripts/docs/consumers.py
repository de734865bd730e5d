#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The table of consumers of RDMA and their results in Documentation/consumers.rst.

  consumers.py          print it, from selftests/guest/consumers/list and the results in
                        Documentation/results/consumers.csv
  consumers.py --keep   update these results with what `pytest -m consumers
                        --full [--rxe]` has left in the cache; a result that is not
                        there stays what it was
  consumers.py --check  report consumers of the list without a script, and results of
                        consumers that are not in the list
"""

import csv
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get('QHCA_CACHE') or os.path.join(
    os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'qhca')
LIST = 'selftests/guest/consumers/list'
RESULTS = 'Documentation/results/consumers.csv'
NOT_RUN = 'not run'
WHEN = {'check': '``make check``', 'full': '``make check-full``', 'part': '``make check-full``'}

HEAD = '''\
.. list-table::
   :header-rows: 1
   :widths: 10 34 12 14 14 16

   * - consumer
     - what runs, and is verified
     - in
     - last full run
     - ``rdma_rxe``
     - remarks
'''


def read(name):
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


def listed():
    """Rows of the list: name, what, when with machines, remarks."""
    rows = []
    for line in read(LIST).splitlines():
        if not line or line.startswith('#'):
            continue
        cells = [cell.strip() for cell in line.split('|')]
        if len(cells) != 5 or cells[1] not in ('1', '2') or cells[2] not in WHEN:
            sys.exit(f'{LIST}: not "name | 1 or 2 | check, full or part | what | remarks": {line}')
        name, machines, when, what, remarks = cells
        if name in (row[0] for row in rows):
            sys.exit(f'{LIST}: {name} is there twice')
        if machines == '2':
            what = 'two machines: ' + what
        rows.append((name, what, WHEN[when], remarks))
    return rows


def kept():
    """Name to the results of the last run of each consumer."""
    with open(os.path.join(TOP, RESULTS), newline='', encoding='utf-8') as file:
        return {row['consumer']: row for row in csv.DictReader(file)}


def counts(directory, name):
    """How the last run of one consumer went, or None."""
    path = os.path.join(CACHE, 'consumers', directory, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8', errors='replace') as file:
        lines = [re.sub(r'^[a-z]\| ', '', line) for line in file]
    skipped = sum(bool(re.match(r'ok .*# SKIP', line)) for line in lines)
    passed = sum(line.startswith('ok ') for line in lines) - skipped
    failed = [re.match(r'not ok (?:consumers/[^/ ]+/?)?([^#\n]*)', line)[1].strip() or 'all of it'
              for line in lines if line.startswith('not ok ')]
    text = f'{passed} passed, {len(failed)} failed, {skipped} skipped'
    if failed:
        text += ': ' + ', '.join(f'``{test}``' for test in failed[:3])
        text += ', …' if len(failed) > 3 else ''
    return text


def latest():
    """A row for each consumer: of the last run in the cache, or as kept."""
    before = kept()
    for name, *_ in listed():
        old = before.get(name, {})
        yield {'consumer': name,
               'qhca': counts('full', name) or old.get('qhca', NOT_RUN),
               'rdma_rxe': counts('rxe-full', name) or old.get('rdma_rxe', NOT_RUN)}


def keep():
    rows = list(latest())
    with open(os.path.join(TOP, RESULTS), 'w', newline='', encoding='utf-8') as file:
        out = csv.DictWriter(file, rows[0], lineterminator='\n')
        out.writeheader()
        out.writerows(rows)


def render():
    known, out = kept(), HEAD
    for name, what, when, remarks in listed():
        row = known.get(name, {})
        out += f'   * - {name}\n'
        out += ''.join(f'     - {cell}'.rstrip() + '\n' for cell in (
            what, when, row.get('qhca', NOT_RUN), row.get('rdma_rxe', NOT_RUN), remarks))
    return out


def check():
    names = [row[0] for row in listed()]
    return [f'{RESULTS}:1: {name} is not in {LIST}' for name in kept() if name not in names] + [
        f'{LIST}:1: no {name}.sh' for name in names
        if not os.path.exists(os.path.join(TOP, f'selftests/guest/consumers/{name}.sh'))]


def main():
    if '--check' in sys.argv:
        wrong = check()
        print('\n'.join(wrong), end='\n' if wrong else '')
        return 1 if wrong else 0
    if '--keep' in sys.argv:
        keep()
    else:
        print(render(), end='')
    return 0


if __name__ == '__main__':
    sys.exit(main())
