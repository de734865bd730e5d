# SPDX-License-Identifier: GPL-2.0
"""Compose the QEMU command line of one test machine."""

import json
import os
import platform
import re
import subprocess

from . import arch, logs, requests, tsc
from .build import CACHE, note

INTERNET_MAC = '52:54:00:00:02:0f'
PORTS = ('ctl', 'out', 'files', 'host')
# System calls that QEMU may no longer make once it runs.
SANDBOX = 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'


def accel_marker():
    """A file that exists if KVM did not work on this machine with this kernel."""
    return os.path.join(CACHE, f'accel-tcg-{platform.node()}-{platform.release()}')


def why_not_kvm():
    """Return the obstacle, and the command that removes it; None: nothing."""
    with open('/proc/cpuinfo', encoding='ascii', errors='replace') as info:
        flags = next((line.split() for line in info if line.startswith('flags')), [])
    # /dev/kvm alone proves little: nested setups have it without the CPU.
    if not {'vmx', 'svm'} & set(flags):
        return ('this CPU shows no virtualization: switch it on in the firmware, or, if this '
                'is a VM, give it "-cpu host" and nested=1 in its host')
    if not os.path.exists('/dev/kvm'):
        module = 'kvm_intel' if 'vmx' in flags else 'kvm_amd'
        return f'there is no /dev/kvm: sudo modprobe {module}'
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return '/dev/kvm is not yours to open: sudo usermod -aG kvm "$USER", and log in again'
    if os.path.exists(accel_marker()):
        return f'a guest did not come up under KVM here; to try again: rm {accel_marker()}'
    return None


def choose_accel(wish, name=arch.NATIVE):
    """The accelerator, and the reason in words."""
    if wish != 'auto':
        return wish, 'as asked for'
    if reason := arch.why_not_kvm(name):
        return 'tcg', reason
    reason = why_not_kvm()
    return ('tcg', f'much slower than KVM, but {reason}') if reason else ('kvm', '/dev/kvm works')


def megabytes(text):
    """A size as --mem has it, in MiB: a number of them, or one with K, M, G or T. QEMU's own
    options do not agree on what a number alone means."""
    found = re.fullmatch(r'(\d+)([KMGT]?)', text, re.IGNORECASE | re.ASCII)
    kib = found and int(found[1]) << 10 * 'KMGT'.index(found[2].upper() or 'M')
    if not kib or kib % 1024:
        raise ValueError(text)
    return kib // 1024


def root_port(number):
    """The -device of a root port."""
    return f'pcie-root-port,id=rp{number},chassis={number + 1},slot={number + 1}'


class Nic:
    """One network function and its backend. peers are the addresses of the other
    machines on its cable, the next machine's first."""

    def __init__(self, kind, index, machine, count, backend, device_args=(), where=arch.NATIVE):
        self.kind, self.index, self.backend = kind, index, backend
        self.arch = arch.ARCHES[where]
        subnet = 77 + index
        self.all = [f'192.168.{subnet}.{n + 1}' for n in range(count)]
        count = max(count, 2)
        self.ip, *self.peers = [f'192.168.{subnet}.{(machine + n) % count + 1}'
                                for n in range(count)]
        self.mac = f'52:54:00:00:{subnet:02x}:{machine + 1:02x}'
        self.device_args = device_args
        self.socket = None      # of the server that has the adapter, if QEMU has not
        self.spare = 0          # ports for adapters that take its place

    def args(self):
        netdev = f'n{self.index}'
        if self.kind != 'qhca':
            return ['-netdev', f'{self.backend},id={netdev}',
                    *virtio(self.arch, 'net', f'netdev={netdev}', f'mac={self.mac}',
                            'host_mtu=9000', 'romfile=')]
        port = self._ports()
        if self.socket:
            return port + ['-device', json.dumps(requests.plug(self))]
        return ['-netdev', f'{self.backend},id={netdev}', *port, '-device', ','.join([
            *(f'{name}={value}' for name, value in requests.plug(self).items()),
            *self.device_args])]

    def _ports(self):
        """It is behind a root port, so that it can be unplugged and replugged, where there are
        such; zPCI wants a device beside each function."""
        if not self.arch.ports:
            return ['-device', f'zpci,uid={self.index + 1},fid={self.index},'
                               f'target={requests.device(self)}']
        out = ['-device', root_port(self.index)]
        for number in range(1, self.spare + 1):
            out += ['-device', root_port(self.index + number) + ',io-reserve=0,pref64-reserve=32M']
        return out


def virtio(kind, device, *properties):
    """A device of virtio's for this architecture; on PCI it may have a ROM."""
    words = [word for word in properties if kind.bus == 'pci' or word != 'romfile=']
    return ['-device', ','.join([f'virtio-{device}-{kind.bus}', *words])]


def internet(kind):
    """A network function of its own, behind QEMU's user network; guest/setup.sh knows
    the addresses that has."""
    return ['-netdev', 'user,id=inet',
            *virtio(kind, 'net', 'netdev=inet', f'mac={INTERNET_MAC}', 'romfile=')]


def shared(directory, number):
    """A directory of the host's, with the rights of QEMU's user."""
    path = os.path.abspath(directory).replace(',', ',,')
    return ['-virtfs', f'local,path={path},mount_tag=mount{number},security_model=none,'
                       'multidevs=remap']


def _kernel_args(opts, accel, console_level):
    words = [f'console={arch.of(opts).tty}', f'loglevel={console_level}', 'panic=-1', 'oops=panic',
             'hostname=qhca',
             'net.ifnames=0', 'random.trust_cpu=on', 'tsc=reliable',
             'printk.devkmsg=on', 'mitigations=off', 'rw',
             # A panic on the way into sleep would end the machine without a word.
             'no_console_suspend']
    if not opts.allow_splat:
        # These fail the run in any case; without a panic only at its time limit.
        words += ['watchdog_thresh=30', 'softlockup_panic=1', 'hung_task_panic=1']
    if accel == 'tcg' and arch.of(opts).clock:
        # On a busy host the kernel does not see the ticks of a timer that works in time, and
        # panics. Under KVM it does not test it either.
        words.append('no_timer_check')
        if khz := tsc.khz():
            words.append(f'tsc_early_khz={khz}')
    if opts.iommu:
        words.append('intel_iommu=on')
    return ' '.join(words + opts.kernel_arg)


def _sandbox(qemu):
    """None for a QEMU that was built without it, which only --qemu can bring."""
    known = subprocess.run([qemu, '-sandbox', 'on', '-version'], check=False,
                           stdin=subprocess.DEVNULL, capture_output=True)
    if known.returncode:
        note('this QEMU has no sandbox: a guest that takes it over has all your rights')
        return []
    return ['-sandbox', SANDBOX]


def _kernel(image):
    """The uncompressed kernel if there is one: it boots a second faster."""
    plain = os.path.join(image, 'vmlinux')
    return plain if os.path.exists(plain) else os.path.join(image, 'vmlinuz')


def _board(opts, accel):
    split = ',kernel-irqchip=split' if opts.iommu and accel == 'kvm' else ''
    return arch.of(opts).board + split


def command(opts, dirs, machine):
    """machine: a Session."""
    accel, kind = machine.accel, arch.of(opts)
    kernel = dirs['kernel'] or machine.image
    level = 7 if opts.console else 5
    # Memory that the server can also map.
    shared_memory = ['-object', f'memory-backend-memfd,id=ram,size={opts.mem}M,share=on']
    args = [dirs['qemu'], '-name', f'qhca-{machine.role}',
            *(shared_memory if opts.server else []),
            '-machine', _board(opts, accel) + (',memory-backend=ram' if opts.server else ''),
            '-accel', 'tcg,thread=multi' if accel == 'tcg' else accel,
            '-cpu', 'host' if accel != 'tcg' else kind.cpu,
            '-smp', str(opts.smp), '-m', f'{opts.mem}M', '-nodefaults', '-display', 'none',
            '-no-reboot', '-kernel', _kernel(kernel),
            '-initrd', os.path.join(kernel, 'initrd'),
            '-append', _kernel_args(opts, machine.accel, level)]
    if opts.iommu:
        args += ['-device', 'intel-iommu,intremap=on,device-iotlb=on']
    root = (f'format=qcow2,file={machine.disk.replace(",", ",,")}' if machine.disk else
            f'format=raw,snapshot=on,file={machine.image}/rootfs.ext4')
    args += ['-drive', f'if=none,id=root,{root}', *virtio(kind, 'blk', 'drive=root'),
             '-drive', f'if=none,id=payload,format=raw,readonly=on,file={machine.payload}',
             *virtio(kind, 'blk', 'drive=payload')]
    if dirs['kernel']:
        args += ['-drive', 'if=none,id=modules,format=raw,readonly=on,'
                           f'file={dirs["kernel"]}/modules.ext4',
                 *virtio(kind, 'blk', 'drive=modules', 'serial=modules')]
    if dirs['userspace']:
        args += ['-drive', 'if=none,id=userspace,format=raw,snapshot=on,'
                           f'file={dirs["userspace"]}/root.ext4',
                 *virtio(kind, 'blk', 'drive=userspace', 'serial=userspace')]
    args += virtio(kind, 'rng')
    args += _ports(machine, kind)
    for nic in machine.nics:
        args += nic.args()
    if opts.internet:
        args += internet(kind)
    for number, (directory, _) in enumerate(opts.mounts):
        args += shared(directory, number)
    for number, file in enumerate(machine.captures):
        args += ['-object', f'filter-dump,id=pcap{number},netdev=n0,file={file}']
    args += ['-d', 'guest_errors',
             '-D', machine.log('qemu.log', logs.TRACE_LIMIT if opts.trace else logs.LIMIT)]
    for pattern in opts.trace:
        args += ['-trace', pattern]
    if opts.gdb:
        args += ['-s', '-S']
    return args + _sandbox(dirs['qemu']) + opts.qemu_arg


def _ports(machine, kind):
    sock = machine.sock_dir
    # Port 0 is for a console. Each has two queues, whose eventfds QEMU's main loop polls in
    # each of its turns: with all 31 that would be most of a turn's time.
    args = ['-qmp', f'unix:{sock}/qmp,server=on,wait=off',
            *virtio(kind, 'serial', f'max_ports={len(PORTS) + 1}')]
    for port in PORTS:
        args += ['-chardev', f'socket,id={port},path={sock}/{port}',
                 '-device', f'virtserialport,chardev={port},name=qhca.{port}']
    if machine.console == 'stdio':
        args += ['-chardev', 'stdio,id=con,mux=on,signal=off,'
                             f'logfile={machine.log("console.log")}',
                 '-mon', 'chardev=con']
    elif machine.console == 'socket':
        args += ['-chardev', f'socket,id=con,path={sock}/console,server=on,wait=off,'
                             f'logfile={machine.log("console.log")}']
    else:
        args += ['-chardev', f'socket,id=con,path={sock}/con']
    return args + ['-serial', 'chardev:con']
