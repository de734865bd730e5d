# SPDX-License-Identifier: GPL-2.0
"""The memory of a machine, as --mem names it."""

import contextlib
import io
import os
import runpy
import unittest

import composed
from vmlib.build import SCRIPTS


class Memory(unittest.TestCase):
    """One unit, whichever process has the memory in the end."""

    @staticmethod
    def parsed(*words):
        vm = runpy.run_path(os.path.join(SCRIPTS, 'vm'))
        return vm['parse'](['run', *words, '--', 'true'])

    def options(self, *words):
        """Return QEMU's options for it."""
        args = composed.command(self.parsed(*words))
        backend = [arg for arg in args if arg.startswith('memory-backend')]
        return args[args.index('-m') + 1], *backend

    def test_same_unit(self):
        for text, size in (('2048', '2048M'), ('512m', '512M'), ('3G', '3072M'),
                           ('1048576K', '1024M')):
            self.assertEqual(self.options('--mem', text), (size,))
            self.assertEqual(self.options('--server', '--mem', text),
                             (size, f'memory-backend-memfd,id=ram,size={size},share=on'))

    def test_default(self):
        self.assertEqual(self.options(), ('2048M',))

    def test_wrong(self):
        for text in ('', '0', '-1', '2.5G', '2 G', '1GB', 'G', '1000K', '0x800'):
            said = io.StringIO()
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(said):
                self.parsed(f'--mem={text}')
            self.assertIn('--mem', said.getvalue())


if __name__ == '__main__':
    unittest.main()
