# SPDX-License-Identifier: GPL-2.0
"""Where pytest finds the parts of the tests (scripts/check/plugin.py)."""

import os
import sys

TOP = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(TOP, 'scripts', room) for room in ('', 'check', 'docs')]
pytest_plugins = ['plugin', 'tapped']

from vmlib.build import CACHE      # noqa: E402  pylint: disable=wrong-import-position

# pytest.ini has its cache_dir there.
os.environ['QHCA_CACHE'] = CACHE
