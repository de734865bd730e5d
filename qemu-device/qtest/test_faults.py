# SPDX-License-Identifier: GPL-2.0-or-later
"""Fault rules that the operator sets."""

import subprocess

from qemu.qmp.protocol import QMPError

import contract as c
from fixture import MAC_BYTES, equal, expect_fatal, running
from hca import PAGE, PATIENCE, wait_for
from rc import Port, connected, rdma
from test_life import SLOT_OFF, check_unplugged, plug, root_port

SLOT_PRESENT, SLOT_CHANGED = 0x40, 0x08     # of the slot status


def rules(hca):
    return hca.m.qom_get(hca.path, "faults")


def set_rules(hca, text):
    hca.m.cmd("qom-set", path=hca.path, property="faults", value=text)


def refused(hca, text, reason):
    """Setting these rules must fail for @reason."""
    try:
        set_rules(hca, text)
    except QMPError as err:
        assert reason in str(err), err
    else:
        raise AssertionError("accepted")


def write_some(hca, count=1):
    port = Port(hca, MAC_BYTES)
    qp, _ = connected(port)
    src, dst = port.memory(), port.memory()
    for _ in range(count):
        qp.post(c.WR_RDMA_WRITE, src, PAGE, rdma(dst))
    for _ in range(count):
        equal(qp.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))


def test_property(qemu):
    """rules of the command line, and their hits"""
    text = "seed=7; rx opcode=rc.acknowledge nth=2 duplicate; tx prob=1% drop"
    with running(qemu, ",faults=" + text) as hca:
        equal(rules(hca), "seed=7\nrx opcode=rc.acknowledge nth=2 duplicate  # hits 0\n"
              "tx prob=1% drop  # hits 0\n")
        set_rules(hca, "tx opcode=rc.write_middle once drop")
        write_some(hca, 3)
        equal(rules(hca), "seed=1\ntx opcode=rc.write_middle once drop  # hits 1\n")
        equal(hca.counter("rx_nak_seq"), 1)
        set_rules(hca, rules(hca))
        equal(rules(hca), "seed=1\ntx opcode=rc.write_middle once drop  # hits 0\n")
        set_rules(hca, "")
        equal(rules(hca), "")


def test_seed(qemu):
    """the same seed gives the same faults as in the engine's tests"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        qp, _ = connected(port)
        src, dst = port.memory(), port.memory()
        set_rules(hca, "seed=7; tx opcode=rc.write_only prob=50% duplicate")
        hits = [0]
        for _ in range(16):
            qp.post(c.WR_RDMA_WRITE, src, 64, rdma(dst))
            equal(qp.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
            hits.append(int(rules(hca).split()[-1]))
        # The same string as in test_fault_match.c
        equal("".join(str(b - a) for a, b in zip(hits, hits[1:])), "1100111111100000")


def test_error(qemu):
    """a wrong rule is refused with the column of the error, and changes nothing"""
    with running(qemu, ",faults=rx drop once") as hca:
        before = rules(hca)
        refused(hca, "tx drop once\nrx  dorp", "line 2, column 5: no such word: dorp")
        equal(rules(hca), before)
        answer = hca.m.cmd("human-monitor-command", command_line=(
            f"qom-set {hca.path} faults rx prob=2 drop"))
        assert answer.splitlines()[1:] == ["rx prob=2 drop", "        ^"], answer


def test_command_line(qemu):
    """a wrong rule keeps the machine from starting"""
    done = subprocess.run([qemu, "-machine", "q35", "-nodefaults", "-display", "none", "-device",
                           "qhca,faults=tx opcode=rc.wrote drop"], check=False, timeout=PATIENCE,
                          capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "column 11: no opcode of that name\ntx opcode=rc.wrote drop\n          ^" in \
        done.stderr, done.stderr


def test_reset(qemu):
    """rules survive a reset of the machine, delayed packets do not"""
    with running(qemu, ",faults=tx delay=10s") as hca:
        port = Port(hca, MAC_BYTES)
        qp, _ = connected(port)
        src, dst = port.memory(), port.memory()
        before = hca.m.qom_get(hca.path, "memory")
        qp.post(c.WR_RDMA_WRITE, src, PAGE, rdma(dst))
        assert hca.m.qom_get(hca.path, "memory") > before
        hca.m.cmd("system_reset")
        wait_for(lambda: hca.m.qom_get(hca.path, "objects") == 0, "the reset")
        assert hca.m.qom_get(hca.path, "memory") < before
        assert rules(hca).startswith("seed=1\ntx delay=10s  # hits "), rules(hca)
        hca.m.clock_step(20_000_000_000)


def test_commands(qemu):
    """commands fail, and the device stops"""
    with running(qemu) as hca:
        set_rules(hca, "cmd opcode=alloc_pd once fail=no_resource; cmd opcode=nop fatal")
        equal(hca.cmd(c.CMD_ALLOC_PD).status, c.ERR_NO_RESOURCE)
        equal(hca.cmd(c.CMD_ALLOC_PD).status, c.OK)
        equal(hca.cmd(c.CMD_NOP).status, c.OK)
        hca.m.clock_step(1000)
        expect_fatal(hca, c.FATAL_INJECTED)


def test_link(qemu):
    """the link goes down for a while"""
    with running(qemu) as hca:
        set_rules(hca, "timer after=5ms link-down=10ms")
        for ms, up in ((4, True), (2, False), (8, False), (2, True)):
            hca.m.clock_step(ms * 1_000_000)
            equal(bool(hca.reg("STATUS") & c.STATUS_LINK_UP), up)


def test_remove(qemu):
    """a rule removes the device while it works; another one can be plugged"""
    with root_port(qemu) as (machine, port, slot):
        for _ in range(2):
            hca = plug(machine, port, slot)
            port.write(slot + 2, 2, 0xffff)
            set_rules(hca, "timer after=1ms remove")
            hca.m.clock_step(500_000)
            equal(hca.state, c.STATE_RUNNING)
            hca.m.clock_step(500_000)
            check_unplugged(hca)
            status = port.read(slot + 2, 2)
            equal(status & (SLOT_PRESENT | SLOT_CHANGED), SLOT_CHANGED)
            port.write(slot, 2, SLOT_OFF)


def test_fixed(qemu):
    """a device that is not in a hot-plug slot cannot be removed"""
    with running(qemu) as hca:
        refused(hca, "timer remove", "not in a slot")
