# SPDX-License-Identifier: GPL-2.0-or-later
"""Resets, hot-plug, stop and continue."""

import contextlib

import contract as c
from fixture import MAC, MAC_BYTES, cable, equal, hold_interrupt, running
from hca import PCIE_DEVCTL, PCIE_FLR, Hca, wait_for
from iommu import Virtio
from machine import RAM_SIZE, Machine
from neighbour import Neighbour
from test_net import drain, frame, make_queue, send_until_full

SLOT_CONTROL, SLOT_OFF = 0x18, 0x0700      # power controller and indicator off
TABLES = RAM_SIZE - 0x10000


def make_objects(hca):
    hca.create_cq(hca.create_eq(vector=1))
    hca.ok(c.CMD_ALLOC_PD)
    hca.m.mmio_write(4, hca.db_addr("SQ"), 0)   # one bad doorbell


def check_fresh(hca):
    equal((hca.state, hca.fatal), (c.STATE_RESET, c.FATAL_NONE))
    equal(hca.m.qom_get(hca.path, "objects"), 0)
    equal(hca.counter("bad_doorbell"), 1)       # counters survive
    hca.start()
    equal(hca.cmd(c.CMD_NOP).status, c.OK)
    make_objects(hca)


def test_reset_register(qemu):
    """RESET empties the device and leaves PCI alone"""
    with running(qemu) as hca:
        make_objects(hca)
        hca.set_reg("RESET", 1)
        equal(hca.state, c.STATE_RUNNING)
        hca.set_reg("RESET", c.RESET_KEY)
        check_fresh(hca)


def test_flr(qemu):
    """function level reset empties the device and its configuration"""
    with running(qemu) as hca:
        make_objects(hca)
        hca.flr()
        control = hca.pci.capability(0x10) + PCIE_DEVCTL
        equal(hca.pci.read(control, 2) & PCIE_FLR, 0)
        equal(hca.pci.read(0x04, 2) & 0x6, 0)
        msix = hca.pci.capability(0x11)
        equal(hca.pci.read(msix + 2, 2) & 0x8000, 0)
        hca.map_bars()
        check_fresh(hca)


def test_system_reset(qemu):
    """a reset of the machine empties the device"""
    with running(qemu) as hca:
        make_objects(hca)
        hca.m.cmd("system_reset")
        wait_for(lambda: hca.pci.read(0x04, 2) & 0x6 == 0 or
                 hca.pci.read(0x00, 2) != c.PCI_VENDOR_ID, "reset")
        hca.m.map_ecam()
        hca.map_bars()
        check_fresh(hca)


def test_reset_from_fatal(qemu):
    """FLR ends the FATAL state"""
    with running(qemu) as hca:
        hca.doorbell("CMD", 0, 0x80000000)
        equal(hca.state, c.STATE_FATAL)
        hca.flr()
        hca.map_bars()
        equal((hca.state, hca.fatal), (c.STATE_RESET, c.FATAL_NONE))
        hca.start()
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_power_state(qemu):
    """D3hot hides the BARs and keeps the state"""
    with running(qemu) as hca:
        pos = hca.pci.capability(0x01)
        hca.pci.write(pos + 4, 2, 3)
        assert hca.reg("MAGIC") != c.MAGIC
        hca.pci.write(pos + 4, 2, 0)
        equal((hca.reg("MAGIC"), hca.state), (c.MAGIC, c.STATE_RUNNING))
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_stop_cont(qemu):
    """a stopped machine's memory does not change; work waits for cont"""
    args = ("-netdev", "hubport,hubid=0,id=net0")
    with running(qemu, ",netdev=net0", args) as hca:
        eqn = hca.create_eq(flags=c.EQ_ASYNC)
        hca.m.cmd("stop")
        hca.m.cmd("set_link", name="net0", up=False)
        hca.m.cmd("qom-set", path=hca.path, property="inject-fatal",
                  value=True)
        for _ in range(20):
            equal(hca.poll_eq(eqn), None)
            equal(hca.state, c.STATE_RUNNING)
        hca.m.cmd("cont")
        wait_for(lambda: hca.state == c.STATE_FATAL, "pending work")
        equal(hca.poll_eq(eqn)[0], c.EVENT_LINK_DOWN)
        equal(hca.poll_eq(eqn)[0], c.EVENT_DEVICE_FATAL)


def test_stop_holds_interrupts(qemu):
    """an interrupt raised while the machine is stopped is sent on cont"""
    with running(qemu) as hca:
        hold_interrupt(hca)
        equal(hca.state, c.STATE_FATAL)
        assert not hca.took_irq(2), "a stopped machine's memory changed"
        hca.m.cmd("cont")
        wait_for(lambda: hca.took_irq(2), "interrupt")


def test_reset_drops_interrupts(qemu):
    """an interrupt that was held back is not sent after a reset"""
    with running(qemu) as hca:
        hold_interrupt(hca)
        hca.flr()
        hca.map_bars()
        hca.enable_msix()
        hca.m.cmd("cont")
        for _ in range(20):
            assert not hca.took_irq(2), "an interrupt from before the reset"


ROOT_PORT = ("-device", "pcie-root-port,id=rp0,addr=3,slot=1",
             "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")


def open_bridge(machine):
    """Configure the bridge in slot 3 of the root bus, so that devices behind it can be used."""
    bridge = machine.pci(0, 3)
    bridge.write(0x18, 4, 0x010100)             # bus 1
    bridge.write(0x20, 4, 0xeff0e000)           # memory window
    bridge.write(0x24, 8, 0xeff1e001)           # prefetchable, 64-bit
    bridge.write(0x04, 2, 0x6)
    return bridge


@contextlib.contextmanager
def root_port(qemu, net=()):
    """A machine with a root port, the port, and the offset of its slot control."""
    with Machine(qemu, *ROOT_PORT, *net) as machine:
        port = open_bridge(machine)
        yield machine, port, port.capability(0x10) + SLOT_CONTROL


def plug(machine, port, slot, **props):
    port.write(slot, 2, 0x0100)                 # power on
    machine.cmd("device_add", driver="qhca", id="hca0", bus="rp0", mac=MAC,
                **props)
    hca = Hca(machine, pci=machine.pci(1, 0))
    hca.map_bars()
    hca.enable_msix()
    hca.start()
    return hca


def check_unplugged(hca):
    wait_for(lambda: all(d["name"] != "hca0" for d in hca.m.cmd(
        "qom-list", path="/machine/peripheral")), "removal")
    equal(hca.pci.read(0, 4), 0xffffffff)


def test_hotplug(qemu):
    """hot-plug behind a root port, surprise removal of a device that works"""
    with root_port(qemu) as (machine, port, slot):
        for _ in range(3):
            hca = plug(machine, port, slot)
            make_objects(hca)
            hca.queue(c.CMD_NOP)
            hca.ring()
            port.write(slot, 2, SLOT_OFF)
            check_unplugged(hca)


def by_doorbell(hca):
    hca.queue(c.CMD_NOP)
    hca.ring()


def by_operator(hca):
    hca.m.cmd("qom-set", path=hca.path, property="inject-fatal", value=True)


def test_unplug_by_msi(qemu):
    """an interrupt message that unplugs the device"""
    with root_port(qemu) as (machine, port, slot):
        for way in (by_doorbell, by_operator):
            hca = plug(machine, port, slot)
            make_objects(hca)
            eqn = hca.create_eq(flags=c.EQ_ASYNC)
            hca.arm_eq(eqn)
            hca.set_msi(0, port.base + slot, SLOT_OFF)
            way(hca)
            check_unplugged(hca)


def test_unplug_by_frame(qemu):
    """an interrupt message unplugs the device while the network delivers a frame"""
    with cable() as (net, wire, peer), \
            root_port(qemu, net) as (machine, port, slot):
        hca = plug(machine, port, slot, netdev="net0")
        hca.set_port(MAC_BYTES, c.PORT_ENABLE)
        cq, rx = make_queue(hca, c.ETH_RX)
        rx.post(hca.alloc(), c.PAGE_SIZE)
        rx.ring_doorbell()
        hca.doorbell("CQ_ARM", cq.cqn, 1)
        hca.arm_eq(*hca.eqs)
        hca.set_msi(1, port.base + slot, SLOT_OFF)
        wire.sendto(frame(0), peer)
        check_unplugged(hca)


def test_unplug_while_sending(qemu):
    """a device is unplugged while the network holds a frame from it"""
    with cable() as (net, wire, _), \
            root_port(qemu, net) as (machine, port, slot):
        hca = plug(machine, port, slot, netdev="net0")
        hca.set_port(MAC_BYTES, c.PORT_ENABLE)
        on_wire = send_until_full(hca)
        port.write(slot, 2, SLOT_OFF)
        check_unplugged(hca)
        equal(drain(wire), on_wire)
        equal(machine.cmd("query-status")["running"], True)


def test_unplug_by_neighbour(qemu):
    """a card receives the device's frame, and its interrupt unplugs the device"""
    args = ("-netdev", "hubport,hubid=0,id=net0", "-netdev", "hubport,hubid=0,id=net1",
            *Neighbour.args("net1"))
    with root_port(qemu, args) as (machine, port, slot):
        hca = plug(machine, port, slot, netdev="net0")
        hca.set_port(MAC_BYTES, c.PORT_ENABLE)
        _, tx = make_queue(hca, c.ETH_TX)
        neighbour = Neighbour(machine, RAM_SIZE - 2 * c.PAGE_SIZE)
        neighbour.interrupt(port.base + slot, SLOT_OFF)
        buf = hca.alloc()
        machine.write(buf, frame(0))
        for _ in range(2):
            tx.post(buf, len(frame(0)))
        tx.ring_doorbell()
        check_unplugged(hca)


def test_unplug_by_iommu(qemu):
    """the report of an IOMMU fault unplugs the device that caused it, in the middle of DMA"""
    with root_port(qemu, Virtio.ARGS) as (machine, port, slot):
        iommu = Virtio(machine, TABLES)
        hca = plug(machine, port, slot)
        hca.set_reg("RESET", c.RESET_KEY)
        hca.start(log_size=5)
        while hca.pi < SLOT_OFF // 64:          # the next command is at that address
            hca.ok(c.CMD_NOP)
        iommu.aim(port.base + slot, SLOT_OFF)
        iommu.allow(())
        by_doorbell(hca)
        check_unplugged(hca)
