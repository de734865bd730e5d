# SPDX-License-Identifier: GPL-2.0
"""The samples of a run, and the medians and ratios they give."""

import statistics
from collections import defaultdict
from dataclasses import dataclass

STEAL_LIMIT = 0.01      # of the CPU time of a round; beyond that it does not count


@dataclass(frozen=True)
class Key:
    """The subject and the kind of a figure."""
    where: str
    measurement: str
    subject: str
    series: str
    x: int


@dataclass(frozen=True)
class Ratio:
    """Of one figure to another, or a figure alone."""
    median: float
    least: float
    most: float
    rounds: int


class Results:
    def __init__(self):
        self.values = defaultdict(dict)     # Key -> round -> value
        self.stolen = {}                    # (where, measurement, round) -> share of CPU time
        self.latencies = {}     # (where, measurement, subject) -> round -> all samples
        self.failures = []                  # text
        self.lost = defaultdict(dict)       # (where, measurement, subject) -> round -> why

    def add(self, key, number, value):
        self.values[key][number] = value

    def steal(self, where, measurement, number, share):
        """Of one step; what counts is the worst of the round."""
        key = (where, measurement, number)
        self.stolen[key] = max(share, self.stolen.get(key, 0))

    def counts(self, where, measurement, number):
        return self.stolen.get((where, measurement, number), 0) <= STEAL_LIMIT

    def lose(self, where, measurement, subject, number, why):
        """A rival has given no figure in this round: it has no ratio."""
        self.lost[where, measurement, subject][number] = why

    def discarded(self):
        return sum(share > STEAL_LIMIT for share in self.stolen.values())

    def valid(self, key):
        """Round -> value, of the rounds that count."""
        return {number: value for number, value in self.values.get(key, {}).items()
                if self.counts(key.where, key.measurement, number)}

    def add_samples(self, where, measurement, subject, number, values):
        if values:
            self.latencies.setdefault((where, measurement, subject), {})[number] = values

    def samples(self, where, measurement, subject):
        """All latencies of the rounds that count."""
        rounds = self.latencies.get((where, measurement, subject), {})
        return [value for number, values in rounds.items()
                if self.counts(where, measurement, number) for value in values]

    def median(self, key):
        values = self.valid(key).values()
        return statistics.median(values) if values else None

    def ratio(self, key, other=None, less=False):
        """By how much key is better than other (less: lower is better), from the ratios of
        the rounds that have both; None if there is none. Without other: its values."""
        mine = self.valid(key)
        if other is None:
            ratios = list(mine.values())
        else:
            theirs = self.valid(other)
            ratios = [theirs[n] / mine[n] if less else mine[n] / theirs[n]
                      for n in mine if n in theirs]
        if not ratios:
            return None
        return Ratio(statistics.median(ratios), min(ratios), max(ratios), len(ratios))

    def series(self, where, measurement, subject, series):
        """The medians by x, in order."""
        keys = [key for key in self.values if (key.where, key.measurement, key.subject, key.series)
                == (where, measurement, subject, series)]
        points = [(key.x, self.median(key)) for key in sorted(keys, key=lambda key: key.x)]
        return [(x, value) for x, value in points if value is not None]


def headline(results, row):
    """(figure, its rival's, Ratio, met) of a Row; None where there is nothing."""
    key = Key(row.where, row.measurement, row.subject, row.series, row.x)
    other = None
    if row.other:
        other = Key(row.where, row.measurement, *row.against)
    ratio = results.ratio(key, other, row.less)
    met = None
    if ratio:
        met = ratio.median >= row.target if other else ratio.median <= row.target
    return results.median(key), results.median(other) if other else None, ratio, met
