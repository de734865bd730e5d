# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine is saved while a queue pair waits because of its rate, and continues elsewhere."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import PAGE
from rc import Mr, Port, connected, rdma
from test_migrate import moved

LEN = 3 * PAGE
MS = 1000000
KBIT = 1000
PACKETS = LEN // 1024
# Of the packets before the last: payload, and at least 58 bytes of headers with ICRC.
LONGEST = (PACKETS - 1) * 8 * (1024 + 90) * MS // KBIT
SHORTEST = (PACKETS - 1) * 8 * (1024 + 58) * MS // KBIT


def limit(qp, kbit):
    """Limit the rate of the QP, which is in RTS."""
    qp.hca.m.write(qp.box, struct.pack("<I", kbit).rjust(80, b"\0"))
    qp.hca.ok(c.CMD_MODIFY_QP, struct.pack("<II", qp.qpn, c.QP_RATE_LIMIT), qp.box)


def paced(qemu, opcode, slow_responder):
    """A message of @opcode that takes its time, in two QEMUs as in one."""
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        a, b = connected(port)
        limit(b if slow_responder else a, KBIT)
        src, dst = Mr(port, hca.alloc(3), LEN), Mr(port, hca.alloc(3), LEN)
        data = bytes(i * 7 & 0xff for i in range(LEN))
        hca.m.write(src.addr, data)
        local, remote = (dst, src) if slow_responder else (src, dst)
        a.post(opcode, local, LEN, rdma(remote))
        hca.m.clock_step(SHORTEST // 3)
        equal(a.cq.poll(), None)
        with moved(qemu, hca):
            equal(a.cq.poll(), None)
            hca.m.clock_step(SHORTEST - SHORTEST // 3 - MS)
            equal(a.cq.poll(), None)
            hca.m.clock_step(LONGEST - SHORTEST + 2 * MS)
            equal(a.done()[1], c.WC_SUCCESS)
            equal(hca.m.read(dst.addr, LEN), data)


def test_requests(qemu):
    """requests that wait for their rate leave when they are due in another QEMU"""
    paced(qemu, c.WR_RDMA_WRITE, False)


def test_answers(qemu):
    """data of a READ that wait for the rate of the responder do so in another QEMU"""
    paced(qemu, c.WR_RDMA_READ, True)
