# SPDX-License-Identifier: GPL-2.0-or-later
"""A network of the host's kernel for a test alone, with taps and without privileges."""

import contextlib
import ctypes
import fcntl
import functools
import os
import socket
import struct
import tempfile
import traceback

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, NEW_USERS, NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
BIND = 4096
DEATH_SIGNAL, DROP_RIGHT = 1, 24        # of prctl()
PIDFD_GETFD = 438
KILL = 9

TUN = "/dev/net/tun"
IFF_TAP, IFF_MULTI_QUEUE, IFF_NO_PI, IFF_VNET_HDR = 0x2, 0x100, 0x1000, 0x4000
TUNSETIFF, TUNSETPERSIST, TUNSETOWNER, TUNSETOFFLOAD = (0x400454ca, 0x400454cb, 0x400454cc,
                                                        0x400454d0)
TUN_F_CSUM, TUN_F_TSO4 = 1, 2

ADD_BRIDGE, ADD_PORT = 0x89a0, 0x89a2
GET_FLAGS, SET_FLAGS, SET_ADDR, SET_MASK, SET_MTU, GET_MAC, SET_NEIGHBOUR = (
    0x8913, 0x8914, 0x8916, 0x891c, 0x8922, 0x8927, 0x8955)
IFF_UP = 0x1
ETHTOOL, GET_SEGMENTATION = 0x8946, 0x1e
RTM_DELLINK = 17


class Skip(Exception):
    """The test cannot run here; the reason."""


def call(name, *args):
    if getattr(LIBC, name)(*args):
        raise OSError(ctypes.get_errno(), "%s: %s" % (name, os.strerror(ctypes.get_errno())))


def enter():
    """Leave the host's network for one that has nothing in it, and try what tests need."""
    ids = {"uid_map": os.getuid(), "gid_map": os.getgid()}
    try:
        call("unshare", NEW_USERS | NEW_NETWORK | NEW_MOUNTS)
        for name, text in ("setgroups", "deny"), *ids.items():
            with open("/proc/self/" + name, "w", encoding="ascii") as file:
                file.write("0 %d 1" % text if name in ids else text)
        hide(TUN, TUN)
        Tap("probe").remove()
    except OSError as err:
        raise Skip("no network of its own with a tap: %s" % err) from err


def hide(path, by):
    """Let the path be another file for this process and those that it starts."""
    call("mount", by.encode(), path.encode(), None, BIND, None)


@contextlib.contextmanager
def nobody_may_open(path):
    """A file of that name which its owner may not open, who has no rights beyond that."""
    with tempfile.NamedTemporaryFile() as file:
        os.chmod(file.name, 0)
        hide(path, file.name)
        yield
        call("umount", path.encode())


def give_up_rights():
    """Programs that are started from now on have no capabilities, like a user's."""
    right = 0
    while not LIBC.prctl(DROP_RIGHT, right, 0, 0, 0):
        right += 1


def run_alone(test, program, pipe):
    """Run the test in this process and write how it went."""
    try:
        LIBC.prctl(DEATH_SIGNAL, KILL, 0, 0, 0)
        enter()
        test(program)
        text = "ok"
    except Skip as err:
        text = "skip" + str(err)
    except BaseException:  # pylint: disable=broad-except
        text = "fail" + traceback.format_exc()
    os.write(pipe, text.encode()[:60000])


def alone(test):
    """Let a test run in a process with a network of its own."""
    @functools.wraps(test)
    def in_process(program):
        ours, theirs = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                run_alone(test, program, theirs)
            finally:
                os._exit(0)
        os.close(theirs)
        with open(ours, encoding="utf-8") as file:
            text = file.read()
        os.waitpid(pid, 0)
        if text.startswith("skip"):
            pytest.skip(text[4:])
        assert text == "ok", text[4:] or "the process has died"
    return in_process


def interfaces():
    return sorted(name for _, name in socket.if_nameindex())


def bridge(name, *taps):
    """Connect taps as a switch would; what leaves them is not longer than their MTU."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, ADD_BRIDGE, name.encode().ljust(16, b"\0"))
        for tap in taps:
            fcntl.ioctl(sock, ADD_PORT, struct.pack("16si20x", name.encode(), tap.index))
        fcntl.ioctl(sock, SET_FLAGS, struct.pack("16sH22x", name.encode(), IFF_UP))


def set_offload(pid, offload):
    """Let the kernel leave work to a program at a tap that has not asked for that."""
    process = os.pidfd_open(pid)
    for name in os.listdir("/proc/%d/fd" % pid):
        if os.readlink("/proc/%d/fd/%s" % (pid, name)) == TUN:
            copy = LIBC.syscall(PIDFD_GETFD, process, int(name), 0)
            fcntl.ioctl(copy, TUNSETOFFLOAD, offload)
            os.close(copy)
    os.close(process)


class Tap:
    """An interface whose other end a program can have: like "ip tuntap add mode tap user"."""

    def __init__(self, name, flags=0):
        """@flags: of this tap"""
        self.name, self.own = name, IFF_TAP | IFF_NO_PI | flags
        with self.used() as fd:
            fcntl.ioctl(fd, TUNSETPERSIST, 1)
            fcntl.ioctl(fd, TUNSETOWNER, 0)
        self.index = socket.if_nametoindex(name)
        self.mac = self.ioctl(GET_MAC)[18:24]

    @contextlib.contextmanager
    def used(self, flags=0):
        """The other end."""
        fd = os.open(TUN, os.O_RDWR)
        try:
            fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", self.name.encode(),
                                                   self.own | flags))
            yield fd
        finally:
            os.close(fd)

    def use(self, offload):
        """Be a program that lets the kernel leave work to it, and end."""
        with self.used(IFF_VNET_HDR) as fd:
            fcntl.ioctl(fd, TUNSETOFFLOAD, offload)

    def ioctl(self, number, data=b""):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            return fcntl.ioctl(sock, number, struct.pack("16s24s", self.name.encode(), data))

    def flags(self):
        return struct.unpack_from("H", self.ioctl(GET_FLAGS), 16)[0]

    def up(self, wanted=True):
        self.ioctl(SET_FLAGS, struct.pack("H", self.flags() & ~IFF_UP | wanted * IFF_UP))

    def restart(self):
        """Once a program has the other end, let the kernel send: it sees that there is a carrier
        a little later, and until then drops everything. A start looks immediately."""
        self.up(False)
        self.up()

    def segmentation(self):
        """Whether the kernel leaves it to the program."""
        value = ctypes.create_string_buffer(struct.pack("II", GET_SEGMENTATION, 0), 8)
        self.ioctl(ETHTOOL, struct.pack("P", ctypes.addressof(value)))
        return struct.unpack("II", value)[1] != 0

    def set_mtu(self, mtu):
        self.ioctl(SET_MTU, struct.pack("I", mtu))

    def set_address(self, address, mask="255.255.255.0"):
        for number, text in (SET_ADDR, address), (SET_MASK, mask):
            self.ioctl(number, struct.pack("HH", socket.AF_INET, 0) + socket.inet_aton(text))

    def add_neighbour(self, address, mac):
        """Let the kernel know that address without asking for it."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            fcntl.ioctl(sock, SET_NEIGHBOUR, struct.pack(
                "HH4s8xH14sI16x16s", socket.AF_INET, 0, socket.inet_aton(address), 1, mac, 6,
                self.name.encode()))

    def remove(self):
        """Remove it, also from the program that has it."""
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
            sock.send(struct.pack("IHHII BxHiII", 32, RTM_DELLINK, 5, 1, 0, 0, 0, self.index,
                                  0, 0))
            error, = struct.unpack_from("i", sock.recv(4096), 16)
            if error:
                raise OSError(-error, os.strerror(-error))

    def count(self, name):
        """One of the kernel's counters, from its own end."""
        with open("/proc/self/net/dev", encoding="ascii") as file:
            words = next(line for line in file if line.split(":")[0].strip() == self.name)
        return int(words.split(":")[1].split()[("rx_bytes", "rx_packets", "rx_errs",
                                                "rx_drop").index(name)])
