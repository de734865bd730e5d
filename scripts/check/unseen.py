#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Which files a checker has not found clean before, as they are now.

  unseen.py list MEMORY WHAT [-I DIR]… FILE…    print them, and on the lines before, which begin
                                                with a colon, what to remember
  unseen.py keep MEMORY                         remember such lines, from standard input

MEMORY is a file in the cache, WHAT names the checker, its version and its options. A file is
another one if its content changes, or the content of a file of ours that it includes.
"""

import functools
import hashlib
import os
import re
import sys

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
KEPT = 20000        # lines of a memory


@functools.cache
def content(path):
    with open(path, 'rb') as file:
        return file.read()


def find(name, directories):
    """The file of ours that an #include means, or None."""
    for directory in directories:
        path = os.path.normpath(os.path.join(directory, name))
        if os.path.isfile(path):
            return path
    return None


def family(path, directories, seen):
    """The file, and what it includes."""
    if path in seen:
        return
    seen.add(path)
    for name in INCLUDE.findall(content(path)):
        found = find(name.decode(), [os.path.dirname(path)] + directories)
        if found:
            family(found, directories, seen)


def key(what, path, directories):
    seen = set()
    family(os.path.normpath(path), directories, seen)
    digest = hashlib.sha256(what.encode())
    for name in sorted(seen):
        digest.update(b'\0' + name.encode() + b'\0' + content(name))
    return digest.hexdigest()


def remembered(memory):
    if not os.path.exists(memory):
        return []
    with open(memory, encoding='ascii') as file:
        return file.read().split()


def show(memory, what, words):
    directories, files = [], []
    words = iter(words)
    for word in words:
        if word == '-I':
            directories.append(next(words))
        else:
            files.append(word)
    known = set(remembered(memory))
    keys = {path: key(what, path, directories) for path in files}
    new = [path for path in files if keys[path] not in known]
    print(*(f':{keys[path]}' for path in new), *new, sep='\n')


def keep(memory):
    new = [line.strip().removeprefix(':') for line in sys.stdin if line.startswith(':')]
    os.makedirs(os.path.dirname(memory) or '.', exist_ok=True)
    lines = [line for line in remembered(memory) if line not in set(new)] + new
    with open(f'{memory}.{os.getpid()}', 'w', encoding='ascii') as file:
        file.writelines(f'{line}\n' for line in lines[-KEPT:])
    os.replace(file.name, memory)


def main():
    if sys.argv[1] == 'keep':
        keep(sys.argv[2])
    else:
        show(sys.argv[2], sys.argv[3], sys.argv[4:])


if __name__ == '__main__':
    main()
