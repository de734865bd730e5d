# SPDX-License-Identifier: GPL-2.0
"""The outcome of a run as JUnit's XML, for CI systems: a test suite for each machine."""

import os
import re
import sys

from .build import SCRIPTS

sys.path.append(os.path.join(SCRIPTS, 'check'))
import results      # noqa: E402  pylint: disable=wrong-import-position


class Suite(results.Report):
    """The results in a machine's output, and the exit status of its command."""

    def __init__(self, session):
        super().__init__(f'machine {session.role}', round(session.seconds, 1))
        if os.path.exists(session.path('output')):
            with open(session.path('output'), encoding='utf-8', errors='replace') as file:
                self.read(file)
                file.seek(0)
                self._check_plan(file.read())
        status = session.verdict
        last = session.tail('output' if session.status is not None else 'console.log',
                            results.CONTEXT).splitlines()
        self.results.append(results.Result('failed' if status else 'passed', '', 'command',
                                           f'exit status {status}', last if status else ()))

    def _check_plan(self, text):
        plans = re.findall(r'^(?:[a-z]\| )?1\.\.(\d+)', text, re.MULTILINE)
        planned, ran = sum(map(int, plans)), len(self.results)
        if plans and planned != ran:
            self.results.append(results.Result('failed', '', 'plan',
                                               f'{planned} tests were planned, {ran} ran'))


class Scenario(results.Report):
    """The verdicts on the command, each in words."""

    def __init__(self, verdicts):
        super().__init__('scenario', 0)
        self.results = [results.Result('passed' if one.good else 'failed', '',
                                       one.text.partition(':')[0], one.text) for one in verdicts]


def write(path, sessions, verdicts=()):
    results.write_junit(path, [Suite(session) for session in sessions] +
                        ([Scenario(verdicts)] if verdicts else []))
