#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of build/kernel.sh: what a kernel of ours is packed with is made again if its parts have
changed, or if somebody has interrupted that."""

import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Programs that need a build root, or more rights than a test has.
BUILDROOT = '#!/bin/sh\n[ "$1" != --path ] || echo "$QHCA_CACHE/root"\n'
MKE2FS = """#!/bin/sh
for disk; do :; done
echo half of it >"$disk"
echo "$disk" >>"$QHCA_CACHE/disks"
[ ! -e "$QHCA_CACHE/interrupt" ]
"""


class Kernel(unittest.TestCase):
    def setUp(self):
        tree = tempfile.TemporaryDirectory()
        self.addCleanup(tree.cleanup)
        self.top, self.cache = os.path.join(tree.name, 'top'), os.path.join(tree.name, 'cache')
        for name in 'scripts/build', 'selftests/guest':
            shutil.copytree(os.path.join(TOP, name), os.path.join(self.top, name))
        shutil.copy(os.path.join(TOP, 'scripts/lib.sh'), os.path.join(self.top, 'scripts'))
        self.add(os.path.join(self.top, 'scripts/lib.sh'), 'as_root() { "$@"; }\n')
        self.put(os.path.join(self.top, 'scripts/build/buildroot.sh'), BUILDROOT)
        self.put(os.path.join(tree.name, 'bin/mke2fs'), MKE2FS)
        self.put(os.path.join(tree.name, 'bin/cpio'), '#!/bin/sh\ncat - init\n')
        self.env = {**os.environ, 'QHCA_CACHE': self.cache,
                    'PATH': os.path.join(tree.name, 'bin') + ':' + os.environ['PATH']}
        self.env.pop('QHCA_TOP', None)
        self.put(os.path.join(self.cache, 'root/usr/bin/busybox'), '')
        self.dir = self.kernel('--path')
        self.put(os.path.join(self.dir, 'root/lib/modules/1.0/modules.builtin'), '')
        self.put(os.path.join(self.dir, '.complete'), '')

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

    def kernel(self, *words):
        """Its directory; None: it has failed."""
        done = subprocess.run([os.path.join(self.top, 'scripts/build/kernel.sh'), *words],
                              env=self.env, text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return None if done.returncode else done.stdout.strip()

    def packed(self):
        """How often that has been done."""
        with open(os.path.join(self.cache, 'disks'), encoding='utf-8') as file:
            return len(file.readlines())

    def test_once(self):
        for _ in range(2):
            self.assertEqual(self.kernel(), self.dir)
            self.assertEqual(self.packed(), 1)

    def test_changed(self):
        self.assertTrue(self.kernel())
        self.add(os.path.join(self.top, 'selftests/guest/initrd-init.sh'), '# changed\n')
        for _ in range(2):
            self.assertEqual(self.kernel(), self.dir)
            self.assertEqual(self.packed(), 2)

    def test_interrupted(self):
        self.put(os.path.join(self.cache, 'interrupt'), '')
        self.assertIsNone(self.kernel())
        os.unlink(os.path.join(self.cache, 'interrupt'))
        self.assertEqual(self.kernel(), self.dir)
        self.assertEqual(self.packed(), 2)


if __name__ == '__main__':
    unittest.main()
