# SPDX-License-Identifier: GPL-2.0-or-later
"""Seeds of the tests by chance: QHCA_FUZZ_SEEDS=FIRST-LAST, or a few that are fixed."""

import os


def each_seed(default, run):
    """run(seed) for each; a failure names the seed."""
    first, _, last = os.environ.get("QHCA_FUZZ_SEEDS", default).partition("-")
    for seed in range(int(first), int(last or first) + 1):
        try:
            run(seed)
        except Exception as e:
            raise AssertionError("seed %d" % seed) from e
