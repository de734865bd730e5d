# SPDX-License-Identifier: GPL-2.0-or-later
"""PCI identity, BARs, capabilities, properties."""

from qemu.machine.machine import VMLaunchFailure

import contract as c
from fixture import MAC_BYTES, equal, mapped, running
from hca import SLOT
from machine import Machine
from test_life import plug, root_port
from test_limits import speed

BAR_64BIT, BAR_PREFETCH = 4, 8


def test_identity(qemu):
    """vendor, device, class, revision and subsystem"""
    with mapped(qemu) as hca:
        equal(hca.pci.read(0x00, 4),
              c.PCI_DEVICE_ID << 16 | c.PCI_VENDOR_ID)
        equal(hca.pci.read(0x08, 4), 0x020000 << 8 | c.PCI_REVISION)
        equal(hca.pci.read(0x2c, 4),
              c.PCI_DEVICE_ID << 16 | c.PCI_VENDOR_ID)


def test_bars(qemu):
    """BAR sizes and types follow the properties"""
    for uars, vectors, msix, stride in ((1024, 5, 4096, 4096), (2, 2, 4096, 4096),
                                        (2, 2, 4096, 16384), (64, 2, 4096, 65536),
                                        (32768, 64, 4096, 4096)):
        with mapped(qemu, ",uars=%d,vectors=%d,db-stride=%d" %
                    (uars, vectors, stride)) as hca:
            hca.command(0)
            equal(hca.pci.bar_info(c.BAR_REGS),
                  (c.BAR_REGS_SIZE, 0))
            equal(hca.pci.bar_info(c.BAR_DB),
                  (uars * stride, BAR_64BIT | BAR_PREFETCH))
            equal(hca.pci.bar_info(c.BAR_MSIX), (msix, 0))
            pos = hca.pci.capability(0x11)
            equal(hca.pci.read(pos + 2, 2) & 0x7ff, vectors - 1)


def test_capabilities(qemu):
    """PM, MSI-X, PCI Express with FLR, AER, serial number"""
    with mapped(qemu) as hca:
        assert hca.pci.capability(0x01), "no power management"
        msix = hca.pci.capability(0x11)
        equal(hca.pci.read(msix + 4, 4), c.BAR_MSIX)
        equal(hca.pci.read(msix + 8, 4), 2048 | c.BAR_MSIX)
        pcie = hca.pci.capability(0x10)
        assert hca.pci.read(pcie + 4, 4) & 1 << 28, "no FLR"
        assert hca.pci.ext_capability(0x0001), "no AER"
        dsn = hca.pci.ext_capability(0x0003)
        eui = hca.pci.read(dsn + 8, 4) << 32 | hca.pci.read(dsn + 4, 4)
        equal(eui.to_bytes(8, "big"),
              MAC_BYTES[:3] + b"\xff\xfe" + MAC_BYTES[3:])


# Offsets in the PCI Express capability, and what a lane carries at each speed, in Mbit/s.
DEVCAP, DEVCTL, LNKCAP, LNKSTA, LNKCAP2, LNKCTL2 = 4, 8, 12, 18, 44, 48
LANE = {1: 2000, 2: 4000, 3: 7876, 4: 15753, 5: 31507}


def link(pci, reg):
    """(speed, width) in that register."""
    value = pci.read(pci.capability(0x10) + reg, 2)
    return value & 0xf, value >> 4 & 0x3f


def carries(pci, reg, mbits):
    speed, width = link(pci, reg)
    assert LANE[speed] * width >= mbits, "generation %d, %d lanes" % (speed, width)


def test_link(qemu):
    """J-028: the link carries the port; its registers agree, requests are of 512 bytes"""
    with running(qemu) as hca:
        pci, exp = hca.pci, hca.pci.capability(0x10)
        for reg in LNKCAP, LNKSTA:
            carries(pci, reg, speed(hca))
        best = link(pci, LNKCAP)[0]
        equal(pci.read(exp + LNKCAP2, 4), (2 << best) - 2)
        equal(pci.read(exp + LNKCTL2, 2) & 0xf, best)
        payload, request = 0xe0, 0x7000
        equal(pci.read(exp + DEVCTL, 2) & payload, pci.read(exp + DEVCAP, 4) & 7)
        equal(pci.read(exp + DEVCTL, 2) & request, 0x2000)
        pci.write(exp + DEVCTL, 2, 0x5000)
        equal(pci.read(exp + DEVCTL, 2) & request, 0x5000)


def test_root_port_link(qemu):
    """J-028: a root port has the link of the device in it; a reset resets Device Control"""
    with root_port(qemu) as (machine, port, slot):
        hca = plug(machine, port, slot)
        carries(port, LNKSTA, speed(hca))
        equal(link(port, LNKSTA), link(hca.pci, LNKSTA))
        exp = hca.pci.capability(0x10)
        hca.pci.write(exp + DEVCTL, 2, 0x0000)
        hca.flr()
        equal(hca.pci.read(exp + DEVCTL, 2), 0x2000)


def test_masks(qemu):
    """each vector, the last one too, can be masked, and unmasked again"""
    with mapped(qemu, ",vectors=3") as hca:
        for vector in range(3):
            control = hca.bar[c.BAR_MSIX] + 16 * vector + 12
            for mask in (0, 1):
                hca.m.mmio_write(4, control, mask)
                equal(hca.m.mmio_read(4, control), mask)


def test_bad_properties(qemu):
    """properties out of range are refused by name"""
    for prop, value in (("vectors", 1), ("vectors", 65), ("uars", 1),
                        ("uars", 1000), ("uars", 65536), ("max-qp", 1),
                        ("db-stride", 2048), ("db-stride", 12288),
                        ("db-stride", 131072), ("max-qp", 0xffffffff), ("cmd-timeout-ms", 0),
                        ("cmd-timeout-ms", 600001), ("cpu-share", 0),
                        ("cpu-share", 101), ("bandwidth", 100001), ("dm-size", 2048),
                        ("dm-size", 12288), ("dm-size", 2 << 30),
                        ("mac", "53:54:00:12:34:56")):
        try:
            with Machine(qemu, "-device", "qhca,%s=%s" % (prop, value)):
                pass
        except VMLaunchFailure as e:
            assert "'%s'" % prop in e.output, "%s=%s: %s" % (prop, value, e)
        else:
            raise AssertionError("%s=%s was accepted" % (prop, value))


def test_conventional_bus(qemu):
    """the device works in a slot of conventional PCI"""
    with Machine(qemu, "-device", "pcie-pci-bridge,id=pci,addr=3",
                 "-device", "qhca,bus=pci,addr=%d" % SLOT) as machine:
        bridge = machine.pci(0, 3)
        bridge.write(0x18, 4, 0x010100)
        equal(machine.pci(1, SLOT).read(0, 4),
              c.PCI_DEVICE_ID << 16 | c.PCI_VENDOR_ID)
