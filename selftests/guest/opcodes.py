#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A packet of every opcode that verbs can cause, to be captured.

  opcodes.py PORT [SERVER]      server, or its client; QHCA_DEV and QHCA_GID name
                                the device of each

One machine goes through ROUNDS, each on a new pair of QPs, while the other only provides
receive buffers and memory; then they change places. An unexpected error ends the program.
"""

import os
import sys

import talk

# Before the import of pyverbs, which takes a while in a slow guest: the client waits
# for the port.
LINK = talk.Link(*sys.argv[1:])

# pylint: disable=wrong-import-position
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QPAttr, QPCap, QPEx, QPInitAttrEx
from pyverbs.wr import SGE, RecvWR
import pyverbs.enums as e

MTU = 256
LONG = 2 * MTU + 5          # FIRST, MIDDLE, LAST with three bytes of padding
SLOT, SLOTS = 4096, 16
QKEY = 0x11111111
IMM = 0x01020304
RIGHTS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | \
    e.IBV_ACCESS_REMOTE_ATOMIC | e.IBV_ACCESS_FLUSH_GLOBAL
SENDS = e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_SEND_WITH_IMM
WRITES = e.IBV_QP_EX_WITH_RDMA_WRITE | e.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
RC_OPS = SENDS | WRITES | e.IBV_QP_EX_WITH_SEND_WITH_INV | e.IBV_QP_EX_WITH_RDMA_READ | \
    e.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | e.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
    e.IBV_QP_EX_WITH_FLUSH | e.IBV_QP_EX_WITH_ATOMIC_WRITE


def carry(call):
    """A request with that many bytes of payload, or of answer."""
    def post(end, size):
        call(end)
        end.qp.wr_set_sge(SGE(end.mr.buf, size, end.mr.lkey))
    return post


SEND = carry(lambda end: end.qp.wr_send())
SEND_IMM = carry(lambda end: end.qp.wr_send_imm(IMM))
# There is no such window: the receiver refuses it, rdma_rxe after its ACK.
SEND_INV = carry(lambda end: end.qp.wr_send_inv(0x12345678))
WRITE = carry(lambda end: end.qp.wr_rdma_write(end.peer['rkey'], end.peer['addr']))
WRITE_IMM = carry(lambda end: end.qp.wr_rdma_write_imm(end.peer['rkey'], end.peer['addr'], IMM))
READ = carry(lambda end: end.qp.wr_rdma_read(end.peer['rkey'], end.peer['addr']))
# A wrong key: a NAK.
DENIED = carry(lambda end: end.qp.wr_rdma_write(end.peer['rkey'] ^ 1, end.peer['addr']))
CAS = carry(lambda end: end.qp.wr_atomic_cmp_swp(
    end.peer['rkey'], end.peer['addr'], 0x0102030405060708, 0x1112131415161718))
FAA = carry(lambda end: end.qp.wr_atomic_fetch_add(
    end.peer['rkey'], end.peer['addr'], 0x2122232425262728))


def ATOMIC_WRITE(end, _):
    end.qp.wr_atomic_write(end.peer['rkey'], end.peer['addr'], bytes(range(1, 9)))


def FLUSH(end, size):
    end.qp.wr_flush(end.peer['rkey'], end.peer['addr'], size, e.IBV_FLUSH_GLOBAL,
                    e.IBV_FLUSH_RANGE)


MESSAGES = [(post, size) for post in (SEND, SEND_IMM, WRITE, WRITE_IMM)
            for size in (1, 2, 3, 4, LONG)]
DONE, REFUSED, EITHER = {False}, {True}, {False, True}
# Type of QP, its operations, what is posted, and whether that may fail.
ROUNDS = [
    ('RC', RC_OPS, [*MESSAGES, (READ, 1), (READ, LONG), (CAS, 8), (FAA, 8),
                    (ATOMIC_WRITE, 8)], DONE),
    ('RC', RC_OPS, [(SEND_INV, 5)], EITHER),
    ('RC', RC_OPS, [(SEND_INV, LONG)], EITHER),
    ('RC', RC_OPS, [(DENIED, 4)], REFUSED),
    ('UC', SENDS | WRITES, MESSAGES, DONE),
    ('UD', SENDS, [(SEND, 6), (SEND_IMM, 7)], DONE),
    # Between rdma_rxe and others it is dropped, see networks.rst.
    ('RC', RC_OPS, [(FLUSH, 64)], EITHER),
]


class End:
    """QPs, one after the other, and registered memory."""

    def __init__(self):
        self.context = Context(name=os.environ['QHCA_DEV'])
        self.pd = PD(self.context)
        self.mr = MR(self.pd, SLOT * SLOTS, RIGHTS)
        self.mr.write(bytes(range(256)) * 16, SLOT)
        self.gid = int(os.environ['QHCA_GID'])
        self.cq = self.qp = self.ah = self.peer = None

    def connect(self, kind, ops):
        """A new QP with full receive queue, and one of the other side."""
        self.cq = CQ(self.context, 4 * SLOTS)
        cap = QPCap(max_send_wr=SLOTS, max_recv_wr=SLOTS, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttrEx(qp_type=getattr(e, f'IBV_QPT_{kind}'), scq=self.cq, rcq=self.cq,
                            cap=cap, pd=self.pd, send_ops_flags=ops,
                            comp_mask=e.IBV_QP_INIT_ATTR_PD |
                            e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        attr.qp_access_flags = RIGHTS
        # A QP type without a peer is ready then; others are in INIT.
        self.qp = QPEx(self.context, init, attr)
        LINK.say({'qpn': self.qp.qp_num, 'rkey': self.mr.rkey, 'addr': self.mr.buf,
                  'gid': self.context.query_gid(1, self.gid).gid})
        self.peer = LINK.hear()
        route = GlobalRoute(dgid=GID(self.peer['gid']), sgid_index=self.gid)
        address = AHAttr(port_num=1, is_global=1, gr=route, dlid=0)
        self.ah = AH(self.pd, attr=address) if kind == 'UD' else None
        if not self.ah:
            attr.ah_attr = address
            attr.dest_qp_num = self.peer['qpn']
            attr.path_mtu = e.IBV_MTU_256
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
            attr.min_rnr_timer = 12
            attr.timeout = 18          # a second: a busy host lets the peer wait
            attr.retry_cnt = 2
            attr.rnr_retry = 7
            self.qp.to_rts(attr)
        for _ in range(SLOTS):
            self.receive()
        LINK.say('ready')
        LINK.hear()

    def receive(self):
        """Another receive buffer."""
        self.qp.post_recv(RecvWR(sg=[SGE(self.mr.buf, SLOT, self.mr.lkey)], num_sge=1))

    def request(self, post, size):
        """Posts one and waits for its completion; its status."""
        self.qp.wr_start()
        self.qp.wr_id = 1
        self.qp.wr_flags = e.IBV_SEND_SIGNALED | e.IBV_SEND_SOLICITED
        post(self, size)
        if self.ah:
            self.qp.wr_set_ud_addr(self.ah, self.peer['qpn'], QKEY)
        self.qp.wr_complete()
        while True:
            found, wcs = self.cq.poll(1)
            if found:
                return wcs[0].status


def ask(end):
    """Asks for everything."""
    for kind, ops, requests, may_fail in ROUNDS:
        LINK.say(kind)
        end.connect(kind, ops)
        for post, size in requests:
            status = end.request(post, size)
            if (status != e.IBV_WC_SUCCESS) not in may_fail:
                sys.exit(f'{kind}: request of {size} bytes: status {status}')
            LINK.say('more')
            LINK.hear()
        LINK.say('done')
        LINK.hear()
    LINK.say('bye')


def answer(end):
    """Puts a buffer back for each message."""
    while (kind := LINK.hear()) != 'bye':
        end.connect(kind, RC_OPS if kind == 'RC' else SENDS)
        while LINK.hear() != 'done':
            found, _ = end.cq.poll(1)
            for _ in range(found):
                end.receive()
            LINK.say('ok')
        LINK.say('ok')


def main():
    """The client asks first, then the server."""
    LINK.open()
    end = End()
    for turn in (answer, ask) if LINK.listener else (ask, answer):
        turn(end)


main()
