#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Mutants of drivers and provider, with the guest's tests as proofs: inside the guest.

WHERE is the host's directory, with mutants.json, and gets the results. Exit status 0: all
done; 3: the machine is not what it was, and another one goes on; 4: the time is over.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time

import matrix
import splat

PARAM = '/sys/module/qhca/parameters/mutant'
SELFTESTS = '/opt/qhca/selftests'
# Sections of guest/check.sh, which also print TAP. All of eth takes minutes.
SECTIONS = ('kverbs', 'cm', 'tools', 'eth_basics', 'eth_rss', 'eth_rules', 'eth_stats',
            'eth_choosers', 'eth_refused', 'eth_port', 'eth_buffers', 'eth_moderation',
            'eth_filters')
# Tests that need a machine of their own, or take the machine with them.
OTHERS = ('suspend', 'slow')


def write(value):
    with open(PARAM, 'w', encoding='ascii') as file:
        file.write(str(value))


def seen():
    with open(f'{PARAM}_seen', encoding='ascii') as file:
        digits = file.read().strip()
    return {4 * i + bit for i, d in enumerate(digits) for bit in range(4) if int(d, 16) >> bit & 1}


class Machine(matrix.Matrix):
    def __init__(self, where, mutants, args):
        super().__init__(where, mutants, 1, args)
        self.kernel = os.path.exists(PARAM)
        self.log = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
        self.complaints()
        self.sound = True
        self.probe = next(p for p in proofs() if p.name == 'ten_steps')

    def complaints(self):
        """Whether the kernel has complained since it was asked last."""
        text = ''
        while True:
            try:
                text += os.read(self.log, 8192).decode(errors='replace')
            except BlockingIOError:
                return splat.find(text) is not None
            except BrokenPipeError:         # older lines are gone
                continue

    def without(self, proof, limit):
        if not self.kernel:
            return super().without(proof, limit)
        write(0)
        fails, count = matrix.execute(proof, limit, {})
        return fails or ([0] if self.complaints() else []), count, seen()

    def with_one(self, proof, limit, mutant):
        with open(f'{self.where}/current', 'w', encoding='utf-8') as file:
            json.dump(mutant, file)
        if not self.kernel:
            return super().with_one(proof, limit, mutant)
        write(mutant['n'])
        fails, _ = matrix.execute(proof, limit, {})
        write(0)
        return fails or ([0] if self.complaints() else [])

    def healthy(self):
        """After a mutant the machine must do what it did before; a reset may help."""
        for attempt in range(2):
            if attempt:
                for reset in glob.glob('/sys/bus/pci/drivers/qhca/*:*:*/reset'):
                    with open(reset, 'w', encoding='ascii') as file:
                        file.write('1')
                time.sleep(2)
            if not matrix.execute(self.probe, 20, {})[0] and not self.complaints():
                return True
        return False

    def one(self, mutant, until):
        if not self.sound:
            return
        super().one(mutant, until)
        result = self.results.get(mutant['name'])
        if result and result['by'] and self.kernel:
            self.sound = self.healthy()

    def died(self):
        """The mutant that took the last machine with it has been caught by that."""
        path = f'{self.where}/current'
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                mutant = json.load(file)
            if mutant['name'] not in self.results:
                self.note({**mutant, 'by': {'machine': [0]}, 'asked': 1, 'of': 1,
                           'long': self.args.long})
            os.remove(path)


def proofs():
    env = {'RDMA_DEVICE': os.environ['QHCA_DEV'], 'RDMA_GID': os.environ['QHCA_GID']}
    with open(f'{SELFTESTS}/tests.list', encoding='utf-8') as file:
        for name in file.read().split():
            if name not in OTHERS:
                yield matrix.Proof(name, [f'{SELFTESTS}/{name}'], env, SELFTESTS)
    for name in SECTIONS:
        yield matrix.Proof(f'check {name}', ['/opt/qhca/guest/check.sh', name], again=True,
                           plan=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('where', metavar='WHERE')
    parser.add_argument('minutes', metavar='MINUTES', type=float)
    matrix.options(parser)
    args = parser.parse_args()
    with open(f'{args.where}/mutants.json', encoding='utf-8') as file:
        mutants = json.load(file)['mutants']
    machine = Machine(args.where, mutants, args)
    machine.died()
    subprocess.run(['dmesg', '-n', '1'], check=False)
    machine.baseline([p for p in proofs() if re.search(args.proofs, p.name)], 400)
    left = machine.run(args.minutes)
    try:
        os.remove(f'{args.where}/current')
    except FileNotFoundError:
        pass
    return 0 if not left else 3 if not machine.sound else 4


if __name__ == '__main__':
    sys.exit(main())
