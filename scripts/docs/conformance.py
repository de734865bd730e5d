#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Which tests cover which statements of Documentation/conformance.md.

  conformance.py            print the page for the documentation, which docs/build.sh
                            puts beside the others
  conformance.py --check    report each statement that no title of a test names and the
                            section "Not covered" does not excuse, each excuse that is not
                            needed, each title with a statement that does not exist,
                            each with a range, unless it is the range of a table in the same file
                            whose rows begin with the statements, or of a table of conformance.md
                            that the file reads (tables.h), and each that proves once more
                            what another stage owns, unless a row of the section "Owners"
                            says what its program, or folder, adds
  conformance.py --missing  the statements without a test
  conformance.py --results  print, in TAP, for which statements a test has passed in
                            the run of pytest that goes on, whose results.tap is in
                            QHCA_RESULTS: fails for those whose tests were all
                            skipped, or did not run

A test names a statement by its identifier (D-049), in its title or beside the code
that shows it; there also as the ends of a range (A-084..A-089). In the results of a run
there are only titles.
"""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(TOP, 'scripts/check'))
sys.path.append(os.path.join(TOP, 'qemu-device/tests/oracle'))
import results      # noqa: E402  pylint: disable=wrong-import-position
import tables       # noqa: E402  pylint: disable=wrong-import-position

STATEMENTS = 'Documentation/conformance.md'
TESTS = ('selftests', 'qemu-device/tests', 'qemu-device/qtest', 'scripts/check/capture.py')
TABLES = ('A.2', 9), ('A.3', 5), ('B.1', 8)      # with their columns
STAGES = {'engine': ('qemu-device/', 'scripts/check/capture.py'), 'guest': ('selftests/',)}
ID = r'\b([A-K])[-_](\d{3})\b'
STRING = r'"(?:[^"\\\n]|\\.)*"'


def expand(text):
    """The identifiers in a text, ranges filled in."""
    found = set()
    for part in re.finditer(rf'{ID}(?:\.\.{ID})?', text):
        letter, first, letter2, last = part.groups()
        last = last if letter2 == letter else first
        found.update(f'{letter}-{n:03d}' for n in range(int(first), int(last) + 1))
    return found


def read(name):
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


def statements(text):
    """Identifier to (section, what it says), in the order of the document."""
    out, section = {}, ''
    for line in text.split('\n## Decisions')[0].splitlines():
        if line.startswith('## '):
            section = line[3:]
        match = re.match(rf'\| {ID} \| *([^|]*)\|', line)
        if match:
            out[f'{match[1]}-{match[2]}'] = (section, match[3].strip())
    return out


def rows(text, section):
    """The rows of two cells in the tables of a section."""
    for line in text.partition(f'\n## {section}\n')[2].partition('\n## ')[0].splitlines():
        cells = [cell.strip(' `') for cell in line.strip('|').split('|')]
        if len(cells) == 2:
            yield cells


def excuses(text):
    """Identifier to reason, of the table in the section "Not covered"."""
    out = {}
    for first, reason in rows(text, 'Not covered'):
        out.update(dict.fromkeys(expand(first), reason))
    return out


def owners(text):
    """Identifier to the list of its stages, of the first table in the section "Owners"."""
    out = {}
    for stage, ids in rows(text, 'Owners'):
        for key in expand(ids) if stage in STAGES else ():
            out.setdefault(key, []).append(stage)
    return out


def additions(text):
    """Program, or folder, to what it adds to statements of the other stage: the second table."""
    return {name: what for name, what in rows(text, 'Owners') if '/' in name}


def stage_of(name):
    return next(stage for stage, tops in STAGES.items() if name.startswith(tops))


def owned(known, reasons, text, titled):
    """Complaints about owners: of a statement, and of a program that proves it once more."""
    mine, adds, foreign = owners(text), additions(text), {}
    for key in known:
        stages = mine.get(key, [])
        if len(stages) != (key not in reasons):
            yield f'{STATEMENTS}:1: {key}: has {len(stages)} owners'
        elif stages and not any(stage_of(name) in stages for name in titled.get(key, ())):
            yield f'{STATEMENTS}:1: {key}: no title in its stage, {stages[0]}, names it'
        for name in titled.get(key, ()):
            if stages and stage_of(name) not in stages:
                foreign.setdefault(name, []).append(key)
    for name in sorted(name for name in foreign if not name.startswith(tuple(adds))):
        yield f'{name}:1: {", ".join(foreign[name])}: another stage owns this, so ' \
              f'"Owners" in {STATEMENTS} must say what the program adds'
    for top in sorted(top for top in adds if not any(n.startswith(top) for n in foreign)):
        yield f'{STATEMENTS}:1: {top}: names nothing that another stage owns'


def sources():
    """The sources in TESTS, without what a build has left there."""
    for top in TESTS:
        if os.path.isfile(os.path.join(TOP, top)):
            yield top
        for where, below, names in os.walk(os.path.join(TOP, top)):
            below[:] = [name for name in below if name != 'build']
            yield from (os.path.relpath(os.path.join(where, name), TOP) for name in names
                        if re.search(r'\.(c|h|py|sh)$', name))


def titles(name, text):
    """The parts of a file that can be in a title: of C, what is in quotes; of others, what is
    no comment. Code that tests share has no titles."""
    if re.search(r'/(harness|lib)/', name):
        return ''
    if re.search(r'\.[ch]$', name):
        return '\n'.join(re.findall(STRING, text))
    return re.sub(r'(?m)^\s*#.*$', '', text)


def swept(name, text):
    """Each range in a title of a file that sweeps in what none of its rows begins with."""
    begun = {f'{letter}-{number}' for letter, number in re.findall(rf'"{ID}(?!\.\.)', text)}
    if '"tables.h"' in text:
        begun.update(row.id for table, columns in TABLES for row in tables.rows(table, columns))
    for part in re.finditer(rf'{ID}\.\.{ID}', titles(name, text)):
        if not name.endswith('.c') or expand(part[0]) - begun:
            yield part[0]


def naming(part=lambda name, text: text):
    """Identifier to the set of files that name it in that part of them."""
    out = {}
    for name in sources():
        for key in expand(part(name, read(name))):
            out.setdefault(key, set()).add(name)
    return out


def render(known, tests, reasons):
    covered = [key for key in known if key in tests]
    lines = [
        '=====================', 'Conformance: coverage', '=====================', '',
        f'{len(covered)} of the {len(known)} statements of ``conformance.md`` are named by a '
        'test.', '',
        'Not covered', '===========', '',
        '.. list-table::', '   :header-rows: 1', '   :widths: 12 48 40', '',
        '   * - statement', '     - says', '     - why there is no test']
    for key in known:
        if key not in tests:
            lines += [f'   * - {key}', f'     - {escape(known[key][1]) or key}',
                      f'     - {escape(reasons.get(key, "not yet"))}']
    section = None
    for key in covered:
        if known[key][0] != section:
            section = known[key][0]
            lines += ['', section, '=' * len(section), '']
            lines += ['.. list-table::', '   :widths: 12 88', '']
        lines += [f'   * - {key}',
                  '     - ' + ', '.join(f'``{name}``' for name in sorted(tests[key]))]
    return '\n'.join(lines) + '\n'


def escape(text):
    return re.sub(r'([*`_\\])', r'\\\1', text)


def report(known, reasons):
    """TAP, and its sum; the exit status."""
    kinds = {}
    for title, kind in results.read_tap(os.path.join(os.environ['QHCA_RESULTS'], 'results.tap')):
        for key in expand(title):
            kinds.setdefault(key, set()).add(kind)
    wanted = [key for key in known if key not in reasons]
    bad = [key for key in wanted if 'passed' not in kinds.get(key, ())]
    for key in bad:
        seen = ' and '.join(sorted(kinds.get(key, {'not run'})))
        print(f'not ok conformance/{key} # its tests: {seen}')
    print(f'{"" if bad else "ok conformance/statements "}'
          f'# {len(wanted) - len(bad)} of {len(wanted)} statements: tested and passed')
    print(f'{not bad:d} passed, {len(bad)} failed, 0 skipped')
    return 1 if bad else 0


def main():
    text = read(STATEMENTS)
    known, reasons = statements(text), excuses(text)
    tests = {key: names for key, names in naming().items() if key in known}
    missing = [key for key in known if key not in tests]

    if '--results' in sys.argv:
        return report(known, reasons)
    if '--missing' in sys.argv:
        print('\n'.join(missing))
        return 0
    if '--check' not in sys.argv:
        print(render(known, tests, reasons), end='')
        return 0

    titled = naming(titles)
    wrong = [f'{name}:1: {part}: a range in a title, which not all of its rows begin with'
             for name in sources() for part in swept(name, read(name))]
    wrong += [f'{name}:1: {key}: no such statement'
              for key in sorted(set(titled) - set(known)) for name in sorted(titled[key])]
    wrong += [f'{STATEMENTS}:1: {key}: no title of a test names it, and no reason is given'
              for key in known if key not in titled and key not in reasons]
    wrong += [f'{STATEMENTS}:1: {key}: "Not covered" excuses it, but a test names it'
              for key in reasons if key in tests]
    wrong += [f'{STATEMENTS}:1: {key}: excused or owned, but no statement'
              for key in [*reasons, *owners(text)] if key not in known]
    wrong += owned(known, reasons, text, titled)
    print('\n'.join(wrong), end='\n' if wrong else '')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
