# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest memory that moves or ends: the device must use the present memory map."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import PAGE, wait_for
from iommu import Intel
from machine import RAM_SIZE
from rc import Mr, Port, atomic, connected, rdma

ROM = 0xfffff000            # the last page of the firmware
ABOVE_4G = 1 << 32          # address of plugged memory
TABLES = RAM_SIZE - 0x10000
DATA = bytes(i * 13 & 0xff for i in range(64))


def exchange(hca, port, addr, status=c.WC_SUCCESS):
    """A WRITE to the page at @addr, a READ from it and an atomic must all end with @status.
    """
    page, src, dst = Mr(port, addr), port.memory(), port.memory()
    hca.m.write(src.addr, DATA)
    for opcode, local, size, body in (
            (c.WR_RDMA_WRITE, src, len(DATA), rdma(page, 3)),
            (c.WR_RDMA_READ, dst, len(DATA), rdma(page, 3)),
            (c.WR_ATOMIC_FETCH_AND_ADD, src, 8, atomic(page, 1, offset=128))):
        a, _ = connected(port)
        a.post(opcode, local, size, body)
        equal(a.done()[1], status)
    if status == c.WC_SUCCESS:
        equal(hca.m.read(dst.addr, len(DATA)), DATA)


def holds(hca, addr):
    """Whether exchange() has changed exactly its bytes at @addr; clears them."""
    expected = (bytes(3) + DATA).ljust(128, b"\0") + struct.pack("<Q", 1)
    seen = hca.m.read(addr, 2 * PAGE)
    hca.m.write(addr, bytes(2 * PAGE))
    return seen == expected.ljust(2 * PAGE, b"\0")


def test_bus_master_on(qemu):
    """bus mastering is switched off and on repeatedly"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        page = hca.alloc(2)
        for _ in range(3):
            exchange(hca, port, page)
            assert holds(hca, page)
            a, _ = connected(port)
            src, target = port.memory(), Mr(port, page)
            hca.m.write(src.addr, DATA)
            hca.command(0x2)
            a.post(c.WR_RDMA_WRITE, src, len(DATA), rdma(target))
            equal(hca.m.read(page, len(DATA)), bytes(len(DATA)))
            hca.command(0x6)


def test_edge_of_ram(qemu):
    """up to the last byte of RAM and not beyond it"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        src, edge = port.memory(), Mr(port, RAM_SIZE - PAGE, 2 * PAGE)
        hca.m.write(src.addr, DATA)
        for offset, status in ((PAGE - 64, c.WC_SUCCESS), (PAGE - 63, c.WC_REM_OP_ERR),
                               (PAGE, c.WC_REM_OP_ERR)):
            for opcode in (c.WR_RDMA_WRITE, c.WR_RDMA_READ):
                a, _ = connected(port)
                a.post(opcode, src, len(DATA), rdma(edge, offset))
                equal(a.done()[1], status)
        for offset, status in ((PAGE - 8, c.WC_SUCCESS), (PAGE, c.WC_REM_OP_ERR)):
            a, _ = connected(port)
            a.post(c.WR_ATOMIC_FETCH_AND_ADD, src, 8, atomic(edge, 1, offset=offset))
            equal(a.done()[1], status)


def test_rom(qemu):
    """ROM can be read; a write is an error and changes nothing"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        rom, ram = Mr(port, ROM), port.memory()
        before = hca.m.read(ROM, PAGE)
        assert any(before), "no firmware"
        a, _ = connected(port)
        a.post(c.WR_RDMA_READ, ram, PAGE, rdma(rom))
        equal(a.done()[1], c.WC_SUCCESS)
        equal(hca.m.read(ram.addr, PAGE), before)
        for opcode, body in ((c.WR_RDMA_WRITE, rdma(rom)), (c.WR_ATOMIC_WRITE, rdma(rom)),
                             (c.WR_ATOMIC_FETCH_AND_ADD, atomic(rom, 1))):
            a, _ = connected(port)
            a.post(opcode, port.memory(), 8, body)
            equal(a.done()[1], c.WC_REM_OP_ERR)
        equal(hca.m.read(ROM, PAGE), before)


def test_moving_bar(qemu):
    """RAM in the device's own BAR is found at the BAR's present address"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        there = hca.bar[c.BAR_DM]
        for elsewhere in (there + 0x1000000, there + 0x2000000, there):
            exchange(hca, port, there)
            assert holds(hca, there)
            hca.pci.map_bar(c.BAR_DM, elsewhere)
            if elsewhere != there:
                exchange(hca, port, there, c.WC_REM_OP_ERR)
            there = elsewhere


def test_plugged_memory(qemu):
    """memory is plugged while the device works"""
    with running(qemu, args=("-m", "%dM,slots=1,maxmem=1G" % (RAM_SIZE >> 20))) as hca:
        port = Port(hca, MAC_BYTES)
        exchange(hca, port, ABOVE_4G, c.WC_REM_OP_ERR)
        hca.m.cmd("object-add", **{"qom-type": "memory-backend-ram", "id": "mem0",
                                   "size": 128 << 20})
        hca.m.cmd("device_add", driver="pc-dimm", id="dimm0", memdev="mem0",
                  addr=ABOVE_4G)
        exchange(hca, port, ABOVE_4G)
        assert holds(hca, ABOVE_4G)


def test_adjacent_memory(qemu):
    """an access may lie in two pieces of memory, an atomic operation in one"""
    size = 128 << 20
    with running(qemu, args=("-m", "%dM,slots=2,maxmem=1G" % (RAM_SIZE >> 20))) as hca:
        port = Port(hca, MAC_BYTES)
        for number in range(2):
            hca.m.cmd("object-add", **{"qom-type": "memory-backend-ram", "id": "mem%d" % number,
                                       "size": size})
            hca.m.cmd("device_add", driver="pc-dimm", id="dimm%d" % number,
                      memdev="mem%d" % number, addr=ABOVE_4G + number * size)
        border = Mr(port, ABOVE_4G + size - PAGE, 2 * PAGE)
        src, dst = port.memory(), port.memory()
        hca.m.write(src.addr, DATA)
        for off in (PAGE - 1, PAGE - 32, PAGE - 63):
            for first, opcode, body in ((src, c.WR_RDMA_WRITE, rdma(border, off)),
                                        (dst, c.WR_RDMA_READ, rdma(border, off))):
                a, _ = connected(port)
                a.post(opcode, first, len(DATA), body)
                equal(a.done()[1], c.WC_SUCCESS)
            equal(hca.m.read(border.addr + off, len(DATA)), DATA)
            equal(hca.m.read(dst.addr, len(DATA)), DATA)
            hca.m.write(dst.addr, bytes(len(DATA)))
        for off in (PAGE - 8, PAGE):
            a, _ = connected(port)
            a.post(c.WR_ATOMIC_FETCH_AND_ADD, src, 8, atomic(border, 1, offset=off))
            equal(a.done()[1], c.WC_SUCCESS)


def test_iommu(qemu):
    """an IOMMU takes effect when it is switched on, and none when it is off"""
    with running(qemu, args=Intel.ARGS) as hca:
        iommu = Intel(hca.m, TABLES)
        port = Port(hca, MAC_BYTES)
        page = hca.alloc(2)
        for gibs in (None, (0,), None, (0, 3), (0,), None):
            iommu.allow(gibs)
            exchange(hca, port, page)
            assert holds(hca, page)
        a, _ = connected(port)
        src, target = port.memory(), Mr(port, page)
        hca.m.write(src.addr, DATA)
        iommu.allow((3,))
        errors = hca.counter("dma_err")
        a.post(c.WR_RDMA_WRITE, src, len(DATA), rdma(target))
        wait_for(lambda: hca.counter("dma_err") > errors, "DMA error")
        equal(hca.m.read(page, len(DATA)), bytes(len(DATA)))
