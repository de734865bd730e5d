# SPDX-License-Identifier: GPL-2.0-or-later
"""The constants of include/qhca/, read from the headers themselves.

contract.REG_STATUS is QHCA_REG_STATUS, and so on for every #define with a
numeric value and every enumerator. Structures are not parsed: the tests write
them out byte by byte, as a second opinion on the layout.
"""

import os
import re

HEADERS = ("base.h", "regs.h", "mr.h", "queues.h", "qp.h", "cmd.h")
INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "..", "..", "include", "qhca")


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
        with open(os.path.join(directory, header), encoding="utf-8") as f:
            _parse(f.read(), known)
    return known


globals().update(load())
