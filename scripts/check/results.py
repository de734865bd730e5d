# SPDX-License-Identifier: GPL-2.0
"""The output of a part of the tests: its results, as it goes, and whether these are all.

Results are TAP, of one machine or several, or of test programs one after another. A part also
prints at least one sum, "N passed, N failed, N skipped", and what it will do: "# plan GROUP:
NAME…". As a whole it fails if it printed no sum, or sums that differ from its results, or did not
do what it announced.
"""

import collections
import re

# Which of several machines; which test program; the result.
RESULT = re.compile(r'^(?P<machine>[a-z]\| )?(?:(?P<group>[\w./-]+(?: \((?:server|client)\))?): )?'
                    r'(?P<bad>not )?ok\b(?: \d+)?(?: -)?(?: (?!#)(?P<name>.*?))?'
                    r'(?:\s+# ?(?P<skip>(?i:skip)\b)?:?\s*(?P<reason>.*))?$')
PROGRAM = re.compile(r'^# ((?:[\w.-]+/)+[\w.-]+)(?: --.*)?$')     # of the engine's tests
SUM = re.compile(r'^(?:[a-z]\| )?(\d+) passed, (\d+) failed, (\d+) skipped\b')
PLAN = re.compile(r'^([a-z]\| )?# plan ([^:]+): (.*)')
WHOLE = 'the part as a whole'
KINDS = ('passed', 'failed', 'skipped')
CONTEXT = 30        # lines of a report before a failure


class Result:
    """@seconds: since the result before it of the same machine."""

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
    """The results in the output of one run of a part."""

    def __init__(self):
        self.results, self.plans, self.sums = [], [], []
        self.last, self.told = '', 0.0      # line, and when the last result came
        self.program, self.context, self.times = '', [], {}

    def read(self, line, now=0.0):
        """One line, @now seconds after the start. Returns the result in it, if there is one."""
        line = line.rstrip('\r\n')
        self.last = line or self.last
        if match := PROGRAM.match(line):
            self.program = match[1].removeprefix('./').removeprefix('build/')
        if match := SUM.match(line):
            self.sums.append([int(n) for n in match.groups()])
        elif match := PLAN.match(line):
            self.plans.append((match[1] or '', match[2], match[3].split()))
        elif match := RESULT.match(line):
            return self.add(match, now)
        else:
            self.context = self.context[-CONTEXT:] + [line]
        return None

    def add(self, match, now):
        kind = 'failed' if match['bad'] else 'skipped' if match['skip'] else 'passed'
        machine = match['machine'] or ''
        self.results.append(Result(kind, machine + (match['group'] or self.program),
                                   match['name'] or '', match['reason'],
                                   self.context if kind == 'failed' else (),
                                   max(0.0, now - self.times.get(machine, 0.0))))
        self.times[machine] = self.told = now
        self.context = []
        return self.results[-1]

    def count(self):
        return count(self.results)

    def end(self, status, seconds):
        """The part has ended. It fails as a whole for each reason that there is."""
        told = [sum(column) for column in zip(*self.sums)]
        reasons = list(self.missing())
        if not told:
            reasons.append(f'no sum, status {status}; {self.where(seconds)}')
        elif told != self.count():
            reasons.append(f'its sum is {text_of(told)}, its results are {text_of(self.count())}')
        elif status and not self.count()[1]:
            reasons.append(f'status {status}')
        elif not any(told):
            reasons.append('nothing has run')
        for reason in reasons:
            self.fail(reason)

    def fail(self, reason):
        self.results.append(Result('failed', '', WHOLE, reason))

    def where(self, seconds):
        """Where it was when it ended too early."""
        if not self.results:
            return f'no result; the last line: {self.last}'
        return (f'the last result, after {self.told:.0f} of {seconds:.0f} s: '
                f'{self.results[-1].title()}; the last line: {self.last}')

    def missing(self):
        for machine, group, names in self.plans:
            seen = ' '.join(f' {r.group} {r.name} ' for r in self.results
                            if r.group.startswith(machine))
            for name in names:
                if not re.search(rf' {re.escape(f"{group}/{name}")}[ /:]', seen):
                    yield f'{machine}{group}/{name} was announced and has no result'


def count(results):
    kinds = collections.Counter(result.kind for result in results)
    return [kinds[kind] for kind in KINDS]


def text_of(numbers):
    return ', '.join(f'{n} {kind}' for n, kind in zip(numbers, KINDS))


def read_tap(path):
    """(title, kind) of each result in what Result.tap() has written."""
    with open(path, encoding='utf-8', newline='\n') as file:
        report = Report()
        for line in file:
            if result := report.read(line):
                yield result.title(), result.kind
