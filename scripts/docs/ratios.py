#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""How often prose uses the turns of phrase that CONTRIBUTING.md (Language) advises against.

  ratios.py           compare each directory with ratios.txt: fails if a ratio is higher
  ratios.py --keep    lower the limits in ratios.txt to the ratios of today
  ratios.py PATH...   print each place in these files and directories

A ratio counts occurrences in 1,000 words of comments, docstrings and documents, rounded up to
tenths. Ratios up to FLOOR are fine: these phrases shall be rare, but are not forbidden. A file
belongs to the longest directory of ratios.txt that it lies in.
"""

import io
import math
import os
import re
import subprocess
import sys
import tokenize

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMITS = 'scripts/docs/ratios.txt'
LEFT_OUT = ('CONTRIBUTING.md', 'LICENSES/', 'Documentation/mutants/', 'qemu-device/tests/corpus/')
PHRASES = {
    'that-of': r'(?i)\b(?:that|those)\s+of\b',
    'What': r'(?:\A|\n\s*\n|[.:;?!)]\s|[-*]\s)\s*What(?:ever)?\b',
    'whoever': r'(?i)\b(?:who(?:so)?ever|(?:no|some)body)\b',
    'at-once': r'(?i)\b(?:meanwhile|at\s+once)\b',
    'too': r',\s+too\b',
}
FLOOR = (0.3, 0.1, 0.2, 0.3, 0.2)


def python(text):
    """(line, text) of each comment and docstring: strings that are statements."""
    before = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and before in (
                None, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)):
            yield token.start[0], token.string.strip('#"\' ')
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def prose(name, text):
    """(line, text) of what is prose in a file; comments in lines of their own are one."""
    if re.search(r'\.(?:c|h|cc|def)$', name):
        pattern = r'/\*.*?\*/|//[^\n]*'
    elif name.endswith('.py') or re.match(r'#!.*python', text):
        yield from python(text)
        return
    elif re.search(r'\.(?:rst|md)$|(?:^|/)README$', name):
        pattern = r'.+'
    elif name.endswith('.sh') or re.match(r'#!.*sh\b', text):
        pattern = r'(?:^|(?<=\s))# [^\n]*(?:\n\s*# ?[^\n]*)*'
    else:
        return
    for found in re.finditer(pattern, text, re.S | re.M):
        clean = re.sub(r'^[ \t]*(?:\*+|#)(?= |$)', '', found[0].strip('/*# '), flags=re.M)
        yield text[:found.start()].count('\n') + 1, clean


def files(*paths):
    out = subprocess.run(['git', 'ls-files', '--', *paths], cwd=TOP, text=True,
                         stdout=subprocess.PIPE, check=True).stdout
    for name in out.split():
        path = os.path.join(TOP, name)
        if not name.startswith(LEFT_OUT) and os.path.isfile(path):
            with open(path, encoding='utf-8', errors='replace') as file:
                yield name, file.read()


def count(texts, rooms):
    """{room: [words, occurrences of each phrase]}"""
    found = {room: [0] * (1 + len(PHRASES)) for room in rooms}
    for name, text in texts:
        room = max((r for r in rooms if r == '.' or name.startswith(r + '/')), key=len)
        for _, words in prose(name, text):
            found[room][0] += len(words.split())
            for i, pattern in enumerate(PHRASES.values(), 1):
                found[room][i] += len(re.findall(pattern, words))
    return found


def ratios(counts):
    return [math.ceil(10000 * number / max(counts[0], 1)) / 10 for number in counts[1:]]


def judge(limits, counts):
    """(sentences about what got worse, about what got better, the lower limits)"""
    worse, better, low = [], [], {}
    for room, limit in limits.items():
        found = ratios(counts[room])
        limit = list(map(max, limit, FLOOR))
        low[room] = [min(most, max(pair)) for most, *pair in zip(limit, found, FLOOR)]
        for phrase, most, now, new in zip(PHRASES, limit, found, low[room]):
            text = f'{LIMITS}:1: {room}: {phrase} {now} in 1,000 words, the limit is {most}'
            (worse if now > most else better if new < most else []).append(text)
    return worse, better, low


def places(names):
    for name, text in files(*names):
        for line, words in prose(name, text):
            for phrase, pattern in PHRASES.items():
                for found in re.finditer(pattern, words):
                    at = line + words[:found.end()].count('\n')
                    around = words[max(0, found.start() - 60):found.end() + 60]
                    print(f'{name}:{at}: {phrase}: {" ".join(around.split())}')


def main():
    if sys.argv[1:] and sys.argv[1] != '--keep':
        return places(sys.argv[1:])
    with open(os.path.join(TOP, LIMITS), encoding='utf-8') as file:
        head, rows = file.read().split('\n\n')
    limits = {room: list(map(float, limit))
              for room, *limit in map(str.split, rows.splitlines())}
    worse, better, low = judge(limits, count(files(), limits))
    for text in worse + better:
        print(text)
    if sys.argv[1:]:
        rows = [f'{room:24}' + ''.join(f'{most:9}' for most in low[room]) for room in low]
        with open(os.path.join(TOP, LIMITS), 'w', encoding='utf-8') as file:
            file.write('\n'.join([head, '', *rows, '']))
    elif better:
        print('ratios.py --keep keeps what got better')
    return 1 if worse else 0


if __name__ == '__main__':
    sys.exit(main())
