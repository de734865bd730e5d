#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Test the qhca PCIe device in a QEMU without a guest.

Each test starts its own QEMU (no CPU, no firmware needed), programs the device
as a driver would, and prints one line of TAP; the last line has the totals.
Exit status: 0 if all passed, 1 if one failed, 2 if the tests cannot run.

The tests need Python and the qemu-qtest of scripts/build/beside.sh, with QEMU's Python
packages beside it (for another QEMU, set PYTHONPATH to these packages); test_manual also
needs the build root, where scripts/docs/layout.py runs.
"""

import argparse
import collections
import importlib
import os
import re
import subprocess
import sys
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from host import Skip       # noqa: E402  pylint: disable=wrong-import-position

MODULES = ("test_pci", "test_regs", "test_cmd", "test_fatal", "test_life", "test_leaks",
           "test_unplug", "test_net", "test_rc", "test_dm", "test_dma", "test_limits",
           "test_faults", "test_capture", "test_trace", "test_fuzz", "test_fuzz_machine",
           "test_migrate", "test_migrate_dm", "test_migrate_odp", "test_migrate_rate",
           "test_doc", "test_manual", "test_tap", "test_tap_long",
           "test_server", "test_server_aggregate", "test_server_fuzz", "test_server_hostile",
           "test_server_group", "test_server_life", "test_server_line", "test_server_memory",
           "test_server_pieces", "test_server_sandbox", "test_server_share", "test_server_tap")

# What a server does as the device in QEMU does, and what only a server has.
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


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--qemu", metavar="PATH",
                        help="QEMU to test; by default the one of\n"
                        "scripts/build/beside.sh (it is built if needed)")
    parser.add_argument("--to", metavar="PATH",
                        help="the QEMU to which machines move, by default the same")
    parser.add_argument("--server", metavar="PATH",
                        help="qhca-server to test, as far as it is like the device in QEMU,\n"
                        "and what only a server has; --qemu then has the packages")
    parser.add_argument("--list", action="store_true",
                        help="only print the names of the tests")
    parser.add_argument("pattern", nargs="*",
                        help="run the tests whose names contain one of these")
    return parser.parse_args()


def build_qemu():
    script = os.path.join(HERE, "..", "..", "scripts", "build/beside.sh")
    result = subprocess.run([script], stdout=subprocess.PIPE, check=False,
                            text=True)
    if result.returncode:
        print("Bail out! QEMU cannot be built")
        sys.exit(2)
    return os.path.join(result.stdout.strip(), "qemu-qtest")


def is_wanted(name, server, patterns):
    if server and not name.startswith(SERVED) or \
            not server and name.startswith("server"):
        return False
    return not patterns or any(p in name for p in patterns)


def is_sanitized(program):
    """Whether a sanitizer is in the program."""
    binary = program + ".bin"
    with open(binary if os.path.exists(binary) else program, "rb") as file:
        return re.search(b"__[at]san_init", file.read())


# With a sanitizer a server has no sandbox, what is freed is kept, and no time says anything.
UNSANITIZED = ("server_sandbox.", "leaks.", "server_life.leave_memory",
               "server_life.without_threads", "server_memory.", "server_share.")


def collect(server, qemu, patterns):
    tests = []
    for name in MODULES:
        module = importlib.import_module(name)
        tests += [("%s.%s" % (name[5:], key[5:]), value)
                  for key, value in vars(module).items()
                  if key.startswith("test_")]
    if is_sanitized(server or qemu):
        tests = [test for test in tests if not test[0].startswith(UNSANITIZED)]
    return [(name, function) for name, function in tests if is_wanted(name, server, patterns)]


def run_one(number, name, function, qemu):
    label = "%d - %s: %s" % (number, name, function.__doc__)
    try:
        function(qemu)
    except Exception as err:  # pylint: disable=broad-except
        # Only a test that says so may be skipped, and it does not decide whether.
        if isinstance(err, Skip) and getattr(function, "may_skip", False):
            print("ok %s # SKIP %s" % (label, err))
            return "skipped"
        print("not ok " + label)
        for line in traceback.format_exc().splitlines():
            print("# " + line)
        return "failed"
    print("ok " + label)
    return "passed"


def main():
    args = parse_args()
    qemu = args.qemu or build_qemu()
    if not os.access(qemu, os.X_OK):
        print("Bail out! cannot execute %s" % qemu)
        return 2
    sys.path.append(os.path.join(os.path.dirname(os.path.realpath(qemu)), "python"))
    if args.to:
        os.environ["QHCA_TO"] = args.to
    try:
        tests = collect(args.server, qemu, args.pattern)
    except ModuleNotFoundError as e:
        print("Bail out! %s, see --help" % e)
        return 2
    if args.list:
        for name, function in tests:
            print("%-28s %s" % (name, function.__doc__))
        return 0
    if not tests:
        print("Bail out! no such test")
        return 2
    print("TAP version 13\n1..%d" % len(tests), flush=True)
    sums = collections.Counter()
    for number, (name, function) in enumerate(tests, 1):
        sums[run_one(number, name, function, args.server or qemu)] += 1
        sys.stdout.flush()
    print(", ".join("%d %s" % (sums[kind], kind) for kind in ("passed", "failed", "skipped")))
    return 1 if sums["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
