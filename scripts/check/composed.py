# SPDX-License-Identifier: GPL-2.0
"""The command line of a machine that does not start, and the launcher itself, for tests to look
at."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import tempfile
from unittest import mock

from vmlib import build, machine, session
from vmlib.build import SCRIPTS


def load_vm():
    loader = importlib.machinery.SourceFileLoader('vm', os.path.join(SCRIPTS, 'vm'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('vm', loader))
    loader.exec_module(module)
    return module


def parse(vm, *words):
    """The options, or what the launcher @vm says to them."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), mock.patch.object(build, 'choose_device'):
        try:
            return vm.parse(list(words))
        except SystemExit:
            return said.getvalue()


def command(opts):
    """Return the command line that QEMU would get."""
    with tempfile.TemporaryDirectory() as top:
        one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
        one.image, one.payload = top, os.path.join(top, 'payload')
        args = machine.command(opts, {'qemu': 'true', 'kernel': None, 'userspace': None}, one)
        for pipe in one.pipes:
            pipe.start()
            pipe.finish()
    return args
