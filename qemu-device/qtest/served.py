# SPDX-License-Identifier: GPL-2.0-or-later
"""A qhca-server and its machines, for the tests to use like a QEMU with the device."""

import json
import mmap
import os
import re
import socket
import subprocess
import tempfile
import threading
import time

from qemu.qmp import QMPError

import contract as c
from hca import BAR_BASE, BAR_STRIDE, PATIENCE, Hca, wait_for
from machine import HERE, LIFE, RAM_SIZE, ConfigSpace
from vfio_user import CONFIG, Client


# A thread that waits for a first message has the rest when the server ends.
TSAN_OPTIONS = "report_thread_leaks=0 suppressions=" + os.path.join(HERE, "races.supp")


class StartFailure(Exception):
    """A server has ended before it was ready; with what it has said."""


class Server:
    """A process that listens at a socket for each of the @properties; @program may be the words
    of a command."""

    def __init__(self, program, *properties, args=()):
        self.top = tempfile.TemporaryDirectory(prefix="qhca-server-")
        self.paths = [self.path("socket%d" % i) for i in range(len(properties))]
        self.log = open(self.path("log"), "w", encoding="utf-8")
        self.last = None
        program = [program] if isinstance(program, str) else program
        self.words = ["setpriv", "--pdeathsig", "KILL", *program, "--verbose",
                      "--control", self.path("control"), *args]
        for number, text in enumerate(properties):
            self.words += ["--socket", "%s,id=hca%d%s" % (self.paths[number], number, text)]
        self.start()

    def start(self):
        before = len(self.text())
        # LeakSanitizer, with threads about, sometimes never ends.
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0",
                   TSAN_OPTIONS=TSAN_OPTIONS)
        self.process = subprocess.Popen(self.words, stdout=self.log, stderr=self.log, env=env)
        self.watchdog = threading.Timer(LIFE, self.process.kill)
        self.watchdog.start()
        wait_for(lambda: "ready\n" in self.text()[before:] or self.process.poll() is not None,
                 "ready server")
        if self.process.poll() is not None:
            self.watchdog.cancel()
            raise StartFailure(self.text())

    def kill(self):
        """End it without a warning."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self.watchdog.cancel()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self.watchdog.cancel()
        self.last = text = self.text()
        self.log.close()
        self.top.cleanup()
        if kind is None:
            assert status == 0 and not re.search("runtime error|Sanitizer", text), \
                "server ended with status %d: %s" % (status, text)

    def path(self, name):
        return os.path.join(self.top.name, name)

    def text(self):
        """Return its output so far."""
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read()

    def qmp(self, command, **arguments):
        """The answer to a command on the control socket."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(self.path("control"))
            with sock.makefile("rw", encoding="utf-8") as file:
                assert "QMP" in json.loads(file.readline())
                file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
                file.flush()
                return json.loads(file.readline())

    def get(self, name, device="hca0"):
        return self.qmp("qom-get", path=device, property=name)["return"]

    def connected(self, device="hca0"):
        return self.get("port", device)["connected"]


class ServedMachine:
    """A machine's memory and its connection; what Hca needs of machine.Machine."""

    def __init__(self, server, number=0):
        self.server, self.number = server, number
        self.client = Client(server.paths[number])
        self.fd = os.memfd_create("ram", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, RAM_SIZE)
        self.ram = mmap.mmap(self.fd, RAM_SIZE)
        self.client.share(0, RAM_SIZE, self.fd)

    def close(self):
        self.client.sock.close()
        self.ram.close()
        os.close(self.fd)

    def _where(self, addr):
        """The region and the offset of an address that Hca uses for a BAR."""
        off = addr - BAR_BASE - self.number * BAR_STRIDE
        starts = {c.BAR_DB: 0x8000000, c.BAR_DM: 0x1000000, c.BAR_MSIX: 0x100000, c.BAR_REGS: 0}
        return next((bar, off - start) for bar, start in starts.items() if off >= start)

    def mmio_read(self, size, addr):
        return int.from_bytes(self.client.read(*self._where(addr), size), "little")

    def mmio_write(self, size, addr, val):
        self.client.write(*self._where(addr), val.to_bytes(size, "little"))

    def read(self, addr, size):
        if addr >= BAR_BASE:
            return self.client.read(*self._where(addr), size)
        return self.ram[addr:addr + size]

    def write(self, addr, data):
        if addr >= BAR_BASE:
            self.client.write(*self._where(addr), data)
        else:
            self.ram[addr:addr + len(data)] = data

    def cmd(self, name, **arguments):
        answer = self.server.qmp(name, **arguments)
        if "error" in answer:
            raise QMPError(answer["error"]["desc"])
        return answer["return"]

    @staticmethod
    def clock_step(ns):
        """Wait: the server's clock is the host's."""
        time.sleep(ns / 1e9 + 0.05)

    def qom_get(self, path, name):
        return self.server.get(name, path)

    def pci(self, *_):
        return ServedFunction(self.client)

    def log(self):
        return self.server.text()

    def get_log(self):
        """Return the server's output, after its end."""
        return self.server.last


class ServedFunction(ConfigSpace):
    """Configuration space."""

    def __init__(self, client):
        self.client = client

    def read(self, off, size):
        return int.from_bytes(self.client.read(CONFIG, off, size), "little")

    def write(self, off, size, val):
        self.client.write(CONFIG, off, val.to_bytes(size, "little"))

    def map_bar(self, *_):
        """Nothing: a server does not know where the machine has its BARs."""


class ServedHca(Hca):
    """A driver that hears of messages by eventfd."""

    def enable_msix(self):
        self.events = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(self.reg("VECTORS"))]
        # Eight at a time: no message may have more.
        self.m.client.listen(self.events[:8])

    def took_irq(self, vector):
        try:
            return os.eventfd_read(self.events[vector]) > 0
        except BlockingIOError:
            return False


def cpu_time(pid):
    """Seconds of CPU time that a process has had."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size_of(pid, what):
    """KiB that the kernel counts as @what, VmData and the like, of a process; see proc(5)."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what + ":"))


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return list(map(int, file.read().split()))


def machine(server, number):
    """The machine at a socket, with a driver that has not started the device."""
    hca = ServedHca(ServedMachine(server, number), number)
    hca.map_bars()
    return hca


def machines(server):
    """A machine for each socket."""
    return [machine(server, number) for number in range(len(server.paths))]


def is_server(program):
    return os.path.basename(program).startswith("qhca-server")
