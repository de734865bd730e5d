# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits set by the operator: a share of the CPU, a bandwidth."""

import struct

from qemu.qmp.protocol import QMPError

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import PAGE, wait_for
from rc import Mr, Port, connected, rdma

PAGES = 256
BAD_BANDWIDTHS = (-1, 100001, 1 << 31, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63,
                  -(1 << 63), 1.5, 1e300, "much", True, [], {})
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


def set_bandwidth(hca, value):
    hca.m.cmd("qom-set", path=hca.path, property="bandwidth", value=value)


def test_bandwidth_changes(qemu):
    """the port gets another speed while it runs, and the driver an event"""
    with running(qemu) as hca:
        eqn = hca.create_eq(flags=c.EQ_ASYNC)
        for mbits in 100, 400, 0, 100000, 1, 100000, 400:
            old = speed(hca)
            set_bandwidth(hca, mbits)
            equal(hca.m.qom_get(hca.path, "bandwidth"), mbits)
            wait_for(lambda: speed(hca) == (mbits or 100000), "speed")
            event = hca.poll_eq(eqn)
            equal(event and event[:2],
                  None if speed(hca) == old else (c.EVENT_SPEED_CHANGE, 1))
        took = milliseconds(hca, PAGES * PAGE)
        assert 20 <= took <= 28, took


def refuses_bandwidths(hca, values):
    for value in values:
        try:
            set_bandwidth(hca, value)
        except QMPError:
            continue
        raise AssertionError(f"{value} was accepted")


def test_bad_bandwidth(qemu):
    """a speed that no port has is refused, and changes nothing"""
    with running(qemu, ",bandwidth=1000") as hca:
        refuses_bandwidths(hca, BAD_BANDWIDTHS)
        equal((speed(hca), hca.m.qom_get(hca.path, "bandwidth")), (1000, 1000))
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_bandwidth_and_reset(qemu):
    """it is the operator's: a reset keeps it"""
    with running(qemu) as hca:
        set_bandwidth(hca, 400)
        wait_for(lambda: speed(hca) == 400, "speed")
        hca.flr()
        hca.map_bars()
        hca.start()
        equal(speed(hca), 400)
