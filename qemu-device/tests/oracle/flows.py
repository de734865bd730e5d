# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge the RoCE frames of a QP, one after the other.

The rules are for captures, from the same sources as roce.py; harness/sniff.c has them for engines
in virtual time. A capture does not say how a QP is set up, and may lack frames, so a flow begins
with the first frame that is seen of it, and again behind a gap.
"""

import roce

PSNS = 1 << 24
ACKED = 'RC', 'XRC'
MTUS = 256, 512, 1024, 2048, 4096
REMEMBERED = 4096


class Flow:
    """The requests, or the responses, from one QP to another."""

    def __init__(self):
        self.next = self.mtu = self.kind = self.left = None
        self.past = {}

    def size(self, frame, row):
        """The rule that its length breaks."""
        length = len(frame.payload)
        if row.place in ('FIRST', 'MIDDLE'):
            if length not in MTUS or self.mtu not in (None, length):
                return 'D-004 FIRST and MIDDLE have PMTU bytes'
            self.mtu = length
        elif length > (self.mtu or max(MTUS)) or (row.place == 'LAST' and not length):
            return 'D-004 LAST has 1 to PMTU bytes, ONLY up to PMTU'
        return None

    def order(self, frame, row):
        """The rule that its place in the message breaks."""
        opens, closes = row.place in ('FIRST', 'ONLY'), row.place in ('LAST', 'ONLY')
        wrong = self.kind is not None if opens else self.kind != row.operation
        self.kind = None if closes else row.operation
        if opens:
            self.left = frame['reth.dmalen'] if row.operation == 'RDMA_WRITE' else None
        if self.left is not None:
            self.left -= len(frame.payload)
        if wrong:
            return 'D-061 FIRST, MIDDLE and LAST in their order'
        return 'D-005 RETH says the total length' if closes and self.left else None

    def request(self, frame, row):
        psn = frame['bth.psn']
        if row.service in ACKED and psn in self.past:
            return None if self.past[psn] == content(frame) else \
                'D-006 a retransmission with another content'
        if self.next != psn:            # a message whose beginning is not known
            self.kind = None if row.place in ('FIRST', 'ONLY') else row.operation
            self.left = None
        reads = row.operation == 'RDMA_READ_REQUEST'
        self.next = None if reads else (psn + 1) % PSNS     # the path MTU says how many it has
        if not reads:
            self.past[psn] = content(frame)
            if len(self.past) > REMEMBERED:
                self.past.pop(next(iter(self.past)))
        return self.order(frame, row)

    def response(self, frame, row):
        psn = frame['bth.psn']
        if row.operation != 'RDMA_READ_RESPONSE':
            return None
        wrong = row.place in ('MIDDLE', 'LAST') and self.next not in (None, psn)
        self.next = None if row.place in ('LAST', 'ONLY') else (psn + 1) % PSNS
        return 'D-002 READ data in the order of their PSNs' if wrong else None


def content(frame):
    """The part that a retransmission repeats: all from the BTH on, but AckReq."""
    headers = [(name, {**frame.headers[name], 'a': 0} if name == 'bth' else frame.headers[name])
               for name in frame.layers('bth')]
    return str(headers), frame.payload


def alone(frame, row):
    """The rules that a frame breaks by itself."""
    last = row.place in ('LAST', 'ONLY')
    may = not row.response and row.service in ACKED
    if frame['bth.a'] and not may:
        yield 'D-010 AckReq is 0 on UC, UD and responses'
    if not frame['bth.a'] and may and last:
        yield 'D-010 AckReq on the last packet of a message'
    if frame['bth.se'] and not (last and (row.operation == 'SEND' or 'immdt' in row.headers)):
        yield 'B-045 SE'


class Flows:
    """All flows of a capture."""

    def __init__(self):
        self.flows = {}

    def hear(self, frame):
        """The rules that the next frame breaks."""
        row = roce.OPCODES.get(frame['bth.opcode'])
        if not row:
            return
        yield from alone(frame, row)
        if row.service in ('UD', 'CNP'):
            return
        ip = frame.headers[frame.ip]
        key = ip['src'], ip['dst'], frame['udp.sport'], frame['bth.destqp'], row.response
        flow = self.flows.setdefault(key, Flow())
        for rule in (flow.size, flow.response if row.response else flow.request):
            wrong = rule(frame, row)
            if wrong:
                yield wrong
