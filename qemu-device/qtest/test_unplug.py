# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that still runs, and accesses that arrive, when the device is unplugged."""

import struct

import contract as c
from disk import BACKEND, Disk
from fixture import MAC, MAC_BYTES, equal
from hca import Hca
from machine import RAM_SIZE, Machine
from neighbour import Neighbour
from test_life import SLOT_OFF, check_unplugged, open_bridge, plug, root_port
from test_net import frame, make_queue

SEAM = 0xe0000000           # end of the BAR of one device, start of the other's
SECOND_MAC = "52:54:00:12:34:57"
DISK_MEMORY = 40 << 20


class Beside(Hca):
    """A second device, on the root bus; its doorbells end at SEAM."""

    ARGS = ("-device", "qhca,id=hca1,addr=4,uars=2,mac=" + SECOND_MAC)

    def __init__(self, machine):
        super().__init__(machine, 1, machine.pci(0, 4))
        self.bar = {c.BAR_REGS: 0xd0000000, c.BAR_MSIX: 0xd0100000,
                    c.BAR_DB: SEAM - 2 * c.PAGE_SIZE, c.BAR_DM: 0xd1000000}
        self.map_bars()
        self.enable_msix()
        self.start()


def late(machine):
    """Number of accesses after the unplug, by BAR."""
    found = [line.split()[2].split("+")[0] for line in machine.log().splitlines()
             if line.startswith("qhca_mmio_gone ")]
    return {bar: found.count(bar) for bar in set(found)}


def write_across(qemu, bar, size, name):
    """
    Write across the last doorbells of a device and the first @size bytes of @bar of another.
    QEMU looks up both before the write, and the doorbell's interrupt unplugs the other device.
    """
    args = (*Beside.ARGS, "-trace", "qhca_mmio_gone")
    with root_port(qemu, args) as (machine, port, slot):
        hca = plug(machine, port, slot)
        beside = Beside(machine)
        hca.command(0)
        hca.bar = {number: addr + (1 << 25) for number, addr in hca.bar.items()}
        hca.bar[bar] = SEAM
        hca.map_bars()
        beside.set_msi(0, port.base + slot, SLOT_OFF)
        beside.queue(c.CMD_NOP)
        start = beside.db_addr("CMD")
        data = struct.pack("<Q", beside.pi << 32).ljust(SEAM - start, b"\0")
        machine.write(start, data + b"\xff" * size)
        check_unplugged(hca)
        equal(set(late(machine)), {name} if name else set())
        equal(machine.cmd("query-status")["running"], True)


def test_late_registers(qemu):
    """a write to the registers that was looked up before the unplug"""
    write_across(qemu, c.BAR_REGS, c.BAR_REGS_SIZE, "regs")


def test_late_doorbells(qemu):
    """a write to doorbells that was looked up before the unplug"""
    write_across(qemu, c.BAR_DB, c.PAGE_SIZE, "db")


def test_late_msix(qemu):
    """a write to the MSI-X table and pending bits that was looked up before the unplug"""
    write_across(qemu, c.BAR_MSIX, c.PAGE_SIZE, "msix")


def test_late_memory(qemu):
    """a write to device memory that was looked up before the unplug"""
    write_across(qemu, c.BAR_DM, 16 * c.PAGE_SIZE, None)


# A slot that a write to memory switches off, not one to configuration space: QEMU drops
# writes to configuration space from within an access to it.
SHPC, SHPC_OFF = 0xd0000000, 0x010f
SHPC_ARGS = ("-device", "pcie-pci-bridge,id=br0,addr=3",
             "-device", "qhca,id=hca0,bus=br0,addr=1,mac=" + MAC)


def unmask(qemu, way):
    """Unmask an interrupt that waits, which unplugs the device."""
    with Machine(qemu, *SHPC_ARGS) as machine:
        open_bridge(machine).map_bar(0, SHPC)
        hca = Hca(machine, pci=machine.pci(1, 1))
        hca.map_bars()
        hca.enable_msix()
        hca.start()
        cap = hca.pci.capability(0x11)
        hca.pci.write(cap + 2, 2, 0xc000)
        hca.set_msi(0, SHPC + 0x14, SHPC_OFF)
        hca.ok(c.CMD_NOP)
        way(hca, cap)
        check_unplugged(hca)


def by_configuration(hca, cap):
    hca.command(0x4)        # bus master, but no BARs: nothing else refers to the device
    hca.pci.write(cap + 2, 2, 0x8000)


def by_table(hca, cap):
    hca.m.mmio_write(4, hca.bar[c.BAR_MSIX] + 12, 1)
    hca.pci.write(cap + 2, 2, 0x8000)
    hca.m.mmio_write(4, hca.bar[c.BAR_MSIX] + 12, 0)


def test_unmask_function(qemu):
    """clearing MSI-X's function mask sends an interrupt that unplugs the device"""
    unmask(qemu, by_configuration)


def test_unmask_vector(qemu):
    """clearing the mask of a vector sends an interrupt that unplugs the device"""
    unmask(qemu, by_table)


def plug_two(machine, port, slot, device=0, **props):
    """Plug the device as function @device of the slot, and the disk as the other one."""
    port.write(slot, 2, 0x0100)
    add = {device: lambda: machine.cmd("device_add", driver="qhca", id="hca0", bus="rp0",
                                       addr="0.%d" % device, multifunction=True, mac=MAC,
                                       **props),
           1 - device: lambda: Disk.plug(machine, "rp0", "0.%d" % (1 - device))}
    add[1]()
    add[0]()                            # function 0: now the guest can see both
    hca = Hca(machine, pci=machine.pci(1, 0, device))
    hca.map_bars()
    hca.enable_msix()
    hca.start()
    return hca, Disk(machine, machine.pci(1, 0, 1 - device), DISK_MEMORY)


def drain(qemu, device, rules=""):
    """The interrupt of a command switches the slot off while the disk reads."""
    with root_port(qemu, BACKEND) as (machine, port, slot):
        hca, disk = plug_two(machine, port, slot, device, faults=rules)
        hca.set_msi(0, port.base + slot, SLOT_OFF)
        hca.queue(c.CMD_NOP)
        disk.read()
        hca.ring()
        check_unplugged(hca)
        equal(disk.done(), 1)       # the disk has drained


def test_drain_after(qemu):
    """an interrupt unplugs the device and then a disk in its slot, which drains"""
    drain(qemu, 0)


def test_drain_before(qemu):
    """the disk drains before the device is unplugged"""
    drain(qemu, 1)


def test_drain_removes(qemu):
    """a fault rule removes the device while the disk drains"""
    drain(qemu, 1, "cmd opcode=nop remove")


def test_drain_while_sending(qemu):
    """a card that receives the engine's frame unplugs the device while the disk drains"""
    args = ("-netdev", "hubport,hubid=0,id=net0", "-netdev", "hubport,hubid=0,id=net1",
            *Neighbour.args("net1"), *BACKEND)
    with root_port(qemu, args) as (machine, port, slot):
        hca, disk = plug_two(machine, port, slot, netdev="net0")
        hca.set_port(MAC_BYTES, c.PORT_ENABLE)
        _, tx = make_queue(hca, c.ETH_TX)
        neighbour = Neighbour(machine, RAM_SIZE - 2 * c.PAGE_SIZE)
        neighbour.interrupt(port.base + slot, SLOT_OFF)
        buf = hca.alloc()
        machine.write(buf, frame(0))
        for _ in range(2):
            tx.post(buf, len(frame(0)))
        disk.read()
        tx.ring_doorbell()
        check_unplugged(hca)
        equal(disk.done(), 1)
