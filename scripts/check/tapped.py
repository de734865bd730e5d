# SPDX-License-Identifier: GPL-2.0
"""pytest --tap: results in TAP and their sum, for the reader of a part's output."""

import pytest


def pytest_addoption(parser):
    parser.addoption('--tap', action='store_true', help='print results in TAP, and their sum')


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if config.getoption('tap'):
        config.pluginmanager.unregister(name='terminalreporter')
        config.pluginmanager.register(Tap(), 'tap')


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """The title: module.function, and what its description says."""
    report = (yield).get_result()
    module, name = (text.removeprefix('test_') for text in (item.module.__name__, item.name))
    report.title = f'{module}.{name}: {" ".join((item.obj.__doc__ or "").split())}'


class Tap:
    def __init__(self):
        self.count = dict.fromkeys(('passed', 'failed', 'skipped'), 0)

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell('failed', report.nodeid, report.longreprtext)

    def pytest_runtest_logreport(self, report):
        if report.when == 'call' or report.outcome != 'passed':
            self.tell(report.outcome, report.title,
                      report.longreprtext if report.failed else '',
                      f' # SKIP {report.longrepr[2]}' if report.skipped else '')

    def tell(self, outcome, title, why, skip=''):
        self.count[outcome] += 1
        for line in why.splitlines():
            print('#', line)
        word = 'not ok' if outcome == 'failed' else 'ok'
        print(f'{word} {sum(self.count.values())} - {title}{skip}', flush=True)

    def pytest_sessionfinish(self, exitstatus):
        """A session that has broken off has no sum."""
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            print(', '.join(f'{n} {outcome}' for outcome, n in self.count.items()), flush=True)
