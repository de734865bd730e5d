# SPDX-License-Identifier: GPL-2.0
"""One running machine: its process, its channels, its outcome."""

import contextlib
import ctypes
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time

from . import kvmstat, logs, machine, nested, patience, payload, qmp, requests, splat
from .build import note

SIGKILL_WITH_PARENT = 1     # PR_SET_PDEATHSIG
PATIENCE = 10               # seconds for a guest to take an answer
# QEMU at large leaks and races; the device is judged by what they report about it.
SANITIZERS = {'ASAN_OPTIONS': 'detect_leaks=0', 'UBSAN_OPTIONS': 'print_stacktrace=1',
              'TSAN_OPTIONS': 'exitcode=0 report_signal_unsafe=0 history_size=4'}
# Looked up here: between fork and exec nothing may take a lock, and there are threads.
PRCTL = ctypes.CDLL(None).prctl


def die_with_parent():
    """Do not outlive the launcher, not even one killed with -9."""
    PRCTL(SIGKILL_WITH_PARENT, signal.SIGKILL)


class Session:
    def __init__(self, role, accel, run_dir, sock_dir, console='log'):
        self.role, self.accel = role, accel
        self.console = console          # 'log', 'stdio' or 'socket', as a lab has it
        self.interactive = console != 'log'
        self.run_dir = os.path.join(run_dir, role)
        self.sock_dir = os.path.join(sock_dir, role)
        os.makedirs(self.run_dir)
        os.makedirs(self.sock_dir)
        self.payload = os.path.join(self.sock_dir, 'payload.tar')
        self.opts = self.dirs = None    # of this machine, and what was built for it
        self.nics = []
        self.captures = []
        self.image = self.disk = None   # the image; what is kept of the writes to it
        self.prefix = b''               # put before each line of output
        self.stamp = False              # and the seconds since power-on
        self.console_to = None          # stream for a live kernel log
        self.seconds = 0                # from power-on to the end
        self.built = 0                  # of these it has waited for what is built for it
        self.status = None              # exit status of the job
        self.verdict = None             # the same, or what else went wrong
        self.up_after = None            # seconds from power-on to the init
        self.ready = False              # its prompt is there
        self.waiting = None             # name of the barrier it waits at
        self.host = None                # channel for requests to the launcher
        self.servers = []               # the processes that have the adapters, if QEMU has not
        self.plugged = 0                # which of its ports has the adapter
        self.player = None              # of the schedule, which events of the guest concern
        self.process = None
        self.buffers = {}
        self.listeners = {}
        self.kept = {name: logs.Log(self.path(name), limit)
                     for name, limit in (('files.tar', payload.LIMIT), ('output', logs.LIMIT),
                                         ('console.log', logs.LIMIT))}
        self.pipes = []                 # logs that QEMU writes

    def path(self, name):
        return os.path.join(self.run_dir, name)

    def listen(self):
        ports = machine.PORTS + (() if self.interactive else ('con',))
        for name in ports:
            sock = socket.socket(socket.AF_UNIX)
            sock.bind(os.path.join(self.sock_dir, name))
            sock.listen(1)
            self.listeners[name] = sock

    def log(self, name, limit=logs.LIMIT):
        """A path for QEMU to log to; @name is the file that gets it."""
        self.pipes.append(logs.Pipe(self.path(name), limit))
        return self.pipes[-1].name

    def start(self, args, selector):
        self.listen()
        with open(self.path('command'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(args) + '\n')
        on_tty = self.console == 'stdio'
        own_tty = None if on_tty else subprocess.DEVNULL
        if not on_tty:
            self.log('qemu.err')
        out = None if on_tty else self.pipes[-1].fd
        env = dict(SANITIZERS, **os.environ)
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            args, stdin=own_tty, stdout=out, stderr=out, env=env,
            start_new_session=not on_tty, preexec_fn=die_with_parent,
            pass_fds=[pipe.fd for pipe in self.pipes])
        for pipe in self.pipes:
            pipe.start()
        self._accept(selector)

    def _accept(self, selector):
        """QEMU connects to every channel before the guest runs."""
        with contextlib.ExitStack() as listeners:
            for sock in self.listeners.values():
                listeners.enter_context(sock)
                sock.settimeout(0.2)
            self._accept_each(selector)

    def _accept_each(self, selector):
        for name, sock in self.listeners.items():
            while True:
                try:
                    conn = sock.accept()[0]
                    break
                except socket.timeout:
                    if self.process.poll() is not None:
                        return
            conn.setblocking(False)
            if name == 'host':
                self.host = conn
            selector.register(conn, selectors.EVENT_READ, (self, name))

    def receive(self, name, data):
        """Bytes from one channel; text channels are handled line by line."""
        if name == 'files':
            self.kept['files.tar'].write(data)
            return []
        if name == 'con':
            self.kept['console.log'].write(data)
            if self.console_to:
                self.console_to.write(data)
                self.console_to.flush()
            return []
        if name == 'out' and not self.prefix and not self.stamp:
            self._output(data)
            return []
        data = self.buffers.get(name, b'') + data
        *lines, rest = data.split(b'\n')
        if len(rest) > requests.LONGEST_LINE:       # cut, rather than kept until there is an end
            lines, rest = lines + [rest], b''
        self.buffers[name] = rest
        if name == 'out':
            stamp = b'%.2f ' % (time.monotonic() - self.started) if self.stamp else b''
            for line in lines:
                self._output(self.prefix + stamp + line + b'\n')
            return []
        return [line.decode(errors='replace') for line in lines]

    def _output(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        self.kept['output'].write(data)

    def control(self, line):
        word, _, rest = line.partition(' ')
        if word == 'up':
            self.up_after = time.monotonic() - self.started
        elif word == 'ready':
            self.ready = True
        elif word == 'exit':
            # A guest that is out of its mind has failed.
            self.status = int(rest) if re.fullmatch(r'\d{1,3}', rest) else 1
            self.stop()

    def request(self, line):
        """A request of the guest to its launcher; None: no answer yet."""
        word, _, rest = line.partition(' ')
        if word == 'sync':
            self.waiting = rest
            return None
        try:
            if word == 'qmp':
                return self.command(requests.command(rest, self.nics))
            if word == 'event':
                return self._event(rest)
            if word == 'plug':
                return self.plug(requests.adapter(rest, self.nics))
            if word == 'server':
                return self._life_of_server(rest)
            if word == 'build':
                return self._build(rest)
            if word == 'exits':
                return json.dumps({'return': kvmstat.counters(self.process.pid)})
            if word == 'snapshot':
                return qmp.snapshot(self._qmp(), requests.seconds(rest))
        except requests.Refused as err:
            return requests.error(str(err))
        return requests.error('unknown request')

    def _build(self, wishes):
        start = time.monotonic()
        reply = nested.serve(self.opts, wishes)
        self.built += time.monotonic() - start
        return reply

    def _event(self, name):
        if not re.fullmatch('[a-z][a-z0-9-]{0,30}', name):
            raise requests.Refused('not the name of an event')
        if self.player:
            self.player.event(name)
        return '{"return": {}}'

    def command(self, text):
        """Run a QMP command, of QEMU or of the server that has the adapter; the reply."""
        for_server = requests.for_server(text, self.role, self.nics)
        if for_server:
            return qmp.execute(self.servers[for_server[1]].control, for_server[0])
        return qmp.execute(self._qmp(), text)

    def plug(self, nic):
        """The adapter again; a server's at another port, for the one before is still there."""
        number = self.plugged + 1 if nic.socket else 0
        reply = qmp.execute(self._qmp(), json.dumps(
            {'execute': 'device_add', 'arguments': requests.plug(nic, number)}))
        if 'error' not in json.loads(reply):
            self.plugged = number
        return reply

    def _life_of_server(self, what):
        acts = self.servers[0].acts() if self.servers else {}
        if what not in acts:
            raise requests.Refused('a guest may not do that to the server')
        acts[what]()
        return '{"return": {}}'

    def _qmp(self):
        return os.path.join(self.sock_dir, 'qmp')

    def answer(self, text):
        """A guest that does not take it gets no other; one that is gone is noticed elsewhere."""
        try:
            self.host.settimeout(PATIENCE * patience.factor())
            self.host.sendall(text.encode() + b'\n')
            self.host.setblocking(False)
        except OSError:
            with contextlib.suppress(OSError):
                self.host.shutdown(socket.SHUT_RDWR)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def reap(self, patience=10):
        """After stop(): wait, then kill. Only ever our own child."""
        if not self.process:
            return None
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            note(f'{self.role}: QEMU does not stop, killing it')
            self.process.kill()
            code = self.process.wait()
        for pipe in self.pipes:
            pipe.finish()
        return code

    def complaint(self):
        """The kernel's first complaint, or None."""
        for name in ('dmesg', 'console.log'):
            try:
                with open(self.path(name), errors='replace', encoding='utf-8') as file:
                    found = splat.find(file.read())
            except OSError:
                continue
            if found:
                return found
        return None

    def sanitizer_report(self):
        """Return a sanitizer's first report about the device."""
        return splat.sanitizer(self.tail('qemu.err', 1000000))

    def tail(self, name, count=25):
        try:
            with open(self.path(name), errors='replace', encoding='utf-8') as file:
                return ''.join(file.readlines()[-count:])
        except OSError:
            return ''
