# SPDX-License-Identifier: GPL-2.0
"""Figures in what the programs print.

A figure is (series, x, value): what it is, of which size or number, and how much, in the
unit of UNITS.
"""

import json
import math
import re

MIB = 1 << 20
UNITS = {
    'write': 'MiB/s', 'read': 'MiB/s', 'send': 'MiB/s', 'memcpy': 'MiB/s', 'syscall': 'MiB/s',
    'bandwidth': 'MiB/s', 'rate': '1/s', 'qps': '1/s', 'mrs': '1/s', 'sges': '1/s',
    'doorbell': '1/s', 'registration': '1/s', 'life': '1/s', 'connections': '1/s',
    'p50': 'µs', 'p99': 'µs', 'p99.9': 'µs', 'boot': 's',
}
PERCENTILES = (('p50', 50), ('p99', 99), ('p99.9', 99.9))


class NoFigure(Exception):
    """The output has none: the program has failed. The end of it, in one line."""

    def __init__(self, text):
        super().__init__(' '.join(text.split())[-200:])


def parse(program, text):
    """The figures in the output of a program, of which there is at least one."""
    try:
        found = PARSERS['perftest' if program.startswith('ib_') else program](text)
    except (LookupError, ValueError):
        found = []
    if not found or not all(math.isfinite(value) and value > 0 for _, _, value in found):
        raise NoFigure(text)
    return found


def perftest(text):
    """The line of results, below its header; percentiles from all samples if it has them
    (-U)."""
    header = re.search(r'^ *#bytes .*$', text, re.M)
    numbers = header and re.search(r'^ *\d+ +\d+ +\d+\.\d+.*$', text[header.end():], re.M)
    if not numbers:
        return []
    size, _, *rest = [float(word) for word in numbers[0].split()]
    if 'MsgRate' in header[0]:
        bandwidth, rate = rest[1], rest[2] * 1e6
        # Printed in hundredths of a MiB/s and in messages/s: the other from the larger.
        if bandwidth * 100 < rate:
            bandwidth = rate * size / MIB
        else:
            rate = bandwidth * MIB / size
        return [('bandwidth', int(size), bandwidth), ('rate', int(size), rate)]
    if times := samples(text):
        return [(name, int(size), percentile(times, p)) for name, p in PERCENTILES]
    return list(zip(('p50', 'p99', 'p99.9'), [int(size)] * 3, (rest[2], rest[5], rest[6])))


def samples(text):
    """The latencies that perftest -U prints, in µs."""
    return [float(value) for value in re.findall(r'^\d+, (\S+)$', text, re.M)]


def percentile(values, percent):
    """The smallest value that so many percent of them do not exceed."""
    values = sorted(values)
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]


def selftest(text):
    """Figures of selftests/programs/bench.c, if all of it has passed."""
    if re.search(r'^not ok', text, re.M):
        return []
    return [(series, int(x), float(value)) for series, x, value in
            re.findall(r'^# figure (\S+) (\d+) (\S+)$', text, re.M)]


def document(text):
    """The JSON in an output, after whatever warnings there are."""
    return json.loads(text[text.index('{'):text.rindex('}') + 1])


def fio(text):
    """Reads and writes together."""
    data = document(text)
    job = data['jobs'][0]
    both, size = [job['read'], job['write']], size_of(job['job options']['bs'])
    if job['error']:
        return []
    return [('bandwidth', size, sum(way['bw_bytes'] for way in both) / MIB),
            ('rate', size, sum(way['iops'] for way in both))]


def size_of(text):
    """64k -> 65536"""
    unit = {'k': 10, 'm': 20}.get(text[-1].lower(), 0)
    return int(text[:-1] if unit else text) << unit


def iperf3(text):
    return [('bandwidth', 0, document(text)['end']['sum_received']['bits_per_second'] / 8 / MIB)]


def cmtime(text):
    """Connections with QPs, its first table: from the first identifier to the last QP."""
    match = re.search(r'^qp_conn +(\d+)$.*?^full connect +\d+ +(\d+) ', text, re.M | re.S)
    return [('connections', 1, int(match[1]) * 1e6 / int(match[2]))] if match else []


PARSERS = {'perftest': perftest, 'bench': selftest, 'fio': fio, 'iperf3': iperf3, 'cmtime': cmtime}
