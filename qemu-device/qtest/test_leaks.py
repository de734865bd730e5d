# SPDX-License-Identifier: GPL-2.0-or-later
"""A process has no more memory after hundreds of lives of its device than after a few."""

import statistics
import time

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import PAGE
from rc import Mr, Port, connected, rdma
from served import size_of
from test_life import SLOT_OFF, check_unplugged, plug, root_port

WINDOWS = 12
LIVES = 64      # in each
MAP = 4096      # bytes: maps of the machine's memory come and go with BARs, and leave gaps


def settled(pid):
    """KiB that a process has of its own, without files and memory that it shares; the least in
    a while: QEMU frees maps 50 ms after they were in use, or later."""
    sizes = []
    for _ in range(20):
        time.sleep(0.01)
        sizes.append(size_of(pid, "RssAnon"))
    return min(sizes)


def give_back(pid, life, lives=LIVES, most=0):
    """Each life of a device takes no memory for ever, or @most bytes.

    Memory that cannot be returned because of its neighbours grows in steps, with none between them.
    A leak grows in each window.
    """
    sizes = []
    for _ in range(WINDOWS):
        for _ in range(lives):
            life()
        sizes.append(settled(pid))
    took = [after - before for before, after in zip(sizes, sizes[1:])]
    assert statistics.median(took) << 10 <= most * lives, sizes


def work(hca):
    """Objects of most kinds, and data; nothing is destroyed."""
    port = Port(hca, MAC_BYTES)
    a, b = connected(port)
    source, target = (Mr(port, hca.alloc(4), 4 * PAGE) for _ in range(2))
    hca.ok(c.CMD_ALLOC_MW, port.pdn.to_bytes(4, "little") + bytes([c.MW_1]))
    b.post_recv(target, PAGE)
    a.post(c.WR_SEND, source, PAGE)
    a.post(c.WR_RDMA_READ, source, PAGE, rdma(target))
    for qp in a, a, b:
        equal(qp.done()[1], c.WC_SUCCESS)
    a.post(c.WR_SEND, source, PAGE)     # which waits for a receive WQE


def again(hca):
    """The device works after a reset, in the memory that it had before."""
    hca.next_page = hca.mem
    hca.start()
    work(hca)


def reset(hca):
    hca.set_reg("RESET", c.RESET_KEY)
    again(hca)


def fatal(hca):
    hca.doorbell("CMD", 0, 0x80000000)
    equal(hca.state, c.STATE_FATAL)
    reset(hca)


def flr(hca):
    hca.flr()
    hca.map_bars()
    hca.enable_msix()
    again(hca)


def sleep(hca):
    """To D3hot and back, which keeps what is there."""
    pos = hca.pci.capability(0x01)
    hca.pci.write(pos + 4, 2, 3)
    hca.pci.write(pos + 4, 2, 0)
    reset(hca)


def lose_link(hca):
    for up in False, True:
        hca.m.cmd("set_link", name="net0", up=up)
    reset(hca)


def pid_of(hca):
    return hca.m.server.process.pid if hasattr(hca.m, "server") else hca.m.get_pid()


def lives_on(qemu, life, *args, **kwargs):
    with running(qemu, *args) as hca:
        work(hca)
        give_back(pid_of(hca), lambda: life(hca), **kwargs)


def test_reset(qemu):
    """memory after resets by the register"""
    lives_on(qemu, reset)


def test_fatal(qemu):
    """memory after fatal errors"""
    lives_on(qemu, fatal)


def test_flr(qemu):
    """memory after function level resets, which take the BARs away"""
    lives_on(qemu, flr, most=MAP)


def test_sleep(qemu):
    """memory after power states"""
    lives_on(qemu, sleep, most=MAP)


def test_link(qemu):
    """memory after the link has gone and come"""
    lives_on(qemu, lose_link, ",netdev=net0", ("-netdev", "hubport,hubid=0,id=net0"))


def test_plug(qemu):
    """memory after a device was plugged in and taken out"""
    with root_port(qemu) as (qtest, port, slot):
        def life():
            hca = plug(qtest, port, slot)
            work(hca)
            port.write(slot, 2, SLOT_OFF)
            check_unplugged(hca)
        give_back(qtest.get_pid(), life, LIVES // 4, 16 * MAP)
