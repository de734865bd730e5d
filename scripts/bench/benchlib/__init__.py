# SPDX-License-Identifier: GPL-2.0
"""Parts of scripts/bench/bench.py: what is measured, how it is judged, how it is shown."""
