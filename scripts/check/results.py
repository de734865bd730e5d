#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the parts of a test run have reported.

  results.py DIR part NAME             the totals of one part, in one line
  results.py DIR slow [NAME]           the tests that took longest, of all parts or one
  results.py DIR again NAME            exit status 0 if a second run may say more of this
                                       part; what there is of it is then its first run
  results.py DIR end [--junit FILE]    all parts: DIR/results.tap, what failed, and
                                       the totals; exit status 1 if something failed

DIR is what scripts/check.sh leaves in the cache: PART.log is the output of a part, PART.clock
the second in which each of its lines came (stamp.py), `parts` has a line
"PART STATUS SECONDS CPU-SECONDS" for each that has ended, `plan` the names of those that should
run. A part fails as a whole if it did not run, printed no totals or
others than those of its results, or did not run what it announced (a line
"# plan GROUP: NAME…").

A test that waits for something on a busy machine may fail for that alone. So a part gets a second
run if FEW of its results have failed, and that one counts: what has failed only in the first run
is unsteady, and told. What has failed there and is not in the second one has failed.

FILE is JUnit's XML, for CI systems: a test suite for each part.
"""

import argparse
import itertools
import os
import re
import sys
import xml.etree.ElementTree as ET

# Which of several machines; which test program; the result.
RESULT = re.compile(r'^(?P<machine>[a-z]\| )?(?:(?P<group>[\w./-]+(?: \((?:server|client)\))?): )?'
                    r'(?P<bad>not )?ok\b(?: \d+)?(?: -)?(?: (?P<name>.*?))?'
                    r'(?:\s+# ?(?P<skip>(?i:skip)\b)?:?\s*(?P<reason>.*))?$')
PROGRAM = re.compile(r'^# ((?:[\w.-]+/)+[\w.-]+)(?: --.*)?$')     # of the engine's tests
SUM = re.compile(r'^(?:[a-z]\| )?(\d+) passed, (\d+) failed, (\d+) skipped\b')
PLAN = re.compile(r'^([a-z]\| )?# plan ([^:]+): (.*)')
FIRST = '.first'
WHOLE = 'the part as a whole'
KINDS = ('passed', 'failed', 'skipped')
CONTEXT = 30        # lines of a report before a failure
SLOWEST = 30
FEW = 2


class Result:
    """@seconds: since the result before it of the same machine.

    @first: the failure of the first run, if this is the second one.
    """

    first = None

    def __init__(self, kind, group, name, reason='', context=(), seconds=0.0):
        self.kind, self.group, self.name = kind, group, name
        self.reason, self.context, self.seconds = reason or '', list(context), seconds

    def title(self):
        group = re.sub(r'(?<!\| )$', ': ', self.group) if self.group else ''
        return group + self.name

    def tap(self, part):
        text = f'{"not ok" if self.kind == "failed" else "ok"} - {part}: {self.title()}'
        reason = ' '.join(filter(None, ['SKIP' if self.kind == 'skipped' else '', self.reason]))
        return text + (f' # {reason}' if reason else '')


class Report:
    """What is in one output."""

    def __init__(self, name, seconds):
        self.name, self.seconds = name, seconds
        self.results, self.plans, self.sums = [], [], []
        self.last, self.told = '', 0.0      # line, and when the last result came

    def read(self, file, clock=()):
        """@clock: when each line came, if that is known."""
        program, context, times = '', [], {}
        for line, now in itertools.zip_longest(file, clock, fillvalue=0.0):
            if not line:
                break
            line = line.rstrip('\r\n')
            self.last = line or self.last
            if match := PROGRAM.match(line):
                program = match[1].removeprefix('./').removeprefix('build/')
            if match := SUM.match(line):
                self.sums.append([int(n) for n in match.groups()])
            elif match := PLAN.match(line):
                self.plans.append((match[1] or '', match[2], match[3].split()))
            elif match := RESULT.match(line):
                kind = 'failed' if match['bad'] else 'skipped' if match['skip'] else 'passed'
                machine = match['machine'] or ''
                self.results.append(Result(kind, machine + (match['group'] or program),
                                           match['name'] or '', match['reason'],
                                           context if kind == 'failed' else (),
                                           max(0.0, now - times.get(machine, 0.0))))
                times[machine] = self.told = now
                context = []
            else:
                context = context[-CONTEXT:] + [line]

    def count(self):
        return [sum(result.kind == kind for result in self.results) for kind in KINDS]


class Part(Report):
    """One part; a status of None is that of a part that has not run."""

    def __init__(self, directory, name, status, seconds, cpu):
        super().__init__(name, seconds)
        self.status, self.cpu = status, cpu
        path = os.path.join(directory, f'{name}.log')
        if os.path.exists(path):
            with open(path, encoding='utf-8', errors='replace') as file:
                self.read(file, map(float, lines_of(directory, f'{name}.clock')))
        self._judge()

    def run_again(self, first):
        """Take what has failed in the run before this one into account."""
        for failure in first.failures():
            same = [result for result in self.results if result.title() == failure.title()]
            if same:
                same[0].first = failure
            elif failure.name == WHOLE:
                self.results.append(Result('passed', '', WHOLE))
                self.results[-1].first = failure
            else:
                self.results.append(failure)

    def failures(self):
        return [result for result in self.results if result.kind == 'failed']

    def unsteady(self):
        return [result for result in self.results if result.first and result.kind != 'failed']

    def _end(self):
        """Where it was when it ended too early."""
        if not self.results:
            return f'no result; the last line: {self.last}'
        return (f'the last result, after {self.told:.0f} of {self.seconds} s: '
                f'{self.results[-1].title()}; the last line: {self.last}')

    def _fail(self, reason):
        self.results.append(Result('failed', '', WHOLE, reason))

    def _judge(self):
        count = self.count()
        told = [sum(column) for column in zip(*self.sums)]
        self._missing()
        if self.status is None:
            self._fail('it has not run')
        elif not told:
            self._fail(f'no sum, status {self.status}; {self._end()}')
        elif told != count:
            self._fail(f'its sum is {text_of(told)}, its results are {text_of(count)}')
        elif self.status and not count[1]:
            self._fail(f'status {self.status}')
        elif not any(count):
            self._fail('nothing has run')

    def _missing(self):
        for machine, group, names in self.plans:
            seen = ' '.join(f' {r.group} {r.name} ' for r in self.results
                            if r.group.startswith(machine))
            for name in names:
                if not re.search(rf' {re.escape(f"{group}/{name}")}[ /:]', seen):
                    self._fail(f'{machine}{group}/{name} was announced and has no result')


def text_of(count):
    return ', '.join(f'{n} {kind}' for n, kind in zip(count, KINDS))


def line_of(part):
    return f'{part.name}: {text_of(part.count())}, {part.seconds} s, {part.cpu} s of CPU'


def load(directory, only=None):
    """All parts of the run, or one, in the order in which they have ended."""
    ended = [line.split() for line in lines_of(directory, 'parts')]
    names = [line[0] for line in ended]
    ended += [(name, None, 0, 0) for name in lines_of(directory, 'plan') if name not in names]
    parts = {name: Part(directory, name, status and int(status), int(seconds), int(cpu))
             for name, status, seconds, cpu in ended if only in (None, name.removesuffix(FIRST))}
    for name in [name for name in parts if name.endswith(FIRST)]:
        parts[name.removesuffix(FIRST)].run_again(parts.pop(name))
    return list(parts.values())


def set_aside(directory, name):
    """The part's run is the first of two from now on."""
    for kind in ('log', 'clock', 'times'):
        path = os.path.join(directory, f'{name}.{kind}')
        if os.path.exists(path):
            os.replace(path, os.path.join(directory, f'{name}{FIRST}.{kind}'))
    lines = [re.sub(rf'^{re.escape(name)} ', f'{name}{FIRST} ', line)
             for line in lines_of(directory, 'parts')]
    with open(os.path.join(directory, 'parts'), 'w', encoding='utf-8') as file:
        file.write(''.join(line + '\n' for line in lines))


def lines_of(directory, name):
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as file:
        return file.read().splitlines()


def write_tap(directory, parts):
    lines = ['TAP version 13']
    for part in parts:
        lines.append(f'# {line_of(part)}')
        lines += [result.tap(part.name) for result in part.results]
    lines.append(f'1..{sum(len(part.results) for part in parts)}')
    with open(os.path.join(directory, 'results.tap'), 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines) + '\n')


def write_junit(path, parts):
    root = ET.Element('testsuites', name='qhca')
    for part in parts:
        _, failed, skipped = part.count()
        suite = ET.SubElement(root, 'testsuite', name=part.name, tests=str(len(part.results)),
                              failures=str(failed), skipped=str(skipped), errors='0',
                              time=str(part.seconds))
        for result in part.results:
            group = re.sub(r'\W+', '-', result.group).strip('-')
            case = ET.SubElement(suite, 'testcase', name=printable(result.name),
                                 time=f'{result.seconds:.1f}',
                                 classname='.'.join(filter(None, [part.name, group])))
            if result.kind == 'skipped':
                ET.SubElement(case, 'skipped', message=printable(result.reason))
            elif result.kind == 'failed':
                tell(case, 'failure', result)
            elif result.first:
                tell(case, 'flakyFailure', result.first)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding='utf-8', xml_declaration=True)


def tell(case, kind, result):
    element = ET.SubElement(case, kind, message=printable(result.reason))
    element.text = printable('\n'.join(result.context))


def printable(text):
    """Without the characters that XML 1.0 cannot represent."""
    return re.sub(r'[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]', '?', text)


def report_failures(parts):
    """What has failed comes last."""
    for part in parts:
        for result in part.unsteady():
            report(part, result.first, 'unsteady')
    for part in parts:
        for result in part.failures():
            report(part, result, 'not ok')


def report(part, result, word):
    for line in result.context[-2:]:
        print(f'{part.name}: {line}')
    print(result.tap(part.name).replace('not ok -', word, 1))


def report_slowest(parts):
    results = [(result.seconds, part.name, result) for part in parts for result in part.results]
    for seconds, name, result in sorted(results, key=lambda entry: -entry[0])[:SLOWEST]:
        print(f'{seconds:7.1f} s  {name}: {result.title()}')


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('directory')
    parser.add_argument('what', choices=('part', 'slow', 'again', 'end'))
    parser.add_argument('name', nargs='?')
    parser.add_argument('--junit', metavar='FILE')
    args = parser.parse_args()
    parts = load(args.directory, args.name)
    if args.what == 'part':
        part = parts[0]
        print(line_of(part))
        return 1 if part.count()[1] else 0
    if args.what == 'again':
        part = parts[0]
        if not 1 <= len(part.failures()) <= FEW:
            return 1
        set_aside(args.directory, part.name)
        return 0
    if args.what == 'slow':
        report_slowest(parts)
        return 0
    write_tap(args.directory, parts)
    if args.junit:
        write_junit(args.junit, parts)
    report_failures(parts)
    total = [sum(column) for column in zip(*(part.count() for part in parts))] or [0, 0, 0]
    print(text_of(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == '__main__':
    sys.exit(main())
