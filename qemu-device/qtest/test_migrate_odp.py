# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine is saved while queue pairs wait for pages, and continues in another QEMU."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import PAGE, wait_for
from rc import ALL_ACCESS, Mr, Port, connected, rdma
from test_migrate import moved

LEN = 3 * PAGE
MS = 1000000


class Odp:
    """A region without pages, over memory that exists."""

    def __init__(self, port):
        self.hca = port.hca
        self.addr = port.hca.alloc(3)
        self.key = self.hca.ok(c.CMD_REG_MR, self.hca.buf(0, 0) + struct.pack(
            "<QQIIHBBI", self.addr, LEN, port.pdn, 0, ALL_ACCESS, c.MR_ODP, 0, 0))

    def provide(self, first, num):
        """Give the device all pages from @first on, of which it needs @num."""
        assert 1 <= num <= 3 - first, (first, num)
        box = self.hca.alloc()
        flags = c.PAGE_READ | c.PAGE_WRITE
        self.hca.m.write(box, struct.pack(f"<{num}Q", *(
            self.addr + (first + i) * PAGE | flags for i in range(num))))
        self.hca.ok(c.CMD_SET_PAGES, struct.pack("<QQI", first, num, self.key), box)


def faults(qp):
    """(first, num, key, sn, open, write) of the last page fault of each kind"""
    qp.hca.ok(c.CMD_QUERY_PAGE_FAULTS, struct.pack("<I", qp.qpn), qp.box)
    return list(struct.iter_unpack("<QQIIBB6x", qp.hca.m.read(qp.box, 96)))


class Message:
    """A message that waits for a page of @kind."""

    def __init__(self, port, kind, opcode):
        hca = port.hca
        self.kind = kind
        a, b = connected(port)
        self.odp, pinned = Odp(port), Mr(port, hca.alloc(3), LEN)
        local, remote = (self.odp, pinned) if kind == c.PAGE_SEND else (pinned, self.odp)
        source = remote if opcode == c.WR_RDMA_READ else local
        self.target = local if source is remote else remote
        self.data = bytes((i * 7 + opcode) & 0xff for i in range(LEN))
        hca.m.write(source.addr, self.data)
        a.post(opcode, local, LEN, rdma(remote))
        self.a, self.waits = a, a if kind == c.PAGE_SEND else b
        wait_for(lambda: faults(self.waits)[kind][4], "page fault")
        self.before = faults(self.waits)
        equal([f[4] for f in self.before], [int(k == kind) for k in range(3)])

    def answer(self):
        """Answer the page fault, if one is open."""
        first, num, key, sn, is_open, _ = faults(self.waits)[self.kind]
        if is_open:
            equal(key, self.odp.key)
            self.odp.provide(first, num)
            self.a.hca.ok(c.CMD_RESUME_QP,
                          struct.pack("<IIBB", self.waits.qpn, sn, self.kind, 0))

    def finish(self):
        """Check that it waits, and answer until it is complete."""
        equal(self.a.cq.poll(), None)
        equal(faults(self.waits), self.before)
        cqe = None
        for _ in range(5):
            self.answer()
            self.a.hca.m.clock_step(5 * MS)     # a part of an RNR wait
            cqe = self.a.cq.poll()
            if cqe:
                break
        equal(cqe and cqe[1], c.WC_SUCCESS)
        equal(self.a.hca.m.read(self.target.addr, LEN), self.data)


def waiting(qemu, late):
    with running(qemu) as hca:
        port = Port(hca, MAC_BYTES)
        messages = [Message(port, c.PAGE_RESPONSE, c.WR_RDMA_READ),
                    Message(port, c.PAGE_REQUEST, c.WR_RDMA_WRITE),
                    Message(port, c.PAGE_SEND, c.WR_RDMA_WRITE)]
        if late:
            # The peers' timers expire, and they are told to wait; they do so three times.
            hca.m.clock_step(80 * MS)
            for message in messages:
                message.before = faults(message.waits)
        with moved(qemu, hca):
            for message in messages:
                message.finish()


def test_parked(qemu):
    """messages that wait for pages go on in another QEMU"""
    waiting(qemu, False)


def test_parked_late(qemu):
    """peers that have been told to wait for a page ask again in another QEMU"""
    waiting(qemu, True)
