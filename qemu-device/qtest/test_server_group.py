# SPDX-License-Identifier: GPL-2.0-or-later
"""A frame for many: how long one machine's keeps the others waiting."""

import struct
import time

import contract as c
from hca import PAGE, Cq
from rc import Port, Qp
from test_server_line import three

PIECES, REGIONS, MEMBERS, DATAGRAMS = 512, 9, 128, 8
LOG_WQES, STRIDE, QKEY = 4, 256, 0x1234
GID = bytes(10) + b"\xff\xff" + bytes([239, 1, 2, 3])
GROUP_MAC = bytes([1, 0, 0x5e, 1, 2, 3])


class KernelQp(Qp):
    """One that may register memory by WQEs."""

    flags = c.QP_FLAG_RESERVED_LKEY


class Member:
    """A UD QP in RTS that uses @cq, and the WQEs of a ring that all have."""

    def __init__(self, port, cq, ring):
        hca, box = port.hca, port.hca.alloc()
        self.sq, self.sq_pi = hca.alloc(), 0
        hca.m.write(box, hca.buf(self.sq) + hca.buf(ring, 1) + struct.pack(
            "<IIIIBBBBBB2xIIII", port.pdn, 0, cq.cqn, cq.cqn, c.QPT_UD, 0, LOG_WQES, 7, LOG_WQES,
            STRIDE.bit_length() - 1, 1, REGIONS, 0, 0))
        self.qpn = hca.ok(c.CMD_CREATE_QP, mailbox=box)
        for mask, state in ((c.QP_PKEY_INDEX | c.QP_PORT | c.QP_QKEY, c.QPS_INIT),
                            (0, c.QPS_RTR), (c.QP_SQ_PSN, c.QPS_RTS)):
            hca.m.write(box, bytes(40) + struct.pack("<IIIIHH11B9x", QKEY, 0, 7, 0, 0, 0, state,
                                                     *9 * [0], 1))
            hca.ok(c.CMD_MODIFY_QP, struct.pack("<II", self.qpn, mask | c.QP_STATE), box)


class Group:
    """A group whose members receive to memory in pieces of a byte each."""

    def __init__(self, hca):
        self.hca, self.port = hca, Port(hca, hca.mac, 3)
        hca.set_port(hca.mac, c.PORT_ENABLE, 9000)
        self.ring, recvs = hca.alloc((64 * MEMBERS * DATAGRAMS) // PAGE), hca.alloc()
        wqe = struct.pack("<QH6x", 1, REGIONS) + b"".join(
            struct.pack("<QII", PAGE * number, PIECES, key)
            for number, key in enumerate(self.register(), 1))
        hca.m.write(recvs, wqe.ljust(STRIDE, b"\0") * (1 << LOG_WQES))
        cq = self.make_cq()
        self.members = [Member(self.port, cq, recvs) for _ in range(MEMBERS)]
        for member in self.members:
            hca.ok(c.CMD_ATTACH_MCAST, GID + struct.pack("<I", member.qpn))
        self.sender = Member(self.port, hca.create_cq(self.port.eqn), recvs)

    def make_cq(self):
        """One for all, with its doorbell record on a page of its own."""
        log = (MEMBERS * DATAGRAMS).bit_length() - 1
        pages = (64 << log) // PAGE + 1
        self.ring = self.hca.alloc(pages)
        return Cq(self.hca, self.hca.ok(c.CMD_CREATE_CQ, self.hca.buf(self.ring, pages) +
                                        struct.pack("<IIIB", 0, self.port.eqn, 0, log)),
                  self.ring, log)

    def register(self):
        """Yield the keys of the regions."""
        hca, one, other = self.hca, KernelQp(self.port), KernelQp(self.port)
        one.connect(other)
        table, mem = hca.alloc(2 * PIECES * 8 // PAGE), hca.alloc()
        hca.m.write(table, b"".join(struct.pack("<QQ", mem + 2 * n, n + 1)
                                    for n in range(PIECES)))
        for number in range(1, REGIONS + 1):
            key = hca.ok(c.CMD_REG_MR, hca.buf(0, 0) + struct.pack(
                "<QQIIHBBI", 0, 2 * PIECES, self.port.pdn, 0, 0, c.MR_FAST, 0, 0))
            wqe = struct.pack("<QBBHI", number, c.WR_REG_MR, c.WQE_SIGNALED, 0, 0) + struct.pack(
                "<QQQIIIHB", PAGE * number, PIECES, table, key, 2 * PIECES, 0,
                c.ACCESS_LOCAL_WRITE, 0)
            hca.m.write(one.sq + 128 * (one.sq_pi % 16), wqe.ljust(128, b"\0"))
            one.sq_pi += 1
            one.ring()
            assert one.done()[1] == c.WC_SUCCESS
            yield key

    def send(self):
        """Datagrams to the group, with one doorbell."""
        hca, one, src = self.hca, self.sender, self.port.memory()
        for member in self.members:
            hca.doorbell("RQ", member.qpn, DATAGRAMS)
        av = GID + GROUP_MAC + struct.pack("<BBIIBBB5x", 0, 64, 0, self.port.pdn, 0, 0, 1)
        for number in range(DATAGRAMS):
            wqe = struct.pack("<QBBHI", number, c.WR_SEND, c.WQE_SIGNALED, 1, 0) + av + \
                struct.pack("<II", c.QPN_MCAST, QKEY)
            hca.m.write(one.sq + 128 * number, wqe.ljust(64, b"\0") +
                        struct.pack("<QII", src.addr, PAGE, src.key))
        hca.doorbell("SQ", one.qpn, DATAGRAMS)

    def is_done(self):
        """Whether all members have all of them: the last CQE has its wr_id."""
        return self.hca.m.read(self.ring + 64 * (MEMBERS * DATAGRAMS - 1), 64).strip(b"\0")


def test_pieces(program):
    """others have turns between the members of a group, whatever a member takes"""
    with three(program) as (_, hcas, line):
        group = Group(hcas[2])
        line.works()
        group.send()
        writes, end = 0, time.monotonic() + 60
        while not group.is_done():
            assert time.monotonic() < end, "datagrams are not delivered"
            line.works(b"number %8d" % writes)
            writes += 1
        # Between two datagrams only, it would be one for each at most.
        assert writes > 3 * DATAGRAMS, f"{writes} WRITEs during {DATAGRAMS} datagrams"
        print(f"# {writes} WRITEs during {DATAGRAMS} datagrams")
