# SPDX-License-Identifier: GPL-2.0
"""The files of a run, and the few of them that the pages are made of."""

import json
import re
import struct

from . import steps

SECTION, INTERFACE, PACKET = 0x0a0d0d0a, 1, 6     # blocks of pcapng
BYTE_ORDER, ETHERNET, IF_NAME = 0x1a2b3c4d, 1, 2
NAME = b'qhca0-loopback'


class Record:
    """output: what the program printed; events: (trace event, CQE), the second only for the
    event of a CQE, in hexadecimal; frames: (microseconds, bytes)."""

    def __init__(self, output, events, frames):
        self.output, self.events, self.frames = output, events, frames

    @classmethod
    def of_run(cls, output, log, frames):
        return cls(output, list(steps.events(log, qps(output))), frames)

    @classmethod
    def load(cls, path):
        with open(path, encoding='utf-8') as file:
            kept = json.load(file)
        return cls('\n'.join(kept['output']), kept['events'],
                   [(time, bytes.fromhex(frame)) for time, frame in kept['frames']])

    def save(self, path):
        """One item a line; the first frame comes at 0."""
        first = self.frames[0][0] if self.frames else 0
        lists = {'output': self.output.strip().splitlines(), 'events': self.events,
                 'frames': [(time - first, frame.hex()) for time, frame in self.frames]}
        with open(path, 'w', encoding='utf-8') as file:
            file.write('{\n' + ',\n'.join(
                f' "{name}": [\n' + ',\n'.join(f'  {json.dumps(item)}' for item in items) + '\n ]'
                for name, items in lists.items()) + '\n}\n')

    def read(self):
        """A Reader that has read the events."""
        reader = steps.Reader(*qps(self.output))
        reader.read(self.events)
        return reader

    def write_capture(self, path):
        """The frames in a file as the device writes it."""
        with open(path, 'wb') as file:
            file.write(_block(SECTION, struct.pack('=I2Hq', BYTE_ORDER, 1, 0, -1)))
            file.write(_block(INTERFACE, struct.pack('=2HI', ETHERNET, 0, 0) + struct.pack(
                '=2H', IF_NAME, len(NAME)) + _padded(NAME) + bytes(4)))
            for time, frame in self.frames:
                head = struct.pack('=5I', 0, time >> 32, time & 0xffffffff, len(frame), len(frame))
                file.write(_block(PACKET, head + _padded(frame)))


def qps(output):
    """The numbers of the two QPs."""
    found = re.search(r'QP a is (0x\w+) .*QP b is (0x\w+) ', output)
    if not found:
        raise steps.Wrong(f'what is this?\n{output}')
    return int(found[1], 0), int(found[2], 0)


def _padded(data):
    return data + bytes(-len(data) % 4)


def _block(kind, body):
    length = struct.pack('=I', len(body) + 12)
    return struct.pack('=I', kind) + length + body + length
