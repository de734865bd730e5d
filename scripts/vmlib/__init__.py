# SPDX-License-Identifier: GPL-2.0
"""Parts of scripts/vm, the launcher of the test machines."""
