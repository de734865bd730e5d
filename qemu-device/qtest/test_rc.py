# SPDX-License-Identifier: GPL-2.0-or-later
"""The data path as far as it depends on QEMU: guest memory, time, network."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, running, running_two
from hca import NO_MEMORY, PAGE
from rc import Mr, Port, atomic, connected, rdma


def test_send(qemu):
    """SEND arrives in the buffer of the peer"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, b = connected(port)
        src, dst = port.memory(), port.memory()
        for i in range(40):
            data = bytes([i]) * (100 + 50 * i)
            hca.m.write(src.addr, data)
            b.post_recv(dst, PAGE)
            a.post(c.WR_SEND, src, len(data))
            equal(a.done(), (c.CQE_SEND, c.WC_SUCCESS))
            equal(b.done(), (c.CQE_RECV, c.WC_SUCCESS))
            equal(hca.m.read(dst.addr, len(data)), data)


def test_write_and_read(qemu):
    """RDMA WRITE and READ move exactly the bytes they name"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, _ = connected(port)
        src, dst = port.memory(), port.memory()
        data = bytes(i * 7 & 0xff for i in range(PAGE))
        hca.m.write(src.addr, data)
        a.post(c.WR_RDMA_WRITE, src, 3001, rdma(dst, 5))
        equal(a.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        equal(hca.m.read(dst.addr, PAGE),
              bytes(5) + data[:3001] + bytes(PAGE - 3006))
        hca.m.write(src.addr, bytes(PAGE))
        a.post(c.WR_RDMA_READ, src, 2999, rdma(dst, 6), 1)
        equal(a.done(), (c.CQE_RDMA_READ, c.WC_SUCCESS))
        equal(hca.m.read(src.addr, 3001),
              bytes(1) + data[1:3000] + bytes(1))


def test_atomics(qemu):
    """compare-and-swap and fetch-and-add on guest memory"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, _ = connected(port)
        result, target = port.memory(), port.memory()

        def run(opcode, *args):
            a.post(opcode, result, 8, atomic(target, *args, offset=8))
            equal(a.done()[1], c.WC_SUCCESS)
            return (struct.unpack("<Q", hca.m.read(result.addr, 8))[0],
                    struct.unpack("<Q", hca.m.read(target.addr + 8, 8))[0])
        start = 0xfffffffffffffffe
        hca.m.write(target.addr + 8, struct.pack("<Q", start))
        add, cas = c.WR_ATOMIC_FETCH_AND_ADD, c.WR_ATOMIC_CMP_AND_SWP
        equal(run(add, 1), (start, start + 1))
        equal(run(add, 2), (start + 1, 1))
        equal(run(cas, 77, 2), (1, 1))
        equal(run(cas, 77, 1), (1, 77))
        equal(hca.m.read(target.addr, 8), bytes(8))
        equal(hca.m.read(target.addr + 16, 8), bytes(8))


def test_atomic_orders(qemu):
    """words of two machines in either byte order, in memory and in device memory"""
    with running_two(qemu) as hcas:
        for orders in ("<>", "><", ">>"):
            for hca, order in zip(hcas, orders):
                hca.flags = c.CONTROL_BIG_ENDIAN if order == ">" else 0
                hca.set_reg("RESET", c.RESET_KEY)
                hca.start()
            one, two = (Port(hca, hca.mac, i + 1) for i, hca in enumerate(hcas))
            a, _ = connected(one, two)
            result, ram, dm = one.memory(), two.memory(), Mr(two, c.ADDR_DM + PAGE)
            for target, seen in (ram, ram.addr), (dm, hcas[1].bar[c.BAR_DM] + PAGE):
                hcas[1].m.write(seen, struct.pack(orders[1] + "Q", 0x1ff))
                for opcode, value, compare, old, new in (
                        (c.WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0x1ff, 0x200),
                        (c.WR_ATOMIC_CMP_AND_SWP, 77, 0x1ff, 0x200, 0x200),
                        (c.WR_ATOMIC_CMP_AND_SWP, 77, 0x200, 0x200, 77)):
                    a.post(opcode, result, 8, atomic(target, value, compare))
                    equal(a.done()[1], c.WC_SUCCESS)
                    equal((struct.unpack(orders[0] + "Q", hcas[0].m.read(result.addr, 8))[0],
                           struct.unpack(orders[1] + "Q", hcas[1].m.read(seen, 8))[0]),
                          (old, new))


def test_atomic_write(qemu):
    """ATOMIC WRITE stores its 8 bytes and touches nothing else"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, _ = connected(port)
        src, dst = port.memory(), port.memory()
        hca.m.write(src.addr, b"12345678")
        a.post(c.WR_ATOMIC_WRITE, src, 8, rdma(dst, 16))
        equal(a.done(), (c.CQE_ATOMIC_WRITE, c.WC_SUCCESS))
        equal(hca.m.read(dst.addr, 32), bytes(16) + b"12345678" + bytes(8))


def test_atomic_misaligned(qemu):
    """an address that is aligned within the region, but not in memory"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        src, page = port.memory(), hca.alloc(2)
        mr = Mr(port, page, PAGE, offset=4)
        for opcode, body in (
                (c.WR_ATOMIC_FETCH_AND_ADD, atomic(mr, 1, offset=8)),
                (c.WR_ATOMIC_CMP_AND_SWP, atomic(mr, 1, offset=8)),
                (c.WR_ATOMIC_WRITE, rdma(mr, PAGE - 8))):
            a, _ = connected(port)
            hca.m.write(src.addr, b"12345678")
            errors = hca.counter("dma_err")
            a.post(opcode, src, 8, body)
            equal(a.done()[1], c.WC_REM_ACCESS_ERR)
            equal(hca.counter("dma_err"), errors)
        equal(hca.m.read(page, 2 * PAGE), bytes(2 * PAGE))


def test_not_memory(qemu):
    """WRs on regions that are not RAM fail, and do not access devices"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        src = port.memory()
        for addr in (NO_MEMORY, hca.bar[c.BAR_REGS], hca.bar[c.BAR_DB],
                     hca.bar[c.BAR_MSIX], 0xfee00000, 0xffff_ffff_ffff_f000):
            mr = Mr(port, addr)
            for opcode, body in (
                    (c.WR_RDMA_WRITE, rdma(mr)),
                    (c.WR_RDMA_READ, rdma(mr)),
                    (c.WR_ATOMIC_WRITE, rdma(mr)),
                    (c.WR_ATOMIC_FETCH_AND_ADD, atomic(mr, 1)),
                    (c.WR_ATOMIC_CMP_AND_SWP, atomic(mr, 1))):
                a, _ = connected(port)
                errors = hca.counter("dma_err")
                a.post(opcode, src, 8, body)
                status = a.done()[1]
                assert status in (c.WC_REM_OP_ERR,
                                  c.WC_REM_ACCESS_ERR), status
                assert hca.counter("dma_err") > errors
        equal(hca.state, c.STATE_RUNNING)
        equal(hca.counter("nested-mmio"), 0)
        equal(hca.counter("bad_doorbell"), 0)
        equal(hca.counter("bad_reg"), 0)


def test_local_not_memory(qemu):
    """a send buffer that is not RAM ends with a local error"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        dst = port.memory()
        for addr in (NO_MEMORY, hca.bar[c.BAR_REGS], 0xfee00000):
            a, _ = connected(port)
            a.post(c.WR_RDMA_WRITE, Mr(port, addr), 64, rdma(dst))
            equal(a.done(), (c.CQE_RDMA_WRITE, c.WC_LOC_PROT_ERR))


def test_bus_master_off(qemu):
    """after bus mastering is switched off, nothing more is written"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, _ = connected(port)
        src, dst = port.memory(), port.memory()
        hca.m.write(src.addr, b"x" * 64)
        hca.command(0x2)
        a.post(c.WR_RDMA_WRITE, src, 64, rdma(dst))
        for _ in range(10):
            hca.m.clock_step(100_000_000)
        equal(hca.m.read(dst.addr, 64), bytes(64))
        equal(a.cq.poll(), None)


def test_bus_master_off_at_peer(qemu):
    """a device without bus mastering does not read or write what its peer asks for, either"""
    with running_two(qemu) as hcas:
        ports = [Port(hca, hca.mac, i + 1) for i, hca in enumerate(hcas)]
        src, dst = [port.memory() for port in ports]
        hcas[1].m.write(dst.addr, b"x" * 64)
        wrs = [(connected(*ports)[0], *wr) for wr in (
            (c.WR_RDMA_WRITE, 64, rdma(dst)), (c.WR_RDMA_READ, 64, rdma(dst)),
            (c.WR_ATOMIC_FETCH_AND_ADD, 8, atomic(dst, 1)))]
        hcas[1].command(0x2)
        for one, opcode, size, body in wrs:
            one.post(opcode, src, size, body)
            equal(one.done()[1], c.WC_REM_OP_ERR)
        equal(hcas[0].m.read(src.addr, 64), bytes(64))
        equal(hcas[1].m.read(dst.addr, 64), b"x" * 64)


def test_retransmission_timer(qemu):
    """without a response the timer of the QP expires, in guest time"""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, b = connected(port)
        src, dst = port.memory(), port.memory()
        hca.ok(c.CMD_DESTROY_QP, struct.pack("<I", b.qpn))
        a.post(c.WR_RDMA_WRITE, src, 64, rdma(dst))
        equal(a.cq.poll(), None)
        for _ in range(20):     # 4 timeouts of 67 ms, and up to 4 times that
            hca.m.clock_step(67_200_000)
        equal(a.done(), (c.CQE_RDMA_WRITE, c.WC_RETRY_EXC_ERR))
        equal(hca.counter("timeout"), 4)
        equal(hca.counter("retransmit"), 3)


def test_two_devices(qemu):
    """two devices of one machine: responses arrive before the send returns"""
    with running_two(qemu) as hcas:
        ports = [Port(hca, hca.mac, i + 1) for i, hca in enumerate(hcas)]
        pairs = [connected(*ports) for _ in range(4)]
        src, dst = ports[0].memory(), ports[1].memory()
        data = bytes(range(250)) * 16
        hcas[0].m.write(src.addr, data)
        for i in range(6):
            for a, b in pairs:
                b.post_recv(dst, PAGE)
                a.post(c.WR_SEND, src, len(data) - i)
                a.post(c.WR_RDMA_READ, src, len(data) - i, rdma(dst))
                b.post(c.WR_RDMA_WRITE, dst, 100, rdma(src))
        for _ in range(6):
            for a, b in pairs:
                for qp in (a, a, b, b):
                    equal(qp.done()[1], c.WC_SUCCESS)
        equal(hcas[0].m.read(src.addr, 3900), data[:3900])
        equal(hcas[1].m.read(dst.addr, 3900), data[:3900])
        for hca in hcas:
            equal([hca.counter(n) for n in ("timeout", "rx_icrc",
                                            "rx_malformed")], [0, 0, 0])
