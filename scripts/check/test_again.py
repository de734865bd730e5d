#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of build/kernel.sh and build/cross.sh: what has been interrupted, or made of what has
changed, is made again."""

import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Programs that need a build root, a mirror, or more rights than a test has.
BUILDROOT = '#!/bin/sh\n[ "$1" != --path ] || echo "$QHCA_CACHE/root"\n'
MKE2FS = """#!/bin/sh
for disk; do :; done
echo half of it >"$disk"
echo "$disk" >>"$QHCA_CACHE/disks"
[ ! -e "$QHCA_CACHE/interrupt" ]
"""


CROSS_ROOT = """#!/bin/sh
[ "$*" != '--kernel forky --path' ] || exec echo "$QHCA_CACHE/root"
cd "$QHCA_CACHE"/s390x-provider-tree-*
[ -e src/whole ] && [ -e src/hooked ] || exit 1
mkdir -p build/lib
touch build/lib/libqhca-rdmav1.so
"""
PROVIDER = """#!/bin/sh
case $* in
*--unpack*)
    mkdir -p "$4/src"
    [ ! -e "$QHCA_CACHE/interrupt" ] || exit 1
    touch "$4/src/whole" ;;
*)
    mkdir -p "$2/providers/qhca"
    [ ! -e "$QHCA_CACHE/interrupt-2" ] || exit 1
    touch "$2/hooked" ;;
esac
"""


class Scripts(unittest.TestCase):
    """A copy of the tree's, with a cache of its own."""

    def setUp(self):
        tree = tempfile.TemporaryDirectory()
        self.addCleanup(tree.cleanup)
        self.bin, self.top, self.cache = (os.path.join(tree.name, name)
                                          for name in ('bin', 'top', 'cache'))
        for name in 'scripts/build', 'selftests/guest', 'providers', 'include':
            shutil.copytree(os.path.join(TOP, name), os.path.join(self.top, name))
        shutil.copy(os.path.join(TOP, 'scripts/lib.sh'), os.path.join(self.top, 'scripts'))
        self.add(os.path.join(self.top, 'scripts/lib.sh'), 'as_root() { "$@"; }\n')
        self.env = {**os.environ, 'QHCA_CACHE': self.cache,
                    'PATH': f'{self.bin}:{os.environ["PATH"]}'}

    @staticmethod
    def add(path, text):
        with open(path, 'a', encoding='utf-8') as file:
            file.write(text)

    def put(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.unlink(path)
        self.add(path, text)
        os.chmod(path, 0o755)

    def stub(self, name, text):
        """In place of a script, or in front of a program."""
        self.put(os.path.join(self.top, 'scripts/build', name) if name.endswith('.sh') else
                 os.path.join(self.bin, name), text)

    def interrupt(self, name='interrupt', now=True):
        path = os.path.join(self.cache, name)
        if now:
            self.put(path, '')
        else:
            os.unlink(path)

    def script(self, name, *words):
        """The directory that it prints; None: it has failed."""
        done = subprocess.run([os.path.join(self.top, 'scripts/build', name), *words],
                              env=self.env, text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return None if done.returncode else done.stdout.strip()


class Kernel(Scripts):
    def setUp(self):
        super().setUp()
        self.stub('buildroot.sh', BUILDROOT)
        self.stub('mke2fs', MKE2FS)
        self.stub('cpio', '#!/bin/sh\ncat - init\n')
        self.put(os.path.join(self.cache, 'root/usr/bin/busybox'), '')
        self.dir = self.script('kernel.sh', '--path')
        self.put(os.path.join(self.dir, 'root/lib/modules/1.0/modules.builtin'), '')
        self.put(os.path.join(self.dir, '.complete'), '')

    def packed(self):
        """How often that has been done."""
        with open(os.path.join(self.cache, 'disks'), encoding='utf-8') as file:
            return len(file.readlines())

    def test_once(self):
        for _ in range(2):
            self.assertEqual(self.script('kernel.sh'), self.dir)
            self.assertEqual(self.packed(), 1)

    def test_changed(self):
        self.assertTrue(self.script('kernel.sh'))
        self.add(os.path.join(self.top, 'selftests/guest/initrd-init.sh'), '# changed\n')
        for _ in range(2):
            self.assertEqual(self.script('kernel.sh'), self.dir)
            self.assertEqual(self.packed(), 2)

    def test_interrupted(self):
        self.interrupt()
        self.assertIsNone(self.script('kernel.sh'))
        self.interrupt(now=False)
        self.assertEqual(self.script('kernel.sh'), self.dir)
        self.assertEqual(self.packed(), 2)


class Cross(Scripts):
    def setUp(self):
        super().setUp()
        self.stub('buildroot.sh', CROSS_ROOT)
        self.stub('provider.sh', PROVIDER)
        # There is an image.
        self.add(os.path.join(self.top, 'scripts/lib.sh'),
                 'have() { [[ $1 == */s390x-image-* || -e $1/.complete ]]; }\n')
        os.makedirs(os.path.join(self.cache, 'root/usr/src/linux-headers-1.0-amd64'))

    def test_interrupted(self):
        """While the source is unpacked, and while it is changed."""
        for name in 'interrupt', 'interrupt-2':
            self.interrupt(name)
            self.assertIsNone(self.script('cross.sh', 's390x', 'provider'))
            self.interrupt(name, False)
        self.assertTrue(self.script('cross.sh', 's390x', 'provider'))


if __name__ == '__main__':
    unittest.main()
