#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Who calls whom in the engine, calls by pointer included. Used by rooms.py.

  callgraph.py walk FUNCTION      where its last argument leads a reader

The compiler's assembly says which functions one calls and whose addresses it takes, its first
dump by which member of a structure, or by which array, it calls a pointer. Such a call may
reach all functions in constants of a structure with that member. If some structure with
it has no constants it may reach all whose addresses are taken in code.

A visit of a walk is a call that hands on the argument, or a pointer out of it, from a function
that is visited; each call in the text counts once.
"""

import glob
import graphlib
import os
import re
import subprocess
import sys
import tempfile

# Of the engine's user: what these call is not the engine.
OUTSIDE = 'qhca_engine_ops'


class Graph:
    """Functions are names; those that only one file sees are FILE:NAME."""

    def __init__(self, engine, include, scratch):
        self.calls = {}     # function: those it calls
        self.by = {}        # function: members and arrays that it calls by
        self.takes = set()  # functions whose addresses are taken in code
        self.constants = {}     # name: functions in it
        self.type = {}      # name of a constant: its structure
        self.members = {}   # member that points to a function: its structures
        self.named = {}     # function: members that constants name it by
        self.file = {}      # function: the file that is compiled
        self.body = {}      # function: its file, its parameters, its statements
        self.include, self.scratch = include, scratch
        for path in sorted(glob.glob(os.path.join(engine, '**/*.[ch]'), recursive=True)):
            with open(path, encoding='utf-8') as file:
                self.read_types(file.read())
        for path in sorted(glob.glob(os.path.join(engine, '*/*.c'))):
            self.read_code(path, os.path.relpath(path, engine))

    def read_types(self, text):
        for name, body in re.findall(r'^struct (\w+) \{\n(.*?)^\}', text, re.M | re.S):
            for member in re.findall(r'\(\*(\w+)\)\(', body):
                self.members.setdefault(member, set()).add(name)
        for name, const in re.findall(r'^\s*(?:static )?const struct (\w+) (\w+)(?:\[.*\])? =',
                                      text, re.M):
            self.type[const] = name
        # A structure without a name of its own goes by its constant.
        for body, const in re.findall(r'^\s*(?:static )?const struct \{\n(.*?)^\s*\} (\w+)\[',
                                      text, re.M | re.S):
            for member in re.findall(r'\(\*(\w+)\)\(', body):
                self.members.setdefault(member, set()).add(const)
                self.type[const] = const

    def read_code(self, path, where):
        out = os.path.join(self.scratch, 'o')
        subprocess.run(['gcc', '-std=gnu11', '-O0', '-I' + self.include, '-S', '-o', out + '.s',
                        '-fdump-tree-original=' + out + '.dump',
                        '-fdump-tree-gimple-lineno=' + out + '.gimple', path], check=True)
        with open(out + '.s', encoding='utf-8') as file:
            text = file.read()
        shared = set(re.findall(r'^\s+\.globl\s+(\w+)', text, re.M))
        functions = set(re.findall(r'^\s+\.type\s+(\w+), @function', text, re.M))

        def name(symbol):
            return f'{where}:{symbol}' if symbol in functions - shared else symbol

        self.file.update({name(function): where for function in functions})
        with open(path, encoding='utf-8') as file:
            for member, function in re.findall(r'\.(\w+) = (\w+)', file.read()):
                self.named.setdefault(name(function), set()).add(member)
        self.read_assembly(text, functions, name)
        with open(out + '.dump', encoding='utf-8') as file:
            self.read_dump(file.read(), name)
        with open(out + '.gimple', encoding='utf-8') as file:
            self.read_gimple(file.read(), name)

    def read_assembly(self, text, functions, name):
        for label, body in re.findall(r'^(\w[\w.]*):\n(.*?)(?=^\w[\w.]*:\n|\Z)', text,
                                      re.M | re.S):
            if label in functions:
                self.calls[name(label)] = set(map(name, re.findall(r'\scall\s+(\w+)', body)))
                self.takes |= set(map(name, re.findall(
                    r'\s(?:lea|mov)q?\s+\$?(\w+)(?:@GOTPCREL)?(?:\(%rip\))?,', body)))
            else:
                # The compiler numbers those that are inside a function.
                self.constants.setdefault(label.split('.')[0], set()).update(
                    map(name, re.findall(r'\s\.quad\s+(\w+)', body)))

    def read_dump(self, text, name):
        parts = re.split(r'^;; Function (\w+) \(.*\)$', text, flags=re.M)
        for function, body in zip(parts[1::2], parts[2::2]):
            by = set(re.findall(r'(?:->|\.)(\w+)\)* \(', body)) & set(self.members)
            by |= set(re.findall(r'(\w+)\[[^]]*\]\)* \(', body)) & set(self.constants)
            if by:
                self.by.setdefault(name(function), set()).update(by)

    def read_gimple(self, text, name):
        for function, params, file, body in re.findall(
                r'^(?:\w[^(\n]*[ *])?(\w+) \((.*)\)\n\[([^:]+):[\d:]+\] \{\n((?s:.*?))^\}', text,
                re.M):
            # Those of a parameter that is a function itself are not its parameters.
            params = [(p.rpartition(' ')[2], '*' in p)
                      for p in re.sub(r'\(\*\S+\) \(.*?\)', '*', params).split(', ')]
            body = re.sub(r'\[[^]:]+:\d+:\d+[^]]*\] ', '', body).splitlines()
            self.body[name(function)] = os.path.normpath(file), params, body

    def reached_by(self, pointer):
        """The functions that a call by a member, or by an array, may reach."""
        types = self.members.get(pointer, set()) - {OUTSIDE}
        reached = set() if types else set(self.constants.get(pointer, ()))
        for const, type_ in self.type.items():
            if type_ in types:
                reached |= self.constants.get(const, set())
        if types - set(self.type.values()):
            reached |= self.takes
        return {function for function in reached if function in self.file and
                pointer in self.named.get(function, {pointer})}

    def edges(self):
        """Pairs of functions, and the member or array by which the first calls the second."""
        for function, callees in self.calls.items():
            yield from ((function, c, None) for c in callees if c in self.file)
        for function, members in self.by.items():
            for member in members:
                yield from ((function, c, member) for c in self.reached_by(member))

    def cycles(self):
        """Functions that can call each other, one set for each cycle found."""
        after, found = {}, []
        for one, other, _ in self.edges():
            after.setdefault(one, set()).add(other)
        while True:
            try:
                graphlib.TopologicalSorter(after).prepare()
                return found
            except graphlib.CycleError as error:
                found.append(error.args[1][1:])
                for others in after.values():
                    others.difference_update(found[-1])

    def handed_on(self, function, places):
        """Calls in it with pointers out of its parameters at @places: callees, and where."""
        _, params, body = self.body[function]
        ours, member = {params[place][0] for place in places}, {}
        for line in body:
            call = re.match(r'\s*(?:.+ = )?(\w+) \((.*)\)[^()]*;$', line)
            value = re.match(r'\s*(\w+) = .*?([A-Za-z_]\w*)(.*);$', line)
            if call:
                args = [set(re.findall(r'\w+', re.split(r'->|\.', a)[0]))
                        for a in call[2].split(', ')]
                where = [i for i, arg in enumerate(args) if arg & ours]
                called = member.get(call[1], call[1])
                for callee in self.callees(function, called) if where else ():
                    pointers = tuple(i for i in where if self.takes_pointer(callee, i))
                    if pointers:
                        yield callee, pointers
            elif value:
                member[value[1]] = (re.findall(r'(?:->|\.)(\w+)$', value[3]) or [value[2]])[0]
                if value[2] in ours:
                    ours.add(value[1])

    def callees(self, function, called):
        own = f'{self.file[function]}:{called}'
        if own in self.body or called in self.body:
            return [own if own in self.body else called]
        return sorted(self.reached_by(called)) if called in self.by.get(function, ()) else []

    def takes_pointer(self, function, place):
        params = self.body[function][1]
        return place < len(params) and params[place][1]

    def walk(self, function):
        """Number of visits from @function on, and the files with their functions."""
        found, places = {}, {}
        todo = [(function, (len(self.body[function][1]) - 1,))]
        while todo:
            function, new = todo.pop()
            # A function of a header is the same one in each file.
            one = self.body[function][0], function.rpartition(':')[2]
            if one in found and places[one].issuperset(new):
                continue
            places[one] = places.get(one, set()) | set(new)
            found[one] = list(self.handed_on(function, places[one]))
            todo += found[one]
        return sum(map(len, found.values())), sorted({file for file, _ in found})


def main():
    if len(sys.argv) != 3 or sys.argv[1] != 'walk':
        sys.exit(__doc__)
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
    with tempfile.TemporaryDirectory() as scratch:
        visits, files = Graph('qemu-device/engine', 'include', scratch).walk(sys.argv[2])
    print(*files, f'{visits} visits in {len(files)} files', sep='\n')


if __name__ == '__main__':
    main()
