# SPDX-License-Identifier: GPL-2.0
"""Build sim/judge in the build root, and run it: reaction points alone, in a network of a queue."""

import os
import subprocess
from dataclasses import dataclass

import simulator
from vmlib.build import SCRIPTS

BUILD = '''cd {work}
I="-I. -I/qhca/include -I/qhca/qemu-device/engine -I/qhca/sim/judge"
gcc -std=c11 -O2 -c $I -D_DEFAULT_SOURCE /qhca/sim/judge/engine.c \
    /qhca/qemu-device/engine/congestion/dcqcn.c
g++ -std=c++17 -O2 -c $I /qhca/sim/judge/judge.cc
g++ judge.o engine.o dcqcn.o -o engine
for model in {models}; do
    g++ -std=c++17 -O2 $I /qhca/sim/judge/$model.cc judge.o -o $model
done
'''


@dataclass(frozen=True)
class Outcome:
    """marked: share of the packets; cnps: of a flow, per second; queue: bytes on average; share:
    of the link; fairness: Jain's index of what flows have sent."""
    marked: float
    cnps: float
    queue: float
    share: float
    fairness: float

    def apart(self, other):
        """How far it is from another at most, as a part."""
        return max(abs(getattr(self, name) / getattr(other, name) - 1)
                   for name in ('marked', 'cnps', 'queue'))

    def __str__(self):
        return f'{self.marked:.2%} {self.cnps:,.0f} {self.queue / 1000:,.1f} KB'


def run(cases, models=None):
    """cases: lines of FLOWS KMAX PERCENT [soon], see judge.cc; models: sources by name. Returns
    for each case the outcomes of the engine, and of the models in this order."""
    models = models or {}
    with simulator.folder() as work:
        for name, text in models.items():
            with open(os.path.join(work, name + '.inc'), 'w', encoding='utf-8') as file:
                file.write(text)
        script = BUILD.format(work=simulator.inside(work), models=' '.join(models))
        script += ''.join(f'./{name} {case}\n' for case in cases for name in ('engine', *models))
        done = subprocess.run([os.path.join(SCRIPTS, 'build/buildroot.sh'), '--', 'sh', '-ec',
                               script], text=True, check=True, stdout=subprocess.PIPE)
    lines = [Outcome(*map(float, line.split())) for line in done.stdout.splitlines()]
    each = 1 + len(models)
    return [lines[at:at + each] for at in range(0, len(lines), each)]
