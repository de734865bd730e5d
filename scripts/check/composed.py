# SPDX-License-Identifier: GPL-2.0
"""The command line of a machine that does not start, for tests to look at."""

import os
import tempfile

from vmlib import machine, session


def command(opts):
    """What QEMU would hear."""
    with tempfile.TemporaryDirectory() as top:
        one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
        one.image, one.payload = top, os.path.join(top, 'payload')
        args = machine.command(opts, {'qemu': 'true', 'kernel': None, 'userspace': None}, one)
        for pipe in one.pipes:
            pipe.start()
            pipe.finish()
    return args
