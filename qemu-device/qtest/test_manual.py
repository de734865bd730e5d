# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver that knows what the manual says and no more."""

import functools
import os
import re
import subprocess
import sys

from machine import HERE, Machine
from manual import Driver, Manual, Port, Qp, SLOT

DATA = bytes(i * 5 & 0xff for i in range(3000))
# As the consumer names its memory, which is not how the device reaches it.
FROM, TO = 0x7f0000001000, 0x123456789000


@functools.cache
def page():
    """The page with all structures and constants, as the documentation has it."""
    return subprocess.run([os.path.join(HERE, "..", "..", "scripts", "docs/layout.py")], check=True,
                          text=True, stdout=subprocess.PIPE).stdout


def write(qemu, manual):
    """Bring the device up, connect two QPs of it, write DATA; CQE, QPN and what arrived."""
    with Machine(qemu, "-device", "qhca,id=hca0,addr=%d" % SLOT) as machine:
        driver = Driver(machine, manual)
        port = Port(driver)
        source, target = driver.memory(4096), driver.memory(4096)
        machine.write(source, DATA)
        lkey = port.region(source, 4096, FROM, "LOCAL_WRITE")
        rkey = port.region(target, 4096, TO, "LOCAL_WRITE", "REMOTE_WRITE")
        one, other = Qp(port), Qp(port)
        one.connect(other)
        other.connect(one)
        cqe = one.write(FROM, len(DATA), lkey, TO + 8, rkey)
        return cqe, one.qpn, machine.read(target, 4096)


def test_write(qemu):
    """an RDMA WRITE, with a driver that knows the tables of the manual only"""
    manual = Manual(page())
    cqe, qpn, target = write(qemu, manual)
    assert cqe == {"wr_id": 4711, "qpn": qpn, "wqe_index": 0, "status": manual["WC_SUCCESS"],
                   "opcode": manual["CQE_RDMA_WRITE"]}, cqe
    assert target == bytes(8) + DATA + bytes(4096 - 8 - len(DATA))


def test_sources():
    """that driver imports nothing that has read the headers"""
    source = sys.modules["manual"].__file__
    with open(source, encoding="utf-8") as f:
        text = f.read()
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.M))
    assert imported == {"re", "time"}, imported
    assert "include" not in text


def test_wrong_table(qemu):
    """with another offset in the manual, the driver fails"""
    wrong, count = re.subn(r"^24( +4 +rdma\.rkey )", r"28\1", page(), flags=re.M)
    assert count == 1
    manual = Manual(wrong)
    cqe, _, target = write(qemu, manual)
    assert cqe["status"] == manual["WC_REM_ACCESS_ERR"], cqe
    assert target == bytes(4096)
