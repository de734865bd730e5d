# SPDX-License-Identifier: GPL-2.0
"""Draws mutants and writes them into a copy of the sources."""

import argparse
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import matrix
import page
import sites as places


def name(site):
    """Eight digits that stay the same while the function does."""
    return site.order('name')[:8]


def refused(path, compiler):
    """The lines that the compiler does not accept: {(path, line)}."""
    run = subprocess.run([*compiler, '-fsyntax-only', '-w', path], text=True, check=False,
                         stderr=subprocess.PIPE)
    found = re.findall(r'^(\S+):(\d+):\d+: error', run.stderr, re.M)
    if run.returncode and not found:
        raise RuntimeError(run.stderr)
    return {(os.path.realpath(file), int(line)) for file, line in found}


def write(sources, drawn, compilers):
    """Plant @drawn; what does not compile is left out. Returns what is planted, by number.

    @compilers: {path: command} for each file that can be compiled by itself.
    """
    numbers = {site.key: n for n, site in enumerate(drawn, 1)}
    by_path = {}
    for site in drawn:
        by_path.setdefault(site.path, []).append(site)
    changed = set(by_path)
    while changed:
        text = {}
        for path, mine in by_path.items():
            text[path] = places.plant(sources[path], mine, numbers).decode()
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text[path])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            bad = set().union(*pool.map(lambda p: refused(p, compilers[p]), compilers))
        wrong = {int(n) for path, line in bad for n in
                 re.findall(r'MUTANT\((\d+)\)', text.get(path, '\n' * line).split('\n')[line - 1])}
        if bad and not wrong:
            raise RuntimeError(f'without a mutant these do not compile: {bad}')
        changed = wrong
        for path, mine in by_path.items():
            by_path[path] = [site for site in mine if numbers[site.key] not in wrong]
    return {numbers[site.key]: site for mine in by_path.values() for site in mine}


def arguments(doc, *more):
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tree', metavar='TREE')
    for name in more:
        parser.add_argument(name, metavar=name.upper())
    parser.add_argument('--count', type=int, default=1000, help='so many mutants (1000)')
    parser.add_argument('--seed', default='1', help='which ones')
    parser.add_argument('--again', metavar='SUITE', help='those of this suite that live')
    parser.add_argument('--only', default='', help='only those whose path|function|operator|text '
                        'matches this pattern')
    parser.add_argument('--minutes', type=float, default=600, help='ends after so many')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--checked', action='store_true', help='with sanitizers (engine)')
    matrix.options(parser)
    return parser.parse_args()


def planted(tree):
    with open(f'{tree}/mutants.json', encoding='utf-8') as file:
        return json.load(file)['mutants']


def plant(args, top, units, compiler):
    """Change the files below @top, if that has not been done. @units: {path: arguments}."""
    if os.path.exists(f'{args.tree}/mutants.json'):
        return
    sources, found = places.find(top, units)
    plan = {'of': len(found), 'seed': args.seed}
    drawn = sorted((s for s in found if re.search(args.only, s.key)),
                   key=lambda s: s.order(args.seed))
    if args.again:
        live = page.live(args.again)
        plan['gone'] = sorted(live - set(map(name, found)))
        drawn = [s for s in drawn if name(s) in live]
    else:
        drawn = drawn[:args.count]
    chosen = write(sources, drawn, {path: [*compiler, *flags] for path, flags in units.items()})
    plan['mutants'] = [{'n': n, 'name': name(s), 'path': os.path.relpath(s.path, top),
                        'line': s.line, 'function': s.function, 'operator': s.operator,
                        'text': s.text} for n, s in sorted(chosen.items())]
    with open(f'{args.tree}/mutants.json', 'w', encoding='utf-8') as file:
        json.dump(plan, file, indent=0)
