# SPDX-License-Identifier: GPL-2.0
"""Variables that tell guest scripts and the job about their machine."""

import os
import shutil
import string

from . import arch, machine, nested, patience, schedule, verdict

PROXIES = ('http_proxy', 'https_proxy', 'no_proxy')


def variant(opts):
    """Return what is special about this machine, in words for guest/skips.sh."""
    flags = {'iommu': opts.iommu, 'hostile': opts.hostile, 'peer-rxe': opts.rxe_peer,
             'debug-kernel': opts.debug_kernel, 'server': opts.server,
             'mortal-server': opts.mortal_server, arch.of(opts).debian: arch.is_foreign(opts),
             opts.arch: arch.is_foreign(opts)}
    release = [f'rdma-core={opts.rdma_core}'] if opts.rdma_core else []
    return [name for name, value in flags.items() if value] + release + opts.device_arg


def environment(opts, session):
    """Return the variables that tell guest scripts and the job about their machine."""
    first, last = session.nics[0], session.nics[-1]
    ours = [nic for nic in session.nics if nic.kind == 'qhca']
    env = {'QHCA_ROLE': session.role, 'QHCA_INSMOD': int(opts.insmod and bool(ours)),
           'QHCA_MAC': first.mac, 'QHCA_IP': first.ip, 'QHCA_PEER': first.peers[0],
           'QHCA_PEERS': ' '.join(first.peers),
           'QHCA_MACS': ' '.join(nic.mac for nic in ours),
           'QHCA_IPS': ' '.join(nic.ip for nic in ours),
           'QHCA_RAIL_PEERS': ' '.join(nic.peers[0] for nic in ours),
           'QHCA_SETUP': opts.setup, 'QHCA_INTERACTIVE': int(session.interactive),
           'QHCA_ACCEL': session.accel, 'QHCA_NIC_B': opts.nic_b,
           'QHCA_TTY_NAME': arch.of(opts).tty,
           'QHCA_VARIANT': ' '.join(variant(opts)),
           'QHCA_MOUNTS': '\n'.join(path for _, path in opts.mounts),
           'QHCA_KEEP': int(bool(session.disk)),
           'QHCA_SCENARIO_SECONDS': f'{verdict.seconds(opts.schedule):g}',
           'QHCA_REPLUG': int(schedule.plugs(opts.schedule, session.role))}
    if len(first.all) > 1:
        env['QHCA_HOSTS'] = '\n'.join(f'{ip} {role}' for ip, role in
                                      zip(first.all, string.ascii_lowercase))
    if opts.internet:
        env['QHCA_INTERNET_MAC'] = machine.INTERNET_MAC
        env.update((name, os.environ[name]) for name in PROXIES if name in os.environ)
    rxe = opts.rxe or (first.kind == 'virtio' and not opts.no_device)
    if last.kind == 'virtio':
        env.update(QHCA_VIRTIO_MAC=last.mac, QHCA_VIRTIO_IP=last.ip,
                   QHCA_VIRTIO_PEER=last.peers[0], QHCA_RXE=int(rxe))
    if session.interactive:
        size = shutil.get_terminal_size()
        leave = "leave with 'exit' or Ctrl-A X"
        if session.console == 'socket':
            env['QHCA_HOSTNAME'] = session.role
            leave = "Ctrl-] leaves it, 'exit' switches the machine off"
        env.update(TERM=os.environ.get('TERM', 'linux'), QHCA_LEAVE=leave,
                   QHCA_TTY=f'rows {size.lines} cols {size.columns}')
    env.update(nested.environment(opts))
    env.update(item.split('=', 1) for item in opts.env)
    env.update(patience.for_guest(env))
    return env
