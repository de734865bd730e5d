# SPDX-License-Identifier: GPL-2.0-or-later
"""An e1000e beside the device, which sends frames, and raises interrupts on reception.

Registers: Intel 82574 GbE Controller Family datasheet, section 10.
"""

import struct

SLOT, BAR = 8, 0xec000000
CTRL, ICR, ITR, IMS, RCTL, TCTL = 0x0, 0xc0, 0xc4, 0xd0, 0x100, 0x400
RDBAL, RDLEN, RDH, RDT = 0x2800, 0x2808, 0x2810, 0x2818
TDBAL, TDLEN, TDT = 0x3800, 0x3808, 0x3818
RECEIVE_ALL, TRANSMIT, RECEIVED = 0x801a, 0xa, 0xd0
DESCRIPTORS = 16
END_OF_PACKET, REPORT = 1, 8
MSI = 0x05


class Neighbour:
    """The card; its rings and a frame for each direction are in two pages at @memory."""

    @staticmethod
    def args(netdev):
        return ("-device", "e1000e,netdev=%s,romfile=,addr=%d" % (netdev, SLOT))

    def __init__(self, machine, memory):
        self.m, self.ring, self.frame = machine, memory, memory + 0x1000
        self.rx_ring = memory + 0x800
        self.pci = machine.pci(0, SLOT)
        self.tail = 0

    def start(self):
        """Set up the card with all buffers free. Any reset of the machine undoes it."""
        self.m.write(self.rx_ring, struct.pack("<QQ", self.frame + 0x800, 0) * DESCRIPTORS)
        self.pci.map_bar(0, BAR)
        self.pci.write(0x04, 2, 0x6)
        for reg, val in ((CTRL, 0x40), (RCTL, RECEIVE_ALL), (TCTL, TRANSMIT),
                         (TDBAL, self.ring), (TDLEN, 16 * DESCRIPTORS),
                         (RDBAL, self.rx_ring), (RDLEN, 16 * DESCRIPTORS), (RDH, 0),
                         (RDT, DESCRIPTORS - 1)):
            self.m.mmio_write(4, BAR + reg, val)

    def send(self, frame):
        self.start()
        self.m.write(self.frame, frame)
        self.m.write(self.ring + 16 * self.tail, struct.pack(
            "<QHBBI", self.frame, len(frame), 0, END_OF_PACKET | REPORT, 0))
        self.tail = (self.tail + 1) % DESCRIPTORS
        self.m.mmio_write(4, BAR + TDT, self.tail)

    def silence(self):
        """Disable the card's MSI."""
        self.pci.write(self.pci.capability(MSI) + 2, 2, 0)

    def interrupt(self, addr, data):
        """Set the address and data of the card's next messages."""
        self.silence()
        self.start()
        pos = self.pci.capability(MSI)
        self.m.mmio_write(4, BAR + ITR, 0)
        self.m.mmio_write(4, BAR + IMS, RECEIVED)
        self.m.mmio_read(4, BAR + ICR)
        for off, size, val in ((4, 4, addr & 0xffffffff), (8, 4, addr >> 32),
                               (12, 2, data & 0xffff), (2, 2, 1)):
            self.pci.write(pos + off, size, val)
