# SPDX-License-Identifier: GPL-2.0-or-later
"""The test fuzz.random, with random actions of the machine around the device as well.

Two devices in hot-plug slots, a network card of another kind on their hub, an IOMMU;
messages aimed at configuration space, at slots, and at each other.
"""

import contextlib
import random

import contract as c
from fixture import MAC_BYTES, equal
from hca import BAR_BASE, BAR_STRIDE, Hca
from iommu import Intel, Virtio
from machine import RAM_SIZE, Machine
from neighbour import Neighbour
from seeds import each_seed
from test_fuzz import Fuzzer, check_alive
from test_life import SLOT_CONTROL, SLOT_OFF

STEPS = 500
SLOT_ON = 0x0100
ATTEMPTS = 5
POWER_CAP = 0x01
FIRST_PORT, WINDOW = 3, 0x9000000


class Slot:
    """A root port, with or without a device in it."""

    def __init__(self, machine, index):
        self.m, self.index = machine, index
        self.set_up()

    def set_up(self):
        """Configure the port as firmware does after each reset of the machine."""
        base, index = BAR_BASE + self.index * BAR_STRIDE, self.index
        self.port = self.m.pci(0, FIRST_PORT + index)
        self.port.write(0x18, 4, 0x010100 * (index + 1))
        self.port.write(0x20, 4, base >> 16 | (base + WINDOW - 1) & 0xfff00000)
        self.port.write(0x24, 4, 0x0001fff1)        # no prefetchable window
        self.port.write(0x04, 2, 0x6)
        self.control = self.port.capability(0x10) + SLOT_CONTROL
        self.port.write(self.control, 2, SLOT_ON)

    def plug(self):
        """Plug a new device and start it."""
        self.port.write(self.control, 2, SLOT_ON)
        self.m.cmd("device_add", driver="qhca", id="hca%d" % self.index,
                   bus="rp%d" % self.index, netdev="net%d" % self.index)
        return self.start()

    def start(self):
        hca = Hca(self.m, self.index, self.m.pci(self.index + 1, 0))
        hca.map_bars()
        return hca

    def empty(self):
        devices = self.m.cmd("qom-list", path="/machine/peripheral")
        return all(d["name"] != "hca%d" % self.index for d in devices)


class MachineFuzzer(Fuzzer):
    """A device, its driver, and everything else that can act on it."""

    def __init__(self, world, slot):
        self.world, self.slot = world, slot
        super().__init__(slot.plug(), world.rng)
        self.actions = self.actions * 2 + [
            self.unplug, self.flr, self.stop_cont, self.power, self.bars, self.iommu,
            self.iommu, self.fault_report, self.message, self.neighbour_message,
            self.frame]

    def ensure(self):
        """Plug another device if the last one has been removed."""
        if self.slot.empty():
            self.hca = self.slot.plug()
            self.prepare()

    def step(self):
        self.ensure()
        super().step()

    def prepare(self):
        """Bring the device up, which messages still in flight can make fail."""
        for _ in range(ATTEMPTS):
            self.world.quiet()
            if self.slot.empty():
                return
            try:
                super().prepare()
                return
            except AssertionError as e:
                error = e
        raise error

    def settle(self):
        """Map the device's BARs at their usual addresses, if it is plugged."""
        if self.slot.empty():
            return
        self.hca.pci.write(self.hca.pci.capability(POWER_CAP) + 4, 2, 0)
        self.hca.map_bars()

    def somewhere(self):
        """(address, data) of a message that can do harm."""
        other = self.rng.choice(self.world.slots)
        return self.rng.choice((
            (other.port.base + other.control, SLOT_OFF),
            (other.port.base + 0x3c, 0x400000),             # reset of the bus behind it
            (self.hca.pci.base + 0x04, self.rng.getrandbits(16)),
            (self.hca.pci.base + 4 * self.rng.randrange(64), self.rng.getrandbits(32)),
            (self.hca.bar[c.BAR_REGS] + c.REG_RESET, c.RESET_KEY),
            (self.hca.bar[c.BAR_MSIX] + 12, 1)))

    def message(self):
        self.hca.set_msi(self.rng.randrange(3), *self.somewhere())
        for eqn in list(self.hca.eqs):
            self.hca.arm_eq(eqn)

    def fault_report(self):
        self.world.iommu.aim(*self.somewhere())

    def neighbour_message(self):
        self.world.neighbour.interrupt(*self.somewhere())

    def iommu(self):
        self.world.iommu.allow(self.rng.choice((None, (0,), (0, 3), (2, 3), ())))

    def unplug(self):
        if self.rng.getrandbits(1):
            self.slot.port.write(self.slot.control, 2, SLOT_OFF)
        else:
            self.m("device_del", id="hca%d" % self.slot.index)
            self.slot.port.write(self.slot.control, 2, SLOT_OFF)

    def m(self, command, **args):
        """Execute a QMP command, which may fail because it is too late."""
        with contextlib.suppress(Exception):
            self.hca.m.cmd(command, **args)

    def link(self):
        self.m("set_link", name="hca%d" % self.slot.index, up=bool(self.rng.getrandbits(1)))

    def flr(self):
        self.hca.flr()
        self.hca.map_bars()

    def stop_cont(self):
        self.hca.m.cmd("stop")
        for _ in range(3):
            super().step()
        # On "cont" QEMU iterates over all network cards, and crashes if the interrupt of one
        # unplugs the next.
        self.world.neighbour.silence()
        self.hca.m.cmd("cont")

    def power(self):
        self.hca.pci.write(self.hca.pci.capability(POWER_CAP) + 4, 2,
                           self.rng.choice((0, 3)))

    def bars(self):
        """Map BARs over memory, over each other, or not at all."""
        bar = self.rng.choice(list(self.hca.bar))
        self.hca.pci.map_bar(bar, self.rng.choice((
            self.hca.bar[bar], self.hca.mem, self.hca.bar[c.BAR_REGS], 0)))

    def frame(self):
        """A frame for the device, RoCE or not."""
        rng = self.rng
        self.world.neighbour.send(MAC_BYTES + rng.randbytes(6) + rng.choice((
            b"\x08\x00\x45\x00", b"\x86\xdd\x60\x00", b"\x81\x00\x00\x05", rng.randbytes(4))) +
            rng.randbytes(rng.randrange(44, 1400)))


class World:
    """The parts of the machine that the devices share."""

    def __init__(self, machine, iommu, rng):
        self.m, self.rng = machine, rng
        top = RAM_SIZE - 0x10000
        self.iommu = iommu(machine, top)
        self.neighbour = Neighbour(machine, top + 0x8000)
        self.slots = [Slot(machine, i) for i in range(2)]
        self.fuzzers = []

    def quiet(self):
        """Stop all disturbances, so that a driver can start."""
        self.iommu.allow(None)
        self.iommu.aim(0xfee00000, 0)
        self.neighbour.silence()
        for slot in self.slots:
            slot.port.write(0x3c, 4, 0)
            slot.set_up()
        for fuzzer in self.fuzzers:
            fuzzer.settle()


def arguments(iommu):
    args = ["-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off", *iommu.ARGS]
    for i in range(2):
        args += ["-device", "pcie-root-port,id=rp%d,addr=%d,slot=%d,chassis=%d" % (
            i, FIRST_PORT + i, i + 1, i + 1), "-netdev", "hubport,hubid=0,id=net%d" % i]
    return args + ["-netdev", "hubport,hubid=0,id=net2", *Neighbour.args("net2")]


def run_seed(qemu, iommu, seed):
    rng = random.Random(seed)
    with Machine(qemu, *arguments(iommu)) as machine:
        world = World(machine, iommu, rng)
        for slot in world.slots:
            world.fuzzers.append(MachineFuzzer(world, slot))
        for _ in range(STEPS):
            rng.choice(world.fuzzers).step()
        for fuzzer in world.fuzzers:
            fuzzer.ensure()
            fuzzer.prepare()
            check_alive(fuzzer.hca)
        equal(machine.cmd("query-status")["running"], True)


def test_vtd(qemu):
    """random unplugs, FLRs, messages, another card, with Intel's IOMMU"""
    each_seed("1-10", lambda seed: run_seed(qemu, Intel, seed))


def test_virtio_iommu(qemu):
    """random unplugs, FLRs, messages, another card, with virtio's IOMMU"""
    each_seed("1-10", lambda seed: run_seed(qemu, Virtio, seed))
