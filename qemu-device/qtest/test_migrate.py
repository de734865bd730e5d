# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine is saved, and continues in another QEMU, or later in the same."""

import contextlib
import os
import struct
import tempfile

import contract as c
from fixture import DEVICE, MAC_BYTES, cable, equal, hold_interrupt, running
from hca import PAGE, SLOT, wait_for
from machine import Machine
from rc import Port, connected, rdma
from test_pci import DEVCTL, LNKCAP, LNKCAP2, LNKCTL2, LNKSTA, link
from test_net import PEER, frame, send_until_full, wired

RARP = b"\x80\x35"         # with which QEMU announces a machine that has arrived


def ended(machine):
    """Wait for the end of the migration; return its status."""
    wait_for(lambda: machine.cmd("query-migrate").get("status") in
             ("completed", "failed"), "end of the migration")
    return machine.cmd("query-migrate")["status"]


def save(machine, path):
    machine.cmd("migrate", uri="file:" + path)
    equal(ended(machine), "completed")


@contextlib.contextmanager
def loaded(qemu, path, props="", args=("-device", DEVICE)):
    """A machine that has tried to load the file, and the status."""
    with Machine(os.environ.get("QHCA_TO", qemu), *args[:-1], args[-1] + props, "-incoming",
                 "defer") as machine:
        machine.cmd("migrate-incoming", uri="file:" + path,
                    **{"exit-on-error": False})
        yield machine, ended(machine)


def goes_on(hca, machine):
    """Let @hca drive the device of @machine from now on, and wait until that runs."""
    wait_for(lambda: machine.cmd("query-status")["running"], "running")
    hca.m, hca.pci = machine, machine.pci(0, SLOT)


@contextlib.contextmanager
def moved(qemu, hca):
    """Move the machine to another QEMU; @hca drives the device there from now on."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state")
        save(hca.m, path)
        with loaded(qemu, path) as (machine, status):
            equal(status, "completed")
            goes_on(hca, machine)
            yield


def context(qp):
    """struct qhca_qpc"""
    qp.hca.ok(c.CMD_QUERY_QP, struct.pack("<I", qp.qpn), qp.box)
    return qp.hca.m.read(qp.box, 176)


class Scene:
    """Two QPs, one of which waits for a receive WR of the other; an armed CQ."""

    def __init__(self, hca):
        self.hca = hca
        self.port = Port(hca, MAC_BYTES)
        self.a, self.b = connected(self.port)
        self.src, self.dst = self.port.memory(), self.port.memory()
        self.data = bytes(i * 11 & 0xff for i in range(3000))
        hca.m.write(self.src.addr, self.data)
        hca.m.write(hca.bar[c.BAR_DM] + 5 * PAGE, b"device memory")
        hca.arm_eq(self.port.eqn)
        hca.doorbell("CQ_ARM", self.a.cq.cqn, 1)
        self.a.post(c.WR_SEND, self.src, 3000)
        self.a.post(c.WR_RDMA_WRITE, self.src, 100, rdma(self.dst, 3500))
        self.before = context(self.a), context(self.b)
        self.counters = hca.m.qom_get(hca.path, "counters")

    def check(self):
        """Check that all state is as before, and that the work completes."""
        hca = self.hca
        equal(hca.m.qom_get(hca.path, "counters"), self.counters)
        equal((context(self.a), context(self.b)), self.before)
        equal(hca.m.read(hca.bar[c.BAR_DM] + 5 * PAGE, 13), b"device memory")
        equal(self.a.cq.poll(), None)
        self.b.post_recv(self.dst, 3000)
        hca.m.clock_step(1000000000)        # the RNR wait is over
        equal(self.a.done(), (c.CQE_SEND, c.WC_SUCCESS))
        equal(self.a.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        equal(self.b.done(), (c.CQE_RECV, c.WC_SUCCESS))
        equal(hca.m.read(self.dst.addr, 3000), self.data)
        equal(hca.m.read(self.dst.addr + 3500, 100), self.data[:100])
        equal(hca.poll_eq(self.port.eqn)[:2], (c.EVENT_COMP, self.a.cq.cqn))
        assert hca.took_irq(1), "no interrupt"


def test_other_qemu(qemu):
    """connections with work in progress continue in another QEMU"""
    with running(qemu) as hca:
        scene = Scene(hca)
        with moved(qemu, hca):
            scene.check()


def test_other_speed(qemu):
    """the new place's bandwidth is in force, and the driver gets an event"""
    with running(qemu, ",bandwidth=1000") as hca, tempfile.TemporaryDirectory() as folder:
        eqn = hca.create_eq(flags=c.EQ_ASYNC)
        path = os.path.join(folder, "state")
        save(hca.m, path)
        for props, event in ((",bandwidth=1000", None), ("", (c.EVENT_SPEED_CHANGE, 1))):
            with loaded(qemu, path, props) as (machine, status):
                equal(status, "completed")
                goes_on(hca, machine)
                hca.ok(c.CMD_NOP)
                got = [hca.poll_eq(eqn)]
                if event:
                    wait_for(lambda: got[-1] or got.append(hca.poll_eq(eqn)), "event")
                equal(got[-1] and got[-1][:2], event)


def test_other_link(qemu):
    """a machine that was saved with another link to the device continues, and keeps it"""
    with running(qemu) as hca, tempfile.TemporaryDirectory() as folder:
        scene = Scene(hca)
        exp = hca.pci.capability(0x10)
        path = os.path.join(folder, "state")
        save(hca.m, path)
        with open(path, "rb") as file:
            state = file.read()
        config = state.index(struct.pack("<HHH", c.PCI_VENDOR_ID, c.PCI_DEVICE_ID,
                                         hca.pci.read(4, 2)))
        old = bytearray(state)
        # One lane of 2.5 GT/s, no other speeds, read requests of 128 bytes.
        for off, size in ((LNKCAP, 2), (LNKSTA, 2), (LNKCAP2, 4), (LNKCTL2, 2), (DEVCTL, 2)):
            one = 0x11 if off in (LNKCAP, LNKSTA) else 0
            at = config + exp + off
            old[at:at + size] = one.to_bytes(size, "little")
        assert old != state
        with open(path, "wb") as file:
            file.write(old)
        with loaded(qemu, path) as (machine, status):
            equal(status, "completed")
            goes_on(hca, machine)
            scene.check()
            for reg in LNKCAP, LNKSTA:
                equal(link(hca.pci, reg), (1, 1))


def left(machine):
    """The part of the memory that has not been sent yet."""
    ram = machine.cmd("query-migrate").get("ram", {"remaining": 1, "total": 1})
    return ram["remaining"] / ram["total"]


def test_live(qemu):
    """a device works while its machine moves through a socket"""
    with running(qemu) as hca, tempfile.TemporaryDirectory() as folder, \
            Machine(qemu, "-device", DEVICE, "-incoming", "defer") as machine:
        uri = "unix:" + os.path.join(folder, "socket")
        scene = Scene(hca)
        qp, _ = connected(scene.port)
        dst = scene.port.memory()
        machine.cmd("migrate-incoming", uri=uri)
        hca.m.cmd("migrate-set-parameters", **{"max-bandwidth": 1 << 17})
        hca.m.cmd("migrate", uri=uri)
        count = 0
        while left(hca.m) > 0.5:        # memory in use is in the first half
            hca.m.write(scene.src.addr, struct.pack("<I", count))
            qp.post(c.WR_RDMA_WRITE, scene.src, 100, rdma(dst))
            equal(qp.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
            count += 1
        equal(hca.m.cmd("query-migrate")["status"], "active")
        hca.m.write(scene.src.addr, scene.data)
        hca.m.cmd("migrate-set-parameters", **{"max-bandwidth": 1 << 30})
        equal(ended(hca.m), "completed")
        scene.counters = hca.m.qom_get(hca.path, "counters")
        goes_on(hca, machine)
        equal(struct.unpack("<I", hca.m.read(dst.addr, 4)), (count - 1,))
        scene.check()


def test_interrupt_waits(qemu):
    """an interrupt that a stopped machine has not sent moves with it"""
    with running(qemu) as hca:
        hold_interrupt(hca)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state")
            save(hca.m, path)
            with loaded(qemu, path) as (machine, status):
                equal(status, "completed")
                hca.m = machine
                equal((hca.state, hca.fatal),
                      (c.STATE_FATAL, c.FATAL_CMDQ_INDEX))
                machine.cmd("cont")
                wait_for(lambda: hca.took_irq(2), "interrupt")


def test_work_waits(qemu):
    """what the operator asked of a stopped machine is done where it continues"""
    with running(qemu) as hca, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state")
        hca.m.cmd("stop")
        hca.m.cmd("qom-set", path=hca.path, property="inject-fatal", value=True)
        save(hca.m, path)
        with loaded(qemu, path) as (machine, status):
            equal(status, "completed")
            hca.m = machine
            equal(hca.state, c.STATE_RUNNING)
            machine.cmd("cont")
            wait_for(lambda: hca.state == c.STATE_FATAL, "pending work")


def test_blocked(qemu):
    """a frame that the network did not take leaves where the machine continues"""
    with wired(qemu) as hca, tempfile.TemporaryDirectory() as folder, cable() as (net, wire, _):
        path = os.path.join(folder, "state")
        send_until_full(hca)
        save(hca.m, path)
        with loaded(qemu, path, ",netdev=net0", (*net, "-device", DEVICE)) as (_, status):
            equal(status, "completed")
            frames = (wire.recv(65536) for _ in range(100))
            equal(next(f for f in frames if f[12:14] != RARP), frame(0, PEER, MAC_BYTES))


def job(machine, name, **args):
    """Run a QMP job to its end."""
    machine.cmd(name, **{"job-id": "job", **args})
    wait_for(lambda: machine.cmd("query-jobs")[0]["status"] == "concluded",
             "end of " + name)
    equal(machine.cmd("query-jobs")[0].get("error"), None)
    machine.cmd("job-dismiss", id="job")


def test_snapshot(qemu):
    """loading a snapshot restores a device that was reset meanwhile"""
    with running(qemu) as hca, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "disk")
        job(hca.m, "blockdev-create",
            options={"driver": "file", "filename": path, "size": 0})
        hca.m.cmd("blockdev-add", driver="file", filename=path,
                  **{"node-name": "file"})
        job(hca.m, "blockdev-create",
            options={"driver": "qcow2", "file": "file", "size": 1 << 20})
        hca.m.cmd("blockdev-add", driver="qcow2", file="file",
                  **{"node-name": "disk"})
        where = {"tag": "one", "vmstate": "disk", "devices": ["disk"]}
        scene = Scene(hca)
        job(hca.m, "snapshot-save", **where)
        eqs = hca.eqs[scene.port.eqn][2]
        hca.set_reg("RESET", c.RESET_KEY)
        equal(hca.state, c.STATE_RESET)
        hca.m.write(hca.bar[c.BAR_DM] + 4 * PAGE, bytes([7]) * 4 * PAGE)
        job(hca.m, "snapshot-load", **where)
        equal(hca.m.read(hca.bar[c.BAR_DM] + 6 * PAGE, PAGE), bytes(PAGE))
        hca.eqs[scene.port.eqn][2] = eqs
        scene.check()


def test_damaged(qemu):
    """states that are damaged, truncated or of another device are refused with a reason"""
    with running(qemu) as hca, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state")
        Scene(hca)
        save(hca.m, path)
        with open(path, "rb") as file:
            good = file.read()
        at = good.rindex(b"transport\0") + 500
        cases = (
            (good[:at] + bytes([good[at] ^ 4]) + good[at + 1:], "", "damaged"),
            (good[:at], "", "are missing"),
            (good, ",max-qp=64", "max-qp is 0x1000, here 0x40"),
            (good, ",db-stride=64K", "db-stride is 0x1000, here 0x10000"),
        )
        for data, props, reason in cases:
            with open(path, "wb") as file:
                file.write(data)
            with loaded(qemu, path, props) as (machine, status):
                equal(status, "failed")
                machine.shutdown()
                assert reason in machine.get_log(), machine.get_log()
