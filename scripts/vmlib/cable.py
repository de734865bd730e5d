# SPDX-License-Identifier: GPL-2.0
"""The connection of the machines of one run: a -netdev backend for each of them, and the process or
the interfaces behind it."""

import os
import subprocess

from . import hub
from .session import die_with_parent

KINDS = ('stream', 'dgram', 'udp', 'hub', 'bridge:NAME')
ONLY_TWO = ('stream', 'dgram', 'udp')
# Between two functions of one machine.
INSIDE = 'hubport,hubid=0'


def known(kind):
    return kind in KINDS[:-1] or kind.startswith('bridge:') and kind != 'bridge:'


def user(index):
    """slirp, closed to the outside; its gateway answers pings at .254."""
    net = f'192.168.{77 + index}'
    return f'user,restrict=on,net={net}.0/24,host={net}.254,dns={net}.253,dhcpstart={net}.200'


class Cable:
    """One link between all machines; leaving the context takes it down. backends
    are the -netdev arguments, one per machine."""

    def __init__(self, opts, directory, index, count):
        self.opts, self.count, self.index = opts, count, index
        self.path = os.path.join(directory, f'link{index}')
        self.undo = []
        kind, _, self.name = opts.link.partition(':')
        self.backends = getattr(self, f'_{kind}')()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self.undo:
            self.undo.pop()()

    def _stream(self):
        return (f'stream,server=on,addr.type=unix,addr.path={self.path}',
                f'stream,server=off,addr.type=unix,addr.path={self.path},reconnect-ms=100')

    def _dgram(self):
        ends = [self.path + side for side in 'ab']
        return [f'dgram,local.type=unix,local.path={ends[me]},'
                f'remote.type=unix,remote.path={ends[1 - me]}' for me in (0, 1)]

    def _udp(self):
        """On the loopback interface; ports from the process id, below the ephemeral
        range, so that two runs do not collide."""
        port = 10000 + (os.getpid() * 8 + self.index * 2) % 20000
        return [f'dgram,local.type=inet,local.host=127.0.0.1,local.port={port + me},'
                f'remote.type=inet,remote.host=127.0.0.1,remote.port={port + 1 - me}'
                for me in (0, 1)]

    def _hub(self):
        process = hub.start(self.path, die_with_parent, loss=self.opts.loss / 100,
                            seed=self.opts.seed + self.index, rate=self.opts.rate * 125000,
                            red=self.opts.red, pause=self.opts.pause, pfc=self.opts.pfc,
                            queue=self.opts.queue * 1000 or hub.QUEUE)
        self.undo += [process.join, process.terminate]
        return [f'stream,server=off,addr.type=unix,addr.path={self.path},'
                'reconnect-ms=100'] * self.count

    def _bridge(self):
        """Taps in an existing bridge; needs CAP_NET_ADMIN."""
        return [self._tap(number) for number in range(self.count)]

    def _tap(self, number):
        tap = f'q{os.getpid() % 10 ** 7}.{self.index}{chr(ord("a") + number)}'
        ip = ['ip', 'link', 'set', 'dev', tap]
        subprocess.run(['ip', 'tuntap', 'add', 'dev', tap, 'mode', 'tap'], check=True)
        self.undo.append(lambda: subprocess.run(
            ['ip', 'tuntap', 'del', 'dev', tap, 'mode', 'tap'], check=False))
        # Jumbo frames, or the bridge drops RoCE packets with a path MTU above 1024.
        subprocess.run([*ip, 'mtu', '9000', 'master', self.name, 'up'], check=True)
        return f'tap,ifname={tap},script=no,downscript=no'
