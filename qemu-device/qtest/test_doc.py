# SPDX-License-Identifier: GPL-2.0-or-later
"""Documentation/hardware.rst against the headers."""

import os
import re
import struct

import contract as c
from fixture import running
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
    "CC_": r"{value}\s+{name}\s",
}
# Constants with the same prefix that are no rows.
OTHER = {"REG_MR", "DB_CAPS_PAGES", "DB_CAPS_LOG_STRIDE", "DB_LOG_STRIDE_MAX",
         "DB_PAGE_SIZE", "DB_OBJ", "DB_SOLICITED",
         "DB_INDEX", "DB_KIND", "CMD_CAPS_LOG_MAX", "ACCESS_MASK", "FATAL_NONE",
         "CNT_MAX", "WR_MAX", "CC_MAX"}
CQE_FLAGS = ("SQ", "GRH", "IMM", "INV", "SOLICITED", "IPV4", "VLAN", "SRQ",
             "CSUM_OK", "XRC", "HASH", "HASH_L4")
# These are in a sentence, or in a row of something else; hexadecimal from 16 on.
PROSE = {
    "WQE_": "{value} {name}",
    "ETH_": "{value} {name}",
    "FLUSH_": "{value} {name}",
    "QPS_": "{value} {name}",
    "QPT_": "{name} {value}",
    "CQE_": "{value} {name}",
    "CAP_": "0x{number:02x} {name}",
}
# Constants with the same prefixes that are limits, or are in the tables above.
NOT_PROSE = {"ETH_TX", "ETH_RX", "ETH_MAX_FRAGS", "ETH_MTU_MIN", "ETH_MTU_MAX",
             *("CQE_" + name for name in CQE_FLAGS)}


def constants(prefix):
    if prefix == "CQE_FLAG_":
        return {name: getattr(c, "CQE_" + name) for name in CQE_FLAGS}
    return {key.removeprefix(prefix): value for key, value in vars(c).items()
            if key.startswith(prefix) and key not in OTHER}


def spec():
    with open(SPEC, encoding="utf-8") as f:
        return f.read()


def test_tables():
    """every constant is in its table with its value"""
    text = spec()
    missing = []
    for prefix, row in ROWS.items():
        found = constants(prefix)
        assert found, prefix
        for name, value in found.items():
            if prefix == "REG_":        # 64-bit registers have one row
                if name.endswith("_HI"):
                    continue
                name = name.removesuffix("_LO")
            pattern = "^" + row.format(value=value, name=name)
            if not re.search(pattern, text, re.M):
                missing.append(prefix + name)
    assert not missing, missing


def test_sentences():
    """flags, states, types and opcodes have the values in the text"""
    text = re.sub(r"\s+", " ", spec())
    missing = []
    for prefix, form in PROSE.items():
        found = {key: number for key, number in vars(c).items()
                 if key.startswith(prefix) and key not in NOT_PROSE}
        assert found, prefix
        for key, number in found.items():
            words = form.format(name=key.removeprefix(prefix), number=number,
                                value=number if number < 16 else hex(number))
            if not re.search(r"\b%s\b" % words, text):
                missing.append(words)
    assert not missing, missing


def limits():
    """Fields of struct qhca_device_attr and the text of their rows, in order."""
    table = spec().split("\nLimits\n======\n", 1)[1]
    rows = re.findall(r"^(\w+)\s{2,}(\S.*)?$", table.split("\nOther devices")[0],
                      re.M)
    return {name: rest for name, rest in rows if name != "field"}


def attributes():
    """Fields of struct qhca_device_attr, from the header: name to struct format."""
    with open(os.path.join(c.INCLUDE, "cmd.h"), encoding="utf-8") as f:
        body = f.read().split("struct qhca_device_attr {", 1)[1].split("};")[0]
    return {name: {"64": "Q", "32": "I"}[bits] for bits, name in
            re.findall(r"^\t__le(\d+)\t(\w+);", body, re.M)}


def value(row):
    """The number that a row begins with, or None."""
    number = re.match(r"2\\ :sup:`(\d+)`|(0x[0-9a-f]+|\d+)(?=\s|$)", row)
    if not number:
        return None
    return 1 << int(number[1]) if number[1] else int(number[2], 0)


def test_limits(qemu):
    """every limit is in its table with the device's value"""
    documented, fields = limits(), attributes()
    assert sorted(documented) == sorted(fields), set(documented) ^ set(fields)
    layout = "<" + "".join(fields.values())
    with running(qemu) as hca:
        box = hca.alloc()
        hca.ok(c.CMD_QUERY_DEVICE, mailbox=box)
        values = struct.unpack(layout, hca.m.read(box, struct.calcsize(layout)))
    # These depend on the version and the device, or are a set of bits.
    free = {"fw_version", "node_guid", "caps"}
    wrong = {name: (value(documented[name]), got)
             for name, got in zip(fields, values)
             if name not in free and value(documented[name]) != got}
    assert not wrong, wrong
