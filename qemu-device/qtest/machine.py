# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU process without a CPU, driven over its qtest and QMP sockets."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time

TIMEOUT = 20        # seconds for any one answer
ECAM = 0xb0000000   # where PCI Express configuration space is mapped
RAM_SIZE = 64 << 20
SANITIZERS = r"runtime error:|Sanitizer|SUMMARY"
HERE = os.path.dirname(os.path.abspath(__file__))


class MachineError(Exception):
    """QEMU did not start, went away, or refused a command."""


class _Lines:
    """A stream socket read line by line."""

    def __init__(self, sock):
        self.sock = sock
        self.buf = b""

    def send(self, text):
        self.sock.sendall(text.encode() + b"\n")

    def recv(self):
        while b"\n" not in self.buf:
            data = self.sock.recv(65536)
            if not data:
                raise MachineError("QEMU went away")
            self.buf += data
        line, _, self.buf = self.buf.partition(b"\n")
        return line.decode()


class Machine:
    """One q35 machine; a context manager that always ends its process."""

    def __init__(self, qemu, *args):
        self.dir = tempfile.mkdtemp(prefix="qhca-qtest-")
        self.log_path = os.path.join(self.dir, "log")
        self.process = None
        servers = [self._listen(name) for name in ("qtest", "qmp")]
        command = [
            qemu, "-nodefaults", "-display", "none", "-accel", "qtest",
            "-machine", "q35", "-m", "%dM" % (RAM_SIZE >> 20),
            "-d", "guest_errors", "-D", self.log_path,
            "-qtest", "unix:" + self._path("qtest"), "-qtest-log", "/dev/null",
            "-qmp", "unix:" + self._path("qmp"), *args]
        try:
            with open(self._path("stderr"), "wb") as err:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
            self.qtest, self.qmp_stream = map(self._accept, servers)
            self.qmp_stream.recv()      # greeting
            self.qmp("qmp_capabilities")
            self.map_ecam()
        except (OSError, MachineError) as e:
            text = self.stderr() or str(e)
            self.close()
            raise MachineError("QEMU did not start: " + text) from e
        except BaseException:
            self.close()
            raise
        finally:
            for server in servers:
                server.close()

    def _path(self, name):
        return os.path.join(self.dir, name)

    def _listen(self, name):
        server = socket.socket(socket.AF_UNIX)
        server.bind(self._path(name))
        server.listen(1)
        server.settimeout(0.1)
        return server

    def _accept(self, server):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            try:
                sock = server.accept()[0]
                sock.settimeout(TIMEOUT)
                return _Lines(sock)
            except socket.timeout:
                if self.process.poll() is not None:
                    break
        raise MachineError("no answer")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.stop()
        complaints = [line for line in self.stderr().splitlines()
                      if re.search(SANITIZERS, line)]
        status = self.process.returncode
        self.close()
        if kind is None and (complaints or status):
            raise MachineError("QEMU ended with status %d: %s" % (
                status, "; ".join(complaints)))

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def stderr(self):
        with open(self._path("stderr"), encoding="utf-8",
                  errors="replace") as f:
            return f.read().strip()

    def log(self):
        """What was logged with -d, so far."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    # qtest

    def _cmd(self, *words):
        self.qtest.send(" ".join(map(str, words)))
        while True:
            answer = self.qtest.recv().split()
            if answer[0] == "OK":
                return answer[1:]
            if answer[0] != "IRQ":
                raise MachineError("qtest: %s: %s" % (words, answer))

    def write(self, addr, data):
        if data:
            self._cmd("write", hex(addr), len(data), "0x" + data.hex())

    def read(self, addr, size):
        return bytes.fromhex(self._cmd("read", hex(addr), size)[0][2:])

    def mmio_write(self, size, addr, val):
        name = {1: "writeb", 2: "writew", 4: "writel", 8: "writeq"}[size]
        self._cmd(name, hex(addr), hex(val))

    def mmio_read(self, size, addr):
        name = {1: "readb", 2: "readw", 4: "readl", 8: "readq"}[size]
        return int(self._cmd(name, hex(addr))[0], 16)

    def clock_step(self, ns):
        self._cmd("clock_step", ns)

    # QMP

    def qmp(self, command, **args):
        self.qmp_stream.send(json.dumps(
            {"execute": command, "arguments": args}))
        while True:
            answer = json.loads(self.qmp_stream.recv())
            if "error" in answer:
                raise MachineError(answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]

    def qom_get(self, path, name):
        return self.qmp("qom-get", path=path, property=name)

    # PCI

    def map_ecam(self):
        """As firmware does: 256 buses of configuration space at ECAM."""
        self._cmd("outl", "0xcf8", "0x80000060")
        self._cmd("outl", "0xcfc", hex(ECAM | 1))

    def pci(self, bus, slot, function=0):
        return PciFunction(self, bus, slot, function)


class PciFunction:
    """Configuration space of one function."""

    def __init__(self, machine, bus, slot, function):
        self.machine = machine
        self.base = ECAM | bus << 20 | slot << 15 | function << 12

    def read(self, off, size):
        return self.machine.mmio_read(size, self.base + off)

    def write(self, off, size, val):
        self.machine.mmio_write(size, self.base + off, val)

    def capability(self, cap_id):
        """Offset of a capability, or 0."""
        pos = self.read(0x34, 1)
        while pos and self.read(pos, 1) != cap_id:
            pos = self.read(pos + 1, 1)
        return pos

    def ext_capability(self, cap_id):
        """Offset of an extended capability, or 0."""
        pos = 0x100
        while pos:
            header = self.read(pos, 4)
            if header & 0xffff == cap_id:
                return pos
            pos = header >> 20
        return 0

    def bar_info(self, bar):
        """(size, flags) of a BAR, which is left unset."""
        off = 0x10 + 4 * bar
        flags = self.read(off, 4) & 0xf
        self.write(off, 4, 0xffffffff)
        mask = self.read(off, 4) & ~0xf
        if flags & 4:
            self.write(off + 4, 4, 0xffffffff)
            mask |= self.read(off + 4, 4) << 32
            self.write(off + 4, 4, 0)
        else:
            mask |= 0xffffffff << 32
        self.write(off, 4, 0)
        return (1 << 64) - mask, flags

    def map_bar(self, bar, addr):
        off = 0x10 + 4 * bar
        self.write(off, 4, addr & 0xffffffff)
        if self.read(off, 4) & 4:
            self.write(off + 4, 4, addr >> 32)
