# SPDX-License-Identifier: GPL-2.0-or-later
"""Test the qhca PCIe device in a QEMU without a guest.

Each test starts its own QEMU (no CPU, no firmware needed), and programs the device as a driver
would. The tests need the qemu-qtest of scripts/build/beside.sh, which is built if need be, with
QEMU's Python packages beside it (for another QEMU, set PYTHONPATH to these packages);
test_manual also needs the build root, where scripts/docs/layout.py runs.

    pytest qemu-device/qtest [--qemu=PATH] [--to=PATH] [--server=PATH] [-k PATTERN]
"""

import functools
import os
import re
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BESIDE = os.path.join(HERE, "..", "..", "scripts", "build", "beside.sh")

# Tests that a server can run as well, or alone.
SERVED = (
    "pci.link",
    "regs.read_only", "regs.bases", "regs.bad_", "regs.stride", "regs.doorbell_in_reset",
    "cmd.nop", "cmd.batch", "cmd.log_sizes", "cmd.query_", "cmd.windows", "cmd.unknown",
    "cmd.no_object", "cmd.mailbox", "cmd.life_of_objects", "cmd.numbers_follow_seed",
    "fatal.cmdq_config", "fatal.cmdq_index", "fatal.cmdq_full_is_fine", "fatal.injected",
    "fatal.table_loop", "life.reset_register", "leaks.reset", "leaks.fatal",
    "rc.send", "rc.write_and_read", "rc.atomic",
    "rc.local_not_memory", "rc.two_devices", "rc.bus_master", "rc.retransmission_timer",
    "dma.bus_master", "dma.edge_of_ram", "dm.mailbox", "dm.data", "dm.beyond",
    "faults.property", "faults.seed", "faults.commands", "capture.", "trace.", "server.",
    "server_fuzz.", "server_group.", "server_hostile.", "server_life.", "server_line.",
    "server_memory.", "server_pieces.", "server_sandbox.", "server_share.", "server_aggregate.",
    "server_tap.",
    "net.transmit", "net.aggregate_transmit", "net.aggregate_off", "tap.",
    "tap_long.whole", "tap_long.jumbo", "tap_long.down", "tap_long.mtu", "tap_long.hostile",
    "tap_long.socket", "tap_long.unsummed",
)

# With a sanitizer a server has no sandbox, what is freed is kept, and no time says anything.
UNSANITIZED = ("server_sandbox.", "leaks.", "server_life.leave_memory",
               "server_life.without_threads", "server_memory.", "server_share.",
               "server_hostile.busy_pair")


def pytest_addoption(parser):
    group = parser.getgroup("qtest")
    group.addoption("--qemu", metavar="PATH", help="QEMU to test; by default that of "
                    "scripts/build/beside.sh")
    group.addoption("--to", metavar="PATH",
                    help="the QEMU to which machines move, by default the same")
    group.addoption("--server", metavar="PATH", help="qhca-server to test, as far as it is like "
                    "the device in QEMU, and what only a server has")


def pytest_configure(config):
    qemu = qemu_of(config)
    sys.path.append(os.path.join(os.path.dirname(os.path.realpath(qemu)), "python"))
    if config.getoption("to"):
        os.environ["QHCA_TO"] = config.getoption("to")


@functools.cache
def built():
    return os.path.join(subprocess.run([BESIDE], stdout=subprocess.PIPE, check=True,
                                       text=True).stdout.strip(), "qemu-qtest")


def qemu_of(config):
    return config.getoption("qemu") or built()


def is_sanitized(program):
    """Whether a sanitizer is in the program."""
    binary = program + ".bin"
    with open(binary if os.path.exists(binary) else program, "rb") as file:
        return re.search(b"__[at]san_init", file.read())


def pytest_collection_modifyitems(config, items):
    server = config.getoption("server")
    sanitized = is_sanitized(server or qemu_of(config))

    def is_wanted(item):
        name = "%s.%s" % (item.module.__name__[5:], item.name[5:])
        if sanitized and name.startswith(UNSANITIZED):
            return False
        return name.startswith(SERVED) if server else not name.startswith("server")
    out = [item for item in items if not is_wanted(item)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture
def program(request):
    """The program under test: a QEMU, or a server."""
    return request.config.getoption("server") or qemu_of(request.config)


@pytest.fixture
def qemu(program):
    return program
