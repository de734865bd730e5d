# SPDX-License-Identifier: GPL-2.0
"""Machines that stay, with a console each, until they are told to stop.

A process in the background, the keeper, runs them as the launcher runs any others. It holds
a lock as long as anything of the lab is there, and a file says where its sockets are.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
import traceback
import tty

from . import patience
from .build import CACHE, SCRIPTS, BuildError, note

# The outer machine of `vm nested` sees the host's cache, and its own lab only.
PLACE = '/run/qhca' if patience.inside() else CACHE
STATE = os.path.join(PLACE, 'lab.json')
LOCK = os.path.join(PLACE, 'locks', 'lab')
LOG = os.path.join(PLACE, 'logs', 'lab.log')
DETACH = b'\x1d'        # Ctrl-]


def _lock():
    """The lock of the lab, or None: there is one."""
    for path in LOCK, LOG:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    file = open(LOCK, 'w', encoding='ascii')
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _state():
    try:
        with open(STATE, encoding='utf-8') as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def _write_state(state):
    with open(STATE + '.tmp', 'w', encoding='utf-8') as file:
        json.dump(state, file)
    os.replace(STATE + '.tmp', STATE)


def _background():
    """Another session, so that no terminal's Ctrl-C reaches the machines."""
    os.setsid()
    with open(os.devnull, 'rb') as null, open(LOG, 'wb') as log:
        os.dup2(null.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def start(boot):
    """boot(ready) runs the machines to their end, and calls ready(sessions) when each has
    its prompt. Returns when that is so, with an exit status."""
    lock = _lock()
    if not lock:
        note('there is a lab already: vm lab-stop, or make lab-stop')
        return 2
    _forget()
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        lock.close()
        return _wait(read)
    os.close(read)
    status = 125
    try:
        _background()
        state = {'pid': os.getpid()}
        _write_state(state)

        def ready(sessions):
            state['directory'] = os.path.dirname(sessions[0].sock_dir)
            state['machines'] = {s.role: {'pid': s.process.pid, 'ip': s.nics[0].ip,
                                          'log': s.path('console.log')} for s in sessions}
            _write_state(state)
            os.write(write, b'ready')
        status = boot(ready)
    except KeyboardInterrupt:
        status = 0
    except BuildError as err:
        note(str(err))
    except Exception:                   # pylint: disable=broad-except
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        _forget()
        os._exit(status)


def _wait(read):
    """For what the keeper says, or its end."""
    with os.fdopen(read, 'rb') as pipe:
        if pipe.read(5) == b'ready':
            return 0
    with open(LOG, encoding='utf-8', errors='replace') as log:
        sys.stderr.write(log.read())
    return 125


def show():
    """A terminal for each machine: tmux's windows, or the commands that open one."""
    state = _state()
    attach = {role: [os.path.join(SCRIPTS, 'vm'), 'attach', role] for role in state['machines']}
    if not (shutil.which('tmux') and sys.stdin.isatty() and sys.stdout.isatty()):
        for role, machine in state['machines'].items():
            note(f'machine {role}, {machine["ip"]}: {" ".join(attach[role])}')
        note('all of them end with: make lab-stop')
        return 0
    tmux = ['tmux', '-S', os.path.join(state['directory'], 'tmux')]
    for number, (role, command) in enumerate(attach.items()):
        new = ['new-window', '-t', 'lab:'] if number else ['new-session', '-d', '-s', 'lab']
        subprocess.run([*tmux, *new, '-n', role, *command], check=True)
    subprocess.run([*tmux, 'select-window', '-t', 'lab:0'], check=False)
    subprocess.run([*tmux, 'attach'], check=False)
    if _state():
        note('the machines go on; they end with: make lab-stop')
    return 0


def _forget():
    """Remove the remains of a lab whose processes are gone."""
    directory = _state().get('directory')
    if directory:
        _end_tmux(directory)
        shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(STATE)


def _end_tmux(directory):
    path = os.path.join(directory, 'tmux')
    if os.path.exists(path):
        subprocess.run(['tmux', '-S', path, 'kill-server'], check=False,
                       stderr=subprocess.DEVNULL)


def stop(patience=30):
    """All that belongs to the lab is gone afterwards."""
    lock, state = _lock(), _state()
    if lock:
        note('there is no lab')
        _forget()
        return 0
    signo, end = signal.SIGTERM, time.monotonic() + patience
    while not lock:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state['pid'], signo)
        time.sleep(0.2)
        lock = _lock()
        if time.monotonic() > end:      # with it go QEMU and the switch
            signo = signal.SIGKILL
    _forget()
    return 0


def attach(role):
    """This terminal becomes the console of that machine."""
    state = _state()
    if role not in state.get('machines', {}):
        note(f'there is no machine {role}: vm lab -n 3 starts a, b and c')
        return 2
    directory = os.path.join(state['directory'], role)
    with open(os.path.join(directory, 'attached'), 'w', encoding='ascii') as lock, \
            socket.socket(socket.AF_UNIX) as console:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            console.connect(os.path.join(directory, 'console'))
        except BlockingIOError:
            note(f'the console of {role} is in another terminal')
            return 2
        except OSError:
            note(f'machine {role} is off')
            return 1
        note(f'machine {role}; Ctrl-] leaves it, "resize" tells it the size of this window')
        with open(state['machines'][role]['log'], 'rb') as log:
            sys.stdout.buffer.write(b''.join(log.readlines()[-12:]))
            sys.stdout.buffer.flush()
        with _raw(sys.stdin):
            gone = _bridge(console)
    print('\r')
    note(f'machine {role} is off' if gone else f'machine {role} goes on')
    return 0


@contextlib.contextmanager
def _raw(stream):
    if not stream.isatty():
        yield
        return
    before = termios.tcgetattr(stream)
    try:
        tty.setraw(stream)
        yield
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _bridge(console):
    """True if the machine has hung up, False if the user has."""
    while True:
        for source in select.select([sys.stdin, console], [], [])[0]:
            if source is console:
                data = console.recv(1 << 16)
                if not data:
                    return True
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
                continue
            data = os.read(sys.stdin.fileno(), 1 << 12)
            if not data or DETACH in data:
                return False
            console.sendall(data)
