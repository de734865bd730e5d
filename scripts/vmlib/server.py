# SPDX-License-Identifier: GPL-2.0
"""The device as a process of its own: qhca-server, for all machines of one run."""

import os
import signal
import socket
import subprocess
import time

from . import cable, logs, patience
from .build import note
from .session import die_with_parent

PATIENCE = 30       # seconds until it listens


def socket_path(directory, role, rail=0):
    """Where machine @role finds its adapter of that rail."""
    return os.path.join(directory, role, f'hca{rail or ""}')


def end(process):
    """End a child; returns its status."""
    process.terminate()
    try:
        return process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


class Gateway:
    """A QEMU without a machine has a -netdev @backend and a socket at @path; leaving the context
    ends it."""

    def __init__(self, qemu, path, backend, log):
        self.path, self.log = path, log
        self.args = [qemu, '-machine', 'none', '-nodefaults', '-display', 'none',
                     '-netdev', f'{backend},id=far',
                     '-netdev', f'stream,id=near,server=on,addr.type=unix,addr.path={path}']
        for number, name in enumerate(('far', 'near')):
            self.args += ['-netdev', f'hubport,hubid=0,id=hub{number},netdev={name}']
        self.process = None

    def __enter__(self):
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, stderr=log,
                                            start_new_session=True, preexec_fn=die_with_parent)
        wait_for(lambda: os.path.exists(self.path), self.process)
        return self

    def __exit__(self, *_):
        end(self.process)


def wait_for(ready, process):
    """Until @ready() is true, or the process has failed."""
    limit = time.monotonic() + PATIENCE * patience.factor()
    while not ready() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)


class Server:
    """One process; leaving the context ends it. @adapters: role -> its properties, of those
    that are the @rail-th of their machines. One that is @mortal may be killed by the guests, who
    may start another one."""

    def __init__(self, program, directory, run_dir, adapters, uplink=None, mortal=False,
                 trace=(), rail=0):
        self.mortal = mortal
        self.control = os.path.join(directory, f'server{rail or ""}')
        self.log = logs.Pipe(os.path.join(run_dir, f'server{rail or ""}.err'),
                             logs.TRACE_LIMIT if trace else logs.LIMIT)
        self.args = [program, '--verbose', '--control', self.control]
        for pattern in trace:
            self.args += ['--trace', pattern]
        if uplink:
            self.args += ['--uplink', uplink]
        for role, properties in adapters.items():
            self.args += ['--socket', ','.join([socket_path(directory, role, rail), f'id={role}',
                                                *properties])]
        self.process = self.out = None

    def __enter__(self):
        self.out = os.dup(self.log.fd)
        self.log.start()
        self.start()
        return self

    def __exit__(self, *_):
        code = end(self.process)
        os.close(self.out)
        self.log.finish()
        if code not in (0, -signal.SIGTERM):
            note(f'qhca-server failed, status {code}')

    def acts(self):
        """Actions on it that guests may ask for, by name."""
        return {'kill': self.kill, 'start': self.start} if self.mortal else {}

    def kill(self):
        """End it without a warning."""
        self.process.kill()
        self.process.wait()

    def start(self):
        """Start it, unless it runs."""
        if self.process and self.process.poll() is None:
            return
        self.process = subprocess.Popen(
            self.args, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out,
            start_new_session=True, preexec_fn=die_with_parent)
        wait_for(self.listens, self.process)

    def listens(self):
        """A socket may be there that one before has left."""
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(self.control) == 0


def start_all(opts, dirs, sessions, run_dir, sock_dir, stack):
    """The processes that have the adapters: one for each rail, with all machines' adapters."""
    # A server refuses events that it does not have, and QEMU does not know those it has.
    events = [name for name in opts.trace if name.startswith('qhca')]
    opts.trace = [name for name in opts.trace if name not in events]
    for rail in range(opts.hcas):
        start_rail(opts, dirs, sessions, rail, events, run_dir, sock_dir, stack)
    if events and not opts.quiet:
        note('trace events of qhca-server go to ' + ', '.join(
            one.log.path for one in sessions[0].servers))


def start_rail(opts, dirs, sessions, rail, events, run_dir, sock_dir, stack):
    """The process of one rail. Its switch is at the launcher's hub if there are machines with
    other adapters, at QEMU's user network if there is but one machine."""
    uplink = None
    if len(sessions) > 1 and opts.link == 'hub':
        uplink = os.path.join(sock_dir, f'link{rail}')
    elif len(sessions) == 1:
        uplink = os.path.join(sock_dir, f'gateway{rail or ""}')
        stack.enter_context(Gateway(dirs['qemu'], uplink, cable.user(rail),
                                    os.path.join(run_dir, f'gateway{rail or ""}.err')))
    adapters = {session.role: [f'mac={session.nics[rail].mac}', *session.nics[rail].device_args]
                for session in sessions if session.nics[rail].kind == 'qhca'}
    process = Server(os.path.join(dirs['server'], 'qhca-server'), sock_dir, run_dir, adapters,
                     uplink and f'stream:{uplink}', opts.mortal_server, events, rail)
    for session in sessions:
        session.servers.append(process)
        if session.role in adapters:
            session.nics[rail].socket = socket_path(sock_dir, session.role, rail)
            session.nics[rail].spare = 16 if opts.mortal_server else 0
    stack.enter_context(process)
