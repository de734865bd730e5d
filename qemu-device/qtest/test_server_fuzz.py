# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine whose QEMU lies: it speaks vfio-user at random, repeatable by seed, between a driver's
honest work and in the middle of it, while two other machines work on.

QHCA_FUZZ_SEEDS=FIRST-LAST runs other seeds than the few of a normal run.
"""

import contextlib
import os
import random
import socket
import struct
import tempfile
import time

import contract as c
from fixture import equal, start
from hca import NO_MEMORY, PAGE, PCIE_FLR, wait_for
from machine import RAM_SIZE
from rc import Mr, Port, Qp, rdma
from seeds import each_seed
from served import Server, ServedHca, ServedMachine, machine
from test_server_line import TOO_LONG, Line
from vfio_user import (CONFIG, DMA_MAP, DMA_UNMAP, ERROR, GET_INFO, HEAD, NO_REPLY, READ,
                       REGION_INFO, RESET, SET_IRQS, VERSION, WRITE, Client, Gone, Refused)

STEPS = 200
PATIENCE = 1.5
FAR = 1 << 40               # where the attacker has memory that it takes away
FLR_AT = 0x68               # in configuration space
IO_FDS, IRQ_INFO, DMA_READ, DMA_WRITE, MULTI, FEATURE, MIG_READ, MIG_WRITE = (
    6, 7, 11, 12, 15, 16, 17, 18)
COMMANDS = (VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, IO_FDS, IRQ_INFO, SET_IRQS, READ,
            WRITE, DMA_READ, DMA_WRITE, RESET, 14, MULTI, FEATURE, MIG_READ, MIG_WRITE, 0, 0xffff)
EDGES = (0, 1, 4, 8, PAGE - 1, PAGE, PAGE + 1, RAM_SIZE - PAGE, RAM_SIZE, RAM_SIZE + 1, 1 << 31,
         1 << 32, FAR, NO_MEMORY, 1 << 63, (1 << 64) - PAGE, (1 << 64) - 1)
GREETINGS = (
    b"", b"\0", b"{}\0", b"{", b"[]\0", b"{}", b"\xff\0", b"[" * 4000 + b"\0", b"{}" * 20000,
    b'{"capabilities":7}\0', b'{"capabilities":{"max_msg_fds":-1}}\0',
    b'{"capabilities":{"max_msg_fds":1e99,"max_data_xfer_size":0}}\0',
    b'{"capabilities":{"max_data_xfer_size":18446744073709551615,"pgsizes":"x"}}\0',
    b'{"capabilities":{"migration":{"pgsize":1,"max_bitmap_size":0}}}\0',
    b'{"capabilities":{"twin_socket":{"supported":true}}}\0')
HONEST = b'{"capabilities":{"max_msg_fds":8}}\0'


class Liar(Client):
    """A connection where unexpected answers may come first."""

    def ask(self, command, data=b"", fds=()):
        self.send(command, data, fds)
        while True:
            number, _, size, flags, error = HEAD.unpack(self.receive(HEAD.size))
            body = self.receive(size - HEAD.size)
            if number == self.number:
                break
        if flags & ERROR:
            raise Refused(os.strerror(error))
        return body

    def drain(self):
        """Forget answers that are there."""
        self.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while self.sock.recv(65536):
                pass
        self.sock.settimeout(PATIENCE)


class LyingMachine(ServedMachine):
    """Memory and a connection that the attacker has made."""

    def __init__(self, server, client, fd):     # pylint: disable=super-init-not-called
        self.server, self.number, self.client = server, 2, client
        self.fd = fd
        self.ram = bytearray(RAM_SIZE)          # see write(): the file may shrink

    def read(self, addr, size):
        return os.pread(self.fd, size, addr).ljust(size, b"\0")

    def write(self, addr, data):
        os.pwrite(self.fd, data, addr)


def some_files():
    """Files of all kinds: what may be mapped, and what must not be."""
    fds = [os.memfd_create("ram", os.MFD_ALLOW_SEALING) for _ in range(3)]
    for fd, size in zip(fds, (RAM_SIZE, PAGE, 3 * PAGE + 100)):
        os.ftruncate(fd, size)
    fds += [os.open("/proc/self/fd/%d" % fds[1], os.O_RDONLY), os.open("/", os.O_PATH),
            os.open("/dev/zero", os.O_RDWR), os.open("/dev/null", os.O_WRONLY),
            os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0), *os.pipe()]
    with tempfile.TemporaryFile() as file:
        fds.append(os.dup(file.fileno()))
    return fds


class Attack:
    """One connection, from its greeting to its end."""

    def __init__(self, server, rng, target):
        self.server, self.rng, self.target = server, rng, target
        self.files = some_files()
        self.client = Liar(server.paths[2], greet=False)
        self.client.sock.settimeout(PATIENCE)
        self.hca = self.qp = self.port = None

    def close(self):
        self.client.sock.close()
        for fd in self.files:
            os.close(fd)

    def word(self):
        rng = self.rng
        return rng.choice(EDGES) if rng.random() < .8 else rng.getrandbits(64)

    def greet(self):
        """Mostly as QEMU does, or there is no more to it."""
        rng = self.rng
        data = HONEST if rng.random() < .9 else rng.choice(GREETINGS)
        major = 0 if rng.random() < .95 else rng.getrandbits(16)
        self.client.ask(VERSION, struct.pack("<HH", major, 1) + data)

    def be_honest(self):
        """A driver starts, and connects to another machine."""
        self.client.share(0, RAM_SIZE, self.files[0])
        hca = ServedHca(LyingMachine(self.server, self.client, self.files[0]), 2)
        hca.map_bars()
        hca.start()
        hca.mac = struct.pack("<IH", hca.reg("MAC_LO"), hca.reg("MAC_HI"))
        self.port, self.hca = Port(hca, hca.mac, 3), hca
        self.memory = self.port.memory()
        self.qp = Qp(self.port)
        self.target.modify(0, c.QPS_RESET, self.qp)
        self.target.sq_pi = self.target.rq_pi = 0
        self.target.connect(self.qp)
        self.qp.connect(self.target)

    # Its next actions

    def body(self, command):
        """Return a random body for a message of this kind."""
        rng, word = self.rng, self.word
        argsz = rng.choice((0, 8, 16, 20, 24, 32, 64, 0xffffffff))
        region = rng.choice((c.BAR_REGS, c.BAR_MSIX, c.BAR_DB, c.BAR_DM, CONFIG, 9, 100))
        length = rng.choice((0, 1, 2, 4, 8, 16, 64, PAGE, 0xffffffff))
        offset = rng.choice((word() & 0xffff, word()))
        access = struct.pack("<QII", offset, region, length)
        bodies = {
            VERSION: lambda: struct.pack("<HH", rng.getrandbits(2), 1) + rng.choice(GREETINGS),
            DMA_MAP: lambda: struct.pack("<IIQQQ", argsz, rng.getrandbits(4), word(), word(),
                                         word()),
            DMA_UNMAP: lambda: struct.pack("<IIQQ", argsz, rng.getrandbits(3), word(), word()),
            REGION_INFO: lambda: struct.pack("<IIIIQQ", argsz, 0, region, 0, word(), word()),
            IO_FDS: lambda: struct.pack("<IIII", argsz, 0, region, 9),
            IRQ_INFO: lambda: struct.pack("<IIII", argsz, 0, rng.getrandbits(3), 0),
            SET_IRQS: lambda: struct.pack("<IIIII", argsz, rng.getrandbits(6), rng.getrandbits(3),
                                          word() & 0xffffffff, word() & 0xffffffff) +
            rng.randbytes(rng.choice((0, 1, 4, 16))),
            READ: lambda: access, DMA_READ: lambda: access,
            WRITE: lambda: access + rng.randbytes(min(length, 5000)),
            DMA_WRITE: lambda: access + rng.randbytes(8),
            MULTI: lambda: struct.pack("<Q", rng.getrandbits(4)) + access + rng.randbytes(8),
            FEATURE: lambda: struct.pack("<II", argsz, rng.getrandbits(19)) + rng.randbytes(16),
            MIG_READ: lambda: struct.pack("<II", argsz, word() & 0xffffffff),
        }
        return bodies.get(command, lambda: rng.randbytes(rng.randrange(64)))()

    def message(self):
        """One message that is well-formed more often than not."""
        rng = self.rng
        command = rng.choice(COMMANDS)
        data = self.body(command)
        if rng.random() < .1:
            data = data[:rng.randrange(len(data) + 1)]
        count = 16 if rng.random() < .01 else rng.choice((0, 0, 0, 1, 1, 2, 8))
        fds = rng.choices(self.files, k=count)
        flags = rng.choice((0, 0, 0, NO_REPLY, ERROR, rng.getrandbits(28) << 4))
        if rng.random() < .01:          # no command: the next message begins in its body
            flags |= rng.randrange(1, 16)
        self.client.send(command, data, fds, flags)
        if rng.random() < .5:
            self.client.drain()

    def piece(self):
        """A message that comes in pieces, with file descriptors in any of them."""
        rng = self.rng
        data = self.body(READ)
        data = HEAD.pack(0, rng.choice(COMMANDS), HEAD.size + len(data), 0, 0) + data
        at = rng.randrange(1, len(data))
        for part in data[:at], data[at:]:
            socket.send_fds(self.client.sock, [part],
                            rng.choices(self.files, k=rng.choice((0, 1, 4))))
            time.sleep(rng.choice((0, 0.001)))

    def remap(self):
        """Take away some of the memory that the device works in, and give it back."""
        base, size = self.rng.choice(((0, RAM_SIZE), (0, PAGE), (PAGE, RAM_SIZE)))
        with contextlib.suppress(Refused):
            self.client.unshare(base, size)
            self.work()
        with contextlib.suppress(Refused):
            self.client.share(0, RAM_SIZE, self.files[0], self.rng.choice((3, 3, 1, 0)))

    def work(self):
        """The driver posts something; whether it is done is its own affair."""
        rng, hca = self.rng, self.hca
        act = rng.randrange(5)
        if act == 0:
            self.qp.post(rng.choice((c.WR_RDMA_WRITE, c.WR_RDMA_READ, c.WR_SEND)), self.memory,
                         rng.choice((0, 8, PAGE, 1 << 31)), struct.pack("<QI", self.word(), 1))
        elif act == 1:
            hca.queue(rng.randrange(80), rng.randbytes(48), rng.choice(EDGES))
            hca.ring()
        elif act == 2:
            hca.m.client.write(c.BAR_DB, rng.randrange(0, 2 * PAGE, 8), rng.randbytes(8))
        elif act == 3:
            hca.command(rng.choice((0, 2, 4, 6)))
        else:
            hca.set_reg(rng.choice(("CMD_SQ_LO", "CMD_CQ_LO", "CMD_LOG_SIZE", "CONTROL")),
                        rng.choice((0, 1, 4, RAM_SIZE)))

    def reset(self):
        if self.rng.random() < .5:
            self.client.ask(RESET)
        else:
            self.client.write(CONFIG, FLR_AT, struct.pack("<H", PCIE_FLR))

    # How it ends

    def end(self):
        act = self.rng.choice((self.close_only, self.cut_off, self.wrong_size, self.shrink,
                               self.shut, self.close_only))
        act()

    def close_only(self):
        pass

    def shut(self):
        self.client.sock.shutdown(self.rng.choice((socket.SHUT_RD, socket.SHUT_WR)))

    def cut_off(self):
        """The end is in the middle of a message."""
        data = HEAD.pack(1, self.rng.choice(COMMANDS), 64, 0, 0) + bytes(48)
        socket.send_fds(self.client.sock, [data[:self.rng.randrange(1, 64)]],
                        self.rng.choices(self.files, k=2))

    def wrong_size(self):
        self.client.send(READ, self.body(READ),
                         size=self.rng.choice((0, 15, 16, 17, 40, 1 << 20, 0xffffffff)))
        with contextlib.suppress(socket.timeout):
            self.client.receive(1)

    def shrink(self):
        """Memory that packets of others come from, or go to, becomes none."""
        if self.hca.state != c.STATE_RUNNING:
            return                      # nor would it register any
        size = 16 * PAGE
        fd = os.memfd_create("gone", 0)
        self.files.append(fd)
        os.ftruncate(fd, size)
        self.client.share(FAR, size, fd)
        area = Mr(self.port, FAR, size)
        os.ftruncate(fd, self.rng.choice((0, PAGE)))
        poster, local, far = self.rng.choice(((self.qp, area, self.target.memory),
                                              (self.target, self.target.memory, area)))
        poster.post(c.WR_RDMA_WRITE, local, 4 * PAGE, rdma(far))


def attack(server, rng, steps, target, line):
    """A connection, with some of the @steps in it; returns how many are left."""
    this = Attack(server, rng, target)
    try:
        with contextlib.suppress(Gone, Refused, TimeoutError, BrokenPipeError,
                                 ConnectionResetError, AssertionError):
            this.greet()
            this.be_honest()
            acts = ([this.message] * 14 + [this.work] * 8 + [this.piece] * 2 + [this.remap] +
                    [this.reset])
            while steps and rng.random() > 0.01:
                steps -= 1
                with contextlib.suppress(Refused):
                    rng.choice(acts)()
                if steps % 10 == 0:
                    in_time(line)
            this.end()
    finally:
        this.close()
    in_time(line)
    return steps


class Late(Exception):
    """A machine that does no harm has suffered some."""


def in_time(line):
    try:
        took = line.works()
    except Exception as err:
        raise Late("no traffic between other machines") from err
    if took > TOO_LONG:
        raise Late("took %.2f s" % took)


def num_fds(server):
    return len(os.listdir("/proc/%d/fd" % server.process.pid))


def one_seed(program, seed):
    rng, steps = random.Random(seed), STEPS
    with Server(program, "", "", "") as server:
        hcas = start([machine(server, number) for number in range(2)])
        ports = [Port(hca, hca.mac, host) for host, hca in enumerate(hcas, 1)]
        line, target = Line(ports), Qp(ports[1])
        target.memory = Mr(ports[1], hcas[1].alloc(4), 4 * PAGE)
        in_time(line)
        before = num_fds(server)
        try:
            while steps:
                steps = attack(server, rng, steps, target, line)
                wait_for(lambda: not server.connected("hca2"), "end of the connection")
                equal(server.get("objects", "hca2"), 0)
                wait_for(lambda: num_fds(server) <= before + 1, "file descriptors closed")
        except Exception:
            print("# the server, status %s, said:" % server.process.poll())
            print("# " + server.text()[-6000:].replace("\n", "\n# "))
            raise


def test_liar(program):
    """a machine that does anything at all harms no others and leaves nothing behind"""
    each_seed("1-4", lambda seed: one_seed(program, seed))
