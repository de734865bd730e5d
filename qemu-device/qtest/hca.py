# SPDX-License-Identifier: GPL-2.0-or-later
"""A minimal driver, enough to make the device work."""

import struct
import time

import contract as c

SLOT = 4            # slot of the first device, on the root bus
BAR_BASE = 0xe0000000
BAR_STRIDE = 0x10000000
MEM_BASE = 1 << 20
MEM_STRIDE = 16 << 20
MSIX_OFFSET = 8 << 20   # offset of the words that MSI-X messages write
PCIE_DEVCTL, PCIE_FLR = 8, 0x8000
LOG_CMDQ = 4
PAGE = c.PAGE_SIZE
NO_MEMORY = 0x200000000     # beyond the machine's RAM
PATIENCE = 120      # seconds, after which what has not come on a busy host never will


class Completion:
    """struct qhca_cmd_comp"""

    def __init__(self, data):
        (self.opcode, self.slot, self.token, self.status,
         self.obj) = struct.unpack_from("<HHIB7xI", data)
        self.owner = data[63]


class Hca:
    """The device in slot SLOT + @index, with memory of its own."""

    def __init__(self, machine, index=0, pci=None):
        self.m = machine
        self.flags = 0          # of CONTROL, beside ENABLE
        self.pci = pci or machine.pci(0, SLOT + index)
        self.path = "/machine/peripheral/hca%d" % index
        base = BAR_BASE + index * BAR_STRIDE
        self.bar = {c.BAR_REGS: base, c.BAR_MSIX: base + 0x100000,
                    c.BAR_DB: base + 0x8000000,
                    c.BAR_DM: base + 0x1000000}
        self.mem = MEM_BASE + index * MEM_STRIDE
        self.msix_mem = self.mem + MSIX_OFFSET
        self.db_stride = PAGE
        self.next_page = self.mem
        self.forget()

    def forget(self):
        """Forget all objects, because the device was reset."""
        self.pi = self.ci = 0
        self.token = 0x1000
        self.eqs = {}

    # PCI

    def map_bars(self):
        for bar, addr in self.bar.items():
            self.pci.map_bar(bar, addr)
        self.command(0x6)           # memory, bus master

    def command(self, val):
        self.pci.write(0x04, 2, val)

    def flr(self):
        """Function level reset, which also unmaps the BARs."""
        control = self.pci.capability(0x10) + PCIE_DEVCTL
        self.pci.write(control, 2, self.pci.read(control, 2) | PCIE_FLR)

    def enable_msix(self):
        """Enable MSI-X; each vector writes its number + 1 to a word of memory."""
        for vector in range(self.reg("VECTORS")):
            self.set_msi(vector, self.msix_mem + 4 * vector, vector + 1)
        pos = self.pci.capability(0x11)
        self.pci.write(pos + 2, 2, 0x8000)

    def set_msi(self, vector, addr, data):
        entry = self.bar[c.BAR_MSIX] + 16 * vector
        for off, val in ((0, addr), (4, 0), (8, data), (12, 0)):
            self.m.mmio_write(4, entry + off, val)

    def took_irq(self, vector):
        """Whether the vector's message has arrived since the last call."""
        addr = self.msix_mem + 4 * vector
        came = self.m.read(addr, 4) == struct.pack("<I", vector + 1)
        self.m.write(addr, bytes(4))
        return came

    # Registers and doorbells

    def reg(self, name):
        return self.m.mmio_read(4, self.reg_addr(name))

    def set_reg(self, name, val):
        self.m.mmio_write(4, self.reg_addr(name), val)

    def reg_addr(self, name):
        return self.bar[c.BAR_REGS] + getattr(c, "REG_" + name)

    def reg64(self, name):
        low = self.reg(name + "_LO")    # the clock latches on LO
        return low | self.reg(name + "_HI") << 32

    def set_reg64(self, name, val):
        self.set_reg(name + "_LO", val & 0xffffffff)
        self.set_reg(name + "_HI", val >> 32)

    @property
    def state(self):
        return self.reg("STATUS") & c.STATUS_STATE

    @property
    def fatal(self):
        return self.reg("FATAL")

    def doorbell(self, name, obj, index, page=0, flags=0):
        self.m.mmio_write(8, self.db_addr(name, page),
                          obj | flags | index << 32)

    def db_addr(self, name, page=0):
        return (self.bar[c.BAR_DB] + page * self.db_stride +
                getattr(c, "DB_" + name))

    # Memory: pages are allocated and never freed

    def alloc(self, pages=1):
        addr = self.next_page
        self.next_page += pages * PAGE
        assert self.next_page <= self.msix_mem
        self.m.write(addr, bytes(pages * PAGE))
        return addr

    @staticmethod
    def buf(addr, pages=1):
        """struct qhca_buf of adjacent pages"""
        return struct.pack("<QIBB2x", addr, pages, 0, c.PAGE_SHIFT)

    # Command queue

    def start(self, log_size=LOG_CMDQ, sq=None, cq=None):
        self.forget()
        pages = max(1, (64 << log_size) // PAGE)
        self.sq = self.alloc(pages) if sq is None else sq
        self.cq = self.alloc(pages) if cq is None else cq
        self.entries = 1 << log_size
        self.set_reg64("CMD_SQ", self.sq)
        self.set_reg64("CMD_CQ", self.cq)
        self.set_reg("CMD_LOG_SIZE", log_size)
        self.set_reg("CONTROL", c.CONTROL_ENABLE | self.flags)

    def queue(self, opcode, body=b"", mailbox=0):
        """Write one command to the ring; returns its token."""
        self.token += 1
        entry = struct.pack("<HxxIQ", opcode, self.token, mailbox) + body
        slot = self.pi % self.entries
        self.m.write(self.sq + 64 * slot, entry.ljust(64, b"\0"))
        self.pi += 1
        return self.token

    def ring(self):
        self.doorbell("CMD", 0, self.pi & 0xffffffff)

    def poll(self):
        """The next completion, or None."""
        data = self.m.read(self.cq + 64 * (self.ci % self.entries), 64)
        phase = 1 ^ (self.ci // self.entries) & 1
        if data[63] & c.OWNER_PHASE != phase:
            return None
        self.ci += 1
        return Completion(data)

    def cmd(self, opcode, body=b"", mailbox=0):
        """Execute a command and return its completion."""
        slot = self.pi % self.entries
        token = self.queue(opcode, body, mailbox)
        self.ring()
        comp = wait_for(self.poll, "command completion")
        assert (comp.opcode, comp.slot, comp.token) == (opcode, slot, token)
        return comp

    def ok(self, opcode, body=b"", mailbox=0):
        """cmd() for commands that must succeed; returns the object."""
        comp = self.cmd(opcode, body, mailbox)
        assert comp.status == c.OK, "opcode 0x%x: status %d" % (opcode,
                                                                comp.status)
        return comp.obj

    def destroy(self, opcode, obj):
        return self.cmd(opcode, struct.pack("<I", obj)).status

    # Objects

    def create_eq(self, vector=0, log_size=4, flags=0, ring=None):
        ring = self.alloc() if ring is None else ring
        body = self.buf(ring) + struct.pack("<HBB", vector, log_size, flags)
        eqn = self.ok(c.CMD_CREATE_EQ, body)
        self.eqs[eqn] = [ring, log_size, 0]
        return eqn

    def poll_eq(self, eqn):
        """(type, obj, arm_sn) of the next event, or None."""
        ring, log_size, ci = self.eqs[eqn]
        data = self.m.read(ring + 32 * (ci % (1 << log_size)), 32)
        if data[31] & c.OWNER_PHASE != 1 ^ (ci >> log_size) & 1:
            return None
        self.eqs[eqn][2] += 1
        kind, obj, arm_sn = struct.unpack_from("<B3xII", data)
        return kind, obj, arm_sn

    def arm_eq(self, eqn):
        self.doorbell("EQ", eqn, self.eqs[eqn][2])

    def create_cq(self, eqn, log_size=4, uar=0):
        ring = self.alloc(2)    # ring and doorbell record
        body = self.buf(ring, 2) + struct.pack("<IIIB", uar, eqn, 0, log_size)
        return Cq(self, self.ok(c.CMD_CREATE_CQ, body), ring, log_size)

    def create_ethq(self, cq, direction, log_size=4):
        ring = self.alloc()
        body = self.buf(ring) + struct.pack("<IBB", cq.cqn, log_size,
                                            direction)
        return EthQueue(self, self.ok(c.CMD_CREATE_ETHQ, body), ring, log_size)

    def set_port(self, mac, flags, mtu=1500):
        self.ok(c.CMD_SET_PORT, mac + struct.pack("<BBI", 1, flags, mtu))

    # The operator's view

    def counter(self, which):
        box = self.m.qom_get(self.path, "counters")
        return box[which]


class Cq:
    """A completion queue of Ethernet queues."""

    def __init__(self, hca, cqn, ring, log_size):
        self.hca, self.cqn, self.ring, self.log_size = hca, cqn, ring, log_size
        self.ci = 0

    def poll(self):
        """(opcode, status, byte_len, wr_id) of the next CQE, or None."""
        size = 1 << self.log_size
        data = self.hca.m.read(self.ring + 64 * (self.ci % size), 64)
        if data[63] & c.OWNER_PHASE != 1 ^ (self.ci >> self.log_size) & 1:
            return None
        self.ci += 1
        self.hca.m.write(self.ring + 64 * size, struct.pack("<I", self.ci))
        wr_id, byte_len = struct.unpack_from("<Q12xI", data)
        return data[61], data[62], byte_len, wr_id


class EthQueue:
    """An Ethernet queue; the caller provides the buffers."""

    def __init__(self, hca, number, ring, log_size):
        self.hca, self.number, self.ring = hca, number, ring
        self.log_size, self.pi = log_size, 0

    def post(self, addr, length, flags=0, csum_start=0, mss=0):
        slot = self.pi % (1 << self.log_size)
        self.hca.m.write(self.ring + 32 * slot, struct.pack(
            "<QQIHHHHH2x", self.pi, addr, length, flags, 0, csum_start, 0, mss))
        self.pi += 1

    def ring_doorbell(self):
        self.hca.doorbell("ETH", self.number, self.pi)


def wait_for(function, what, seconds=PATIENCE):
    """Call function() until it returns something true; return that."""
    end = time.monotonic() + seconds
    while True:
        result = function()
        if result:
            return result
        assert time.monotonic() < end, "no " + what
        time.sleep(0.005)
