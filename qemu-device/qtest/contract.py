# SPDX-License-Identifier: GPL-2.0-or-later
"""The constants of include/qhca/, read from the headers themselves.

contract.REG_STATUS is QHCA_REG_STATUS, and so on for every #define with a
numeric value and every enumerator. Structures are not parsed: the tests write
them out byte by byte, as a second opinion on the layout. contract.read() is a
header in which the rows of its .def files are expanded; scripts/docs/layout.py also uses it.
"""

import os
import re

HEADERS = ("base.h", "regs.h", "mr.h", "queues.h", "qp.h", "congestion.h", "cmd.h")
INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "..", "..", "include", "qhca")

ROW = re.compile(r"^(QHCA_\w+)\((.*?)\)[ \t]*(/\*.*?\*/)?$", re.M | re.S)


DEFINE = re.compile(r"^#define (QHCA_\w+)(?:\((.*?)\))?[ \t]*(.*)", re.M)


def read(name, directory=INCLUDE):
    """A header in which the rows of each .def file replace its #include."""
    def text(name):
        with open(os.path.join(directory, name), encoding="utf-8") as f:
            return f.read()

    def row(macros, macro, args, comment):
        params, body = macros.get(macro, ("", ""))
        given = dict(zip(params.split(", "), re.split(r",\s*", args)))
        body = re.sub(r"\w+", lambda m: given.get(m[0], m[0]), body)
        default = re.fullmatch(r"(QHCA_\w+)(?:\((.*)\))?", body)
        if default and default[1] in macros:    # like a row of another macro
            return row(macros, default[1], default[2] or args, comment)
        made = "\t%s\t%s" % (body.replace("##", ""), comment)
        return made.rstrip() + "\n" if body else ""

    def expanded(before, include):
        listed = text(include)
        macros = {name: (params, body) for part in (listed, before)
                  for name, params, body in DEFINE.findall(part)}
        return before + "".join(row(macros, *found) for found in ROW.findall(listed))

    parts = re.split(r'^#include "(\w+\.def)"\n', text(name), flags=re.M)
    return "".join(map(expanded, parts[:-1:2], parts[1::2])) + parts[-1]


def _number(text, known):
    """Evaluate a C integer expression of literals and known names."""
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text.strip())
    text = re.sub(r"\bQHCA_(\w+)", lambda m: str(known[m.group(1)]), text)
    if not re.fullmatch(r"[\s0-9a-fA-FxX()<|+\-*]+", text):
        raise ValueError(text)
    return eval(text)  # pylint: disable=eval-used


def _parse(text, known):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for name, value in re.findall(r"^#define QHCA_(\w+)[ \t]+(\S.*)$", text,
                                  re.M):
        try:
            known[name] = _number(value, known)
        except (ValueError, KeyError, SyntaxError):
            pass    # not a number: a macro with another purpose
    for body in re.findall(r"\benum \w+ \{(.*?)\}", text, re.S):
        value = -1
        for item in filter(None, (i.strip() for i in body.split(","))):
            name, _, init = item.partition("=")
            value = _number(init, known) if init else value + 1
            known[name.strip().removeprefix("QHCA_")] = value


def load(directory=INCLUDE):
    known = {}
    for header in HEADERS:
        _parse(read(header, directory), known)
    return known


globals().update(load())
