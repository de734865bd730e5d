# SPDX-License-Identifier: GPL-2.0
"""Which options of a machine go together."""

import re
import string

from vmlib import arch, cable, schedule

MOST_HCAS = 8


def check_hcas(parser, opts):
    if not 1 <= opts.hcas <= MOST_HCAS:
        parser.error(f'--hcas: a machine has 1 to {MOST_HCAS}, not {opts.hcas}')
    if opts.hcas == 1:
        return
    for name in ('no_device', 'both_ends', 'mortal_server', 'rxe_peer'):
        if getattr(opts, name):
            parser.error(f'--hcas: not with --{name.replace("_", "-")}')
    if opts.nic_b != 'qhca':
        parser.error(f'--hcas: not with --nic-b {opts.nic_b}')


def check_schedule(parser, opts, count):
    try:
        opts.schedule = schedule.choose(opts, string.ascii_lowercase[:count])
    except schedule.BadSchedule as err:
        parser.error(str(err))


def check_server(parser, opts):
    if foreign := [name for name in opts.arches.values() if name != arch.NATIVE]:
        for name in ('iommu', 'package', 'qemu', 'rdma_core', 'keep', 'kernel', 'kdir',
                     'debug_kernel', 'debug_qemu'):
            if getattr(opts, name):
                parser.error(f'--arch {foreign[0]}: not with --{name.replace("_", "-")}')
    opts.server = (opts.server or opts.mortal_server) and not opts.no_device
    if not opts.server:
        return
    for name in ('hostile', 'pcap', 'iommu', 'loss', 'rate', 'red', 'pause', 'pfc', 'queue',
                 'link', 'both_ends'):
        if getattr(opts, name):
            parser.error(f'--server: qhca-server has no --{name.replace("_", "-")}')
    if schedule.takes_out(opts.schedule):
        parser.error('--server: its adapters stay plugged in, and this schedule takes one out')
    if opts.rxe_peer or opts.nic_b == 'virtio':
        opts.link = 'hub'


def hub_only(opts):
    """Which options only the hub can obey."""
    names = ('loss', 'rate', 'red', 'pause', 'pfc', 'queue')
    return [name for name in names if getattr(opts, name)]


def check_link(parser, opts, count):
    if not opts.link:
        opts.link = 'hub' if hub_only(opts) or count > 2 or opts.mode == 'lab' else 'stream'
    if not cable.known(opts.link):
        parser.error(f'--link: {opts.link} is none of {", ".join(cable.KINDS)}')
    if count > 2 and opts.link in cable.ONLY_TWO:
        parser.error(f'--link {opts.link} connects two machines, not {count}')
    if opts.pfc and not 1 <= opts.rate <= 100000:
        parser.error('--pfc needs --rate, by which pauses are measured')
    if hub_only(opts) and opts.link != 'hub':
        parser.error(f'--{hub_only(opts)[0]} needs --link hub')


def check(parser, opts, count):
    """For COUNT machines; ends the program with a message if something is wrong."""
    for put in opts.put:
        if not re.fullmatch('.+:.+', put):
            parser.error(f'--put {put}: not HOST:NAME')
    check_schedule(parser, opts, count)
    check_hcas(parser, opts)
    check_server(parser, opts)
    check_link(parser, opts, count)
