# SPDX-License-Identifier: GPL-2.0
"""Parts of scripts/tour.py, which follows one message through all layers."""
