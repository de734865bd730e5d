# SPDX-License-Identifier: GPL-2.0
"""Run the sessions to their end and judge the outcome."""

import os
import re
import selectors
import shutil
import signal
import sys
import time

from . import build, machine, patience, payload
from .build import note

TIMEOUT, SPLAT, DIED = 124, 123, 125


class NoBoot(Exception):
    """A guest that SESSION's accelerator has not brought up."""

    def __init__(self, session, text):
        super().__init__(text)
        self.accel = session.accel


class EarlyPanic(NoBoot):
    """A guest's kernel has died before any of our code ran in it."""


def for_role(items, role):
    """The items for this machine: x:ITEM is for machine x, a bare ITEM for a."""
    named = [(item[0], item[2:]) if re.match('[a-z]:', item) else ('a', item) for item in items]
    return [item for owner, item in named if owner == role]


def targets(gets, role):
    """--get options for this machine: guest path -> host path."""
    pairs = [item.partition(':')[::2] for item in for_role(gets, role)]
    return {guest: host or os.path.basename(guest) for guest, host in pairs}


def trim(base, keep):
    """Drop old run directories, but keep the newest for a look afterwards."""
    names = sorted((os.path.join(base, name) for name in os.listdir(base)),
                   key=os.path.getmtime)
    for name in names[:-keep]:
        if time.time() - os.path.getmtime(name) > 3600:
            shutil.rmtree(name, ignore_errors=True)


def _interrupt(_signo, _frame):
    build.stop()
    raise KeyboardInterrupt


def clean_exit_on_signals():
    """Also SIGINT: a shell script's background job starts with it ignored."""
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, _interrupt)


def run(opts, sessions):
    selector = selectors.DefaultSelector()
    start = time.monotonic()
    timed_out = False
    try:
        for session in sessions:
            session.start(machine.command(session.opts, session.dirs, session), selector)
        loop = {'shell': _loop_shell, 'lab': _loop_lab}.get(opts.mode, _loop)
        timed_out = not loop(opts, sessions, selector, start)
    finally:
        for session in sessions:
            session.stop()
        codes = [session.reap() for session in sessions]
        selector.close()
    if opts.mode == 'lab':
        return 0
    if opts.mode == 'shell':
        return _judge_qemu(sessions[0], codes[0])
    for session in sessions:
        session.seconds = time.monotonic() - start
    results = [_judge(opts, session, code, timed_out)
               for session, code in zip(sessions, codes)]
    if not opts.quiet:
        ups = ', '.join(f'{s.up_after:.1f} s' if s.up_after else 'never' for s in sessions)
        if opts.trace:
            note('trace events are in ' + ', '.join(s.path('qemu.log') for s in sessions))
        note(f'{sessions[0].accel}: init after {ups}; {time.monotonic() - start:.1f} s in all')
    return next((code for code in results if code), 0)


def _loop(opts, sessions, selector, start):
    """Until every channel is closed; False on timeout."""
    while selector.get_map():
        elapsed = time.monotonic() - start
        waited = sum(session.built for session in sessions)
        if elapsed - waited > opts.timeout and not opts.gdb:
            return False
        check_boot(opts, sessions, elapsed)
        _serve(sessions, selector, 0.5)
        if any(s.process.poll() is not None and s.status is None for s in sessions):
            # One machine is dead: drain the channels, then stop all.
            _drain(sessions, selector)
            break
    check_panic(sessions)
    return True


# Accidents of a machine under TCG while it boots, once in very many times; the last two are the
# mistake of QEMU 10.0 that qemu-device/beside/moves.c keeps guests from.
EARLY = (('console.log', 'Kernel panic', 'its kernel died before init'),
         ('console.log', 'Possible timer handling issue', 'a CPU lost its timer before init'),
         ('qemu.err', 'iotlb_to_section', 'its QEMU died before init'))


def check_panic(sessions):
    """Raise EarlyPanic if a machine has ended in one of these ways."""
    for session in sessions:
        for file, words, what in EARLY:
            if session.up_after is None and words in session.tail(file, 200):
                raise EarlyPanic(session, f'machine {session.role}: {what}\n' + session.tail(file))


def check_boot(opts, sessions, elapsed):
    slow = opts.debug_kernel or opts.kdir or opts.debug_qemu == 'tsan'
    for session in sessions:
        limit = patience.boot_limit(session.accel, slow)
        if session.up_after is None and elapsed > limit and not opts.gdb:
            check_panic(sessions)
            raise NoBoot(session, f'{session.role}: no sign of life after {limit} s\n'
                         + session.tail('console.log'))


def _loop_shell(_opts, sessions, selector, _start):
    while sessions[0].process.poll() is None:
        _serve(sessions, selector, 0.2)
    return True


def _loop_lab(opts, sessions, selector, start):
    """Until all machines are off. Those that are not up yet may not end."""
    waiting = True
    while any(session.process.poll() is None for session in sessions):
        _serve(sessions, selector, 0.5)
        check_boot(opts, sessions, time.monotonic() - start)
        if waiting and all(session.ready for session in sessions):
            opts.ready(sessions)
            waiting = False
        for session in sessions if waiting else ():
            if session.process.poll() is not None:
                raise NoBoot(session, f'{session.role}: off before its prompt\n'
                             + session.tail('console.log') + session.tail('qemu.err'))
    return True


def _drain(sessions, selector):
    deadline = time.monotonic() + 3
    for session in sessions:
        if session.process.poll() is None and session.status is None:
            session.stop()
    while selector.get_map() and time.monotonic() < deadline:
        _serve(sessions, selector, 0.2)


def _serve(sessions, selector, timeout):
    if not selector.get_map():
        time.sleep(timeout)
        return
    for key, _ in selector.select(timeout):
        session, name = key.data
        try:
            data = key.fileobj.recv(1 << 16)
        except BlockingIOError:
            continue
        except OSError:
            data = b''
        if not data:
            selector.unregister(key.fileobj)
            key.fileobj.close()
            continue
        for line in session.receive(name, data):
            if name == 'ctl':
                session.control(line)
            elif name == 'host':
                reply = session.request(line)
                if reply is not None:
                    session.answer(reply)
    _release_barrier(sessions)


def _release_barrier(sessions):
    """When all machines that still have a job wait at the same name, they go on."""
    alive = [session for session in sessions if session.status is None]
    names = {session.waiting for session in alive}
    if alive and None not in names and len(names) == 1:
        for session in alive:
            session.waiting = None
            session.answer('ok')


def _judge_qemu(session, code):
    """DIED if QEMU failed, after its last words; the user of a shell sees them anyway."""
    if code in (0, -signal.SIGTERM):
        return 0
    note(f'machine {session.role}: QEMU itself failed, status {code}')
    sys.stderr.write(session.tail('qemu.err', 60))
    return DIED


def _judge(opts, session, code, timed_out):
    """The exit status of one machine; prints what went wrong."""
    _collect(session)
    result = session.status
    label = f'machine {session.role}'
    if result is None:
        if timed_out:
            note(f'{label}: timeout after {opts.timeout:g} s')
            result = TIMEOUT
        else:
            note(f'{label}: gone before its job was done (QEMU status {code})')
            result = DIED
        sys.stderr.write(session.tail('console.log') + session.tail('qemu.err'))
    else:
        failed = _judge_qemu(session, code)
        result = result or failed
    complaint = None if opts.allow_splat else session.complaint()
    if complaint:
        note(f'{label}: the kernel complained:')
        sys.stderr.write(complaint + '\n')
        result = result or SPLAT
    if report := session.sanitizer_report():
        note(f'{label}: a sanitizer complained about the device:')
        sys.stderr.write(report)
        result = result or DIED
    session.verdict = result
    if result:
        note(f'{label}: status {result}, logs in {session.run_dir}')
    return result


def _collect(session):
    """Files that came back: what was asked for, and always the kernel log."""
    archive = session.path('files.tar')
    if not os.path.exists(archive):
        return
    wanted = dict(session.gets, **{'/run/qhca/dmesg': session.path('dmesg')})
    try:
        for name in payload.unpack_results(archive, wanted):
            note(f'machine {session.role}: {name} did not come back')
            if name in session.gets:
                session.status = session.status or 1
    except Exception as err:    # pylint: disable=broad-except
        note(f'machine {session.role}: broken result archive: {err}')
    os.unlink(archive)
