# SPDX-License-Identifier: GPL-2.0
"""Which proofs catch which mutants: runs programs that answer in TAP.

First each proof runs without a mutant: does it pass, how long does it take, which mutants
does it come across? Then each mutant meets the proofs that come across it, quick ones and
those that caught its neighbours first, until `enough` have caught it. So for a mutant that
fewer have caught all of them were asked, but the long ones, which take more than `quick` seconds
or are others once more: these are asked in a second run, for what nothing else has caught.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

MUTANTS = 65536


def options(parser):
    """How to ask: for the engine's matrix and for the guests'."""
    parser.add_argument('--long', action='store_true', help='the second run, for what lives')
    parser.add_argument('--proofs', default='', help='ask only those whose name matches it')
    parser.add_argument('--last', help='ask those whose name matches it after all others')
    parser.add_argument('--enough', type=int, default=3, help='so many have caught it (3)')
    parser.add_argument('--quick', type=float, default=2.5, help='seconds; others are long (2.5)')


@dataclass
class Proof:
    name: str
    command: list
    env: dict = field(default_factory=dict)
    cwd: str = '.'
    again: bool = False         # long, or another one once more: for --long
    plan: bool = True           # its TAP has one
    seconds: float = 0
    count: int = 0
    sites: set = field(default_factory=set)
    fails: list = field(default_factory=list)


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def execute(proof, limit, env):
    """Returns the numbers of the tests that fail (0 is the program itself), and how many ran."""
    with subprocess.Popen(proof.command, cwd=proof.cwd, env={**os.environ, **proof.env, **env},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors='replace',
                          start_new_session=True) as process:
        timer = threading.Timer(limit, stop, [process])
        timer.start()
        fails, count, plan = [], 0, None
        for line in process.stdout:
            test = re.match(r'(not )?ok\b', line)
            if test:
                count += 1
                if test[1]:
                    fails.append(count)
            elif re.match(r'1\.\.\d', line):
                plan = int(line[3:].split()[0])
        status = process.wait()
        timer.cancel()
    if not fails and (status or proof.plan and count != plan):
        fails.append(0)
    return fails, count


class Matrix:
    """Results are lines of JSON in @where, so that a run that ends goes on where it was."""

    def __init__(self, where, mutants, jobs, args):
        self.where, self.mutants, self.jobs, self.args = where, mutants, jobs, args
        self.proofs = []
        self.lock = threading.Lock()
        self.liked = {}             # (path of a source, proof): how often it caught one there
        self.results = {}
        if os.path.exists(f'{where}/results.json'):
            with open(f'{where}/results.json', encoding='utf-8') as file:
                for line in file:
                    self.know(json.loads(line))

    def know(self, result):
        self.results[result['name']] = result
        for proof in result['by']:
            key = (result['path'], proof)
            self.liked[key] = self.liked.get(key, 0) + 1

    def note(self, result):
        with self.lock:
            self.know(result)
            with open(f'{self.where}/results.json', 'a', encoding='utf-8') as file:
                file.write(json.dumps(result) + '\n')
            left = len(self.left())
            if left % 20 == 0:
                live = sum(not r['by'] for r in self.results.values())
                print(f'{left} of {len(self.mutants)} mutants left, {live} live', flush=True)

    # How a mutant is chosen, and which were seen: the kernel's matrix has others.

    def without(self, proof, limit):
        with tempfile.NamedTemporaryFile() as seen:
            seen.truncate(MUTANTS)
            fails, count = execute(proof, limit, {'MUTANT': '0', 'MUTANT_SEEN': seen.name})
            with open(seen.name, 'rb') as file:
                return fails, count, {n for n, byte in enumerate(file.read()) if byte}

    def with_one(self, proof, limit, mutant):
        return execute(proof, limit, {'MUTANT': str(mutant['n'])})[0]

    def baseline(self, proofs, limit=900):
        """Which of @proofs are of use, from the file of an earlier run if there is one."""
        proofs = [p for p in proofs if self.args.long or not p.again]
        path = f'{self.where}/proofs.json'
        known = {}
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                known = json.load(file)

        def one(proof):
            if proof.name in known:
                proof.seconds, proof.fails, proof.count, sites = known[proof.name]
                proof.sites = set(sites)
                return
            begin = time.monotonic()
            proof.fails, proof.count, proof.sites = self.without(proof, limit)
            proof.seconds = time.monotonic() - begin
            if proof.fails:
                print(f'fails without a mutant: {proof.name} {proof.fails}', flush=True)
            with self.lock, open(path, 'w', encoding='utf-8') as file:
                known[proof.name] = [proof.seconds, proof.fails, proof.count, sorted(proof.sites)]
                json.dump(known, file)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, proofs))
        self.proofs = [p for p in proofs if not p.fails]
        print(f'{len(self.mutants)} mutants, {len(self.proofs)} proofs of '
              f'{sum(p.seconds for p in self.proofs):.0f} s', flush=True)

    def order(self, mutant):
        args = self.args
        mine = [p for p in self.proofs if mutant['n'] in p.sites and
                (p.again or p.seconds > args.quick) == args.long]
        return sorted(mine, key=lambda p: (
            bool(args.last and re.search(args.last, p.name)),
            (p.seconds + 0.05) / (1 + 4 * self.liked.get((mutant['path'], p.name), 0))))

    def one(self, mutant, until):
        known = self.results.get(mutant['name'], {'by': {}, 'asked': 0, 'of': 0})
        by, asked = known['by'], known['asked']
        order = self.order(mutant)
        for proof in order:
            if time.monotonic() > until:
                return
            fails = self.with_one(proof, 4 + 10 * proof.seconds, mutant)
            asked += 1
            if fails:
                by[proof.name] = fails
                if len(by) == self.args.enough or self.args.long:
                    break
        self.note({**mutant, 'by': by, 'asked': asked, 'of': known['of'] + len(order),
                   'long': self.args.long})

    def left(self):
        if self.args.long:
            return [m for m in self.mutants if m['name'] in self.results and
                    not self.results[m['name']]['by'] and not self.results[m['name']]['long']]
        return [m for m in self.mutants if m['name'] not in self.results]

    def run(self, minutes):
        """Returns how many are left after so long."""
        until = time.monotonic() + minutes * 60
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(lambda m: self.one(m, until), self.left()))
        return len(self.left())
