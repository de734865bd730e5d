# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's end of a vfio-user socket, honest or not; QEMU's docs/interop/vfio-user.rst."""

import os
import socket
import struct

from hca import PATIENCE

HEAD = struct.Struct("<HHIII")
(VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, SET_IRQS, READ, WRITE,
 RESET) = 1, 2, 3, 4, 5, 8, 9, 10, 13
NO_REPLY, ERROR = 1 << 4, 1 << 5
CONFIG = 7          # the region that is configuration space
MSIX = 2            # the kind of interrupt
GREETING = struct.pack("<HH", 0, 1) + b'{"capabilities":{"max_msg_fds":8}}\0'
INFO = struct.pack("<IIII", 16, 0, 0, 0)      # what GET_INFO asks with


class Refused(Exception):
    """The server has answered with an error."""


class Gone(Exception):
    """The server has closed the connection."""


class Client:
    """A connection; with @greet it has agreed on a version."""

    def __init__(self, path, greet=True):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(path)
        self.number = 0
        if greet:
            self.greet()

    def greet(self):
        self.ask(VERSION, GREETING)
        self.ask(GET_INFO, INFO)        # answered when it is "connected"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, command, data=b"", fds=(), flags=0, size=None):
        self.number = (self.number + 1) & 0xffff
        size = HEAD.size + len(data) if size is None else size
        head = HEAD.pack(self.number, command, size, flags, 0)
        try:
            socket.send_fds(self.sock, [head + data], fds)
        except (BrokenPipeError, ConnectionResetError) as err:
            raise Gone from err

    def receive(self, length):
        data = b""
        while len(data) < length:
            try:
                part = self.sock.recv(length - len(data))
            except ConnectionResetError as err:
                raise Gone from err
            if not part:
                raise Gone
            data += part
        return data

    def ask(self, command, data=b"", fds=()):
        """Send a message; return the body of its answer."""
        self.send(command, data, fds)
        _, _, size, flags, error = HEAD.unpack(self.receive(HEAD.size))
        body = self.receive(size - HEAD.size)
        if flags & ERROR:
            raise Refused(os.strerror(error))
        return body

    def read(self, region, offset, length):
        ask = struct.pack("<QII", offset, region, length)
        return self.ask(READ, ask)[len(ask):]

    def write(self, region, offset, data):
        self.ask(WRITE, struct.pack("<QII", offset, region, len(data)) + data)

    def region(self, number):
        """The size of a region, and the file descriptors of its memory."""
        self.send(REGION_INFO, struct.pack("<IIIIQQ", 1024, 0, number, 0, 0, 0))
        data, fds, _, _ = socket.recv_fds(self.sock, 4096, 4)
        return struct.unpack_from("<Q", data, HEAD.size + 16)[0], fds

    def share(self, base, length, fd, flags=3, offset=0):
        """Hand over memory; without a file descriptor it is a name only."""
        body = struct.pack("<IIQQQ", 32, flags, offset, base, length)
        self.ask(DMA_MAP, body, [] if fd is None else [fd])

    def unshare(self, base, length):
        self.ask(DMA_UNMAP, struct.pack("<IIQQ", 24, 0, base, length))

    def listen(self, fds):
        """Get the MSI-X messages as eventfds."""
        self.ask(SET_IRQS, struct.pack("<IIIII", 20, 0x24, MSIX, 0, len(fds)), fds)
