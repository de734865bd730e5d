# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory migrates like the machine's RAM; the rest is in the device's section."""

import os
import random
import struct
import tempfile

import contract as c
from fixture import DEVICE, MAC, MAC_BYTES, TWO, equal, mapped, running, running_two
from hca import PAGE, SLOT, wait_for
from machine import RAM_SIZE, Machine
from rc import Mr, Port, connected, rdma
from served import size_of
from test_life import ROOT_PORT, SLOT_OFF, check_unplugged, plug, root_port
from test_migrate import ended, goes_on, loaded, save

KIB, MIB = 1 << 10, 1 << 20
VERSION = 1                     # of the section
LONGEST = (4 << 30) - 1         # the longest state that is not refused for its length


def noise(size, seed=1):
    return random.Random(seed).randbytes(size)


class Section:
    """The device's section in a saved machine; the offset of the engine's state, and its length
    according to the section."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.data = file.read()
        name = b"0000:00:%02x.0/qhca" % SLOT
        at = self.data.index(name + struct.pack(">II", 0, VERSION))
        self.version = at + len(name) + 4       # 8 bytes with the size of device memory follow
        self.engine = self.data.index(b"qhca", self.version)
        self.len = struct.unpack_from(">Q", self.data, self.engine - 8)[0]
        end = b"\x7e" + self.data[at - 5:at - 1]        # and its number
        self.size = self.data.index(end, self.engine + self.len) - at

    def put(self, engine):
        """Write a section to the file with @engine between PCI's state and the engine's."""
        with open(self.path, "wb") as file:
            file.write(self.data[:self.engine - 8] + engine + self.data[self.engine:])


def refused(qemu, path, reason, props=""):
    with loaded(qemu, path, props) as (machine, status):
        equal(status, "failed")
        machine.shutdown()
        assert reason in machine.get_log(), machine.get_log()


def remaining(machine):
    """Bytes of memory that have not been sent yet."""
    return machine.cmd("query-migrate").get("ram", {}).get("remaining", LONGEST)


def test_live(qemu):
    """a CPU and the device write to pages that have been sent"""
    size, props = 512 * KIB, ",dm-size=512k"
    with running(qemu, props) as hca, tempfile.TemporaryDirectory() as folder, \
            Machine(qemu, "-device", DEVICE + props, "-incoming", "defer") as machine:
        uri = "unix:" + os.path.join(folder, "socket")
        port, seen = Port(hca, MAC_BYTES), hca.bar[c.BAR_DM]
        qp, _ = connected(port)
        ram, dm = port.memory(), Mr(port, c.ADDR_DM + 5 * PAGE)
        data = bytearray(noise(size))
        hca.m.write(seen, bytes(data))
        hca.m.write(ram.addr, noise(PAGE, 2))
        machine.cmd("migrate-incoming", uri=uri)
        hca.m.cmd("migrate-set-parameters", **{"max-bandwidth": 128 * KIB})
        hca.m.cmd("migrate", uri=uri)
        # The largest blocks are sent first; all others are less than 2 MiB.
        wait_for(lambda: "ram" in hca.m.cmd("query-migrate"), "start")
        total = hca.m.cmd("query-migrate")["ram"]["total"]
        wait_for(lambda: remaining(hca.m) < total - RAM_SIZE - size // 2, "half of it")
        equal(hca.m.cmd("query-migrate")["ram"]["dirty-sync-count"], 1)
        qp.post(c.WR_RDMA_WRITE, ram, 100, rdma(dm, 70))
        equal(qp.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        hca.m.write(seen + 3 * PAGE + 5, b"a CPU's")
        equal(hca.m.cmd("query-migrate")["status"], "active")
        hca.m.cmd("migrate-set-parameters", **{"max-bandwidth": 1 << 30})
        equal(ended(hca.m), "completed")
        goes_on(hca, machine)
        data[3 * PAGE + 5:3 * PAGE + 12] = b"a CPU's"
        data[5 * PAGE + 70:5 * PAGE + 170] = noise(100, 2)
        equal(hca.m.read(seen, size), data)


def scattered(port, depth):
    """A region of as many blocks as tables of @depth can have. All entries of a table are the
    same page, and the blocks are in no order."""
    hca, entries = port.hca, PAGE // 8
    addr = hca.alloc()
    blocks = [hca.alloc()] * entries
    blocks[1] = hca.alloc()
    for _ in range(depth):
        hca.m.write(addr, struct.pack("<%dQ" % entries, *blocks))
        blocks = [addr] * entries
        addr = hca.alloc()
    num = entries ** depth
    hca.ok(c.CMD_REG_MR, struct.pack("<QIBB2x", blocks[0], num, depth, c.PAGE_SHIFT) +
           struct.pack("<QQIIHBBI", 0, num * PAGE, port.pdn, 0, c.ACCESS_LOCAL_WRITE,
                       c.MR_MEM, 0, 0))
    return num


def test_tables(qemu):
    """the state sent during downtime grows by 8 bytes for each block address"""
    sizes = []
    with running(qemu) as hca, tempfile.TemporaryDirectory() as folder:
        port, path = Port(hca, MAC_BYTES), os.path.join(folder, "state")
        blocks = 0
        for depth in (1, 2):
            blocks = scattered(port, depth)
            save(hca.m, path)
            sizes.append(Section(path).size)
            hca.m.cmd("cont")
    equal(sizes[1] - sizes[0] - 8 * blocks < PAGE, True)
    equal(sizes[1] - sizes[0] >= 8 * blocks, True)


def test_downtime(qemu):
    """the state sent during downtime does not grow with dm-size"""
    sizes = set()
    with tempfile.TemporaryDirectory() as folder:
        for kib in (4, 1024):
            with mapped(qemu, ",dm-size=%dk" % kib) as hca:
                hca.m.write(hca.bar[c.BAR_DM], noise(kib * KIB))
                path = os.path.join(folder, "state")
                save(hca.m, path)
                sizes.add(Section(path).size)
    equal(len(sizes), 1)


def test_size(qemu):
    """a device with another dm-size refuses the state, and names both sizes"""
    with tempfile.TemporaryDirectory() as folder:
        for here, there, reason in (
                ("1M", "4M", "qhca-dm: 0x100000 != 0x400000"),
                ("4k", "0", 'Unknown ramblock "0000:00:04.0/qhca-dm"'),
                ("0", "4k", "'dm-size' is 0, here 4096")):
            path = os.path.join(folder, "state")
            with mapped(qemu, ",dm-size=" + here) as hca:
                save(hca.m, path)
            refused(qemu, path, reason, ",dm-size=" + there)


def test_two(qemu):
    """two devices, each with its own device memory"""
    with running_two(qemu) as hcas, tempfile.TemporaryDirectory() as folder:
        for hca in hcas:
            hca.m.write(hca.bar[c.BAR_DM], noise(3 * PAGE, hca.mac))
        path = os.path.join(folder, "state")
        save(hcas[0].m, path)
        with loaded(qemu, path, args=TWO) as (machine, status):
            equal(status, "completed")
            for hca in hcas:
                goes_on(hca, machine)
                equal(hca.m.read(hca.bar[c.BAR_DM], 4 * PAGE),
                      noise(3 * PAGE, hca.mac) + bytes(PAGE))


def test_replugged(qemu):
    """the memory of a device that is not the first in its slot"""
    with root_port(qemu) as (machine, port, slot), tempfile.TemporaryDirectory() as folder:
        for turn in range(3):
            hca = plug(machine, port, slot)
            hca.m.write(hca.bar[c.BAR_DM], noise(3 * PAGE, turn))
            if turn < 2:
                port.write(slot, 2, SLOT_OFF)
                check_unplugged(hca)
        path = os.path.join(folder, "state")
        save(machine, path)
        args = (*ROOT_PORT, "-device", "qhca,id=hca0,bus=rp0,mac=" + MAC)
        with loaded(qemu, path, args=args) as (other, status):
            equal(status, "completed")
            other.cmd("cont")
            hca.m = other
            equal(hca.m.read(hca.bar[c.BAR_DM], 4 * PAGE), noise(3 * PAGE, 2) + bytes(PAGE))


def test_unplugged(qemu):
    """the guest unplugs the device while its memory is being sent"""
    with root_port(qemu) as (machine, port, slot), tempfile.TemporaryDirectory() as folder:
        hca = plug(machine, port, slot, **{"dm-size": 16 * MIB})
        hca.m.write(hca.bar[c.BAR_DM], noise(MIB))
        machine.cmd("migrate-set-parameters", **{"max-bandwidth": 128 * KIB})
        machine.cmd("migrate", uri="file:" + os.path.join(folder, "state"))
        wait_for(lambda: remaining(machine) < 20 * MIB, "device memory's turn")
        port.write(slot, 2, SLOT_OFF)
        check_unplugged(hca)
        machine.cmd("migrate-set-parameters", **{"max-bandwidth": 1 << 30})
        # QEMU waits for the memory, which does not exist any more.
        machine.cmd("migrate_cancel")
        wait_for(lambda: machine.cmd("query-migrate")["status"] in ("cancelled", "completed"),
                 "end of the migration")
        save(machine, os.path.join(folder, "state"))


def peak(machine):
    """Maximal size of QEMU's address space so far, in bytes."""
    return KIB * size_of(machine.get_pid(), "VmPeak")


def test_forged_length(qemu):
    """a state claims to be nearly 4 GiB long, and is not"""
    with mapped(qemu) as hca, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state")
        save(hca.m, path)
        Section(path).put(struct.pack(">Q", LONGEST))
        with loaded(qemu, path) as (machine, status):
            equal(status, "failed")
            grown = peak(machine) - peak(hca.m)
            machine.shutdown()
            assert "%d bytes of state are missing" % LONGEST in machine.get_log()
        assert grown < 512 * MIB, grown
