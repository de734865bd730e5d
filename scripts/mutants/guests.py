#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Mutants of the drivers or of the provider, whose proofs run in a guest (guest.py).

TREE has a copy of the repository in repo/, which is changed. It is what the modules in
BUILT, or rdma-core with the provider there, were made from: their build says how the
compiler is called.
"""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import plant

KEPT = ('-I', '-D', '-include', '-idirafter', '-isystem', '-nostdinc', '-std=')
KERNEL = 'drivers/net/ethernet/qhca'


def kept(words, directory):
    """Of @words those that a parser needs; relative directories are in @directory."""
    words = iter(words)
    for word in words:
        if word in ('-include', '-idirafter', '-isystem'):
            yield from (word, next(words))
        elif word.startswith('-I'):
            yield '-I' + os.path.normpath(os.path.join(directory, word[2:]))
        elif word.startswith(KEPT):
            yield word


def kernel_units(built, repo):
    found = {}
    for path in glob.glob(f'{built}/drivers/**/.*.o.cmd', recursive=True):
        with open(path, encoding='utf-8') as file:
            line = file.readline()
        source = re.search(r' -o \S+\.o (\S+\.c)\s*;?\s*$', line)
        if source and not source[1].endswith('.mod.c'):
            kdir = re.search(r'/usr/src/linux-headers-\S+?-common', line)[0]
            kdir = glob.glob(kdir.replace('-common', '-amd64'))[0]
            ours = source[1].replace(built, repo)
            if not os.path.exists(ours):        # mutant.c of the last run
                continue
            args = kept(shlex.split(line.split(':=', 1)[1]), kdir)
            found[ours] = [*(a.replace(built, repo) for a in args), '-w']
    return found


def provider_units(built, repo):
    table = json.loads(subprocess.run(['ninja', '-C', f'{built}/build', '-t', 'compdb'],
                                      stdout=subprocess.PIPE, check=True).stdout)
    found = {}
    for row in table:
        path = os.path.normpath(os.path.join(row['directory'], row['file']))
        if '/providers/qhca/' in path and path.endswith('.c'):
            args = kept(shlex.split(row['command']), row['directory'])
            ours = f'{repo}/providers/qhca/{os.path.basename(path)}'
            if not os.path.exists(ours):        # mutant.c of the last run
                continue
            found[ours] = [*args, f'-I{repo}/include', '-w']
    return found


def append(path, text):
    with open(path, 'a', encoding='utf-8') as file:
        file.write(text)


def replace(path, old, new):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    if old not in text:
        raise RuntimeError(f'{path}: no {old}')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text.replace(old, new, 1))


def plant_kernel(args, here, repo, built):
    plant.plant(args, f'{repo}/drivers', kernel_units(built, repo),
                ['gcc', '-include', f'{here}/mutant.h'])
    shutil.copy(f'{here}/mutant_kernel.c', f'{repo}/{KERNEL}/mutant.c')
    shutil.copy(f'{here}/mutant.h', f'{repo}/include/compat/')
    append(f'{repo}/{KERNEL}/Makefile', 'qhca-y += mutant.o\n')
    append(f'{repo}/Kbuild',
           'subdir-ccflags-y += -include $(QHCA_TOP)/include/compat/mutant.h -w\n')


def plant_provider(args, here, repo, built):
    plant.plant(args, f'{repo}/providers/qhca', provider_units(built, repo),
                ['gcc', '-include', f'{here}/mutant.h'])
    for name in ('mutant.c', 'mutant.h'):
        shutil.copy(f'{here}/{name}', f'{repo}/providers/qhca/')
    replace(f'{repo}/providers/qhca/CMakeLists.txt', '  ah.c\n', '  ah.c\n  mutant.c\n')
    replace(f'{repo}/providers/qhca/CMakeLists.txt', 'rdma_provider(',
            'add_compile_options(-include ${CMAKE_CURRENT_SOURCE_DIR}/mutant.h -w)\n'
            'rdma_provider(')


def main():
    args = plant.arguments(__doc__, 'suite', 'built')
    here = os.path.dirname(os.path.abspath(__file__))
    if not os.path.exists(f'{args.tree}/mutants.json'):
        {'drivers': plant_kernel, 'provider': plant_provider}[args.suite](
            args, here, f'{args.tree}/repo', args.built)
    return 0


if __name__ == '__main__':
    sys.exit(main())
