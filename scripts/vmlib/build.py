# SPDX-License-Identifier: GPL-2.0
"""Run the build scripts; cached results return immediately."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from vmlib import arch
from vmlib.progress import Progress

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(TOP, 'scripts')
CACHE = os.environ.get('QHCA_CACHE') or os.path.join(
    os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'qhca')

# Results that a container image has instead of the means to build them: image, modules, …
READY = os.path.join(TOP, 'ready')

# The source of each of these; without it there is nothing to build.
SOURCES = {
    'build/beside.sh': 'qemu-device/meson.build',
    'build/qemu.sh': 'qemu-device/meson.build',
    'build/server.sh': 'qemu-device/server/meson.build',
    'build/modules.sh': 'Kbuild',
    'build/provider.sh': 'providers/qhca/CMakeLists.txt',
    'build/selftests.sh': 'selftests/Makefile',
}


# Space that the first run takes of the disk, and later ones may.
FIRST_BYTES, LATER_BYTES = 9 << 29, 500 << 20

RUNNING = []    # build scripts that run now, for stop()
PROGRESS = Progress()


def stop():
    """Terminate the build scripts that run, with their children."""
    for child in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)


class BuildError(Exception):
    pass


def ask_root():
    """Here, in the foreground, because the user cannot type a password at build scripts."""
    if os.geteuid() == 0 or os.path.isdir(READY):
        return
    if subprocess.run([os.path.join(SCRIPTS, 'build/host-deps.sh'), '--ask'],
                      check=False).returncode:
        raise BuildError('cannot build here')


def script(name, *args):
    """Run one build script; its only line on stdout is the result."""
    ready = os.path.join(READY, name[len('build/'):-len('.sh')])
    if not args and os.path.isdir(ready):
        return ready
    source = SOURCES.get(name)
    if source and not os.path.exists(os.path.join(TOP, source)):
        return None
    # In a process group of its own, so that all of it can be stopped.
    with subprocess.Popen([os.path.join(SCRIPTS, name), *args], text=True,
                          process_group=0,
                          env={**os.environ, 'QHCA_BACKGROUND': '1', **PROGRESS.environment()},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        RUNNING.append(child)
        PROGRESS.follow(child.stderr)
        out = child.stdout.read()
        child.wait()
        RUNNING.remove(child)
    if child.returncode:
        raise BuildError(f'{name} failed with status {child.returncode}')
    return out.strip().splitlines()[-1]


def brings_qemu():
    """Whether this tree, or this container image, has the device for QEMU."""
    return os.path.exists(os.path.join(TOP, SOURCES['build/beside.sh'])) or \
        os.path.isdir(os.path.join(READY, 'beside'))


def choose_device(opts):
    """Choose the device of the machines: with packages alone, the installed one."""
    if opts.no_device or opts.server or brings_qemu() or installed_qemu(opts):
        return
    if installed_server():
        note('no QEMU with the device: --server')
        opts.server = True
    else:
        note('no QEMU with the device: --no-device')
        opts.no_device = True


def installed_qemu(opts):
    """Return the package's QEMU, which is beside Debian's."""
    return shutil.which(f'{arch.of(opts).system}-qhca')


def installed_server():
    return shutil.which('qhca-server')


def own_qemu(opts):
    """The user's, which may be too old for a server."""
    if opts.server:
        models = subprocess.run([opts.qemu, '-device', 'help'], check=False, text=True,
                                stdout=subprocess.PIPE).stdout
        if '"vfio-user-pci"' not in models:
            raise BuildError(f'{opts.qemu} has no vfio-user-pci: --server needs QEMU 10.1 or newer')
    return opts.qemu


def qemu_program(opts):
    if opts.qemu:
        return own_qemu(opts)
    system = arch.of(opts).system
    wanted = ['--arch', arch.of(opts).debian] if arch.is_foreign(opts) else []
    if opts.server:
        return os.path.join(script('build/stock-qemu.sh', *wanted), system)
    kind = ['--hostile'] if opts.hostile else []
    if opts.debug_qemu:
        built = script('build/qemu.sh', f'--{opts.debug_qemu}', *kind)
    else:
        built = script('build/beside.sh', *kind, *wanted)
    if built:
        return os.path.join(built, system)
    if not opts.debug_qemu and not opts.hostile:
        if installed := installed_qemu(opts):
            return installed
        if opts.no_device:
            return os.path.join(script('build/stock-qemu.sh', *wanted), system)
    raise BuildError('no sources of the device to build such a QEMU from')


def server_dir(opts):
    """Where qhca-server is; None: it is not wanted."""
    if not opts.server:
        return None
    kind = {'debug': ['--asan'], 'tsan': ['--tsan']}.get(opts.debug_qemu, [])
    built = script('build/server.sh', *kind)
    if built:
        return built
    if kind or not installed_server():
        raise BuildError('no sources of qhca-server to build it from')
    return os.path.dirname(installed_server())


def everything(opts):
    """Build what this run needs; returns a dict of directories (or None).

    Side by side: QEMU and the image need the build root only after they have been
    unpacked, the rest begins with it.
    """
    started = time.monotonic()
    if not os.path.isdir(READY):
        check_space()

    def built(name, *args):
        if arch.is_foreign(opts):
            return script('build/cross.sh', arch.of(opts).debian, name, *args)
        return script(f'build/{name}.sh', *args)

    def payload():
        alone = ['--no-tests'] * (opts.no_selftests and not arch.is_foreign(opts))
        wanted = {'modules': lambda: built('modules', *kernel_args, *alone),
                  'provider': lambda: built('provider'),
                  'selftests': lambda: built('selftests')}
        if not os.path.isdir(READY):
            script('build/buildroot.sh', '--path')
        kernel, kernel_args = other_kernel(opts)
        out = {'kernel': kernel, 'userspace': None}
        if opts.rdma_core:
            out['userspace'] = script('build/userspace.sh', opts.rdma_core)
            wanted['userspace-provider'] = lambda: script('build/provider.sh', '--release',
                                                          opts.rdma_core)
        for key, make in wanted.items():
            skip = opts.no_selftests if key == 'selftests' else opts.no_device
            try:
                out[key] = None if skip else make()
            except BuildError as err:
                # Tests that do not build must not prevent starting a VM, only a
                # verdict.
                if key != 'selftests' or opts.strict:
                    raise
                note(f'{err}: going on without')
                out[key] = None
        return out

    packages = [f'--package={name}' for name in opts.package]
    with ThreadPoolExecutor(3) as pool:
        qemu = pool.submit(qemu_program, opts)
        image = pool.submit(built, 'image', *packages)
        rest = pool.submit(lambda: {**payload(), 'server': server_dir(opts)})
        dirs = {'qemu': qemu.result(), 'image': image.result(), **rest.result()}
    if summary := PROGRESS.summary():
        note(f'all built after {time.monotonic() - started:.0f} s; {summary}')
    return dirs


def check_space():
    """Before anything is made: a step that finds the disk full says so in many ways."""
    os.makedirs(CACHE, exist_ok=True)
    first = not glob.glob(os.path.join(glob.escape(CACHE), 'image-*'))
    need, free = FIRST_BYTES if first else LATER_BYTES, shutil.disk_usage(CACHE).free
    if free < need:
        raise BuildError(f'{CACHE} has room for {free / (1 << 30):.1f} GiB, and '
                         f'{"the first run takes" if first else "a run may take"} '
                         f'{need / (1 << 30):.1f}: set QHCA_CACHE to another place, or make some')


def other_kernel(opts):
    """The directory of a kernel that is not the image's, and how modules are built for it."""
    if opts.debug_kernel:
        kind = opts.debug_kernel
        kernel = script('build/kernel.sh', *([] if kind == 'debug' else [f'--{kind}']))
        return kernel, ('--kdir', os.path.join(kernel, 'build'))
    if opts.kdir:
        return script('build/kernel.sh', '--kdir', opts.kdir), ('--kdir', opts.kdir)
    if arch.of(opts).kernel:
        kernel = script('build/kernel.sh', '--arm64')
        return kernel, (kernel,)
    if opts.kernel:
        return script('build/kernel.sh', opts.kernel), ('--kernel', opts.kernel)
    return None, ()


def note(text):
    print(f'vm: {text}', file=sys.stderr, flush=True)
