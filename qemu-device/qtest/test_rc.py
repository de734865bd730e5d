# SPDX-License-Identifier: GPL-2.0-or-later
"""The data path as far as it depends on QEMU: guest memory."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import NO_MEMORY, PAGE
from rc import Mr, Pair


def test_send(qemu):
    """SEND arrives in the buffer of the peer"""
    with running(qemu) as hca:
        pair = Pair(hca, MAC_BYTES)
        src, dst = pair.memory(), pair.memory()
        for i in range(40):
            data = bytes([i]) * (100 + 50 * i)
            hca.m.write(src.addr, data)
            pair.b.post_recv(dst, PAGE)
            pair.a.post(c.WR_SEND, src, len(data))
            equal(pair.a.done(), (c.CQE_SEND, c.WC_SUCCESS))
            equal(pair.b.done(), (c.CQE_RECV, c.WC_SUCCESS))
            equal(hca.m.read(dst.addr, len(data) + 1), data + hca.m.read(
                dst.addr + len(data), 1))


def test_write_and_read(qemu):
    """RDMA WRITE and READ move exactly the bytes they name"""
    with running(qemu) as hca:
        pair = Pair(hca, MAC_BYTES)
        src, dst = pair.memory(), pair.memory()
        data = bytes(i * 7 & 0xff for i in range(PAGE))
        hca.m.write(src.addr, data)
        pair.a.post(c.WR_RDMA_WRITE, src, 3001, pair.rdma(dst, 5))
        equal(pair.a.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        equal(hca.m.read(dst.addr, PAGE),
              bytes(5) + data[:3001] + bytes(PAGE - 3006))
        hca.m.write(src.addr, bytes(PAGE))
        pair.a.post(c.WR_RDMA_READ, src, 2999, pair.rdma(dst, 6), 1)
        equal(pair.a.done(), (c.CQE_RDMA_READ, c.WC_SUCCESS))
        equal(hca.m.read(src.addr, 3001),
              bytes(1) + data[1:3000] + bytes(1))


def test_atomics(qemu):
    """compare-and-swap and fetch-and-add on guest memory"""
    with running(qemu) as hca:
        pair = Pair(hca, MAC_BYTES)
        result, target = pair.memory(), pair.memory()

        def atomic(opcode, *args):
            pair.a.post(opcode, result, 8, pair.atomic(target, *args))
            equal(pair.a.done()[1], c.WC_SUCCESS)
            return (struct.unpack("<Q", hca.m.read(result.addr, 8))[0],
                    struct.unpack("<Q", hca.m.read(target.addr + 8, 8))[0])
        start = 0xfffffffffffffffe
        hca.m.write(target.addr + 8, struct.pack("<Q", start))
        add, cas = c.WR_ATOMIC_FETCH_AND_ADD, c.WR_ATOMIC_CMP_AND_SWP
        equal(atomic(add, 1, 0, 8), (start, start + 1))
        equal(atomic(add, 2, 0, 8), (start + 1, 1))
        equal(atomic(cas, 77, 2, 8), (1, 1))
        equal(atomic(cas, 77, 1, 8), (1, 77))
        equal(hca.m.read(target.addr, 8), bytes(8))
        equal(hca.m.read(target.addr + 16, 8), bytes(8))


def bad_targets(hca):
    """Where registered memory may turn out to be something else."""
    return (NO_MEMORY, hca.bar[c.BAR_REGS], hca.bar[c.BAR_DB],
            hca.bar[c.BAR_MSIX], 0xfee00000, 0xffff_ffff_ffff_f000)


def test_not_memory(qemu):
    """regions that are not RAM: an error, and no access to devices"""
    with running(qemu) as hca:
        def fails(opcode, body, length):
            pair = Pair(hca, MAC_BYTES)
            src = pair.memory()
            errors = hca.counter("dma_err")
            pair.a.post(opcode, src, length, body(pair))
            opcode, status = pair.a.done()
            assert status in (c.WC_REM_OP_ERR, c.WC_REM_ACCESS_ERR), status
            assert hca.counter("dma_err") > errors
        for addr in bad_targets(hca):
            def rdma(pair, addr=addr):
                return pair.rdma(Mr(hca, pair.pdn, addr))

            def atomic(pair, addr=addr):
                return pair.atomic(Mr(hca, pair.pdn, addr), 1)
            fails(c.WR_RDMA_WRITE, rdma, 64)
            fails(c.WR_RDMA_READ, rdma, 64)
            fails(c.WR_ATOMIC_FETCH_AND_ADD, atomic, 8)
            fails(c.WR_ATOMIC_CMP_AND_SWP, atomic, 8)
        equal(hca.state, c.STATE_RUNNING)
        equal(hca.counter("nested-mmio"), 0)
        equal(hca.counter("bad_doorbell"), 0)
        equal(hca.counter("bad_reg"), 0)


def test_local_not_memory(qemu):
    """a send buffer that is not RAM ends with a local error"""
    for addr in (NO_MEMORY, 0xe0000000, 0xfee00000):
        with running(qemu) as hca:
            pair = Pair(hca, MAC_BYTES)
            pair.a.post(c.WR_RDMA_WRITE, Mr(hca, pair.pdn, addr), 64,
                        pair.rdma(pair.memory()))
            opcode, status = pair.a.done()
            equal(opcode, c.CQE_RDMA_WRITE)
            assert status not in (c.WC_SUCCESS, c.WC_REM_OP_ERR), status


def test_bus_master_off(qemu):
    """bus mastering goes away in the middle: nothing more is written"""
    with running(qemu) as hca:
        pair = Pair(hca, MAC_BYTES)
        src, dst = pair.memory(), pair.memory()
        hca.m.write(src.addr, b"x" * 64)
        hca.command(0x2)
        pair.a.post(c.WR_RDMA_WRITE, src, 64, pair.rdma(dst))
        for _ in range(10):
            hca.m.clock_step(100_000_000)
        equal(hca.m.read(dst.addr, 64), bytes(64))
        equal(pair.a.cq.poll(), None)


def test_retransmission_timer(qemu):
    """an answer that never comes: the timer of the QP runs on guest time"""
    with running(qemu) as hca:
        pair = Pair(hca, MAC_BYTES)
        src, dst = pair.memory(), pair.memory()
        hca.ok(c.CMD_DESTROY_QP, struct.pack("<I", pair.b.qpn))
        pair.a.post(c.WR_RDMA_WRITE, src, 64, pair.rdma(dst))
        equal(pair.a.cq.poll(), None)
        for _ in range(20):     # 4 timeouts of 67 ms, and up to 4 times that
            hca.m.clock_step(67_200_000)
        equal(pair.a.done(), (c.CQE_RDMA_WRITE, c.WC_RETRY_EXC_ERR))
        equal(hca.counter("timeout"), 4)
        equal(hca.counter("retransmit"), 3)
