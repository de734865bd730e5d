#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Keep what the matrices say, and say it in Documentation/mutants.rst.

  page.py keep SUITE RESULTS
        write Documentation/mutants/SUITE.txt from what a run has left in the directory
        RESULTS so far; a run of --again changes the lines of its mutants
  page.py
        write the tables of the page from these files and from equivalent.txt, which has the
        names of mutants that change nothing, and why
"""

import itertools
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
DATA = f'{TOP}/Documentation/mutants'
PAGE = f'{TOP}/Documentation/mutants.rst'
MARK = '.. Below is what scripts/mutants.sh page writes.\n'
TEXT = 70


def read(suite):
    """The first line of a kept file, and the others."""
    with open(f'{DATA}/{suite}.txt', encoding='utf-8') as file:
        head, *lines = file.read().splitlines(keepends=True)
    return head, lines


def equivalent():
    """{name: why it changes nothing}."""
    with open(f'{HERE}/equivalent.txt', encoding='utf-8') as file:
        return {line[:8]: line[9:].strip() for line in file if re.match(r'[0-9a-f]{8} ', line)}


def live(suite):
    """The names of mutants that nothing has caught and that no line of equivalent.txt explains."""
    names = {line[:8] for line in read(suite)[1] if line.endswith('\t\n')}
    return names - set(equivalent())


def merge(kept, new, gone):
    """The lines of @kept without the mutants @gone, whose code is no longer there, and
    with what is in @new of the mutants that it has caught."""
    caught = {line[:8]: line for line in new if not line.endswith('\t\n')}
    return [caught.get(line[:8], line) for line in kept if line[:8] not in gone]


def keep(suite, where):
    """One line for each mutant: name, place, operator, text, and what has caught it.

    They were drawn in the order in which they run, so those that have run are drawn as well.
    """
    with open(f'{where}/mutants.json', encoding='utf-8') as file:
        plan = json.load(file)
    with open(f'{where}/results.json', encoding='utf-8') as file:
        results = {row['name']: row for row in map(json.loads, file)}
    with open(f'{where}/proofs.json', encoding='utf-8') as file:
        proofs = [row for row in json.load(file).values() if not row[1]]
    ran = list(itertools.takewhile(lambda m: m['name'] in results, plan['mutants']))
    words = (f'by seed {plan["seed"]}; {len(proofs)} programs with '
             f'{sum(row[2] for row in proofs)} tests')
    lines = []
    for mutant in sorted(ran, key=lambda m: (m['path'], m['function'], m['name'])):
        by = ' '.join(f'{proof.replace(" ", "_")}:{",".join(map(str, fails))}'
                      for proof, fails in results[mutant['name']]['by'].items())
        text = mutant['text'] if len(mutant['text']) <= TEXT else mutant['text'][:TEXT - 1] + '…'
        lines.append('\t'.join((mutant['name'], f'{mutant["path"]}:{mutant["function"]}',
                                mutant['operator'], text, by)) + '\n')
    if 'gone' in plan:
        head, kept = read(suite)
        lines = merge(kept, lines, plan['gone'])
        words = re.search(r'by seed .*', head)[0]   # more proofs than this run has asked
    os.makedirs(DATA, exist_ok=True)
    with open(f'{DATA}/{suite}.txt', 'w', encoding='utf-8') as file:
        file.write(f'# {len(lines)} of {plan["of"]} mutants {words}\n')
        file.writelines(lines)


def table(heads, rows):
    def line(row):
        return ', '.join('"' + str(cell).replace('"', '""') + '"' for cell in row)
    return ['.. csv-table::\n', f'   :header: {line(heads)}\n', '\n',
            *(f'   {line(row)}\n' for row in rows), '\n']


def percent(part, whole):
    return f'{100 * part / whole:.0f} %' if whole else ''


def suite_section(suite, same):
    head, lines = read(suite)
    rooms, alone, lives = {}, {}, []
    for line in lines:
        mutant, place, operator, text, by = line.rstrip('\n').split('\t')
        room = rooms.setdefault(place.rpartition('/')[0] or place.partition(':')[0], [0, 0, 0])
        proofs = by.split()
        room[0] += 1
        room[1] += bool(proofs)
        if len(proofs) == 1:
            proof = proofs[0].partition(':')[0]
            alone[proof] = alone.get(proof, 0) + 1
        elif not proofs and mutant in same:
            room[2] += 1
        elif not proofs:
            lives.append((mutant, place, operator, f'``{text}``'))
    title = suite.capitalize()
    total = [sum(r[i] for r in rooms.values()) for i in range(3)]
    out = [f'{title}\n', '=' * len(title) + '\n', '\n', head.strip('# \n') + '.\n', '\n']
    out += table(('room', 'mutants', 'caught', 'change nothing', 'caught of the others'),
                 [(room, *counts, percent(counts[1], counts[0] - counts[2]))
                  for room, counts in [*sorted(rooms.items()), ('all', total)]])
    if sum(alone.values()) < total[1]:      # where more than one has been asked for
        named = sorted(alone.items(), key=lambda a: -a[1])
        out += ['Proofs that alone catch so many: ' +
                ', '.join(f'``{proof}`` {n}' for proof, n in named) + '.\n', '\n']
    if lives:
        out += ['Not caught:\n', '\n', *table(('mutant', 'where', 'operator', 'text'), lives)]
    return out


def page():
    with open(PAGE, encoding='utf-8') as file:
        words = file.read().partition(MARK)[0]
    out = [words, MARK, '\n']
    for name in sorted(os.listdir(DATA)):
        out += suite_section(name.removesuffix('.txt'), equivalent())
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(''.join(out).rstrip('\n') + '\n')


if __name__ == '__main__':
    if sys.argv[1:2] == ['keep']:
        keep(*sys.argv[2:])
    else:
        page()
