#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""FLUSH and ATOMIC WRITE between two machines, by pyverbs.

  place.py PORT [--no-flush] [SERVER]   server, or its client; QHCA_DEV and
                                        QHCA_GID name the device of each

The client writes, flushes and then publishes a word, many times over, and the
server looks at its memory. In the end each kind of request is refused once.
"""

import os
import sys

import talk

FLUSH = '--no-flush' not in sys.argv
# Before the import of pyverbs, which takes a while in a slow guest: the client waits
# for the port.
LINK = talk.Link(*[arg for arg in sys.argv[1:] if not arg.startswith('--')])

# pylint: disable=wrong-import-position
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QPAttr, QPCap, QPEx, QPInitAttrEx
from pyverbs.wr import SGE
import pyverbs.enums as e

LENGTH = 65536
WORD = 4096             # at the start of the last page
ROUNDS = 50
RIGHTS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_FLUSH_GLOBAL
OPS = e.IBV_QP_EX_WITH_RDMA_WRITE | e.IBV_QP_EX_WITH_FLUSH | e.IBV_QP_EX_WITH_ATOMIC_WRITE


class End:
    """A connected QP and registered memory."""

    def __init__(self):
        self.context = Context(name=os.environ['QHCA_DEV'])
        self.pd = PD(self.context)
        self.mr = MR(self.pd, LENGTH, RIGHTS)
        self.cq = CQ(self.context, 64)

    def connect(self):
        """A new QP, connected to one of the other side."""
        cap = QPCap(max_send_wr=16, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttrEx(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap,
                            pd=self.pd, send_ops_flags=OPS,
                            comp_mask=e.IBV_QP_INIT_ATTR_PD |
                            e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = RIGHTS | e.IBV_ACCESS_FLUSH_PERSISTENT
        self.qp = QPEx(self.context, init, attr)
        gid = int(os.environ['QHCA_GID'])
        LINK.say({'qpn': self.qp.qp_num, 'rkey': self.mr.rkey, 'addr': self.mr.buf,
                  'gid': self.context.query_gid(1, gid).gid})
        self.peer = LINK.hear()
        route = GlobalRoute(dgid=GID(self.peer['gid']), sgid_index=gid)
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route, dlid=0)
        attr.dest_qp_num = self.peer['qpn']
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer = 12
        # A second: a busy host lets the peer wait. rdma_rxe waits for ever, as what it
        # sends again goes to address 0 (networks.rst); nothing is lost on this cable.
        attr.timeout = 0 if os.environ['QHCA_DEV'].startswith('rxe') else 18
        attr.retry_cnt = attr.rnr_retry = 7
        self.qp.to_rts(attr)
        LINK.say('ready')
        LINK.hear()

    def begin(self):
        """A batch of WRs that are signaled."""
        self.qp.wr_start()
        self.qp.wr_id = 1
        self.qp.wr_flags = e.IBV_SEND_SIGNALED

    def end(self, count):
        """Posts the batch; the status of its last completion, or of a bad one."""
        self.qp.wr_complete()
        status = e.IBV_WC_SUCCESS
        while count and status == e.IBV_WC_SUCCESS:
            found, wcs = self.cq.poll(count)
            count -= found
            for wc in wcs:
                status = status or wc.status
        return status

    def flush(self, length, kind, level):
        """Adds a FLUSH to the batch."""
        self.qp.wr_flush(self.peer['rkey'], self.peer['addr'], length, kind, level)


def expect(what, got, want):
    """Ends the program if they are not the same."""
    if got != want:
        sys.exit(f'{what}: {got}, not {want}')


def word(n):
    """The word published in round n."""
    return bytes([n]) * 8


def publish(end, n):
    """Data, FLUSH of either level, then the word, in one batch."""
    end.mr.write(bytes([n]) * (LENGTH - WORD), LENGTH - WORD)
    end.begin()
    end.qp.wr_rdma_write(end.peer['rkey'], end.peer['addr'])
    end.qp.wr_set_sge(SGE(end.mr.buf, LENGTH - WORD, end.mr.lkey))
    if FLUSH:
        end.flush(LENGTH, e.IBV_FLUSH_GLOBAL,
                  e.IBV_FLUSH_MR if n % 2 else e.IBV_FLUSH_RANGE)
    end.qp.wr_atomic_write(end.peer['rkey'], end.peer['addr'] + LENGTH - WORD, word(n))
    expect(f'round {n}', end.end(2 + FLUSH), e.IBV_WC_SUCCESS)


def persist(end):
    """The server's memory does not have that right (I-037)."""
    end.begin()
    end.flush(LENGTH, e.IBV_FLUSH_PERSISTENT, e.IBV_FLUSH_RANGE)
    return end.end(1)


def misalign(end):
    """I-038"""
    end.begin()
    end.qp.wr_atomic_write(end.peer['rkey'], end.peer['addr'] + 4, word(0))
    return end.end(1)


REFUSED = [(misalign, e.IBV_WC_REM_INV_REQ_ERR)]
if FLUSH:
    REFUSED.append((persist, e.IBV_WC_REM_ACCESS_ERR))


def client(end):
    """B-012 B-013 B-073 B-074"""
    end.connect()
    for n in range(1, ROUNDS + 1):
        publish(end, n)
        LINK.say(n)
        expect('the server', LINK.hear(), n)
    for request, status in REFUSED:
        expect(request.__name__, request(end), status)
        LINK.say('again')
        end.connect()
    publish(end, 1)
    LINK.say('bye')


def server(end):
    """Checks its memory each time the client says so."""
    end.connect()
    while (n := LINK.hear()) != 'bye':
        if n == 'again':
            end.connect()
            continue
        data = end.mr.read(LENGTH, 0)
        expect('data', data[:LENGTH - WORD], bytes([n]) * (LENGTH - WORD))
        expect('word', data[LENGTH - WORD:], word(n) + bytes(WORD - 8))
        LINK.say(n)


def main():
    """The server takes one client."""
    LINK.open()
    (server if LINK.listener else client)(End())


main()
