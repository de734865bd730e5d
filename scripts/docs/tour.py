#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One RDMA WRITE and one SEND, from ibv_post_send() to their completions.

  tour.py              run them in a machine and print what happened, step by step
  tour.py --keep       also keep what happened, for the documentation
  tour.py --pages DIR  run nothing, but write there, from what was kept, tour.rst and
                       tour.svg, which docs/build.sh puts beside the other pages
  tour.py --check      a fresh run makes the same pages, but for addresses, numbers and
                       times; prints TAP

The program is selftests/guest/tour.c. The steps come from QEMU's trace events, the frames
from the device's capture of frames that never leave it. Documentation/results/tour.json keeps the
result.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
import textwrap

import layout
from tourlib import drawing, steps
from tourlib.record import Record

sys.path.append(os.path.join(layout.TOP, 'scripts/check'))
import capture      # noqa: E402  pylint: disable=wrong-import-position

TOP = layout.TOP
CACHE = os.environ.get('QHCA_CACHE') or os.path.join(
    os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'qhca')
KEPT = os.path.join(TOP, 'Documentation/results/tour.json')
PAGE, PICTURE = 'tour.rst', 'tour.svg'
TITLE = 'One WRITE and one SEND through all layers'
# Always the same numbers of objects and keys, and addresses of the program.
SEED = 7
COMMAND = ('gcc -Wall -Werror -g -o tour /opt/qhca/guest/tour.c -libverbs && '
           'setarch -R ./tour $QHCA_DEV $QHCA_GID')
EVENTS = ('qhca_doorbell', 'qhca_wqe', 'qhca_tx', 'qhca_rx', 'qhca_dma_entry', 'qhca_cqe')


def directory():
    """A temporary one, which the build root also sees."""
    return tempfile.TemporaryDirectory(prefix='tour.', dir=os.path.join(CACHE, 'tmp'))


def fresh():
    """The Record of a run in a machine."""
    with directory() as top:
        frames = os.path.join(top, 'frames')
        command = [os.path.join(TOP, 'scripts/vm'), 'run', '-q', '--log-dir', top, '--device-arg',
                   f'seed={SEED}', '--pcap-loopback', frames]
        for event in EVENTS:
            command += ['--trace', event]
        done = subprocess.run([*command, '--', COMMAND], check=False, text=True,
                              stdout=subprocess.PIPE)
        if done.returncode:
            raise steps.Wrong(f'status {done.returncode}\n{done.stdout}')
        with open(os.path.join(top, 'a/qemu.log'), encoding='utf-8') as log, \
                open(frames, 'rb') as file:
            return Record.of_run(done.stdout, log.read(), list(capture.packets(file)))


class Run:
    """A Record, read: its steps and CQEs, and its frames as tshark shows them."""

    def __init__(self, record):
        reader = record.read()
        self.output, self.steps, self.cqes = record.output, reader.steps, reader.entries
        with directory() as top:
            frames = os.path.join(top, 'frames')
            record.write_capture(frames)
            self.summary = self._tshark(frames)
            self.details = self._tshark(frames, '-O', 'infiniband').split('\n\n')

    @staticmethod
    def _tshark(file, *options):
        inside = '/qhca-cache/' + os.path.relpath(file, CACHE)
        out = subprocess.run([*capture.TSHARK, '-n', '-r', inside, *options], check=True,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return out.stdout.rstrip()


# ---- CQEs

def meanings():
    """Name of a field of struct qhca_cqe to what the header says of it."""
    for name, _, _, told in layout.structures(layout.read('include/qhca/queues.h')):
        if name == 'qhca_cqe':
            return told
    raise steps.Wrong('no struct qhca_cqe')


FLAGS = {0x0001: 'CQE_SQ'}
VALUES = {'opcode': steps.CQE.get, 'status': {0: 'SUCCESS'}.get,
          'flags': lambda value: ', '.join(FLAGS.get(1 << bit, f'bit {bit}') for bit in range(16)
                                           if value >> bit & 1)}


def cqe_rows(entry, fields):
    """(offset, size, field, bytes, value) of all that is not reserved; those that are 0 and
    mean nothing here are left out."""
    for name, at, size, kind in fields:
        data = entry[at:at + size]
        if 'rsvd' in name or not kind or (name in UNUSED and not any(data)):
            continue
        value = int.from_bytes(data, 'little')
        text = VALUES.get(name, lambda _: None)(value)
        shown = f'{value:#x}' if name in ('wr_id', 'qpn') else str(value)
        yield at, size, name, data.hex(' '), f'{shown}, {text}' if text else shown


UNUSED = ('imm', 'inv_key', 'src_qp', 'vendor_err', 'pkey_index', 'vlan_tci', 'smac', 'sl', 'srqn')


def dump(entry):
    return [f'{at:2}  {entry[at:at + 16].hex(" ")}' for at in range(0, len(entry), 16)]


# ---- the page

HEAD = f'''{'=' * len(TITLE)}
{TITLE}
{'=' * len(TITLE)}

What happens between ``ibv_post_send()`` and the completion? This page follows one RDMA WRITE
and one SEND of 32 bytes through all layers. It is made of a run that ``scripts/docs/tour.py
--keep`` has recorded; ``make tour`` makes a run of your own and prints the same. The program is
``selftests/guest/tour.c``: two queue pairs of one process, *a* that sends and *b* its peer, each
with a completion queue of its own. They are in one port, so the frames never leave the device;
its property ``loopback-capture`` makes it use frames all the same, and write them to a file.

It printed::

'''

AFTER = '''
All that lies between a doorbell and its CQE happens within the doorbell write: the device runs a
doorbell to completion where it rings. With a peer in another machine the write would end with the
request, and the rest would begin when the ACK arrives. To watch something else, ``scripts/vm run
--trace 'qhca_*' --log-dir DIR`` writes the same events for any
program, and :doc:`pages/device` lists them.
'''


def heading(text, line):
    return ['', text, line * len(text), '']


def literal(text):
    return ['', *('   ' + line if line else '' for line in text.splitlines()), '']


def step_lines(number, step):
    title = f'{number}. {step.label}'
    lanes = [steps.LANES[step.start], steps.LANES[step.end]]
    says = f'*{" → ".join(dict.fromkeys(lanes))}.* {step.says}'
    lines = heading(title, '-') + textwrap.wrap(says, 95, break_on_hyphens=False) + ['']
    if step.event:
        lines += ['::', *literal(step.event)]
    for file, first, last in step.places:
        lines += [f'``{file}``:', '', f'.. literalinclude:: ../{file}', '   :language: c',
                  '   :lineno-match:', '   :dedent:', f'   :start-at: {first}',
                  f'   :end-at: {last}', '']
    return lines


def cqe_lines(run, fields, told):
    for name, entry in run.cqes:
        yield from heading(f'The completion of the {name}', '-')
        yield '::'
        yield from literal('\n'.join(dump(entry)))
        yield from ['.. list-table::', '   :header-rows: 1', '   :widths: 8 6 16 26 20 34', '']
        for row in [('offset', 'size', 'field', 'bytes', 'value', 'meaning'),
                    *((*row, told.get(row[2], '')) for row in cqe_rows(entry, fields))]:
            cells = [str(cell) for cell in row[:5]] + [layout.escape(row[5])]
            cells[2:4] = [layout.escape(cells[2]), f'``{cells[3]}``'] if row[0] != 'offset' \
                else cells[2:4]
            yield from (f'   {"*" if not column else " "} - {cell}'.rstrip()
                        for column, cell in enumerate(cells))
        yield ''


def page(run, fields):
    lines = HEAD.splitlines() + literal(run.output.strip())[1:]
    lines += heading('All steps', '=')
    lines += ['.. image:: tour.svg', '   :alt: Sequence diagram of a WRITE and a SEND', '',
              'The same in characters::', *literal(drawing.text(run.steps)), *AFTER.split('\n')]
    lines += heading('Step by step', '=')
    lines += ['With the trace event that QEMU wrote, if the step has one, and the code behind it. '
              'What occurs', 'a second time is as it was the first time.']
    seen = set()
    for number, step in enumerate(run.steps, 1):
        if step.key not in seen:
            lines += step_lines(number, step)
        seen.add(step.key)
    lines += heading('The frames', '=')
    lines += ['As tshark shows them. The interface that they were on, ``qhca0-loopback``, is how a '
              'capture', 'says that they were on no network::', *literal(run.summary)]
    for number, text in enumerate(run.details, 1):
        lines += heading(f'Frame {number}', '-') + ['::', *literal(text)]
    lines += heading('The completions', '=')
    lines += ['What the device wrote to the completion queues, and ``struct qhca_cqe`` of '
              '``include/qhca/queues.h``.', 'Fields are little-endian. Those that mean nothing '
              'here are left out.']
    lines += cqe_lines(run, fields, meanings())
    text = '\n'.join(line.rstrip() for line in lines).rstrip() + '\n'
    return re.sub(r'\n{3,}', '\n\n', text)


# ---- what stays the same

# Not opcodes and the like: numbers that are long enough, and times.
CHANGES = ((r'\b0x[0-9a-f]{4,}\b', 'NUMBER'), (r'\b[0-9a-f]{2}( [0-9a-f]{2}){3,}', 'BYTES'),
           (r'\b\d+\.\d{5,}\b', 'TIME'), (r'\b\d{5,}\b', 'NUMBER'), (r'\b[0-9a-f]{6,}\b', 'NUMBER'),
           (r' {2,}', ' '))


def same(text):
    for pattern, word in CHANGES:
        text = re.sub(pattern, word, text)
    return text.splitlines()


def places():
    """Lines of code that a step names and that are not where it says, or not alone there."""
    for key, (_, _, _, found, _) in steps.STEPS.items():
        for file, first, last in found:
            text = layout.read(file)
            start = text.find(first)
            if start < 0 or text.count(first) > 1 or last not in text[start:]:
                yield f'{key}: {file}: {first} … {last}'


def check(run, kept, made):
    wrong = list(places())
    yield not wrong, 'tour/code is where the page says', wrong
    good = [step.key for step in run.steps].count('poll') == 3 and len(run.details) == 4
    yield good, 'tour/three completions and four frames', [run.summary]
    for name, text in made.items():
        diff = list(difflib.unified_diff(same(kept[name]), same(text), 'the run that was kept',
                                         'a fresh run', lineterm=''))
        yield not diff, f'tour/{name} is what a run makes', diff


def tap(results):
    failed = 0
    count = 0
    for good, name, why in results:
        count += 1
        failed += not good
        print(''.join(f'# {line}\n' for line in why if not good), end='')
        print(f'{"ok" if good else "not ok"} {name}')
    print(f'{count - failed} passed, {failed} failed, 0 skipped')
    return 1 if failed else 0


def show(run, fields):
    """On a terminal."""
    print(run.output)
    print(drawing.text(run.steps))
    print(f'\n{run.summary}')
    for name, entry in run.cqes:
        print(f'\nCQE of the {name}:\n' + '\n'.join(dump(entry)))
        for at, size, field, data, value in cqe_rows(entry, fields):
            print(f'  {at:3} {size:2}  {field:10} {data:24} {value}')
    print('\nEach step with its code: `make docs`')


def pages(run, fields):
    """Names and texts of what the documentation has of a run."""
    return {PAGE: page(run, fields), PICTURE: drawing.svg(run.steps, TITLE)}


def main():
    if any(word in sys.argv for word in ('-h', '--help')):
        print(__doc__)
        return 0
    fields = layout.compiled(['qhca_cqe'], [])[0]['qhca_cqe']['fields']
    if '--pages' in sys.argv:
        where = sys.argv[sys.argv.index('--pages') + 1]
        for name, text in pages(Run(Record.load(KEPT)), fields).items():
            with open(os.path.join(where, name), 'w', encoding='utf-8') as file:
                file.write(text)
        return 0
    try:
        record = fresh()
        run = Run(record)
    except steps.Wrong as why:
        print(f'not ok tour # {why}')
        return 1
    if '--check' in sys.argv:
        return tap(check(run, pages(Run(Record.load(KEPT)), fields), pages(run, fields)))
    show(run, fields)
    if '--keep' in sys.argv:
        record.save(KEPT)
    return 0


if __name__ == '__main__':
    sys.exit(main())
