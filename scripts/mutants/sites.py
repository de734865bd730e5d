# SPDX-License-Identifier: GPL-2.0
"""Where C can be changed by one mutant, and how.

A mutant is text that is inserted around an expression or a statement, and nothing is taken
away: `if (a < b)` becomes `if ((a) + MUTANT(7) < b)`. So all mutants are in one build, any
number of them may lie in each other, and MUTANT(7) (mutant.h) chooses one when it runs.
"""

import hashlib
import os
import re
from dataclasses import dataclass, field

from clang.cindex import Cursor, CursorKind as K, Index, TranslationUnit, TypeKind as T

INTEGERS = {T.CHAR_U, T.UCHAR, T.USHORT, T.UINT, T.ULONG, T.ULONGLONG, T.CHAR_S, T.SCHAR, T.SHORT,
            T.INT, T.LONG, T.LONGLONG, T.ENUM, T.BOOL}
KEYWORD = re.compile(rb'\s*(if|while|for)\b')
JUMPS = {K.BREAK_STMT, K.CONTINUE_STMT, K.GOTO_STMT}
SIMPLE = {K.DECL_REF_EXPR, K.MEMBER_REF_EXPR}
# An expression in one of these has another value or another meaning.
CONSTANT = {K.ENUM_DECL, K.STRUCT_DECL, K.UNION_DECL, K.STATIC_ASSERT, K.ASM_STMT,
            K.CXX_UNARY_EXPR, K.StmtExpr, K.GENERIC_SELECTION_EXPR}


@dataclass
class Site:
    """One mutant: @inserts are (offset, text), with {n} for its number."""
    path: str
    line: int
    start: int
    end: int
    operator: str
    function: str
    text: str
    inserts: list = field(repr=False)
    key: str = ''

    def order(self, seed):
        return hashlib.sha1(f'{seed}|{self.key}'.encode()).hexdigest()


class Source:
    """The text of a file, which libclang only knows by offsets of bytes."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            self.data = file.read()

    def text(self, start, end):
        return self.data[start:end].decode(errors='replace')

    def skip(self, at):
        """The offset after the token or comment at @at."""
        data = self.data
        if data[at:at + 2] == b'/*':
            return data.index(b'*/', at) + 2
        if data[at:at + 2] == b'//':
            return data.index(b'\n', at)
        if data[at:at + 1] in b'"\'':
            end = at + 1
            while data[end] != data[at]:
                end += 2 if data[end:end + 1] == b'\\' else 1
            return end + 1
        return at + 1

    def parens(self, at):
        """The offsets inside the first parentheses from @at on, and their top `;`."""
        at = self.data.index(b'(', at)
        depth, semicolons, begin = 0, [], at + 1
        while True:
            char = self.data[at:at + 1]
            if char in b'([{':
                depth += 1
            elif char in b')]}':
                depth -= 1
                if not depth:
                    return begin, at, semicolons
            elif char == b';' and depth == 1:
                semicolons.append(at)
            at = self.skip(at)

    def balanced(self, start, end):
        depth, at = 0, start
        while at < end:
            char = self.data[at:at + 1]
            depth += (char in b'([{') - (char in b')]}')
            if depth < 0:
                return False
            at = self.skip(at)
        return not depth and at == end

    def semicolon(self, at):
        """The offset of a `;` that follows @at, or -1."""
        while self.data[at:at + 1].isspace():
            at += 1
        return at if self.data[at:at + 1] == b';' else -1


def is_integer(cursor):
    return cursor.type.get_canonical().kind in INTEGERS


def is_zero(cursor):
    """An enumerator that is 0, as success is."""
    declared = strip(cursor).referenced
    return declared is not None and declared.kind is K.ENUM_CONSTANT_DECL and \
        declared.enum_value == 0


def strip(cursor):
    """Without the casts and parentheses that the compiler or the author put around it."""
    while cursor.kind in (K.UNEXPOSED_EXPR, K.PAREN_EXPR):
        children = list(cursor.get_children())
        if len(children) != 1:
            break
        cursor = children[0]
    return cursor


def simple(cursor):
    """Nothing but names: it may stand there twice."""
    cursor = strip(cursor)
    return cursor.kind in SIMPLE and all(map(simple, cursor.get_children()))


class Finder:
    """Collects the sites of the functions in one translation unit."""

    def __init__(self, top, sources, found):
        self.top, self.sources, self.found = top, sources, found
        self.function = self.path = self.source = None
        self.macros = {}

    def unit(self, path, args):
        unit = Index.create().parse(path, args=args,
                                    options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        bad = [d for d in unit.diagnostics if d.severity >= 3]
        if bad:
            raise RuntimeError(f'{path}: {bad[0]}')
        for cursor in unit.cursor.get_children():
            if cursor.kind in (K.MACRO_INSTANTIATION, K.MACRO_DEFINITION) and cursor.location.file:
                ranges = self.macros.setdefault(cursor.location.file.name, [])
                ranges.append((cursor.extent.start.offset, cursor.extent.end.offset))
        for cursor in unit.cursor.get_children():
            where = cursor.location.file
            if cursor.kind is K.FUNCTION_DECL and cursor.is_definition() and where:
                self.path = os.path.realpath(where.name)
                if not self.path.startswith(self.top):
                    continue
                self.source = self.sources.setdefault(self.path, Source(self.path))
                self.function = cursor.spelling
                self.macro = self.macros.get(where.name, [])
                for child in cursor.get_children():
                    if child.kind is K.COMPOUND_STMT:
                        self.walk(child, cursor)

    def inside_macro(self, at):
        """Code that a macro makes cannot be changed at one of its uses."""
        return any(start < at < end for start, end in self.macro)

    def add(self, cursor, operator, start, end, *inserts):
        # A macro with arguments stands for more than the expression that it was found in.
        if self.inside_macro(start) or self.inside_macro(end) or start >= end or \
                not self.source.balanced(start, end) or \
                (start, end) in self.macro and self.source.data[end - 1:end] == b')':
            return
        key = (self.path, start, end, operator)
        if key not in self.found:
            text = ' '.join(self.source.text(start, end).split())
            self.found[key] = Site(self.path, cursor.location.line, start, end, operator,
                                   self.function, text, list(inserts))

    def around(self, cursor, operator, before, after):
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        self.add(cursor, operator, start, end, (start, before), (end, after))

    # Each of these looks at one kind of cursor. @parent is the one around it.

    def condition(self, cursor):
        """if, while, do: negated. The parentheses are in the text."""
        at = cursor.extent.start.offset
        if cursor.kind is K.DO_STMT:
            at = list(cursor.get_children())[0].extent.end.offset
        # A macro may stand for the whole statement.
        if self.inside_macro(at) or not KEYWORD.match(self.source.data, at):
            return
        begin, end, semicolons = self.source.parens(at)
        if cursor.kind is K.FOR_STMT:
            if len(semicolons) != 2 or not self.source.text(*[s + i for s, i in
                                                            zip(semicolons, (1, 0))]).strip():
                return
            begin, end = semicolons[0] + 1, semicolons[1]
        self.add(cursor, 'not', begin, end, (begin, '(MUTANT({n}) ^ !!('), (end, '))'))

    def binary(self, cursor):
        operands = list(cursor.get_children())
        operator = cursor.binary_operator.name
        left, right = operands
        if operator == 'LAnd':
            for operand in operands:
                self.around(operand, 'true', '(MUTANT({n}) || (', '))')
        elif operator == 'LOr':
            for operand in operands:
                self.around(operand, 'false', '(!MUTANT({n}) && (', '))')
        elif not is_integer(left) or not is_integer(right):
            return
        elif operator in ('LT', 'LE', 'GT', 'GE'):
            # a < b + 1, a + 1 <= b, a + 1 > b, a >= b + 1
            self.around(right if operator in ('LT', 'GE') else left, 'bound', '((',
                        ') + MUTANT({n}))')
        elif operator in ('EQ', 'NE'):
            self.around(cursor, 'not', '(MUTANT({n}) ^ (', '))')
        elif operator in ('Add', 'Sub', 'Mul', 'Div', 'Rem', 'Shl', 'Shr'):
            self.around(cursor, 'plus1', '((', ') + MUTANT({n}))')
        elif operator in ('And', 'Or', 'Xor'):
            self.around(right, 'mask', '((', ') * !MUTANT({n}))')

    def literal(self, cursor, parent):
        if parent.kind is K.CASE_STMT:
            return
        if self.text(cursor) in ('true', 'false'):
            self.around(cursor, 'not', '(', ' ^ MUTANT({n}))')
        elif self.text(cursor) != 'NULL':
            self.around(cursor, 'plus1', '(', ' + MUTANT({n}))')

    def statement(self, cursor):
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        end = self.source.semicolon(end)
        if end > 0 and not self.inside_macro(end):
            self.add(cursor, 'drop', start, end, (start, '{{ if (!MUTANT({n})) '), (end + 1, ' }}'))

    def result(self, cursor):
        values = list(cursor.get_children())
        if not values or self.text(values[0]) in ('0', 'NULL') or is_zero(values[0]):
            return
        kind = values[0].type.get_canonical().kind
        if kind is T.BOOL:
            self.around(values[0], 'return', '(MUTANT({n}) ^ (', '))')
        elif kind in INTEGERS:
            self.around(values[0], 'return', '(!MUTANT({n}) * (', '))')
        elif kind is T.POINTER:
            self.around(values[0], 'return', '(MUTANT({n}) ? 0 : (', '))')

    def call(self, cursor):
        """Two arguments of one type that stand side by side, exchanged."""
        # Where the order does not matter.
        if cursor.spelling in ('memcmp', '__builtin_memcmp'):
            return
        args = list(cursor.get_arguments())
        for one, two in zip(args, args[1:]):
            texts = self.text(one), self.text(two)
            if simple(one) and simple(two) and texts[0] != texts[1] and \
                    one.type.get_canonical() == two.type.get_canonical():
                (start, middle), (other, end) = ((c.extent.start.offset, c.extent.end.offset)
                                                 for c in (one, two))
                self.add(one, 'swap', start, end,
                         (start, f'(MUTANT({{n}}) ? {texts[1]} : '), (middle, ')'),
                         (other, f'(MUTANT({{n}}) ? {texts[0]} : '), (end, ')'))
                return

    def member(self, cursor, parent):
        """The value of another field of the same type, the next in the structure."""
        base = list(cursor.get_children())
        if parent.kind is not K.UNEXPOSED_EXPR or parent.extent != cursor.extent or \
                parent.type.kind is T.POINTER or not base or not simple(base[0]):
            return
        declared = cursor.referenced
        if declared is None or declared.is_bitfield():
            return
        fields = [f for f in declared.semantic_parent.type.get_fields()
                  if f.spelling and not f.is_bitfield() and
                  f.type.get_canonical() == declared.type.get_canonical()]
        names = [f.spelling for f in fields]
        if len(names) > 1 and declared.spelling in names and is_integer(declared):
            other = names[(names.index(declared.spelling) + 1) % len(names)]
            text = self.text(cursor)
            if text.endswith(declared.spelling):
                self.around(cursor, 'field', '(MUTANT({n}) ? ' + text[:-len(declared.spelling)]
                            + other + ' : ', ')')

    def text(self, cursor):
        return self.source.text(cursor.extent.start.offset, cursor.extent.end.offset)

    def walk(self, cursor, parent):
        kind = cursor.kind
        if kind in CONSTANT or cursor.location.file is None:
            return
        if kind is K.VAR_DECL and cursor.storage_class.name == 'STATIC':
            return
        if kind in (K.IF_STMT, K.WHILE_STMT, K.DO_STMT, K.FOR_STMT):
            self.condition(cursor)
        elif kind is K.CONDITIONAL_OPERATOR:
            self.around(next(cursor.get_children()), 'not', '(MUTANT({n}) ^ !!(', '))')
        elif kind is K.BINARY_OPERATOR:
            self.binary(cursor)
        elif kind is K.INTEGER_LITERAL:
            self.literal(cursor, parent)
        elif kind is K.RETURN_STMT:
            self.result(cursor)
        elif kind is K.CALL_EXPR:
            self.call(cursor)
        elif kind is K.MEMBER_REF_EXPR:
            self.member(cursor, parent)
        if self.statement_here(cursor, parent):
            self.statement(cursor)
        for child in cursor.get_children():
            if kind is K.CASE_STMT and child == next(cursor.get_children()):
                continue
            if kind is K.VAR_DECL and child.kind is K.INTEGER_LITERAL and \
                    cursor.type.kind is T.CONSTANTARRAY:
                continue
            self.walk(child, cursor)

    @staticmethod
    def statement_here(cursor, parent):
        if cursor.kind in JUMPS:
            return True
        if cursor.kind not in (K.CALL_EXPR, K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR,
                               K.UNARY_OPERATOR):
            return False
        if parent.kind in (K.COMPOUND_STMT, K.LABEL_STMT, K.DEFAULT_STMT):
            return True
        children: list[Cursor] = list(parent.get_children())
        if parent.kind in (K.IF_STMT, K.WHILE_STMT):
            return cursor != children[0]
        if parent.kind in (K.FOR_STMT, K.CASE_STMT):
            return cursor == children[-1] and len(children) > 1
        return parent.kind is K.DO_STMT and cursor == children[0]


def find(top, units):
    """All sites below @top in @units, {path: compiler's arguments}; each with its key, which
    stays the same while the function does."""
    sources, found = {}, {}
    for path, args in units.items():
        Finder(os.path.realpath(top) + '/', sources, found).unit(path, args)
    seen = {}
    for site in sorted(found.values(), key=lambda s: (s.path, s.start, -s.end)):
        name = '|'.join((os.path.relpath(site.path, top), site.function, site.operator, site.text))
        seen[name] = seen.get(name, 0) + 1
        site.key = f'{name}|{seen[name]}'
    return sources, list(found.values())


def plant(source, sites, numbers):
    """The text of @source with @sites in it."""
    inserts = []
    for site in sites:
        for at, text in site.inserts:
            # Texts that end here go before texts that begin here; of two that begin here the longer
            # one goes first, of two that end here the shorter one.
            begins = at == site.start or (site.operator == 'swap' and text.startswith('('))
            inserts.append((at, begins, -site.end if begins else -site.start,
                            text.format(n=numbers[site.key])))
    data, out, last = source.data, [], 0
    for at, _, _, text in sorted(inserts, key=lambda i: i[:3]):
        out += [data[last:at], text.encode()]
        last = at
    return b''.join(out + [data[last:]])
