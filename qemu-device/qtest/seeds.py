# SPDX-License-Identifier: GPL-2.0-or-later
"""Seeds of the random tests: QHCA_FUZZ_SEEDS=FIRST-LAST, or a few fixed ones."""

import os


def each_seed(default, run):
    """Call run() with each seed; a failure names the seed."""
    first, _, last = os.environ.get("QHCA_FUZZ_SEEDS", default).partition("-")
    for seed in range(int(first), int(last or first) + 1):
        try:
            run(seed)
        except Exception as e:
            raise AssertionError("seed %d" % seed) from e
