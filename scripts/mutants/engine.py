#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Mutants of the engine, with its own tests as proofs: see scripts/mutants.sh.

TREE is a copy of qemu-device and include, which is changed.
"""

import glob
import json
import os
import re
import subprocess
import sys

import matrix
import plant

# Tests that read sources, or count bytes.
OTHERS = ('test_listed', 'test_contract', 'lean')


def build(args, here):
    engine, tests = f'{args.tree}/qemu-device/engine', f'{args.tree}/qemu-device/tests'
    flags = ['-std=c11', '-D_DEFAULT_SOURCE', f'-I{args.tree}/include', f'-I{engine}']
    header = f'{here}/mutant.h'
    units = {os.path.realpath(p): flags for p in sorted(glob.glob(f'{engine}/*/*.c'))}
    plant.plant(args, engine, units, ['gcc', '-include', header])
    if not os.path.exists(f'{tests}/build/build.ninja'):
        subprocess.run(['gcc', '-O1', '-c', f'{here}/mutant.c', '-o', f'{tests}/mutant.o'],
                       check=True)
        subprocess.run(['meson', 'setup', f'-Dc_args=-include {header} -w', '-Dwerror=false',
                        f'-Dc_link_args={tests}/mutant.o', '-Dwarning_level=0',
                        f'-Db_sanitize={"address,undefined" if args.checked else "none"}',
                        f'{tests}/build', tests], check=True, stdout=subprocess.DEVNULL)
    return f'{tests}/build'


def asked(args, build_dir):
    """The proofs that args.proofs wants, without those for --long unless it is set, built."""
    found = [p for p in proofs(build_dir) if re.search(args.proofs, p.name) and
             (args.long or not p.again)]
    programs = {word.removeprefix('build/') for p in found for word in p.command
                if word.startswith('build/')}
    subprocess.run(['ninja', '-C', build_dir, '--quiet', f'-j{args.jobs}', *sorted(programs)],
                   check=True)
    return found


def proofs(build_dir):
    """Return the tests that meson would run, without tap.py around them."""
    tests = json.loads(subprocess.run(['meson', 'introspect', '--tests', build_dir], check=True,
                                      stdout=subprocess.PIPE).stdout)
    for test in tests:
        if test['name'] in OTHERS or any(s.endswith('nightly') for s in test['suite']):
            continue
        command = test['cmd'][test['cmd'].index('--limit') + 2:]
        env = {key: value for key, value in test['env'].items() if key != 'MESON_TEST_ITERATION'}
        again = ' ' in test['name'] or any(s.endswith('long') for s in test['suite'])
        yield matrix.Proof(test['name'], command, env, test['workdir'], again)


def main():
    args = plant.arguments(__doc__)
    build_dir = build(args, os.path.dirname(os.path.abspath(__file__)))
    table = matrix.Matrix(args.tree, plant.planted(args.tree), args.jobs, args)
    table.baseline(asked(args, build_dir))
    return 1 if table.run(args.minutes) else 0


if __name__ == '__main__':
    sys.exit(main())
