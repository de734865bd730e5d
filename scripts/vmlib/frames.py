# SPDX-License-Identifier: GPL-2.0
"""A switch and senders that can slow down: marks by random early detection, and pauses."""

import struct
from typing import NamedTuple

ECN, CE = 0x03, 0x03


class Red(NamedTuple):
    """From low bytes of queue on some frames are marked, at high with this chance, beyond all."""
    low: int
    high: int
    chance: float

    def hits(self, queued, number):
        """Whether the frame that finds so many bytes is marked; number: random, below 1."""
        if queued <= self.low or queued >= self.high:
            return queued >= self.high
        return number < self.chance * (queued - self.low) / (self.high - self.low)


def red(text):
    """KMIN:KMAX:PERCENT, the first two in KB."""
    low, high, percent = text.split(':')
    marks = Red(int(float(low) * 1000), int(float(high) * 1000), float(percent) / 100)
    if not 0 <= marks.low < marks.high or not 0 <= marks.chance <= 1:
        raise ValueError(text)
    return marks


class Pause(NamedTuple):
    """A machine is paused at so many bytes from it that wait, and goes on at so many."""
    xoff: int
    xon: int

    def holds(self, waiting, paused):
        return waiting > (self.xon if paused else self.xoff)


def pause(text):
    """XOFF:XON, in KB."""
    xoff, xon = (int(float(part) * 1000) for part in text.split(':'))
    if not 0 <= xon < xoff:
        raise ValueError(text)
    return Pause(xoff, xon)


def is_control(frame):
    """Whether it is for the other end of the cable, as one that asks for a pause."""
    return frame[12:14] == b'\x88\x08'


CLASSES = 8         # of traffic
LONGEST = 0xffff    # quanta
QUANTUM = 512 / 8   # bytes that pass in that time


def traffic_class(frame):
    """Return the device's class: the priority in the tag, or by the DSCP."""
    kind = frame[12:14]
    if kind == b'\x81\x00' and len(frame) > 14:
        return frame[14] >> 5
    if kind == b'\x08\x00' and len(frame) > 15:
        return frame[15] >> 5
    if kind == b'\x86\xdd' and len(frame) > 14:
        return (frame[14] & 15) >> 1
    return 0


def priority_pause(quanta):
    """A frame (802.1Qbb) that lets some classes wait; quanta: by class."""
    times = b''.join(struct.pack('>H', quanta.get(at, 0)) for at in range(CLASSES))
    return (bytes.fromhex('0180c2000001') + bytes.fromhex('020000000001') + b'\x88\x08' +
            struct.pack('>HH', 0x0101, sum(1 << at for at in quanta)) + times + bytes(26))


def checksum(header):
    """The Internet checksum of an IPv4 header, whose field is left out."""
    words = struct.unpack(f'>{len(header) // 2}H', header)
    total = sum(words[:5] + words[6:])
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def mark(frame):
    """The frame with the mark CE, if it is of IP and its sender allows marks."""
    at = 12
    while frame[at:at + 2] == b'\x81\x00':
        at += 4
    kind, ip = frame[at:at + 2], at + 2
    new = bytearray(frame)
    if kind == b'\x08\x00' and len(frame) >= ip + 20 and frame[ip + 1] & ECN:
        length = 4 * (frame[ip] & 15)
        new[ip + 1] |= CE
        struct.pack_into('>H', new, ip + 10, checksum(bytes(new[ip:ip + length])))
    elif kind == b'\x86\xdd' and len(frame) >= ip + 40 and frame[ip + 1] >> 4 & ECN:
        new[ip + 1] |= CE << 4
    return bytes(new)
