# SPDX-License-Identifier: GPL-2.0-or-later
"""Trace events, which QEMU and a server print alike."""

import contextlib
import re

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import wait_for
from rc import Port, connected, rdma
from served import is_server

EVENT = re.compile(r"^(qhca_\w+) hca0: (.*)$", re.M)


@contextlib.contextmanager
def traced(qemu, *patterns):
    """A running device, and a function that returns its events so far and forgets them."""
    option = "--trace" if is_server(qemu) else "-trace"
    with running(qemu, args=[word for one in patterns for word in (option, one)]) as hca:
        seen = 0

        def events():
            nonlocal seen
            hca.reg("STATUS")       # whatever was under way has been printed now
            text = hca.m.log()[seen:]
            seen += len(text)
            return EVENT.findall(text)
        yield hca, events


def in_order(names, events):
    """Whether events with these names happened, in this order, others between them."""
    left = iter(name for name, _ in events)
    return all("qhca_" + name in left for name in names)


def test_write(qemu):
    """the events of a write go from the doorbell to the completion"""
    with traced(qemu, "qhca_*") as (hca, events):
        a, _ = connected(Port(hca, MAC_BYTES))
        src, dst = a.port.memory(), a.port.memory()
        begin = events()
        assert ("qhca_qp_state", "qpn 0x%x from 0 to 1" % a.qpn) in begin, begin
        assert in_order(("reg_write", "reg_read", "cmd", "dma_entry", "irq"), begin), begin
        a.post(c.WR_RDMA_WRITE, src, 7, rdma(dst))
        equal(a.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        write = events()
        assert in_order(("doorbell", "wqe", "tx", "dma_entry", "cqe"), write), write
        read = "qpn 0x%x index 0 opcode %d" % (a.qpn, c.WR_RDMA_WRITE)
        assert ("qhca_wqe", read) in write, write


def test_chosen(qemu):
    """only the events that were asked for are printed, with what they are about"""
    with traced(qemu, "qhca_f?tal", "qhca_cmd") as (hca, events):
        connected(Port(hca, MAC_BYTES))
        equal({name for name, _ in events()}, {"qhca_cmd"})
        slot = hca.pi % hca.entries
        hca.ok(c.CMD_NOP)
        equal(events(), [("qhca_cmd", "opcode 0x%02x slot %d status 0" % (c.CMD_NOP, slot))])
        hca.m.cmd("qom-set", path=hca.path, property="inject-fatal", value=True)
        wait_for(lambda: hca.state == c.STATE_FATAL, "FATAL state")
        equal(events(), [("qhca_fatal", "reason %d" % c.FATAL_INJECTED)])


def test_unreachable(qemu):
    """memory that cannot be reached is named"""
    with traced(qemu, "qhca_dma_fail") as (hca, events):
        assert hca.cmd(c.CMD_QUERY_DEVICE, mailbox=1 << 40).status != c.OK
        (name, text), = set(events())
        equal(name, "qhca_dma_fail")
        assert text.startswith("addr 0x%x len" % (1 << 40)) and text.endswith("write 1"), text
