# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory: the BAR, and the device's own addresses of it."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, mapped, running
from hca import PAGE
from rc import Mr, Port, atomic, connected, rdma

MIB = 1 << 20
BAR_64BIT, BAR_PREFETCH = 4, 8


def test_bar(qemu):
    """the BAR has the size of the property, and can be left out"""
    for prop, size in (("", MIB), (",dm-size=4k", 4096),
                       (",dm-size=1G", 1 << 30)):
        with mapped(qemu, prop) as hca:
            hca.command(0)
            equal(hca.pci.bar_info(c.BAR_DM),
                  (size, BAR_64BIT | BAR_PREFETCH))
    with mapped(qemu, ",dm-size=0") as hca:
        hca.pci.write(0x10 + 4 * c.BAR_DM, 4, 0xffffffff)
        equal(hca.pci.read(0x10 + 4 * c.BAR_DM, 4), 0)


def test_mailbox(qemu):
    """mailboxes in device memory: up to the last page, not beyond, nor without it"""
    for props, good, bad in (
            ("", (0, MIB - PAGE), (MIB, MIB << 20, c.ADDR_DM - PAGE)),
            (",dm-size=0", (), (0,))):
        with running(qemu, props) as hca:
            ram = hca.alloc()
            hca.ok(c.CMD_QUERY_DEVICE, mailbox=ram)
            for offset in good:
                hca.ok(c.CMD_QUERY_DEVICE, mailbox=c.ADDR_DM + offset)
                equal(hca.m.read(hca.bar[c.BAR_DM] + offset, PAGE),
                      hca.m.read(ram, PAGE))
            before = hca.counter("dma_err")
            for offset in bad:
                equal(hca.cmd(c.CMD_QUERY_DEVICE,
                              mailbox=c.ADDR_DM + offset).status, c.ERR_DMA)
            equal(hca.counter("dma_err"), before + len(bad))


def test_data(qemu):
    """WRITE, READ and atomics between memory and device memory"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, _ = connected(port)
        ram, dm = port.memory(), Mr(port, c.ADDR_DM + 3 * PAGE)
        seen = hca.bar[c.BAR_DM] + 3 * PAGE
        data = bytes(i * 11 & 0xff for i in range(PAGE))
        hca.m.write(ram.addr, data)
        a.post(c.WR_RDMA_WRITE, ram, 2001, rdma(dm, 7))
        equal(a.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        equal(hca.m.read(seen - PAGE, 3 * PAGE),
              bytes(PAGE + 7) + data[:2001] + bytes(2 * PAGE - 2008))
        a.post(c.WR_RDMA_READ, dm, 1000, rdma(ram, 50), 3000)
        equal(a.done(), (c.CQE_RDMA_READ, c.WC_SUCCESS))
        equal(hca.m.read(seen + 3000, 1000), data[50:1050])
        hca.m.write(seen + 8, struct.pack("<Q", 41))
        for opcode, body in (
                (c.WR_ATOMIC_FETCH_AND_ADD, atomic(dm, 1, offset=8)),
                (c.WR_ATOMIC_CMP_AND_SWP, atomic(dm, 99, 42, offset=8))):
            a.post(opcode, ram, 8, body)
            equal(a.done()[1], c.WC_SUCCESS)
        equal(struct.unpack("<Q", hca.m.read(ram.addr, 8))[0], 42)
        equal(struct.unpack("<Q", hca.m.read(seen + 8, 8))[0], 99)


def test_beyond(qemu):
    """a region that extends beyond device memory"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        ram, dm = port.memory(), Mr(port, c.ADDR_DM + MIB - PAGE, 2 * PAGE)
        for opcode, local, offset, body, status in (
                (c.WR_RDMA_WRITE, ram, 0, rdma(dm, PAGE - 8), c.WC_SUCCESS),
                (c.WR_RDMA_WRITE, ram, 0, rdma(dm, PAGE - 4), c.WC_REM_OP_ERR),
                (c.WR_RDMA_WRITE, dm, PAGE - 8, rdma(ram), c.WC_SUCCESS),
                (c.WR_RDMA_WRITE, dm, PAGE - 4, rdma(ram), c.WC_LOC_PROT_ERR),
                (c.WR_RDMA_WRITE, dm, PAGE, rdma(ram), c.WC_LOC_PROT_ERR),
                (c.WR_RDMA_READ, ram, 0, rdma(dm, PAGE - 8), c.WC_SUCCESS),
                (c.WR_RDMA_READ, ram, 0, rdma(dm, PAGE), c.WC_REM_OP_ERR),
                (c.WR_ATOMIC_FETCH_AND_ADD, ram, 0, atomic(dm, 1, offset=PAGE),
                 c.WC_REM_OP_ERR)):
            a, _ = connected(port)
            a.post(opcode, local, 8, body, offset)
            equal(a.done()[1], status)


def test_kept(qemu):
    """the device can access its memory while CPUs cannot; it survives a reset"""
    with running(qemu) as hca:
        hca.m.write(hca.bar[c.BAR_DM] + 100, b"as it was")
        hca.pci.map_bar(c.BAR_DM, 0)
        hca.ok(c.CMD_QUERY_DEVICE, mailbox=c.ADDR_DM + PAGE)
        hca.set_reg("RESET", c.RESET_KEY)
        hca.pci.map_bar(c.BAR_DM, hca.bar[c.BAR_DM])
        equal(hca.m.read(hca.bar[c.BAR_DM] + 100, 9), b"as it was")
        assert any(hca.m.read(hca.bar[c.BAR_DM] + PAGE, PAGE))
