# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines and queues that most tests start with."""

import contextlib
import os
import socket
import struct
import tempfile

from qemu.machine.machine import VMLaunchFailure

import contract as c
from hca import PAGE, PATIENCE, SLOT, Hca, wait_for
from machine import Machine
from served import Server, StartFailure, is_server, machines

MAC = "52:54:00:12:34:56"
MAC_BYTES = bytes.fromhex(MAC.replace(":", ""))
DEVICE = "qhca,id=hca0,addr=%d,mac=%s" % (SLOT, MAC)


@contextlib.contextmanager
def mapped(qemu, props="", args=()):
    """A device whose BARs are mapped and which may master the bus; @qemu may be a server."""
    if is_server(qemu):
        with Server(qemu, ",mac=" + MAC + props, args=args) as server:
            yield machines(server)[0]
        return
    with Machine(qemu, *args, "-device", DEVICE + props) as machine:
        hca = Hca(machine)
        hca.map_bars()
        yield hca


def refused(qemu, props, args=()):
    """A device that must not start with these properties; what QEMU or the server says."""
    try:
        with mapped(qemu, props, args):
            raise AssertionError("it was accepted")
    except VMLaunchFailure as err:
        return err.output
    except StartFailure as err:
        return str(err)


@contextlib.contextmanager
def running(qemu, props="", args=(), stride=PAGE):
    """A device with a command queue and MSI-X."""
    with mapped(qemu, props, args) as hca:
        hca.db_stride = stride
        hca.enable_msix()
        hca.start()
        assert hca.state == c.STATE_RUNNING, "state %d" % hca.state
        yield hca


TWO = [word for i in range(2) for word in (
    "-netdev", "hubport,hubid=0,id=net%d" % i,
    "-device", "qhca,id=hca%d,addr=%d,netdev=net%d" % (i, SLOT + i, i))]


def start(hcas):
    """Devices with mapped BARs become running ones, with their addresses in mac."""
    for hca in hcas:
        hca.enable_msix()
        hca.start()
        low, high = hca.reg("MAC_LO"), hca.reg("MAC_HI")
        hca.mac = struct.pack("<IH", low, high)
    return hcas


@contextlib.contextmanager
def running_two(qemu, args=()):
    """Two running devices on one hub, or of one server."""
    if is_server(qemu):
        with Server(qemu, "", "", args=args) as server:
            yield start(machines(server))
        return
    with Machine(qemu, *args, *TWO) as machine:
        hcas = [Hca(machine, i) for i in range(2)]
        for hca in hcas:
            hca.map_bars()
        yield start(hcas)


@contextlib.contextmanager
def cable():
    """QEMU's arguments for the backend net0, the socket at its other end, and the
    address to send to."""
    with tempfile.TemporaryDirectory(prefix="qhca-net-") as d:
        ours, theirs = os.path.join(d, "a"), os.path.join(d, "b")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
            wire.bind(ours)
            wire.settimeout(PATIENCE)
            yield ("-netdev", "dgram,id=net0,local.type=unix,local.path=%s,"
                   "remote.type=unix,remote.path=%s" % (theirs, ours)
                   ), wire, theirs


def hold_interrupt(hca):
    """Stop the machine, then cause an event with an interrupt for vector 2."""
    hca.arm_eq(hca.create_eq(vector=2, flags=c.EQ_ASYNC))
    hca.m.cmd("stop")
    hca.doorbell("CMD", 0, 0x80000000)      # fatal, which is an event


def expect_fatal(hca, reason):
    wait_for(lambda: hca.state == c.STATE_FATAL, "FATAL state")
    assert hca.fatal == reason, "reason %d" % hca.fatal


def equal(got, expected):
    assert got == expected, "got %r, expected %r" % (got, expected)
