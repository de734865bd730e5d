# SPDX-License-Identifier: GPL-2.0
"""Who calls whom in the engine, calls by pointer included. Used by rooms.py.

The compiler's assembly says which functions one calls and whose addresses it takes, its first
dump by which member of a structure, or by which array, it calls a pointer. Such a call may
reach all functions in constants of a structure with that member. If some structure with
it has no constants it may reach all whose addresses are taken in code.
"""

import glob
import graphlib
import os
import re
import subprocess

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
        self.file = {}      # function: where it is
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
        # A structure without a name of its own is that of its constant.
        for body, const in re.findall(r'^\s*(?:static )?const struct \{\n(.*?)^\s*\} (\w+)\[',
                                      text, re.M | re.S):
            for member in re.findall(r'\(\*(\w+)\)\(', body):
                self.members.setdefault(member, set()).add(const)
                self.type[const] = const

    def read_code(self, path, where):
        out = os.path.join(self.scratch, 'o')
        subprocess.run(['gcc', '-std=gnu11', '-O0', '-I' + self.include, '-S', '-o', out + '.s',
                        '-fdump-tree-original=' + out + '.dump', path], check=True)
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
