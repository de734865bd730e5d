# SPDX-License-Identifier: GPL-2.0
"""From trace events to the steps of a message: who acts, upon whom, in which code."""

import re

LANES = ('program', 'provider', 'QP a', 'QP b')
PROGRAM, PROVIDER, A, B = range(4)

TOUR, POST, POLL = 'selftests/guest/tour.c', 'providers/qhca/post.c', 'providers/qhca/poll.c'
RING = 'providers/qhca/doorbell.h'
ENGINE = 'qemu-device/engine/'

# Name of a step: from, to (the same: it acts on itself), what the arrow says, the lines of
# code (file, first line, last line), what happens there.
STEPS = {
    'post-write': (PROGRAM, PROVIDER, 'ibv_post_send: RDMA WRITE', [
        (TOUR, 'wr.wr_id = WRITE_ID', '"ibv_post_send, WRITE"')],
        'The program asks for its buffer to be written to an address of the peer, with the key '
        'that the peer gave out. libibverbs calls the provider: no system call.'),
    'post-send': (PROGRAM, PROVIDER, 'ibv_post_send: SEND', [
        (TOUR, 'wr.wr_id = SEND_ID', '"ibv_post_send, SEND"')],
        'A SEND names no address: the data goes where the peer wants it.'),
    'post-recv': (PROGRAM, PROVIDER, 'ibv_post_recv', [
        (TOUR, '"ibv_post_recv"', '"ibv_post_recv"')],
        'The peer says where the next message shall go.'),
    'record': (PROVIDER, PROVIDER, 'write the WQE, and how many', [
        (POST, 'wqe->num_sge = htole16(wr->num_sge)', 'rq->pi++'),
        (POST, 'static bool rq_posted(', 'return *(volatile __le32 *)&dbrec->ring')],
        'A receive WQE in the ring of the receive queue, and behind the ring, in the doorbell '
        'record, how many there are. No doorbell: the adapter reads the record when it needs a '
        'WQE and knows of none.'),
    'wqe': (PROVIDER, PROVIDER, 'write the WQE', [
        (POST, 'wqe = wqe_at(sq, sq->pi)', 'put_parts(wqe, wr, op->parts)')],
        'The work request becomes a WQE in the ring of the send queue, in memory that the '
        'adapter can read.'),
    'ring-sq': (PROVIDER, A, 'doorbell SQ, index {index}', [
        (RING, 'static inline void qhca_ring(', 'QHCA_PREP(QHCA_DB_INDEX'),
        (ENGINE + 'driver/doorbell.c', 'vhca_trace_doorbell(e',
         'bell->ring(e, &db)')],
        'One write of 64 bits to the doorbell page, number {page}, that this process has mapped: '
        'QPN and how many WQEs there are now. QEMU hands it to the engine, which does all that '
        'follows, up to the completion, before the write returns.'),
    'fetch': (A, A, 'read WQE {index}: {name}', [
        (ENGINE + 'requester/swqe.c', 'if (!vhca_mem_read(e, &qp->sq.mem, vhca_wq_offset(',
         'vhca_trace_wqe(e')],
        'The requester reads the WQE by DMA, once, before it judges it: the program could '
        'change it meanwhile.'),
    'tx-request': (A, B, '{name}, PSN {psn}', [
        (ENGINE + 'requester/build.c', 'vhca_wr_info(wr->opcode)->packet[last * 2',
         'p->ackreq = vhca_qp_is(qp, VHCA_RELIABLE) &&'),
        (ENGINE + 'link/out.c', 'size_t len = vhca_link_finish(qp, way, burst)',
         'vhca_trace_tx(e')],
        'It builds the packet: headers from the WQE and the QP, payload from the program\'s '
        'memory, checked against the local key. The peer is a QP of the same port, so the '
        'frame goes into the port\'s own FIFO and not to the network.'),
    'rx-write': (B, B, 'check the key, write to memory', [
        (ENGINE + 'link/in.c', 'count_taken(e, qp, p->opcode, p->tclass, p->num_psn, len)',
         'vhca_trace_rx(e, qp->qpn, p->opcode, p->psn)'),
        (ENGINE + 'responder/message.c', 'mr = vhca_mr_find(e, &qp->user, s->rkey, va',
         'result = vhca_mr_write(e, qp->qpn, mr, va')],
        'The packet is in sequence, its ICRC is right, and it comes from the peer of this QP. '
        'The responder finds the region by the remote key, checks address, length and rights, '
        'and writes. The program on this side is not told.'),
    'rx-send': (B, B, 'take a receive WQE, write to memory', [
        (ENGINE + 'rq/recv.c', 'if (qp->rq.ci == qp->rq.pi && !vhca_rq_look(',
         'return vhca_rwr_fetch(e, &qp->rq, qp->rq.ci'),
        (ENGINE + 'responder/message.c', 'scattered = vhca_scatter(e, qp->qpn, vhca_recv_user(qp)',
         'return unless_many(p, scattered ==')],
        'A SEND takes the oldest receive WQE. Without one the answer would be *receiver not '
        'ready*.'),
    'cqe-recv': (B, PROVIDER, 'CQE: {name}', [
        (ENGINE + 'rq/recv.c', 'cqe->wr_id = htole64(rwr->wr_id)',
         'pushed = push(e, qp, cqe, solicited)')],
        'The message is complete, so the receive WQE is: its wr_id, and how much has come. Two '
        'sides, two completions.'),
    'tx-ack': (B, A, '{name}, PSN {psn}', [
        (ENGINE + 'responder/response.c', 'burst->p.opcode = vhca_qp_service(qp) | RC_ACKNOWLEDGE',
         'burst->p.syndrome = syndrome')],
        'The request asked for an answer. An ACK is for all packets up to its PSN.'),
    'rx-ack': (A, A, 'nothing left to wait for', [
        (ENGINE + 'requester/completer.c', 'if (AETH_TYPE(p->syndrome) != 0)',
         'accepted(e, qp, p->psn)')],
        'Only now does the requester know that the message has arrived. Until then it would '
        'have sent it again after the timeout of the QP.'),
    'cqe-send': (A, PROVIDER, 'CQE: {name}', [
        (ENGINE + 'requester/complete.c', '.wr_id = htole64(wr->wr_id)',
         '.status = (uint8_t)status'),
        (ENGINE + 'events/cq.c', 'cqe->owner = (cq->pi >> cq->log_size)',
         'if (!vhca_dma_write_entry(')],
        'A CQE of 64 bytes in the ring of the completion queue, its last byte last: the owner '
        'bit, which changes with each round of the ring, says that it is new.'),
    'poll': (PROVIDER, PROGRAM, 'ibv_poll_cq: success', [
        (POLL, 'cqe = cqe_at(cq, cq->ci)', 'cq->ci++'),
        (TOUR, 'while (!ibv_poll_cq(cq, 1, &wc))', 'printf("%s: wr_id')],
        'The provider looks at the owner bit of the next CQE, in memory. No system call here '
        'either.'),
}

WQE = {0: 'SEND', 3: 'RDMA_WRITE'}
PACKET = {0x04: 'SEND ONLY', 0x0a: 'RDMA WRITE ONLY', 0x11: 'ACK'}
CQE = {0: 'SEND', 1: 'RDMA_WRITE', 0x80: 'RECV'}
SQ, KINDS = 0x00, ('doorbell', 'wqe', 'tx', 'rx', 'dma_entry', 'cqe')


class Step:
    def __init__(self, key, event='', **fields):
        self.key, self.event, self.fields = key, event, fields
        self.start, self.end, label, self.places, says = STEPS[key]
        self.label = label.format_map(fields)
        self.says = says.format_map(fields)


class Wrong(Exception):
    """The run was not what the tour is about."""


def number(word):
    return int(word, 0)


def parse(line):
    """Kind, words and QPN of a trace event, or None."""
    match = re.match(r'qhca_(\w+) \S+: (.*)', line)
    if not match or match[1] not in KINDS:
        return None
    words = match[2].split()
    words = dict(zip(words[::2], words[1::2]))
    qpn = number(words['val']) & 0xffffff if match[1] == 'doorbell' else \
        number(words.get('qpn', '0'))
    return match[1], words, qpn


def events(log, qps):
    """(line, CQE) of each event of the QPs in QEMU's log; of others than CQEs, '' for it."""
    entry = ''
    for line in log.splitlines():
        event = parse(line)
        if event and event[0] == 'dma_entry':
            # After the address come the bytes.
            entry = line.split('addr ')[1].split(' ', 1)[1].replace(' ', '')
        elif event and event[2] in qps:
            yield line, entry if event[0] == 'cqe' else ''


class Reader:
    """The steps between the first doorbell of QP a and the completion of the SEND."""

    def __init__(self, a, b):
        self.qps = {a: 'a', b: 'b'}
        self.steps, self.entry, self.entries, self.messages = [], b'', [], []

    def add(self, key, line='', **fields):
        self.steps.append(Step(key, line, **fields))

    def read(self, happened):
        """The steps of what events() has found."""
        for line, entry in happened:
            kind, words, qpn = parse(line)
            self.entry = bytes.fromhex(entry)
            getattr(self, '_' + kind)(self.qps[qpn], words, line)
        if not self.messages or self.steps[-1].key != 'poll':
            raise Wrong('the trace does not end with a completion')
        return self.steps

    def _doorbell(self, qp, words, line):
        index, page = number(words['val']) >> 32, words['page']
        off = number(words['off'])
        if (qp, off) != ('a', SQ):
            raise Wrong(f'which doorbell is this? {line}')
        self.messages.append(index)
        # The trace has nothing of what is done without the device.
        for key in ('post-recv', 'record', 'post-send') if index > 1 else ('post-write', ):
            self.add(key)
        self.add('wqe')
        self.add('ring-sq', line, index=index, page=page)

    def _wqe(self, _qp, words, line):
        self.add('fetch', line, index=words['index'], name=WQE[number(words['opcode'])])

    def _tx(self, qp, words, line):
        self.add('tx-request' if qp == 'a' else 'tx-ack', line, psn=words['psn'],
                 name=PACKET[number(words['opcode'])])

    def _rx(self, qp, words, line):
        key = 'rx-ack' if qp == 'a' else \
            'rx-write' if PACKET[number(words['opcode'])] == 'RDMA WRITE ONLY' else 'rx-send'
        self.add(key, line)

    def _cqe(self, qp, words, line):
        opcode, status = self.entry[61], self.entry[62]
        if status or number(words['status']):
            raise Wrong(f'a completion with an error: {line}')
        self.entries.append((CQE[opcode], self.entry))
        self.add('cqe-send' if qp == 'a' else 'cqe-recv', line, name=CQE[opcode])
        if qp == 'a':
            # The completion of the receive comes first, if there is one.
            since = [step.key for step in self.steps]
            since = since[len(since) - since[::-1].index('ring-sq'):]
            for _ in range(1 + since.count('cqe-recv')):
                self.add('poll')
