# SPDX-License-Identifier: GPL-2.0-or-later
"""Reliable connections between queue pairs, of one device or of two."""

import struct

import contract as c
from hca import PAGE, wait_for

LOG_WQES = 4
SQ_STRIDE, RQ_STRIDE = 128, 32
ALL_ACCESS = (c.ACCESS_LOCAL_WRITE | c.ACCESS_REMOTE_WRITE |
              c.ACCESS_REMOTE_READ | c.ACCESS_REMOTE_ATOMIC)


class Mr:
    """A memory region named by the DMA address of its first page."""

    def __init__(self, port, addr, length=PAGE, access=ALL_ACCESS, offset=0):
        hca = port.hca
        pages = -(-(offset + length) // PAGE)
        self.addr = addr
        self.key = hca.ok(c.CMD_REG_MR, hca.buf(addr, pages) + struct.pack(
            "<QQIIHBBI", addr, length, port.pdn, 0, access, c.MR_MEM, 0,
            offset))


class Port:
    """The address, PD and EQ that all connections of a device share."""

    def __init__(self, hca, mac, host=1):
        self.hca, self.mac = hca, mac
        self.gid = bytes(10) + b"\xff\xff" + bytes([10, 0, 0, host])
        hca.set_port(mac, c.PORT_ENABLE)
        hca.ok(c.CMD_SET_GID, self.gid + mac + struct.pack(
            "<HHBB", c.NO_VLAN, 0, 1, 1))
        self.pdn = hca.ok(c.CMD_ALLOC_PD)
        self.eqn = hca.create_eq(vector=1)

    def memory(self):
        return Mr(self, self.hca.alloc())


class Qp:
    """A queue pair with a completion queue."""

    timeout = 14        # for an ACK: 67 ms
    flags = 0

    def __init__(self, port):
        self.port, self.hca = port, port.hca
        self.cq = self.hca.create_cq(port.eqn)
        self.sq, self.rq = self.hca.alloc(), self.hca.alloc()
        self.sq_pi = self.rq_pi = 0
        self.box = self.hca.alloc()
        self.hca.m.write(
            self.box, self.hca.buf(self.sq) + self.hca.buf(self.rq) +
            struct.pack("<IIIIBBBBBB2xIIII", port.pdn, 0, self.cq.cqn,
                        self.cq.cqn, c.QPT_RC, self.flags, LOG_WQES, 7, LOG_WQES, 5,
                        1, 1, 0, 0))
        self.qpn = self.hca.ok(c.CMD_CREATE_QP, mailbox=self.box)

    def modify(self, mask, state, peer):
        """Set the attributes of @mask to the values all tests use."""
        av = peer.port.gid + peer.port.mac + struct.pack(
            "<BBIIBBB5x", 0, 64, 0, 0, 0, 0, 1)
        attr = av + struct.pack(
            "<IIIIHH11B9x", 0, 1000, 1000, peer.qpn, ALL_ACCESS, 0, state, 0,
            3, 4, 4, 12, self.timeout, 3, 3, 0, 1)
        self.hca.m.write(self.box, attr)
        self.hca.ok(c.CMD_MODIFY_QP, struct.pack("<II", self.qpn, mask |
                                                 c.QP_STATE), self.box)

    def connect(self, peer):
        self.modify(c.QP_PKEY_INDEX | c.QP_PORT | c.QP_ACCESS_FLAGS,
                    c.QPS_INIT, peer)
        self.modify(c.QP_AV | c.QP_PATH_MTU | c.QP_DEST_QPN | c.QP_RQ_PSN |
                    c.QP_MAX_DEST_RD_ATOMIC | c.QP_MIN_RNR_TIMER,
                    c.QPS_RTR, peer)
        self.modify(c.QP_TIMEOUT | c.QP_RETRY_CNT | c.QP_RNR_RETRY |
                    c.QP_SQ_PSN | c.QP_MAX_QP_RD_ATOMIC, c.QPS_RTS, peer)

    def put(self, opcode, local, length, body=b"", offset=0):
        """Write one signaled send WQE with one SGE, and do not ring the doorbell."""
        wqe = struct.pack("<QBBHI", self.sq_pi, opcode, c.WQE_SIGNALED, 1, 0)
        wqe = (wqe + body).ljust(64, b"\0") + struct.pack(
            "<QII", local.addr + offset, length, local.key)
        slot = self.sq_pi % (1 << LOG_WQES)
        self.hca.m.write(self.sq + SQ_STRIDE * slot, wqe)
        self.sq_pi += 1

    def ring(self):
        """Ring the doorbell for all WQEs that are there."""
        self.hca.doorbell("SQ", self.qpn, self.sq_pi)

    def post(self, *wqe, **options):
        """Post one send WQE, see put()."""
        self.put(*wqe, **options)
        self.ring()

    def post_recv(self, local, length, offset=0):
        slot = self.rq_pi % (1 << LOG_WQES)
        self.hca.m.write(self.rq + RQ_STRIDE * slot, struct.pack(
            "<QH6xQII", self.rq_pi, 1, local.addr + offset, length, local.key))
        self.rq_pi += 1
        self.hca.doorbell("RQ", self.qpn, self.rq_pi)

    def done(self):
        """(opcode, status) of the next completion."""
        return wait_for(self.cq.poll, "completion")[:2]


def connected(port_a, port_b=None, timeout=Qp.timeout):
    """Two connected queue pairs; by default of one port."""
    a, b = Qp(port_a), Qp(port_b or port_a)
    a.timeout = b.timeout = timeout
    a.connect(b)
    b.connect(a)
    return a, b


def rdma(remote, offset=0):
    """The part of an RDMA WQE that names its target."""
    return struct.pack("<QI", remote.addr + offset, remote.key)


def atomic(remote, swap_add, compare=0, offset=0):
    return struct.pack("<QI4xQQ", remote.addr + offset, remote.key,
                       swap_add, compare)
