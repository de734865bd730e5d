#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The kernel's tools tell the truth about the device: each statement is in the file claims, with
its value and its proof.

  claims.py RDMA_DEVICE INTERFACE PCI_ADDRESS   TAP, a test for each source: values that are not as
                                  in the file, statements that it has no row for, rows that nothing
                                  is said for, and proofs that fail
  claims.py ... all               prints all statements instead, as SOURCE | KEY | VALUE

selftests/hca/claims.c does so for verbs.
"""

import functools
import glob
import json
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, 'claims')
SELFTESTS = os.path.join(HERE, '../selftests')
# The command for each source.
TOOLS = {
    'rdma-dev': 'rdma -j -d dev show {dev}',
    'rdma-link': 'rdma -j -d link show {dev}/1',
    'rdma-res': 'rdma -j res show {dev}',
    'rdma-pd': 'rdma -j -dd res show pd',
    'rdma-cq': 'rdma -j -dd res show cq',
    'rdma-qp': 'rdma -j -dd res show qp',
    'rdma-mr': 'rdma -j -dd res show mr',
    'rdma-srq': 'rdma -j -dd res show srq',
    'rdma-ctx': 'rdma -j -dd res show ctx',
    'rdma-cm_id': 'rdma -j -dd res show cm_id',
    'rdma-stat': 'rdma -j statistic show link {dev}/1',
    'rdma-mode': 'rdma -j statistic mode link {dev}/1',
    'rdma-optional': 'rdma -j statistic mode supported link {dev}/1',
    'devlink-dev': 'devlink -j dev show pci/{pci}',
    'devlink-info': 'devlink -j dev info pci/{pci}',
    'devlink-param': 'devlink -j dev param show pci/{pci}',
    'devlink-health': 'devlink -j health show pci/{pci}',
    'devlink-port': 'devlink -j port show',
    'devlink-resource': 'devlink -j resource show pci/{pci}',
    'devlink-eswitch': 'devlink -j dev eswitch show pci/{pci}',
    'devlink-region': 'devlink -j region show',
    'devlink-trap': 'devlink -j trap show',
    'devlink-rate': 'devlink -j port function rate show',
    'devlink-sb': 'devlink -j sb show',
    'ip-link': 'ip -j -d -s -s link show dev {net}',
    'ethtool': 'ethtool {net}',
    'ethtool-driver': 'ethtool -i {net}',
    'ethtool-features': 'ethtool -k {net}',
    'ethtool-rings': 'ethtool -g {net}',
    'ethtool-channels': 'ethtool -l {net}',
    'ethtool-coalesce': 'ethtool -c {net}',
    'ethtool-queue': 'ethtool -Q {net} queue_mask 0x1 --show-coalesce',
    'ethtool-stats': 'ethtool -S {net}',
    'ethtool-groups': 'ethtool --json -S {net} --all-groups',
    'ethtool-rss': 'ethtool -x {net}',
    'ethtool-rules': 'ethtool -n {net}',
    'ethtool-hash': 'ethtool -n {net} rx-flow-hash tcp4',
    'ethtool-stamps': 'ethtool -T {net}',
    'ethtool-pause': 'ethtool -a {net}',
    'ethtool-module': 'ethtool -m {net}',
    'ethtool-fec': 'ethtool --show-fec {net}',
    'ethtool-eee': 'ethtool --show-eee {net}',
    'ethtool-flags': 'ethtool --show-priv-flags {net}',
    'ethtool-mm': 'ethtool --show-mm {net}',
    'ethtool-dump': 'ethtool -d {net}',
    'ethtool-eeprom': 'ethtool -e {net}',
    'ethtool-address': 'ethtool -P {net}',
    'ethtool-tunnels': 'ethtool --show-tunnels {net}',
    'ethtool-phy': 'ethtool --get-phy-tunable {net} downshift',
    'ethtool-copybreak': 'ethtool --get-tunable {net} rx-copybreak',
    'ethtool-plca': 'ethtool --get-plca-cfg {net}',
    'ethtool-firmware': 'ethtool -w {net}',
    'ethtool-test': 'ethtool -t {net} online',
}
TREES = {
    'sys-rdma': '/sys/class/infiniband/{dev}',
    'sys-net': '/sys/class/net/{net}',
    'sys-pci': '/sys/bus/pci/devices/{pci}',
}
# Folders that belong to another source, or to the machine.
PRUNED = {'device', 'subsystem', 'power', 'driver', 'msi_irqs', 'infiniband', 'infiniband_mad',
          'infiniband_verbs', 'infiniband_cm', 'net', 'ptp', 'firmware_node', 'iommu',
          'iommu_group', 'upper', 'link'}


def run(command):
    """Output, exit status, complaints."""
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False,
                              timeout=60)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        return '', 127, str(error)
    return done.stdout, done.returncode, done.stderr


# Messages of tools that have not asked the kernel.
NOT_ASKED = re.compile(r'command line|[Uu]sage|No such file|unknown|Unknown|timed out')


# ---- what is said

def flatten(value, path=''):
    """Pairs of path and text; elements of a list have the same path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f'{path}.{key}' if path else key)
    elif isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
        for inner in value:
            yield from flatten(inner, path)
    elif isinstance(value, list):
        if path:
            yield path, ' '.join(map(str, value))
    else:
        yield path, str(value)


def lines(text):
    """Pairs of the form "key: value"; a line without a colon belongs to the one before, and those
    after a line with nothing behind its colon are in the section with that name."""
    section, key = '', 'text'
    for line in text.splitlines():
        name, colon, value = (part.strip() for part in line.partition(':'))
        if not colon:
            if name:
                yield key, name
        elif not value and not line[0].isspace():
            # "Features for eth0:" is no section.
            section = '' if re.search(r'\b(for|on) \S+$', name) else name + '/'
            key = name
        else:
            key = section + name
            yield key, value


def answers(command):
    out, status, err = run(command)
    if status:
        yield 'refused', ((err.strip() or out.strip()).splitlines() or ['without a word'])[-1]
        return
    try:
        yield from flatten(json.loads(out or '{}'))
    except json.JSONDecodeError:
        yield from lines(out)


def content(path):
    """Of a file, or why there is none."""
    if not os.stat(path).st_mode & 0o444:
        return '(not read)'
    try:
        with open(path, 'rb') as file:
            text = file.read(4096)
    except OSError as error:
        return f'({error.strerror})'
    return '(binary)' if b'\0' in text else ' '.join(text.decode(errors='replace').split())


def files(top):
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if name not in PRUNED)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path) and name != 'uevent':
                yield os.path.relpath(path, top), content(path)


def said(source, names):
    """Return the statements of the source, each once."""
    if source in TREES:
        pairs = files(TREES[source].format(**names))
    else:
        pairs = answers(TOOLS[source].format(**names))
    return list(dict.fromkeys(pairs))


# ---- what proves it

@functools.cache
def functions(program):
    """Return the functions of the tests in a kselftest."""
    listed = run(f'{SELFTESTS}/{program} -l')[0]
    return {line.partition(':')[0] for line in listed.splitlines()}


@functools.cache
def titles():
    """Of the tests in the guest's scripts, without the statements that they are about."""
    found = set()
    for path in glob.glob(f'{HERE}/*.sh'):
        with open(path, encoding='utf-8') as file:
            found |= {re.sub(r'/(?:[A-Z]-\d+ )+', '/', title) for title in
                      re.findall(r'(?:expect|tool|result ok) "?(\w+/[^"\n]*)', file.read())}
    return found


def use(word, commands, names):
    """Return what is wrong if not all commands work, or if the last one is not refused."""
    commands = commands.format(**names).split(' ; ')
    for number, command in enumerate(commands, 1):
        out, status, err = run(command)
        text = (err or out).strip()
        refusal = word == 'refused' and number == len(commands)
        # The per-queue commands of ethtool return 0 whatever happens.
        failed = status != 0 or text.endswith('Operation not supported')
        if failed != refusal or refusal and NOT_ASKED.search(text):
            return f'"{command}" returns {status}, {text}'
    return ''


def not_proven(proof, names):
    """Return what is wrong with a proof, or ''; names has key and value of the statement."""
    for part in proof.split(' & '):
        word, _, rest = part.partition(' ')
        problem = ''
        if word in ('works', 'refused'):
            problem = use(word, rest, names)
        elif part not in ('const', 'count', *titles()):
            program, _, function = part.partition(': ')
            if function not in functions(program):
                problem = f'there is no test "{part}"'
        if problem:
            return problem
    return ''


# ---- the table

def rows(source):
    """Pattern of keys, pattern of values, proof, whether it may be missing."""
    with open(TABLE, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith('#'):
                continue
            row = [part.strip() for part in line.split(' | ')]
            if len(row) != 4:
                sys.exit(f'{TABLE}:{number}: not SOURCE | KEY | VALUE | PROOF')
            if re.fullmatch(row[0].rstrip('?'), source):
                yield *row[1:], row[0].endswith('?')


def fits(pattern, text, names):
    """Braces are names, so patterns have no repetitions with them."""
    return re.fullmatch(re.sub(r'\{(\w+)\}', lambda m: re.escape(names[m[1]]), pattern), text)


def find_row(table, key, value, names):
    """Number of the first row for this, or what is wrong."""
    wanted = []
    for number, (keys, values, _, _) in enumerate(table):
        if fits(keys, key, names):
            if fits(values, value, names):
                return number
            wanted.append(values)
    return f'not {" nor ".join(wanted)}' if wanted else 'in no row'


def wrong(source, names):
    table, used = list(rows(source)), set()
    for key, value in said(source, names):
        row = find_row(table, key, value, names)
        problem = row
        if isinstance(row, int):
            used.add(row)
            leaf = re.split('[./]', key)[-1]
            problem = not_proven(table[row][2], {**names, 'key': key, 'leaf': leaf, 'value': value})
        if problem:
            yield f'{key} = {value}: {problem}'
    for number, (keys, values, _, optional) in enumerate(table):
        if number not in used and not optional:
            yield f'{keys} = {values}: nobody says so'


def first_line(path):
    with open(path, encoding='ascii') as file:
        return file.read().strip()


def identity(dev, net, pci):
    """Return values that statements share, by the names that rows have for them."""
    mac = first_line(f'/sys/class/net/{net}/address')
    octets = mac.split(':')
    octets[0] = f'{int(octets[0], 16) ^ 2:02x}'
    guid = ''.join(octets[:3]) + 'fffe' + ''.join(octets[3:])
    return {'dev': dev, 'net': net, 'pci': pci, 'mac': mac,
            # It answers pings, see eth.sh.
            'gateway': os.environ['QHCA_PEER'].rpartition('.')[0] + '.254',
            'sys': f'/sys/class/net/{net}', 'bus': f'/sys/bus/pci/devices/{pci}',
            'firmware': first_line(f'/sys/class/infiniband/{dev}/fw_ver'),
            'guid': ':'.join(re.findall('....', guid))}


def main(dev, net, pci, every=None):
    names, bad, sources = identity(dev, net, pci), 0, [*TOOLS, *TREES]
    if every:
        for source in sources:
            for key, value in said(source, names):
                print(source, key, value, sep=' | ')
        return 0
    print(f'1..{len(sources)}')
    for number, source in enumerate(sources, 1):
        found = list(wrong(source, names))
        for line in found:
            print('#', line)
        bad += bool(found)
        print(f'{"not " if found else ""}ok {number} J-034 {source}: all of it is true, and tested',
              flush=True)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
