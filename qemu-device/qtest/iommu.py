# SPDX-License-Identifier: GPL-2.0-or-later
"""Just enough of a driver for each IOMMU to take memory away from the devices.

Intel's: VT-d specification, sections 9 (tables) and 11 (registers). virtio's: sections
5.13 (the device), 4.1.4 (its registers) and 2.7 (its queues) of the specification.
"""

import struct

VTD = 0xfed90000            # of a q35 machine
VTD_GCMD, VTD_RTADDR, VTD_CCMD = 0x18, 0x20, 0x28
VTD_FECTL, VTD_FEDATA, VTD_FEADDR, VTD_FEUADDR = 0x38, 0x3c, 0x40, 0x44
VTD_IOTLB, VTD_FAULT = 0xf8, 0x22c      # VTD_FAULT: the end of the only fault record
TRANSLATE, SET_ROOT = 1 << 31, 1 << 30
READ_WRITE, LARGE, GIB = 3, 1 << 7, 1 << 30
WIDTH_39 = 1

VIRTIO_BAR = 0xed000000
VIRTIO_CAP, VIRTIO_COMMON, VIRTIO_NOTIFY, VIRTIO_DEVICE = 0x09, 1, 2, 4
FEATURE_SELECT, FEATURES, STATUS = 8, 12, 20    # in the common configuration
QUEUE_SELECT, QUEUE_SIZE, QUEUE_ENABLE, QUEUE_RINGS = 22, 24, 28, 32
BYPASS = 36                 # in the device's configuration
REQUESTS, EVENTS, ENTRIES, EVENT_SIZE, FAULT_ADDRESS = 0, 1, 16, 24, 16
AVAILABLE, USED, BUFFERS = 0x200, 0x400, 0x800  # behind the descriptors
MORE, DEVICE_WRITES = 1, 2
ATTACH, WITHOUT = 1, 1      # a request, and its flag


class Intel:
    """-device intel-iommu; its tables are in the page at @memory and the two after."""

    ARGS = ("-device", "intel-iommu,intremap=off")

    def __init__(self, machine, memory):
        self.m, self.root = machine, memory
        self.context, self.table = memory + 0x1000, memory + 0x2000
        self.m.write(self.context, struct.pack(
            "<QQ", self.table | 1, WIDTH_39 | 1 << 8) * 256)
        self.m.mmio_write(8, VTD + VTD_RTADDR, self.root)
        self.m.mmio_write(4, VTD + VTD_GCMD, SET_ROOT)

    def allow(self, gibs):
        """Let devices access these GiB of the CPU's address space; None: all, without the
        IOMMU."""
        known = b"".join(struct.pack("<Q", n * GIB | READ_WRITE | LARGE if n in gibs else 0)
                         for n in range(512)) if gibs is not None else bytes(4096)
        self.m.write(self.table, known)
        self.m.write(self.root, struct.pack("<QQ", self.context | 1, 0) * 256)
        self.m.mmio_write(8, VTD + VTD_CCMD, 5 << 61)
        self.m.mmio_write(8, VTD + VTD_IOTLB, 9 << 60)
        self.m.mmio_write(4, VTD + VTD_GCMD, TRANSLATE if gibs is not None else 0)

    def aim(self, addr, data):
        """Set address and data of the message that reports the next fault. QEMU sends it to
        some CPU's APIC, whatever the address."""
        self.m.mmio_write(4, VTD + VTD_FAULT, 1 << 31)
        for off, val in ((VTD_FEDATA, data), (VTD_FEADDR, addr & 0xffffffff),
                         (VTD_FEUADDR, addr >> 32), (VTD_FECTL, 0)):
            self.m.mmio_write(4, VTD + off, val)


class Virtio:
    """-device virtio-iommu-pci; its queues are in the two pages at @memory.

    It is all or nothing, because only the IOMMU itself is attached: as it is behind itself,
    it could not access its queues otherwise.
    """

    SLOT = 7
    ARGS = ("-device", "virtio-iommu-pci,addr=%d" % SLOT)

    def __init__(self, machine, memory):
        self.m, self.memory = machine, memory
        self.pci = machine.pci(0, self.SLOT)
        self.pci.map_bar(4, VIRTIO_BAR)
        self.pci.write(0x04, 2, 0x6)
        where, pos = {}, self.pci.read(0x34, 1)
        while pos:
            if self.pci.read(pos, 1) == VIRTIO_CAP:
                where.setdefault(self.pci.read(pos + 3, 1),
                                 VIRTIO_BAR + self.pci.read(pos + 8, 4))
            pos = self.pci.read(pos + 1, 1)
        self.common, self.config, self.notify = (
            where[what] for what in (VIRTIO_COMMON, VIRTIO_DEVICE, VIRTIO_NOTIFY))
        self.set_up()

    def set(self, off, size, val):
        self.m.mmio_write(size, self.common + off, val)

    def set_up(self):
        for status in (0, 1, 3):                        # reset, ACKNOWLEDGE, DRIVER
            self.set(STATUS, 1, status)
        for half, features in ((0, 1 << 6), (1, 1)):    # BYPASS_CONFIG, VERSION_1
            self.set(FEATURE_SELECT, 4, half)
            self.set(FEATURES, 4, features)
        self.set(STATUS, 1, 0xb)                        # FEATURES_OK
        self.queue(EVENTS, self.memory, [(EVENT_SIZE, DEVICE_WRITES, 0)] * ENTRIES)
        requests = self.memory + 0x1000
        self.queue(REQUESTS, requests, [(EVENT_SIZE, MORE, 1), (4, DEVICE_WRITES, 0)])
        self.set(STATUS, 1, 0xf)                        # DRIVER_OK
        self.m.write(requests + BUFFERS, struct.pack(
            "<BxxxIII4x", ATTACH, 1, self.SLOT << 3, WITHOUT))
        self.m.write(requests + AVAILABLE, struct.pack("<HHH", 0, 1, 0))
        self.m.mmio_write(2, self.notify, REQUESTS)

    def queue(self, index, memory, descriptors):
        """Set up a queue with its buffers behind it; descriptors: (length, flags, next)"""
        self.m.write(memory, b"".join(struct.pack(
            "<QIHH", memory + BUFFERS + i * EVENT_SIZE, *what)
            for i, what in enumerate(descriptors)))
        for off, size, val in ((QUEUE_SELECT, 2, index), (QUEUE_SIZE, 2, ENTRIES),
                               (QUEUE_RINGS, 8, memory),
                               (QUEUE_RINGS + 8, 8, memory + AVAILABLE),
                               (QUEUE_RINGS + 16, 8, memory + USED),
                               (QUEUE_ENABLE, 2, 1)):
            self.set(off, size, val)

    def allow(self, gibs):
        self.m.mmio_write(1, self.config + BYPASS, gibs is None)

    def aim(self, addr, _data):
        """Place the next fault reports so that their address field, at FAULT_ADDRESS, is
        written to @addr."""
        used, = struct.unpack("<H", self.m.read(self.memory + USED + 2, 2))
        for i in range(ENTRIES):
            self.m.write(self.memory + 16 * i, struct.pack("<Q", addr - FAULT_ADDRESS))
        self.m.write(self.memory + AVAILABLE, struct.pack(
            "<HH16H", 0, (used + ENTRIES) & 0xffff, *range(ENTRIES)))
