# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtio disk beside the device. Unplugging it during a read drains it, which runs a
nested poll of the main loop's context.

Registers and rings: Virtual I/O Device (VIRTIO) specification 1.1, sections 2.6 and 4.1.4.
"""

import struct

BAR = 0xee000000
STATUS, QUEUE_SIZE, QUEUE_ENABLE = 20, 24, 28
DESC, DRIVER, DEVICE = 32, 40, 48
FEATURES_OK, DRIVER_OK = 0xb, 0xf
NOTIFY = 0x3000
VIRTIO_BLK = 0x10421af4
BACKEND = ("-blockdev", "driver=null-co,node-name=slow,latency-ns=1000000000,read-zeroes=on")


class Disk:
    """The disk, with its queue in four pages at @memory."""

    @staticmethod
    def plug(machine, bus, addr):
        machine.cmd("device_add", driver="virtio-blk-pci", id="disk", bus=bus, addr=addr,
                    multifunction=True, drive="slow", **{"disable-legacy": "on"})

    def __init__(self, machine, pci, memory):
        self.m, self.pci = machine, pci
        self.desc, self.avail, self.used, self.data = (memory + i * 0x1000 for i in range(4))
        assert pci.read(0, 4) == VIRTIO_BLK
        pci.map_bar(4, BAR)
        pci.write(0x04, 2, 0x6)
        for status in (0, 1, 3):
            self.set(1, STATUS, status)
        for word, bits in ((0, 0), (1, 1)):             # VIRTIO_F_VERSION_1
            self.set(4, 8, word)
            self.set(4, 12, bits)
        self.set(1, STATUS, FEATURES_OK)
        self.set(2, QUEUE_SIZE, 8)
        for reg, addr in ((DESC, self.desc), (DRIVER, self.avail), (DEVICE, self.used)):
            self.set(4, reg, addr)
            self.set(4, reg + 4, 0)
        self.set(2, QUEUE_ENABLE, 1)
        self.set(1, STATUS, DRIVER_OK)
        assert machine.mmio_read(1, BAR + STATUS) == DRIVER_OK

    def set(self, size, off, val):
        self.m.mmio_write(size, BAR + off, val)

    def read(self):
        """Start a read of a sector, which takes a second."""
        self.m.write(self.desc, struct.pack("<QIHH", self.data, 16, 1, 1) +
                     struct.pack("<QIHH", self.data + 512, 512, 3, 2) +
                     struct.pack("<QIHH", self.data + 2048, 1, 2, 0))
        self.m.write(self.data, bytes(16))
        self.m.write(self.avail, struct.pack("<HHH", 0, 1, 0))
        self.set(2, NOTIFY, 0)

    def done(self):
        """Number of reads that have ended. Unplugging the disk also ends them."""
        return struct.unpack("<H", self.m.read(self.used + 2, 2))[0]
