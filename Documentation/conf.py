# SPDX-License-Identifier: GPL-2.0-or-later
"""Sphinx: scripts/docs/build.sh, which is `make docs`, reads this."""

import pathlib
import re

# pylint: disable=invalid-name, redefined-builtin
project = "qhca"
author = "the qhca authors"
copyright = "the qhca authors"
# The newest in the changelog.
_changelog = pathlib.Path(__file__).parent.with_name("CHANGELOG.md").read_text(encoding="utf-8")
version = release = re.search(r"^## \[?([\d.]+)", _changelog, re.M)[1]

extensions = ["myst_parser", "sphinxcontrib.programoutput"]
# Markdown comes in through pages/: conformance.md and .rst would be one page. upstream/ is for the
# documentation of others, examples/ for other projects.
exclude_patterns = ["*.md", "upstream", "examples"]
nitpicky = True
nitpick_ignore_regex = [("c:.*", ".*")]

# The tables of the conformance statements begin where their section says.
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]

highlight_language = "none"
html_theme = "sphinx_rtd_theme"
html_theme_options = {"navigation_depth": 3}
html_show_sphinx = False
html_copy_source = False

man_pages = [
    ("pages/device", "qhca", "virtual RDMA host channel adapter", author, 7),
    ("pages/vm", "qhca-vm", "start test machines with the qhca device", author, 1),
    ("pages/server", "qhca-server", "virtual RDMA host channel adapter for machines of stock QEMU",
     author, 1),
]
