# SPDX-License-Identifier: GPL-2.0-or-later
"""Rights that a running server has given up; in a build without a sanitizer."""

import os
import subprocess

from fixture import equal, start
from hca import PATIENCE
from rc import Port
from served import Server, children, machines


def statuses(pid):
    """/proc/PID/status of all threads of a process, as dictionaries."""
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid), encoding="utf-8") as file:
            yield dict(line.split(":", 1) for line in file)


def as_root(program):
    """A command that has all capabilities to begin with; of a user namespace, if need be."""
    return [program] if os.geteuid() == 0 else ["unshare", "--map-root-user", program]


def test_status(program):
    """a server and its keeper have a filter of system calls and no capabilities, in all threads"""
    with Server(as_root(program), "") as server:
        hca, = start(machines(server))
        Port(hca, hca.mac)
        pid = server.process.pid
        all_threads = [status for one in (pid, *children(pid)) for status in statuses(one)]
        assert len(all_threads) > 1
        for status in all_threads:
            equal((int(status["Seccomp"]), int(status["NoNewPrivs"])), (2, 1))
            for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                equal((name, int(status[name], 16)), (name, 0))


def test_calls(program):
    """calls that a server does not need are refused, and those that it needs are not"""
    done = subprocess.run([os.path.join(os.path.dirname(program), "sandbox-test")],
                          capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0 and "not ok" not in done.stdout and "\nok 10 " in done.stdout, \
        done.stdout + done.stderr
