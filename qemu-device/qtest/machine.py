# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU process without a CPU, driven through its qtest and QMP sockets."""

import contextlib
import os
import re
import signal
import tempfile
import threading

from qemu.machine import QEMUQtestMachine
from qemu.machine.machine import AbnormalShutdown, QEMUMachineError

LIFE = 300          # seconds a machine may take, from its start to its end
ECAM = 0xb0000000   # where PCI Express configuration space is mapped
RAM_SIZE = 64 << 20
SANITIZERS = r"qhca\S*: runtime error:|Sanitizer|SUMMARY"    # UBSan: only in the device's code
HERE = os.path.dirname(os.path.abspath(__file__))

# For a QEMU with sanitizers. The leaking function is far up the stack, above libraries.
os.environ.setdefault("ASAN_OPTIONS", "fast_unwind_on_malloc=0")
os.environ.setdefault("LSAN_OPTIONS", "print_suppressions=0:suppressions=%s" %
                      os.path.join(HERE, "leaks.supp"))
# For a QEMU without: freed pages are unmapped, and other freed memory is overwritten.
os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", "4096")
os.environ.setdefault("MALLOC_PERTURB_", "165")


class Machine(QEMUQtestMachine):
    """One q35 machine, running inside its with statement and no longer."""

    def __init__(self, qemu, *args):
        # The wrapper ends QEMU even if this process is killed.
        super().__init__(qemu, wrapper=("setpriv", "--pdeathsig", "KILL"),
                         base_temp_dir=tempfile.gettempdir())
        self.log_path = os.path.join(self.temp_dir, "log")
        self.watchdog = threading.Timer(LIFE, self._expire)
        self.set_machine("q35")
        self.add_args("-nodefaults", "-m", "%dM" % (RAM_SIZE >> 20),
                      "-d", "guest_errors", "-D", self.log_path,
                      "-qtest-log", "none", *args)

    def __enter__(self):
        self.launch()
        return self

    def _post_launch(self):
        self.watchdog.start()
        super()._post_launch()
        self.map_ecam()

    def _post_shutdown(self):
        self.watchdog.cancel()
        super()._post_shutdown()

    def _expire(self):
        """Kill QEMU, so that a test that waits for it gets an error."""
        print("# a machine still ran after %d s" % LIFE, flush=True)
        self._subp.kill()

    def __exit__(self, kind, value, trace):
        # After a failure QEMU may no longer be listening.
        hard = kind is not None
        with contextlib.suppress(AbnormalShutdown):     # the status is checked below
            self.shutdown(hard)
        status, output = self.exitcode(), self.get_log()
        killed = hard and status == -signal.SIGKILL
        if re.search(SANITIZERS, output) or (status and not killed):
            raise QEMUMachineError("QEMU ended with status %d: %s" % (
                status, output)) from value

    def log(self):
        """QEMU's log (-d) so far."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def ask(self, *words):
        """Execute a qtest command; return the words of its answer after the OK."""
        answer = self.qtest(" ".join(map(str, words))).split()
        if answer[:1] != ["OK"]:
            raise QEMUMachineError("qtest: %s: %s" % (words, answer))
        return answer[1:]

    def write(self, addr, data):
        if data:
            self.ask("write", hex(addr), len(data), "0x" + data.hex())

    def read(self, addr, size):
        return bytes.fromhex(self.ask("read", hex(addr), size)[0][2:])

    def mmio_write(self, size, addr, val):
        name = {1: "writeb", 2: "writew", 4: "writel", 8: "writeq"}[size]
        self.ask(name, hex(addr), hex(val))

    def mmio_read(self, size, addr):
        name = {1: "readb", 2: "readw", 4: "readl", 8: "readq"}[size]
        return int(self.ask(name, hex(addr))[0], 16)

    def clock_step(self, ns):
        self.ask("clock_step", ns)

    def qom_get(self, path, name):
        return self.cmd("qom-get", path=path, property=name)

    # PCI

    def map_ecam(self):
        """Map 256 buses of configuration space at ECAM, as firmware does."""
        self.ask("outl", "0xcf8", "0x80000060")
        self.ask("outl", "0xcfc", hex(ECAM | 1))

    def pci(self, bus, slot, function=0):
        return PciFunction(self, bus, slot, function)


class ConfigSpace:
    """Capabilities of a function; read() and write() are the heirs'."""

    def capability(self, cap_id):
        """Offset of a capability, or 0 if the function has none or is unplugged."""
        pos = self.read(0x34, 1)
        while pos and self.read(pos, 1) != cap_id:
            pos = self.read(pos + 1, 1)
            if pos == 0xff:
                return 0
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


class PciFunction(ConfigSpace):
    """Configuration space of one function."""

    def __init__(self, machine, bus, slot, function):
        self.machine = machine
        self.base = ECAM | bus << 20 | slot << 15 | function << 12

    def read(self, off, size):
        return self.machine.mmio_read(size, self.base + off)

    def write(self, off, size, val):
        self.machine.mmio_write(size, self.base + off, val)

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
