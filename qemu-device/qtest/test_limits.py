# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits set by the operator: a share of the CPU, a bandwidth."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import PAGE
from rc import Mr, Port, connected, rdma

PAGES = 256
MS = 1_000_000


def milliseconds(hca, length, count=1):
    """Milliseconds of guest time that @count WRITEs of @length bytes take."""
    port = Port(hca, MAC_BYTES)
    a, _ = connected(port)
    src = Mr(port, hca.alloc(PAGES), length)
    dst = Mr(port, hca.alloc(PAGES), length)
    data = bytes(i * 31 >> 5 & 0xff for i in range(length))
    hca.m.write(src.addr, data)
    hca.m.clock_step(1000 * MS)     # the device recovers from the commands
    for _ in range(count):
        a.post(c.WR_RDMA_WRITE, src, length, rdma(dst))
    for ms in range(1000):
        while done := a.cq.poll():
            equal(done[:2], (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
            count -= 1
        if not count:
            equal(hca.m.read(dst.addr, length), data)
            equal(hca.counter("retransmit"), 0)
            return ms
        hca.m.clock_step(MS)
    raise AssertionError("no completion")


def speed(hca):
    box = hca.alloc()
    hca.ok(c.CMD_QUERY_PORT, struct.pack("<I", 1), box)
    return struct.unpack("<I", hca.m.read(box, 4))[0]


def test_no_limit(qemu):
    """without limits work needs no time to pass"""
    with running(qemu) as hca:
        assert milliseconds(hca, PAGES * PAGE) <= 3
        equal(speed(hca), 100000)


def test_cpu_share(qemu):
    """with less of the CPU the same work takes longer"""
    took = []
    for share in (80, 40, 20):
        with running(qemu, ",cpu-share=%d" % share) as hca:
            took.append(milliseconds(hca, PAGES * PAGE, 16))
    assert took[0] > 2, took
    assert took[1] > 1.7 * took[0] and took[2] > 1.7 * took[1], took


def test_bandwidth(qemu):
    """the port keeps its bandwidth, and reports it"""
    for mbits, low, high in ((100, 83, 100), (400, 20, 28)):
        with running(qemu, ",bandwidth=%d" % mbits) as hca:
            took = milliseconds(hca, PAGES * PAGE)
            assert low <= took <= high, took
            equal(speed(hca), mbits)
