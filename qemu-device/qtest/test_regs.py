# SPDX-License-Identifier: GPL-2.0-or-later
"""Registers, and doorbells that must have no effect."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, mapped, running
from hca import PAGE, wait_for


def test_read_only(qemu):
    """registers that identify the device"""
    with mapped(qemu, ",vectors=9,uars=64,cmd-timeout-ms=1234") as hca:
        equal(hca.reg("MAGIC"), c.MAGIC)
        equal(hca.reg("VERSION"), c.VERSION)
        equal(hca.reg("CMD_TIMEOUT"), 1234)
        equal(hca.reg("VECTORS"), 9)
        equal(hca.reg("DB_CAPS") & c.DB_CAPS_PAGES, 64)
        equal(1 << ((hca.reg("DB_CAPS") & c.DB_CAPS_LOG_STRIDE) >> 16), PAGE)
        assert hca.reg("CMD_CAPS") & c.CMD_CAPS_LOG_MAX >= 4
        assert hca.reg("EQ_CAPS") & c.EQ_CAPS_MAX >= 9
        equal(struct.pack("<IH", hca.reg("MAC_LO"), hca.reg("MAC_HI")),
              MAC_BYTES)
        equal(hca.state, c.STATE_RESET)
        equal(hca.fatal, c.FATAL_NONE)
        hca.set_reg("MAGIC", 0)
        hca.set_reg("STATUS", 0xff)
        hca.set_reg("VERSION", 0xff)
        equal(hca.reg("MAGIC"), c.MAGIC)
        equal(hca.state, c.STATE_RESET)


def test_bases(qemu):
    """base registers hold what is written, until the device runs"""
    with mapped(qemu) as hca:
        for name in ("CMD_SQ", "CMD_CQ"):
            hca.set_reg64(name, 0x123456789abcd000)
            equal(hca.reg64(name), 0x123456789abcd000)
        hca.set_reg("CMD_LOG_SIZE", 3)
        equal(hca.reg("CMD_LOG_SIZE"), 3)
        hca.start()
        hca.set_reg64("CMD_SQ", 0)
        hca.set_reg("CMD_LOG_SIZE", 1)
        equal(hca.reg64("CMD_SQ"), hca.sq)
        equal(hca.reg("CMD_LOG_SIZE"), 4)
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_bad_access(qemu):
    """invalid register accesses are counted, logged, and have no effect"""
    with mapped(qemu) as hca:
        base = hca.bar[c.BAR_REGS]
        accesses = 0
        for size in (1, 2, 8):
            equal(hca.m.mmio_read(size, base), 0)
            hca.m.mmio_write(size, base + c.REG_CMD_SQ_LO, 0xff)
            accesses += 2
            equal(hca.counter("bad_reg"), accesses)
        equal(hca.m.mmio_read(4, base + 2), 0)
        for off in (0xff8, 0x01c):
            hca.m.mmio_read(4, base + off)
            hca.m.mmio_write(4, base + off, 1)
        equal(hca.counter("bad_reg"), accesses + 5)
        equal(hca.reg64("CMD_SQ"), 0)
        assert "bad read of 2 bytes" in hca.m.log()


def test_bad_doorbell(qemu):
    """invalid doorbell accesses are counted and have no effect"""
    with running(qemu) as hca:
        db = hca.db_addr("CMD")
        for size in (1, 2, 4):      # with 8 bytes, 0 would be valid
            hca.m.mmio_write(size, db, 0)
        equal(hca.counter("bad_doorbell"), 3)
        for size in (1, 2, 4, 8):
            equal(hca.m.mmio_read(size, db), 0)
        equal(hca.counter("bad_doorbell"), 7)
        hca.m.mmio_write(8, db + 4, 1 << 32)        # not aligned
        hca.m.mmio_write(8, db - c.DB_CMD + 0x38, 0)    # no such doorbell
        hca.m.mmio_write(8, db + PAGE, 1 << 32)     # page 0 only
        hca.doorbell("SQ", 0x123456, 1)             # no such objects
        hca.doorbell("RQ", 0x123456, 1, page=3)
        hca.doorbell("CQ_ARM", 0x123456, 1)
        hca.doorbell("EQ", 0xff, 1)
        hca.doorbell("ETH", 7, 1)
        equal(hca.counter("bad_doorbell"), 15)
        equal(hca.state, c.STATE_RUNNING)
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_stride(qemu):
    """doorbell pages 64 KiB apart, and no doorbells between them"""
    with running(qemu, ",db-stride=64K", stride=1 << 16) as hca:
        equal((hca.reg("DB_CAPS") & c.DB_CAPS_LOG_STRIDE) >> 16, 16)
        cqs = [hca.create_cq(hca.create_eq(1), uar=page) for page in (1, 2)]
        sn = bad = 0
        for page, cq in enumerate(cqs, 1):
            for off in range(0, 1 << 16, PAGE):
                sn += 1
                hca.m.mmio_write(8, hca.db_addr("CQ_ARM", page) + off,
                                 cq.cqn | sn << 32)
                bad += off > 0
                equal(hca.counter("bad_doorbell"), bad)
        hca.doorbell("CQ_ARM", cqs[0].cqn, sn + 1, page=2)
        equal(hca.counter("bad_doorbell"), bad + 1)
        # The last doorbell page.
        hca.doorbell("CQ_ARM", cqs[0].cqn, sn + 1, page=1023)
        equal(hca.counter("bad_doorbell"), bad + 2)
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_doorbell_in_reset(qemu):
    """a device in reset ignores doorbells"""
    with mapped(qemu) as hca:
        hca.doorbell("CMD", 0, 1)
        equal(hca.state, c.STATE_RESET)
        hca.start()
        equal(hca.poll(), None)
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_clock(qemu):
    """the device clock runs with the machine's, and LO latches HI"""
    with mapped(qemu) as hca:
        before = hca.reg64("CLOCK")
        hca.m.clock_step(5_000_000_000)
        equal(hca.reg64("CLOCK") - before, 5_000_000_000)
        low = hca.reg("CLOCK_LO")
        high = hca.reg("CLOCK_HI")
        hca.m.clock_step(1 << 33)
        equal(hca.reg("CLOCK_HI"), high)
        equal(hca.reg64("CLOCK"), (high << 32 | low) + (1 << 33))


def test_link(qemu):
    """set_link shows in STATUS, and survives a reset"""
    args = ("-netdev", "hubport,hubid=0,id=net0")
    with mapped(qemu, ",netdev=net0", args) as hca:
        def link():
            return bool(hca.reg("STATUS") & c.STATUS_LINK_UP)
        assert link(), "down at first"
        hca.m.cmd("set_link", name="net0", up=False)
        wait_for(lambda: not link(), "loss of carrier")
        hca.set_reg("RESET", c.RESET_KEY)
        assert not link(), "up after a reset by register"
        hca.m.cmd("system_reset")
        assert not link(), "up after a reset of the machine"
