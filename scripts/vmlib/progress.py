# SPDX-License-Identifier: GPL-2.0
"""Messages of build scripts while they work, and how long their steps took.

On a terminal each script that runs has one line, which moves; elsewhere its lines pass as they
come, of which there are few (run_step in lib.sh).
"""

import os
import re
import shutil
import sys
import threading
import time

SO_FAR = re.compile(r'^\[ *\d+s\] (.*): (\d+) s so far: (.*)$')
DONE = re.compile(r'^\[ *\d+s\] [\w-]+: (.*): done in (\d+) s$')
WORTH = 10      # seconds of steps that are worth a summary


class Progress:
    def __init__(self, out=None):
        self.out = out or sys.stderr
        self.live = self.out.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'
        self.started = str(int(time.time()))
        self.took = []          # (step, seconds)
        self.moving = {}        # job: its line
        self.shown = 0
        self.lock = threading.Lock()

    def environment(self):
        """For a script: when all began, and how often it says that it is still at work."""
        every = {'QHCA_EVERY': '1'} if self.live else {}
        return {'QHCA_STARTED': os.environ.get('QHCA_STARTED', self.started), **every}

    def follow(self, stream):
        """Read what one script says, to the end."""
        for line in stream:
            self.tell(stream, line.rstrip('\n'))
        with self.lock:
            self.moving.pop(stream, None)
            self.show()

    def tell(self, job, line):
        done, so_far = DONE.match(line), SO_FAR.match(line)
        with self.lock:
            if done:
                self.took.append((done[1], int(done[2])))
                self.moving.pop(job, None)
            if not (so_far and self.live):
                self.show(line)
                return
            self.moving[job] = '{}: {:>3} s  {}'.format(*so_far.groups())
            self.show()

    def show(self, line=None):
        """The lines that move, below LINE, which stays."""
        width = shutil.get_terminal_size().columns - 1
        text = f'\x1b[{self.shown}A\x1b[J' if self.shown else ''
        if line is not None:
            text += line + '\n'
        if self.live:
            text += ''.join(moving[:width] + '\n' for moving in self.moving.values())
            self.shown = len(self.moving)
        self.out.write(text)
        self.out.flush()

    def summary(self):
        """Where the time went, or None if it was little."""
        if sum(seconds for _, seconds in self.took) < WORTH:
            return None
        return 'seconds, some of them side by side: ' + ', '.join(
            f'{step} {seconds}' for step, seconds in self.took)
