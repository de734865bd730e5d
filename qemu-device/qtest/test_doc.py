# SPDX-License-Identifier: GPL-2.0-or-later
"""Documentation/hardware.rst against the headers."""

import os
import re

import contract as c
from machine import HERE

SPEC = os.path.join(HERE, "..", "..", "Documentation", "hardware.rst")

# Constants of these prefixes each have a table row that begins like this.
ROWS = {
    "REG_": r"0x{value:03x}\s+{name}\s",
    "DB_": r"0x{value:02x}\s+{name}\s",
    "CMD_": r"0x{value:02x}\s+{name}\s",
    "ERR_": r"{value}\s+{name}\s",
    "STATE_": r"{name} \({value}\)\s",
    "EVENT_": r"{name}\s+{value}\s",
    "WC_": r"{value}\s+{name}\s",
    "WR_": r"{value}\s+{name}\s",
    "CQE_FLAG_": r"0x{value:04x}\s+{name}: ",
    "ACCESS_": r"0x{value:02x}\s+{name}\s",
    "FATAL_": r"{value}\s+{name}\s",
    "CNT_": r"{value}\s+{name}\s",
}
# Same prefix, but not of that kind.
OTHER = {"REG_MR", "DB_CAPS_PAGES", "DB_PAGE_SIZE", "DB_OBJ", "DB_SOLICITED",
         "DB_INDEX", "CMD_CAPS_LOG_MAX", "ACCESS_MASK", "FATAL_NONE",
         "CNT_MAX"}
CQE_FLAGS = ("SQ", "GRH", "IMM", "INV", "SOLICITED", "IPV4", "VLAN", "SRQ",
             "CSUM_OK", "XRC")


def constants(prefix):
    if prefix == "CQE_FLAG_":
        return {name: getattr(c, "CQE_" + name) for name in CQE_FLAGS}
    return {key.removeprefix(prefix): value for key, value in vars(c).items()
            if key.startswith(prefix) and key not in OTHER}


def test_tables(_qemu):
    """every constant stands in its table with its value"""
    with open(SPEC, encoding="utf-8") as f:
        text = f.read()
    missing = []
    for prefix, row in ROWS.items():
        found = constants(prefix)
        assert found, prefix
        for name, value in found.items():
            if prefix == "REG_":        # 64-bit ones stand there as one
                if name.endswith("_HI"):
                    continue
                name = name.removesuffix("_LO")
            pattern = "^" + row.format(value=value, name=name)
            if not re.search(pattern, text, re.M):
                missing.append(prefix + name)
    assert not missing, missing
