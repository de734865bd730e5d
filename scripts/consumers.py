#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The table of consumers of RDMA and their results: Documentation/consumers.rst.

  consumers.py          write it, from scripts/guest/consumers/list and from what
                        `scripts/check.sh consumers --full [--rxe]` has left in the
                        cache; a result that is not there stays what it was
  consumers.py --check  say what is wrong with it: a row that is missing, or differs
                        from the list
"""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get('QHCA_CACHE') or os.path.join(
    os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'qhca')
LIST = 'scripts/guest/consumers/list'
RESULT = 'Documentation/consumers.rst'
NOT_RUN = 'not run'
WHEN = {'check': '``make check``', 'full': '``make check-full``', 'part': '``make check-full``'}

HEAD = '''\
.. SPDX-License-Identifier: GPL-2.0-or-later
.. Written by scripts/consumers.py from scripts/guest/consumers/list and from results.

==============================
Consumers: what runs over qhca
==============================

Parts of the Linux kernel, libraries and applications that use RDMA, as Debian ships them,
on one machine with itself or between two. All data is verified. Afterwards the device has
no more objects than before, the modules are unloaded, and the kernel log has no complaint;
these are among the counted tests.

``make check`` runs the short form of those marked so, ``make check-full`` the long form of
all; ``scripts/check.sh consumers [--full] [NAME…]`` some. The results are those of the last
long run. The column for ``rdma_rxe`` is the same with soft-RoCE over virtio-net in place of
the device (``scripts/check.sh consumers --full --rxe``).

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


def documented():
    """Name to cells of the table that is there."""
    if not os.path.exists(os.path.join(TOP, RESULT)):
        return {}
    rows = re.split(r'^   \* - ', read(RESULT), flags=re.MULTILINE)[2:]
    cells = [[cell.strip() for cell in re.split(r'^     -(?: |$)', row, flags=re.MULTILINE)]
             for row in rows]
    return {row[0]: row for row in cells}


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


def render():
    before, out = documented(), HEAD
    for name, what, when, remarks in listed():
        old = before.get(name, [NOT_RUN] * 6)
        ours = counts('full', name) or old[3]
        rxe = counts('rxe-full', name) or old[4]
        out += f'   * - {name}\n'
        out += ''.join(f'     - {cell}'.rstrip() + '\n'
                       for cell in (what, when, ours, rxe, remarks))
    return out


def check():
    before, wrong = documented(), []
    for name, what, when, remarks in listed():
        row = before.get(name)
        if not row:
            wrong.append(f'{RESULT}:1: no row for {name}: run scripts/consumers.py')
        elif (row[1], row[2], row[5]) != (what, when, remarks):
            wrong.append(f'{RESULT}:1: {name} differs from {LIST}: run scripts/consumers.py')
    names = {row[0] for row in listed()}
    wrong += [f'{RESULT}:1: {name} is not in {LIST}' for name in before if name not in names]
    for name in names:
        if not os.path.exists(os.path.join(TOP, f'scripts/guest/consumers/{name}.sh')):
            wrong.append(f'{LIST}:1: no {name}.sh')
    return wrong


def main():
    if '--check' in sys.argv:
        wrong = check()
        print('\n'.join(wrong), end='\n' if wrong else '')
        return 1 if wrong else 0
    text = render()
    with open(os.path.join(TOP, RESULT), 'w', encoding='utf-8') as file:
        file.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
