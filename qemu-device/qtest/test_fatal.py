# SPDX-License-Identifier: GPL-2.0-or-later
"""Driver mistakes that stop the device, one per reason."""

import struct

import contract as c
from fixture import equal, expect_fatal, mapped, running
from hca import LOG_CMDQ, NO_MEMORY, PAGE, wait_for


def check_recovery(hca):
    """Check that a reset, and nothing else, ends the FATAL state."""
    hca.set_reg("CONTROL", c.CONTROL_ENABLE)
    equal(hca.state, c.STATE_FATAL)
    hca.set_reg("RESET", c.RESET_KEY + 1)
    equal(hca.state, c.STATE_FATAL)
    hca.set_reg("RESET", c.RESET_KEY)
    equal((hca.state, hca.fatal), (c.STATE_RESET, c.FATAL_NONE))
    hca.command(0x6)
    hca.start()
    equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_cmdq_config(qemu):
    """the command queue is enabled with a bad base or size"""
    with mapped(qemu) as hca:
        log_max = hca.reg("CMD_CAPS") & c.CMD_CAPS_LOG_MAX
        good = hca.alloc()
        for sq, cq, log_size in ((good + 8, good, LOG_CMDQ),
                                 (good, good + 64, LOG_CMDQ),
                                 (good, good, log_max + 1),
                                 (good, good, 0xff),
                                 (good, good, 0xffffffff)):
            hca.start(log_size if log_size < 10 else LOG_CMDQ, sq, cq)
            if log_size != LOG_CMDQ:
                hca.set_reg("RESET", c.RESET_KEY)
                hca.set_reg64("CMD_SQ", sq)
                hca.set_reg64("CMD_CQ", cq)
                hca.set_reg("CMD_LOG_SIZE", log_size)
                hca.set_reg("CONTROL", c.CONTROL_ENABLE)
            expect_fatal(hca, c.FATAL_CMDQ_CONFIG)
            check_recovery(hca)
            hca.set_reg("RESET", c.RESET_KEY)


def test_cmdq_dma(qemu):
    """a command ring outside of memory, on a BAR, or without bus mastering"""
    with mapped(qemu) as hca:
        for sq, cq in ((NO_MEMORY, None), (None, NO_MEMORY),
                       (hca.bar[c.BAR_DB], None), (None, hca.bar[c.BAR_DB]),
                       (None, hca.bar[c.BAR_REGS])):
            hca.start(sq=sq, cq=cq)
            hca.doorbell("CMD", 0, 1)
            expect_fatal(hca, c.FATAL_CMDQ_DMA)
            check_recovery(hca)
            hca.set_reg("RESET", c.RESET_KEY)
        hca.start()
        hca.command(0x2)
        hca.queue(c.CMD_NOP)
        hca.ring()
        expect_fatal(hca, c.FATAL_CMDQ_DMA)
        check_recovery(hca)
        equal(hca.counter("nested-mmio"), 0)


def test_cmdq_index(qemu):
    """a command doorbell beyond the free entries"""
    for index in ((1 << LOG_CMDQ) + 1, 0x80000000, 0xffffffff):
        with running(qemu) as hca:
            hca.doorbell("CMD", 0, index)
            expect_fatal(hca, c.FATAL_CMDQ_INDEX)
            equal(hca.poll(), None)
            check_recovery(hca)


def test_cmdq_full_is_fine(qemu):
    """a full command ring is no mistake"""
    with running(qemu) as hca:
        hca.doorbell("CMD", 0, hca.entries)
        equal(hca.state, c.STATE_RUNNING)


def test_eq_dma(qemu):
    """an event queue that cannot be written when an event is raised"""
    args = ("-netdev", "hubport,hubid=0,id=net0")
    with running(qemu, ",netdev=net0", args) as hca:
        hca.create_eq(flags=c.EQ_ASYNC)
        hca.command(0x2)
        hca.m.cmd("set_link", name="net0", up=False)
        expect_fatal(hca, c.FATAL_EQ_DMA)
        check_recovery(hca)


def test_eq_full(qemu):
    """more async events than their queue holds: the rest wait"""
    args = ("-netdev", "hubport,hubid=0,id=net0")
    with running(qemu, ",netdev=net0", args) as hca:
        eqn = hca.create_eq(flags=c.EQ_ASYNC, log_size=4)
        for i in range(41):
            up = bool(i % 2)
            hca.m.cmd("set_link", name="net0", up=up)
            wait_for(lambda: bool(hca.reg("STATUS") & c.STATUS_LINK_UP) == up,
                     "link change")
        equal(hca.state, c.STATE_RUNNING)
        events = []
        while event := hca.poll_eq(eqn):
            events.append(event[0])
            hca.arm_eq(eqn)
        equal(events, [c.EVENT_LINK_DOWN, c.EVENT_LINK_UP] * 8 +
              [c.EVENT_LINK_DOWN])


def test_injected(qemu):
    """the operator stops the device; the driver gets an event"""
    with running(qemu) as hca:
        eqn = hca.create_eq(vector=2, flags=c.EQ_ASYNC)
        hca.arm_eq(eqn)
        hca.m.cmd("qom-set", path=hca.path, property="inject-fatal",
                  value=True)
        expect_fatal(hca, c.FATAL_INJECTED)
        equal(hca.poll_eq(eqn)[:2],
              (c.EVENT_DEVICE_FATAL, c.FATAL_INJECTED))
        assert hca.took_irq(2), "no interrupt"
        hca.queue(c.CMD_NOP)
        hca.ring()
        equal(hca.poll(), None)
        check_recovery(hca)


def test_msix_to_own_bars(qemu):
    """an MSI-X message aimed at the device's own RESET register or doorbells"""
    with running(qemu) as hca:
        for addr in (hca.reg_addr("RESET"), hca.db_addr("CMD")):
            eqn = hca.create_eq(vector=1, flags=c.EQ_ASYNC)
            hca.arm_eq(eqn)
            hca.set_msi(1, addr, c.RESET_KEY)
            nested = hca.counter("nested-mmio")
            hca.m.cmd("qom-set", path=hca.path, property="inject-fatal",
                      value=True)
            expect_fatal(hca, c.FATAL_INJECTED)
            equal(hca.counter("nested-mmio"), nested + 1)
            check_recovery(hca)
        equal(hca.counter("bad_doorbell"), 0)


def test_table_loop(qemu):
    """a page table that points to itself is walked once"""
    with running(qemu) as hca:
        page = hca.alloc()
        hca.m.write(page, struct.pack("<Q", page) * (PAGE // 8))
        for depth in (1, 2, 3):
            body = struct.pack("<QIBB2xHBB", page, 1, depth, c.PAGE_SHIFT,
                               0, 4, 0)
            comp = hca.cmd(c.CMD_CREATE_EQ, body)
            equal(comp.status, c.OK)
            equal(hca.destroy(c.CMD_DESTROY_EQ, comp.obj), c.OK)
        body = struct.pack("<QIBB2xHBB", page, 1, c.BUF_MAX_DEPTH + 1,
                           c.PAGE_SHIFT, 0, 4, 0)
        equal(hca.cmd(c.CMD_CREATE_EQ, body).status, c.ERR_PARAM)
