# SPDX-License-Identifier: GPL-2.0
"""The results as text and as CSV."""

import csv
import os

from .figures import UNITS
from .results import Key, headline

VERDICT = {True: 'met', False: 'missed', None: 'not measured'}


def number(value):
    """With three digits or all before the point."""
    if value is None:
        return '-'
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f'{value:,.{digits}f}'


def cells(results, row):
    """One line of the headline table, as texts."""
    mine, theirs, ratio, met = headline(results, row)
    other = row.other if not row.other_x else f'{row.other}, {row.other_x} QP'
    sign = '≥' if row.other else '≤'
    text = [row.where, row.title, UNITS[row.series], number(mine),
            f'{number(theirs)} ({other})' if row.other else '']
    if ratio:
        spread = f'{number(ratio.least)} … {number(ratio.most)}'
        text += [number(ratio.median) if row.other else '', spread, str(ratio.rounds)]
    else:
        text += ['-', '', '0']
    return text + ([f'{sign} {row.target:g}', VERDICT[met]] if row.target else ['', ''])


HEADER = ['machines', 'what', 'unit', 'qhca', 'against', 'ratio', 'range', 'rounds', 'target', '']


def table(results, rows):
    """Aligned columns; figures to the right."""
    lines = [HEADER] + [cells(results, row) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    right = (3, 4, 5, 7)
    return '\n'.join('  '.join(
        text.rjust(width) if column in right else text.ljust(width)
        for column, (text, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def rivals(results, rows):
    """List the rounds that rivals spoilt, and the rows they left without any."""
    lines = [f'discarded: {where}: round {number + 1} of {measurement}: {why}'
             for (where, measurement, _), rounds in results.lost.items()
             for number, why in sorted(rounds.items())]
    for row in rows:
        lost = results.lost.get((row.where, row.measurement, row.other))
        if lost and not headline(results, row)[2]:
            lines.append(f'not measured: {row.where}: {row.title}: no round has a figure of '
                         f'{row.other}: {lost[max(lost)]}')
    return lines


def remarks(results, rows, conditions):
    """Remarks that a reader of the table needs."""
    lines = [f'{results.discarded()} of {len(results.stolen)} rounds were discarded, because '
             'more than 1 % of their CPU time was stolen.']
    lines += [f'failed: {text}' for text in results.failures]
    return '\n'.join([conditions] + lines + rivals(results, rows))


def write_samples(path, results):
    """One line for each figure."""
    with open(path, 'w', newline='', encoding='utf-8') as file:
        out = csv.writer(file)
        out.writerow(['machines', 'measurement', 'subject', 'series', 'x', 'unit', 'round',
                      'value', 'stolen', 'counts'])
        for key, values in results.values.items():
            for round_number, value in values.items():
                stolen = results.stolen.get((key.where, key.measurement, round_number), 0)
                out.writerow([key.where, key.measurement, key.subject, key.series, key.x,
                              UNITS[key.series], round_number, f'{value:.6g}', f'{stolen:.4f}',
                              int(results.counts(key.where, key.measurement, round_number))])


def read_samples(path, results):
    """Read the file of write_samples()."""
    with open(path, newline='', encoding='utf-8') as file:
        for row in csv.DictReader(file):
            key = Key(row['machines'], row['measurement'], row['subject'], row['series'],
                      int(row['x']))
            results.add(key, int(row['round']), float(row['value']))
            results.steal(key.where, key.measurement, int(row['round']), float(row['stolen']))


def write_headline(path, results, rows):
    with open(path, 'w', newline='', encoding='utf-8') as file:
        out = csv.writer(file)
        out.writerow(['machines', 'what', 'unit', 'qhca', 'against', 'value', 'ratio', 'least',
                      'most', 'rounds', 'target', 'met'])
        for row in rows:
            mine, theirs, ratio, met = headline(results, row)
            spread = (ratio.median, ratio.least, ratio.most, ratio.rounds) if ratio else ()
            out.writerow([row.where, row.title, UNITS[row.series], mine, row.other, theirs,
                          *(spread or ('', '', '', 0)), row.target,
                          '' if met is None else int(met)])


def write(directory, results, rows, conditions):
    """All of it; returns the text."""
    write_samples(os.path.join(directory, 'samples.csv'), results)
    write_headline(os.path.join(directory, 'headline.csv'), results, rows)
    text = f'{table(results, rows)}\n\n{remarks(results, rows, conditions)}\n'
    with open(os.path.join(directory, 'headline.txt'), 'w', encoding='utf-8') as file:
        file.write(text)
    return text
