# SPDX-License-Identifier: GPL-2.0
"""`vm nested`: an outer machine, which is emulated and whose CPU has AMD's SVM, so that machines in
it have KVM.

It has the checkout and the cache at their paths here. Nothing is built in it: its launcher asks the
one that has started it, through the port of qhca-host, for what each machine in it needs.
"""

import fcntl
import json
import os
import re
import types

from . import arch, build, patience, requests
from .build import TOP, BuildError

DEFAULTS = {'mem': 2 << 10, 'smp': 2}           # of a machine, MiB and CPUs
OUTER = {'mem': 6 << 10, 'smp': max(2, min(8, os.cpu_count() or 1))}
# Options of the outer machine; all others are for those in it.
OWN = ('mode', 'machine', 'timeout', 'get', 'put', 'mount', 'package', 'internet', 'keep', 'junit',
       'env', 'smp', 'mem', 'accel', 'console', 'gdb', 'kernel', 'kdir', 'debug_kernel', 'qemu',
       'kernel_arg', 'qemu_arg', 'stamp', 'allow_splat', 'log_dir', 'quiet')
ODD = {'count': '-n', 'insmod': '--no-insmod'}
# Those that decide what has to be built for a machine. Its own QEMU is not among them.
WISHES = ('arch', 'debug_kernel', 'debug_qemu', 'hostile', 'kdir', 'kernel', 'no_device',
          'no_selftests', 'package', 'rdma_core', 'server', 'strict')
MACHINE_ROOM = 256      # MiB that a machine takes beside its memory
HOST, LOCK = '/run/qhca/host', '/run/qhca/host.lock'


def choose(parser, opts, commands):
    """Defaults; and of `vm nested` make `vm run`, or without a command `vm shell`."""
    opts.nested = opts.mode == 'nested'
    for name, value in (OUTER if opts.nested else DEFAULTS).items():
        if getattr(opts, name) is None:
            setattr(opts, name, value)
    if not opts.nested:
        return
    if patience.inside():
        parser.error('nested: this is the machine of vm nested')
    for name, value in vars(opts).items():
        if name not in (*OWN, 'nested') and value != parser.get_default(name):
            option = ODD.get(name, '--' + name.replace('_', '-'))
            parser.error(f'nested: {option} is for the machines in it: '
                         f'vm nested -- vm run {option} …')
    opts.mode = 'run' if commands else 'shell'
    opts.no_device = opts.no_selftests = True
    opts.setup = 'net nested'
    opts.accel = 'tcg' if opts.accel == 'auto' else opts.accel
    opts.timeout *= patience.NESTED


def mounts(opts):
    """Directories of this host, and where a machine has them. The outer one has the user's first,
    each at its own path unless told otherwise."""
    # The last colon, and only in front of an absolute path, as in Docker's -v.
    named = [re.match('(.*?)(?::(/[^:]*))?$', item).groups() for item in opts.mount]
    pairs = [(directory, path or (os.path.abspath(directory) if opts.nested else '/mnt'))
             for directory, path in named]
    if not opts.nested:
        return pairs
    for path in dict.fromkeys((TOP, os.path.realpath(TOP), os.path.abspath(build.CACHE))):
        if not any(_below(path, other) for _, other in pairs):
            pairs.append((path, path))
    return pairs


def _below(path, directory):
    return os.path.join(path, '').startswith(os.path.join(directory, ''))


def environment(opts):
    """Variables for the launcher in the outer machine; the command starts where this one does, if
    that directory is there."""
    if not opts.nested:
        return {}
    here, paths = os.getcwd(), [path for _, path in opts.mounts]
    return {patience.INSIDE: 1, 'QHCA_ACCEL': 'kvm', 'QHCA_CACHE': os.path.abspath(build.CACHE),
            'QHCA_WHERE': here if any(_below(here, path) for path in paths) else paths[0]}


def _available():
    """MiB of this machine's memory."""
    with open('/proc/meminfo', encoding='ascii') as file:
        return int(re.search(r'MemAvailable: *(\d+)', file.read())[1]) >> 10


def check_memory(opts):
    """Before anything starts: a machine that runs out of memory has no clear last words."""
    if opts.mode == 'build':
        return
    count = max(1, len(opts.commands))
    need, there = (opts.mem + MACHINE_ROOM) * count, _available()
    if need <= there:
        return
    if opts.nested:
        raise BuildError(f'the outer machine takes {need} MiB, and {there} are available here: '
                         'less of --mem, or end something else')
    if patience.inside():
        raise BuildError(f'these machines take {need} MiB, and {there} are available in the outer '
                         f'one: less of --mem, or vm nested --mem {_whole(need)}G')


def _whole(need):
    """GiB with which the outer machine has so much available, its kernel aside."""
    return -(-(need + 512) // 1024)


def serve(opts, text):
    """The outer machine asks for what a machine in it needs; the reply, in JSON."""
    if not (opts and opts.nested):
        raise requests.Refused('a guest may not have something built')
    try:
        asked = json.loads(text)
        wishes = types.SimpleNamespace(qemu=None, **{name: asked[name] for name in WISHES})
        arch.of(wishes)
    except (ValueError, KeyError, TypeError) as err:
        raise requests.Refused(f'build takes {", ".join(WISHES)}') from err
    try:
        dirs = build.everything(wishes)
    except BuildError as err:
        return requests.error(str(err))
    return json.dumps({'return': {name: path and os.path.abspath(path)
                                  for name, path in dirs.items()}})


def everything(opts):
    """build.everything() in the outer machine."""
    wishes = {name: getattr(opts, name) for name in WISHES}
    wishes['kdir'] = opts.kdir and os.path.abspath(opts.kdir)
    reply = json.loads(_ask('build ' + json.dumps(wishes)))
    if 'error' in reply:
        raise BuildError(reply['error']['desc'])
    dirs = reply['return']
    if opts.qemu:
        dirs['qemu'] = build.own_qemu(opts)
    for path in filter(None, dirs.values()):
        if not os.path.exists(path):
            raise BuildError(f'{path} is not in the outer machine, which has the checkout, the '
                             'cache, and what vm nested --mount names')
    return dirs


def _ask(line):
    """One at a time: no other process may have the port open."""
    with open(LOCK, 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(HOST, 'r+b', buffering=0) as port:
            port.write(line.encode() + b'\n')
            reply = b''
            while not reply.endswith(b'\n'):
                reply += port.read(1 << 16)
    return reply
