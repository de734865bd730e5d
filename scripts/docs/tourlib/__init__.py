# SPDX-License-Identifier: GPL-2.0
"""Parts of scripts/docs/tour.py, which follows one message through all layers."""
