# SPDX-License-Identifier: GPL-2.0
"""The outcome of a run as JUnit's XML, for CI systems: a test suite for each machine."""

import os
import re
import sys
import xml.etree.ElementTree as ET

from .build import SCRIPTS

sys.path.append(os.path.join(SCRIPTS, 'check'))
import results      # noqa: E402  pylint: disable=wrong-import-position


class Suite(results.Report):
    """The results in a machine's output, and the exit status of its command."""

    def __init__(self, session):
        super().__init__()
        self.name, self.seconds = f'machine {session.role}', round(session.seconds, 1)
        if os.path.exists(session.path('output')):
            with open(session.path('output'), encoding='utf-8', errors='replace') as file:
                for line in file:
                    self.read(line)
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

    name, seconds = 'scenario', 0

    def __init__(self, verdicts):
        super().__init__()
        self.results = [results.Result('passed' if one.good else 'failed', '',
                                       one.text.partition(':')[0], one.text) for one in verdicts]


def write(path, sessions, verdicts=()):
    root = ET.Element('testsuites', name='qhca')
    for session in sessions:
        add(root, Suite(session))
    if verdicts:
        add(root, Scenario(verdicts))
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding='utf-8', xml_declaration=True)


def add(root, suite):
    _, failed, skipped = suite.count()
    element = ET.SubElement(root, 'testsuite', name=suite.name, tests=str(len(suite.results)),
                            failures=str(failed), skipped=str(skipped), errors='0',
                            time=str(suite.seconds))
    for result in suite.results:
        group = re.sub(r'\W+', '-', result.group).strip('-')
        case = ET.SubElement(element, 'testcase', name=printable(result.name),
                             time=f'{result.seconds:.1f}',
                             classname='.'.join(filter(None, [suite.name, group])))
        if result.kind == 'skipped':
            ET.SubElement(case, 'skipped', message=printable(result.reason))
        elif result.kind == 'failed':
            failure = ET.SubElement(case, 'failure', message=printable(result.reason))
            failure.text = printable('\n'.join(result.context))


def printable(text):
    """Without the characters that XML 1.0 cannot represent."""
    return re.sub(r'[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]', '?', text)
