#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that Meson's TAP parser lacks.

  tap.py run [--limit SECONDS] COMMAND...
        run the command and pass its TAP on, with one more "not ok" if it has no plan or
        an empty one, if the number of tests is not the plan's, if it takes longer than
        SECONDS, or if its status is not 0 though no test failed (a leak, a crash)
  tap.py sum [--all] RESULTS.xml
        the output of the programs that failed, or of all, and the sum of Meson's JUnit
        file
"""

import re
import signal
import subprocess
import sys


def ending(status):
    return f'signal {signal.Signals(-status).name}' if status < 0 else f'status {status}'


def wrong(count, bad, plan, status):
    """Return the mistake of a run besides failed tests, or None."""
    if not plan:
        return f'did not finish, or had no tests: {ending(status)}'
    if count != plan:
        return f'ran {count} tests of {plan}'
    if status != 0 and bad == 0:
        return f'ended with {ending(status)}'
    return None


def run(command, limit):
    """The exit status is always 0: the TAP output has the result."""
    count = bad = plan = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace') as process:
        signal.signal(signal.SIGALRM, lambda *_: process.kill())
        signal.alarm(limit)
        for line in process.stdout:
            line = line.rstrip('\n')
            test = re.match(r'(not )?ok\b', line)
            if test:
                count += 1
                bad += bool(test[1])
            elif re.match(r'1\.\.\d', line):
                plan = int(line[3:].split()[0])
                continue
            elif not line.startswith('#'):
                line = f'# {line}'          # a sanitizer's report, for instance
            print(line, flush=True)
        status = process.wait()
    message = wrong(count, bad, plan, status)
    if message:
        count += 1
        print(f'not ok {count} - {message}')
    print(f'1..{count}')
    return 0


def total(path, everything):
    import xml.etree.ElementTree as et      # pylint: disable=import-outside-toplevel # slow
    passed = failed = skipped = 0
    for suite in et.parse(path).getroot().iter('testsuite'):
        cases = suite.findall('testcase')
        bad = [c for c in cases if c.find('failure') is not None or c.find('error') is not None]
        unrun = [c for c in cases if c.find('skipped') is not None]
        passed += len(cases) - len(bad) - len(unrun)
        failed += len(bad)
        skipped += len(unrun)
        if bad or everything:
            print(f'# {suite.get("name").rpartition(":")[2].replace(" / ", "/").replace(" ", "-")}')
            for element in [suite, *cases]:
                print(element.findtext('system-out', '').strip())
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


def main(args):
    if args[:1] == ['sum'] and len(args) > 1:
        return total(args[-1], '--all' in args)
    if args[:1] == ['run'] and len(args) > 1:
        limit = int(args[2]) if args[1] == '--limit' else 0
        return run(args[3:] if limit else args[1:], limit)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
