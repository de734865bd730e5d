#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check the order of the engine's rooms, qemu-device/engine/ROOM/, and of the drivers' files.

  rooms.py        print every include or call that leads down the list

A room may use itself and the rooms above it; some do not know each other. Includes
are read, calls are seen by compiling (callgraph.py), also calls by pointer. There is no recursion:
no function can be reached from itself. Following a QP through its turn takes no more visits than
before. The tests enter by engine.h and debug.h alone. Exported names of a room begin with vhca_,
so none is also a name in the drivers.

The Makefiles of qhca.ko and qhca_ib.ko list their files so that each calls only those before it.
"""

import glob
import os
import re
import sys
import tempfile

import callgraph

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENGINE = os.path.join(TOP, 'qemu-device/engine')
TESTS = os.path.join(TOP, 'qemu-device/tests')
COMMON = os.path.join(TOP, 'qemu-device/common')
DRIVERS = {'qhca': os.path.join(TOP, 'drivers/net/ethernet/qhca'),
           'qhca_ib': os.path.join(TOP, 'drivers/infiniband/hw/qhca')}
# From the bottom layer up; Documentation/architecture.rst says what each is for.
ROOMS = ('.', 'wire', 'core', 'save', 'rules', 'memory', 'events', 'port', 'congestion',
         'qp', 'rq', 'requester', 'responder', 'eth', 'steering', 'link', 'verbs', 'driver',
         'device')
# Headers that QEMU and the tests may include.
PUBLIC = {'engine.h', 'trace.def'}
# The build writes these for the tests (oracle/tables_h.py).
WRITTEN = {'tables.h'}
# Pointers by which a room calls what it does not know: timers that are due, which only the run
# loop asks for, and what a saved state consists of.
DOORS = {'fn', 'walk_one', 'enlist', 'number', 'find'}
# How many visits to functions, in how many files, a walk from there may take (callgraph.py): lower
# them when the way has become shorter.
WALKS = {'vhca_link_turn': (322, 33)}
STRANGERS = {('responder', 'requester'), ('eth', 'requester'), ('eth', 'responder'),
             ('link', 'eth')}


def may_use(room, other):
    return other in ROOMS and ROOMS.index(other) <= ROOMS.index(room) and \
        (room, other) not in STRANGERS


def sources(room, kind):
    return sorted(glob.glob(os.path.join(ENGINE, room, f'*.{kind}')))


def lines(path):
    with open(path, encoding='utf-8') as file:
        return list(enumerate(file, 1))


def upward_includes(room):
    """Lines of includes that lead to a room further down."""
    wrong = []
    for path in sources(room, 'c') + sources(room, 'h'):
        for number, line in lines(path):
            match = re.match(r'#include "([^"]+)"', line)
            if not match or match[1].startswith('qhca/'):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
            where = os.path.relpath(os.path.dirname(target), ENGINE)
            if not may_use(room, where):
                wrong.append(f'{os.path.relpath(path, TOP)}:{number}: {room} includes '
                             f'{match[1]}')
    return wrong


def side_doors():
    """Lines of the tests that include one of the engine's headers past debug.h."""
    wrong = []
    for path in sorted(glob.glob(os.path.join(TESTS, '**/*.[ch]'), recursive=True)):
        if os.path.basename(path) == 'debug.h':
            continue
        for number, line in lines(path):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match or match[1].startswith('qhca/') or match[1] in PUBLIC | WRITTEN:
                continue
            own = (os.path.normpath(os.path.join(start, match[1]))
                   for start in (os.path.dirname(path), TESTS))
            if not any(o.startswith((TESTS, COMMON)) and os.path.exists(o) for o in own):
                wrong.append(f'{os.path.relpath(path, TOP)}:{number}: {match[1]} of the '
                             'engine comes by debug.h')
    return wrong


def calls(graph):
    """Calls that lead down the list, by pointer or not, and functions that can meet again."""
    wrong = []
    for one, other, pointer in graph.edges():
        room, its = (os.path.dirname(graph.file[function]) for function in (one, other))
        if pointer in DOORS or may_use(room, its):
            continue
        by = f' by {pointer}' if pointer else ''
        wrong.append(f'qemu-device/engine/{graph.file[one]}:1: {one}() calls {other}(){by}')
    wrong += ['qemu-device/engine/' + graph.file[cycle[0]] + ':1: can call themselves: ' +
              ', '.join(sorted(cycle)) for cycle in graph.cycles()]
    return sorted(wrong)


def walks(graph):
    """Walks that take more visits, or lead to more files, than they may."""
    wrong = []
    for start, (visits, files) in WALKS.items():
        found, where = graph.walk(start)
        if found > visits or len(where) > files:
            wrong.append(f'qemu-device/engine/{graph.file[start]}:1: {start}() leads to {found} '
                         f'visits in {len(where)} files, not {visits} in {files}')
    return wrong


def names():
    """Lines of the rooms with a name that is neither theirs, vhca_, nor of the interfaces."""
    pattern, known = re.compile(r'\bqhca_\w+'), set()
    for path in glob.glob(os.path.join(TOP, 'include/qhca/*')) + sources('.', 'h'):
        known.update(word for _, line in lines(path) for word in pattern.findall(line))
    return [f'{os.path.relpath(path, TOP)}:{number}: {word} without the vhca_ of the rooms'
            for path in sources('*', 'c') + sources('*', 'h') for number, line in lines(path)
            for word in pattern.findall(line) if word not in known]


def driver_calls(module, folder):
    """Lines of a module that name a function of a file further down in its Makefile."""
    with open(os.path.join(folder, 'Makefile'), encoding='utf-8') as file:
        objects = ' '.join(re.findall(rf'^{module}-\S+ \S= (.*)', file.read(), re.M))
    order, code, owner = objects.replace('.o', '.c').split(), {}, {}
    for place, name in enumerate(order):
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            # Without comments, but with their lines.
            code[name] = re.sub(r'/\*.*?\*/', lambda m: '\n' * m[0].count('\n'), file.read(),
                                flags=re.S)
        for match in re.finditer(r'^(?!static)[a-z_][\w ]*[ *](\w+)\(', code[name], re.M):
            owner[match[1]] = place
    return [f'{os.path.relpath(folder, TOP)}/{name}:{number}: uses {word}() of '
            f'{order[owner[word]]}'
            for place, name in enumerate(order)
            for number, line in enumerate(code[name].splitlines(), 1)
            for word in re.findall(r'\w+', line) if owner.get(word, place) > place]


def main():
    folders = {os.path.basename(os.path.dirname(path + '/'))
               for path in glob.glob(os.path.join(ENGINE, '*')) if os.path.isdir(path)}
    wrong = [f'qemu-device/engine/{name}:1: a room that is not in the order'
             for name in sorted(folders - set(ROOMS))]
    for room in ROOMS:
        wrong += upward_includes(room)
    wrong += side_doors()
    wrong += names()
    for module, folder in DRIVERS.items():
        wrong += driver_calls(module, folder)
    with tempfile.TemporaryDirectory() as scratch:
        graph = callgraph.Graph(ENGINE, os.path.join(TOP, 'include'), scratch)
    wrong += calls(graph) + walks(graph)
    print('\n'.join(wrong), end='\n' if wrong else '')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
