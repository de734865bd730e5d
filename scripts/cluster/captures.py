# SPDX-License-Identifier: GPL-2.0
"""Judge captures of a cluster run (--pcap) by what tshark reads in them.

The rules of go-back-N and of CNPs are from Lumina's checkers (SIGCOMM 2023), which see one trace
from the switch in the middle and have to guess what arrives. Here each end has its own.
"""

import os
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../check'))
# pylint: disable=wrong-import-position
import capture          # noqa: E402

ECT, CE = (1, 2), 3
ACK, CNP = 0x11, 0x81
NAK_SEQUENCE = 0x60     # of the AETH's syndrome
PSNS = 1 << 24
PFC = 0x0101
FIELDS = ('frame.time_epoch', 'eth.src', 'ip.src', 'ip.dst', 'ip.dsfield.ecn', 'frame.len',
          'infiniband.bth.opcode', 'infiniband.bth.destqp', 'infiniband.bth.psn',
          'infiniband.aeth.syndrome', 'macc.cbfc.pause_time.c0', '_ws.malformed',
          '_ws.expert.severity')


@dataclass(frozen=True)
class Frame:
    """time in ns; pause: quanta of a pause of class 0, or None, as all others are then."""
    time: int
    src: str = ''
    dst: str = ''
    ecn: int = 0
    length: int = 0
    opcode: int = None
    qp: int = None
    psn: int = None
    syndrome: int = None
    pause: int = None

    @property
    def data(self):
        return self.opcode is not None and self.opcode not in (ACK, CNP)

    def what(self):
        """All that a switch leaves as it is."""
        return replace(self, time=0, ecn=0)


def address(host):
    number = host + 1
    return f'10.{number >> 16}.{number >> 8 & 255}.{number & 255}'


def number(text):
    return int(text, 0) if text else None


def nanoseconds(text):
    seconds, _, rest = text.partition('.')
    return int(seconds) * 10**9 + int(rest.ljust(9, '0')[:9])


def read(path):
    """The frames, and the numbers of those that tshark is not happy with."""
    frames, unhappy = [], []
    for at, row in enumerate(capture.tshark(path, FIELDS, 'infiniband || macc'), 1):
        seen = dict(zip(FIELDS, row))
        if seen['_ws.malformed'] or seen['_ws.expert.severity']:
            unhappy.append(at)
        frames.append(Frame(
            nanoseconds(seen['frame.time_epoch']), seen['ip.src'], seen['ip.dst'],
            number(seen['ip.dsfield.ecn']), int(seen['frame.len']),
            *(number(seen[f'infiniband.{name}'])
              for name in ('bth.opcode', 'bth.destqp', 'bth.psn', 'aeth.syndrome')),
            number(seen['macc.cbfc.pause_time.c0'])))
    return frames, unhappy


def after(psn, other):
    """How much later a PSN is, which may be negative."""
    return (psn - other + PSNS // 2) % PSNS - PSNS // 2


def flows(frames):
    """The data of each QP, by (sender, QP of the receiver), with the answers to it."""
    found = defaultdict(list)
    ends = {(frame.src, frame.dst): (frame.src, frame.qp) for frame in frames if frame.data}
    for frame in frames:
        if frame.data:
            found[frame.src, frame.qp].append(frame)
        # A marked ACK also has a CNP, to the QP that receives.
        elif (frame.dst, frame.src) in ends and (frame.src, frame.qp) not in ends.values():
            found[ends[frame.dst, frame.src]].append(frame)
    return found


# ---- go-back-N

class Ordered:
    """Rules for both ends of a flow: ACKs only move on; a NAK is not repeated before the packet
    that it asks for has been on its way again, and acknowledges what is before it."""

    def __init__(self, first):
        self.acked = self.asked = None
        self.newest = self.known = first - 1

    def answered(self, frame):
        if frame.opcode != ACK:
            return
        if frame.syndrome & 0xe0 == NAK_SEQUENCE:
            if self.asked is not None:
                yield f'{frame.time}: a NAK of {frame.psn} after one of {self.asked}'
            self.asked, self.known = frame.psn, frame.psn - 1
        elif self.acked is not None and after(frame.psn, self.acked) < 0:
            yield f'{frame.time}: an ACK of {frame.psn} after one of {self.acked}'
        else:
            self.acked = self.known = frame.psn

    def end(self):
        last = self.newest % PSNS
        if self.acked != last or self.asked is not None:
            yield f'{last} is the last PSN, {self.acked} is acknowledged, a NAK of {self.asked}'


class Sender(Ordered):
    """Goes on, or back to what a NAK asks for, or, without one, to what is not acknowledged."""

    def __init__(self, first):
        super().__init__(first)
        self.sent, self.naks, self.timeouts = self.newest, 0, 0

    def moves(self, frame):
        if after(frame.psn, self.sent) == 1:
            pass
        elif frame.psn == self.asked:
            self.naks += 1
            self.asked = None
        elif self.asked is None and after(frame.psn, self.known) == 1:
            self.timeouts += 1
        else:
            yield f'{frame.time}: PSN {frame.psn} after {self.sent}, a NAK of {self.asked}'
        self.sent = frame.psn
        if after(self.sent, self.newest) > 0:
            self.newest = self.sent


class Receiver(Ordered):
    """Asks once for the first of what is missing, and for nothing else."""

    def __init__(self, first):
        super().__init__(first)
        self.missing = None

    def moves(self, frame):
        ahead = after(frame.psn, self.newest)
        if ahead == 1:
            self.newest = frame.psn
            self.missing = self.asked = None
        elif ahead > 1:
            self.missing = (self.newest + 1) % PSNS
        yield from ()

    def answered(self, frame):
        nak = frame.opcode == ACK and frame.syndrome & 0xe0 == NAK_SEQUENCE
        if nak and frame.psn != self.missing:
            yield f'{frame.time}: a NAK of {frame.psn}, where {self.missing} is missing'
        if frame.opcode == ACK and not nak and after(frame.psn, self.newest) > 0:
            yield f'{frame.time}: an ACK of {frame.psn} before it has come'
        yield from super().answered(frame)


def first(frames):
    """The first PSN of a flow, which a receiver cannot know if it gets lost."""
    return next(frame.psn for frame in frames if frame.data)


def goes_back(frames, role, begin):
    """Faults of a sender or a receiver, a class above, in one flow; and the machine."""
    machine, faults = role(begin), []
    for frame in frames:
        faults += machine.moves(frame) if frame.data else machine.answered(frame)
    return faults + list(machine.end()), machine


# ---- marks and notifications

def marks(sent, received):
    """Check marks at the ends: a sender sets none, and a switch changes nothing else. Without loss
    the frames of a flow arrive as they were sent."""
    for frame in sent:
        if frame.ecn == CE or (frame.data and frame.ecn not in ECT):
            yield f'{frame.time}: {frame.ecn} is the ECN of a frame that is sent'
    for before, then in zip(sent, received):
        if before.what() != then.what() or then.ecn not in (before.ecn, CE):
            yield f'{then.time}: not what was sent at {before.time}'
    if len(sent) != len(received):
        yield f'{len(sent)} frames were sent, and {len(received)} have come'


def notifications(frames, interval):
    """Of one flow at its receiver: a CNP for the first mark, and for the first in each interval
    (ns) after one; none without; all of them to the QP that sends."""
    due = quiet = None
    sender = {frame.qp for frame in frames if frame.opcode == ACK}
    for frame in frames:
        if frame.data and frame.ecn == CE and (quiet is None or frame.time >= quiet):
            if due is not None:
                yield f'{frame.time}: no CNP for the mark at {due}'
            due, quiet = frame.time, frame.time + interval
        elif frame.opcode == CNP:
            if due is None:
                yield f'{frame.time}: a CNP that no mark has called for'
            if frame.qp not in sender:
                yield f'{frame.time}: a CNP to {frame.qp:#x}, which does not send'
            due = None
    if due is not None:
        yield f'no CNP for the mark at {due}'


def by_queue(arriving, leaving, kmin, kmax):
    """Check a switch's marks on frames arriving at some of its ports and leaving at one, in order
    of time.
    Its queue is what has come and does not leave yet."""
    left, queue, at = Counter(), 0, 0
    for frame in leaving:
        left[frame.what(), frame.ecn == CE] += 1
    for frame in arriving:
        while at < len(leaving) and leaving[at].time < frame.time:
            queue -= leaving[at].length
            at += 1
        marked = left[frame.what(), True] > 0
        left[frame.what(), marked] -= 1
        if frame.ecn in ECT and (marked and queue <= kmin or not marked and queue >= kmax):
            yield f'{frame.time}: {queue} bytes in the queue, {"" if marked else "not "}marked'
        queue += frame.length


# ---- pauses

def silence(frames, host):
    """Frames that a paused host begins to send."""
    paused = None
    for frame in frames:
        if frame.pause is not None:
            paused = frame.time if frame.pause else None
        elif paused is not None and frame.src == host:
            yield f'{frame.time}: a frame, although paused at {paused}'
