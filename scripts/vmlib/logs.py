# SPDX-License-Identifier: GPL-2.0
"""Files that a guest can make grow, with an end."""

import os
import threading

LIMIT = 64 << 20            # bytes of one log
TRACE_LIMIT = 4 << 30       # of QEMU's log, if trace events were asked for


class Log:
    """A file that takes @limit bytes; what comes later is dropped, and the file says so."""

    def __init__(self, path, limit=LIMIT):
        self.path, self.left = path, limit
        self.note = f'\n[the rest is not kept: {limit} bytes are the limit]\n'.encode()

    def write(self, data):
        """Append @data, as far as it fits."""
        if self.left < 0:
            return
        with open(self.path, 'ab') as file:
            file.write(data[:self.left])
            self.left -= len(data)
            if self.left < 0:
                file.write(self.note)


class Pipe(Log):
    """A log that a child writes: @fd is for the child to inherit, @name a path under which
    it can open the same. A thread of its own reads, so that the child never waits for the
    launcher."""

    def __init__(self, path, limit=LIMIT):
        super().__init__(path, limit)
        self.read, self.fd = os.pipe()
        self.name = f'/dev/fd/{self.fd}'
        self.thread = threading.Thread(target=self._drain, daemon=True)
        with open(path, 'wb'):
            pass

    def _drain(self):
        with open(self.read, 'rb', buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                self.write(data)

    def start(self):
        """The child has its end: give ours up, so that its exit is the end of the log."""
        os.close(self.fd)
        self.thread.start()

    def finish(self):
        """After the child's exit: wait until the file has all of it."""
        self.thread.join(5)
