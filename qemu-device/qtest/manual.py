# SPDX-License-Identifier: GPL-2.0-or-later
"""A second driver, written from the manual.

All that it knows of the device by name (registers, opcodes, bits, where a field is and how
long) it reads from the tables of the page that scripts/docs/layout.py prints; what to do with them
is in Documentation/hardware.rst. It uses neither the headers nor the other driver here.
"""

import re
import time

SLOT = 4
BARS = 0xe0000000   # where they are mapped, 16 MiB apart
RAM = 1 << 20       # from which memory for the device is taken
# Fields that are named otherwise than their bits, which have Linux's names.
NAMES = {"access": "ACCESS_FLAGS", "max_rd_atomic": "MAX_QP_RD_ATOMIC"}


class Manual:
    """The tables of the page @text: numbers by constant, layouts by structure."""

    def __init__(self, text):
        self.numbers, self.structs, self.sizes = {}, {}, {}
        title = ""
        for line, below in zip(text.splitlines(), text.splitlines()[1:] + [""]):
            if re.fullmatch("-+", below):
                title = line.removeprefix("struct ")
            elif found := re.match(r"(\d+) bytes\.", line):
                self.sizes[title] = int(found[1])
            elif found := re.match(r"(QHCA_\w+) +(0x[0-9a-f]+|\d+) ", line):
                self.numbers[found[1]] = int(found[2], 0)
            elif found := re.match(r"(\d+) +(\d+) +([\w.\\]+) +(\S+)", line):
                at, length, field, kind = found.groups()
                self.structs.setdefault(title, {})[field.replace("\\", "")] = (
                    int(at), int(length), "big" if "__be" in kind else "little")

    def __getitem__(self, name):
        return self.numbers["QHCA_" + name]

    def pack(self, struct, **fields):
        """The bytes of a structure; __ in the name of a field stands for a dot."""
        data = bytearray(self.sizes["qhca_" + struct])
        for name, value in fields.items():
            at, length, order = self.structs["qhca_" + struct][name.replace("__", ".")]
            if isinstance(value, int):
                value = value.to_bytes(length, order)
            assert len(value) <= length, (struct, name)
            data[at:at + len(value)] = value
        return bytes(data)

    def get(self, struct, field, data):
        at, length, order = self.structs["qhca_" + struct][field]
        return int.from_bytes(data[at:at + length], order)


class Ring:
    """A ring that the device writes, with the phase in the last byte of each entry."""

    def __init__(self, driver, entry, log_size, behind=0):
        self.driver, self.entry, self.log_size = driver, entry, log_size
        self.size = driver.manual.sizes["qhca_" + entry]
        self.addr = driver.memory((self.size << log_size) + behind)
        self.ci = 0

    def poll(self):
        """The next entry."""
        at = self.addr + self.size * (self.ci % (1 << self.log_size))
        end = time.monotonic() + 10
        manual = self.driver.manual
        while True:
            data = self.driver.machine.read(at, self.size)
            phase = ~self.ci >> self.log_size & 1
            if data[-1] & manual["OWNER_PHASE"] == phase:
                self.ci += 1
                return data
            if time.monotonic() > end:
                raise TimeoutError("no " + self.entry)


class Driver:
    """The device, initialised as the manual says."""

    LOG_CMDS = 4

    def __init__(self, machine, manual):
        self.machine, self.manual = machine, manual
        self.next, self.pi = RAM, 0
        pci = machine.pci(0, SLOT)
        assert pci.read(0, 4) == manual["PCI_VENDOR_ID"] | manual["PCI_DEVICE_ID"] << 16
        for name in ("REGS", "MSIX", "DB", "DM"):
            pci.map_bar(manual["BAR_" + name], BARS + (manual["BAR_" + name] << 24))
        pci.write(4, 2, 6)      # memory accesses, bus mastering
        assert self.reg("MAGIC") == manual["MAGIC"]
        self.reg("RESET", manual["RESET_KEY"])
        assert self.state() == manual["STATE_RESET"]
        self.cmds = self.memory(manual.sizes["qhca_cmd"] << self.LOG_CMDS)
        self.done = Ring(self, "cmd_comp", self.LOG_CMDS)
        for name, addr in (("CMD_SQ", self.cmds), ("CMD_CQ", self.done.addr)):
            self.reg(name + "_LO", addr)
            self.reg(name + "_HI", 0)
        self.reg("CMD_LOG_SIZE", self.LOG_CMDS)
        self.reg("CONTROL", manual["CONTROL_ENABLE"])
        assert self.state() == manual["STATE_RUNNING"]

    def reg(self, name, value=None):
        addr = BARS + (self.manual["BAR_REGS"] << 24) + self.manual["REG_" + name]
        if value is None:
            return self.machine.mmio_read(4, addr)
        return self.machine.mmio_write(4, addr, value)

    def state(self):
        return self.reg("STATUS") & self.manual["STATUS_STATE"]

    def ring(self, name, obj, index):
        """A doorbell: the object in bits 23:0, the index in 63:32."""
        self.machine.mmio_write(8, BARS + (self.manual["BAR_DB"] << 24) +
                                self.manual["DB_" + name], obj | index << 32)

    def memory(self, size):
        """Allocate zeroed memory, in whole pages."""
        page = self.manual["PAGE_SIZE"]
        addr, size = self.next, -(-size // page) * page
        self.machine.write(addr, bytes(size))
        self.next += size
        return addr

    def buf(self, addr, size):
        page = self.manual["PAGE_SIZE"]
        return self.manual.pack("buf", addr=addr, num_blocks=-(-size // page),
                                block_shift=self.manual["PAGE_SHIFT"])

    def command(self, name, body=b"", mailbox=0):
        """Execute a command, which must succeed; return the object."""
        manual, size = self.manual, self.manual.sizes["qhca_cmd"]
        self.machine.write(self.cmds + size * (self.pi % (1 << self.LOG_CMDS)), manual.pack(
            "cmd", opcode=manual["CMD_" + name], token=self.pi, mailbox=mailbox, body=body))
        self.pi += 1
        self.ring("CMD", 0, self.pi)
        comp = self.done.poll()
        assert manual.get("cmd_comp", "token", comp) == self.pi - 1
        status = manual.get("cmd_comp", "status", comp)
        assert status == manual["OK"], "%s: status %d" % (name, status)
        return manual.get("cmd_comp", "obj", comp)


class Port:
    """The port with one address, a PD and an event queue."""

    def __init__(self, driver):
        self.driver, manual = driver, driver.manual
        self.mac, self.gid = b"\x52\x54\0\0\0\1", bytes(10) + b"\xff\xff\x0a\0\0\1"
        driver.command("SET_PORT", manual.pack(
            "cmd_set_port", mac=self.mac, port=1, flags=manual["PORT_ENABLE"], mtu=1500))
        driver.command("SET_GID", manual.pack(
            "cmd_set_gid", gid=self.gid, smac=self.mac, vlan=manual["NO_VLAN"], index=0, port=1,
            valid=1))
        self.pdn = driver.command("ALLOC_PD")
        log_size = 4
        ring = Ring(driver, "eqe", log_size)
        self.eqn = driver.command("CREATE_EQ", manual.pack(
            "cmd_create_eq", buf=driver.buf(ring.addr, ring.size << log_size), vector=0,
            log_size=log_size))

    def region(self, addr, length, iova, *rights):
        """Register memory; return the key."""
        manual = self.driver.manual
        return self.driver.command("REG_MR", manual.pack(
            "cmd_reg_mr", buf=self.driver.buf(addr, length), iova=iova, length=length,
            pdn=self.pdn, type=manual["MR_MEM"],
            access=sum(manual["ACCESS_" + right] for right in rights)))


class Qp:
    """An RC QP with a send queue, a CQ, and a receive queue that stays empty."""

    LOG_SIZE, SQ_STRIDE, RQ_STRIDE = 4, 7, 5

    def __init__(self, port):
        self.port, self.driver, self.pi = port, port.driver, 0
        driver, manual = port.driver, port.driver.manual
        dbrec = manual.sizes["qhca_cq_dbrec"]
        self.cq = Ring(driver, "cqe", self.LOG_SIZE, dbrec)
        self.cqn = driver.command("CREATE_CQ", manual.pack(
            "cmd_create_cq", buf=driver.buf(
                self.cq.addr, (self.cq.size << self.LOG_SIZE) + dbrec),
            uar=0, eqn=port.eqn, log_size=self.LOG_SIZE))
        size = 1 << self.LOG_SIZE + self.SQ_STRIDE
        self.sq, self.box = driver.memory(size), driver.memory(1)
        rq = driver.memory(size)
        driver.machine.write(self.box, manual.pack(
            "create_qp", sq=driver.buf(self.sq, size), rq=driver.buf(rq, size), pdn=port.pdn,
            uar=0, send_cqn=self.cqn, recv_cqn=self.cqn, type=manual["QPT_RC"],
            sq_log_size=self.LOG_SIZE, sq_log_stride=self.SQ_STRIDE,
            rq_log_size=self.LOG_SIZE, rq_log_stride=self.RQ_STRIDE,
            max_send_sge=1, max_recv_sge=1))
        self.qpn = driver.command("CREATE_QP", mailbox=self.box)

    def modify(self, state, **attr):
        """Set the attributes that are named; the mask follows from their names."""
        driver, manual = self.driver, self.driver.manual
        mask = manual["QP_STATE"]
        for name in attr:
            mask |= manual["QP_" + NAMES.get(name, name.upper())]
        driver.machine.write(self.box, manual.pack("qp_attr", **{
            "state": manual["QPS_" + state], **attr}))
        driver.command("MODIFY_QP", manual.pack("cmd_modify_qp", qpn=self.qpn, attr_mask=mask),
                       self.box)

    def connect(self, peer):
        manual = self.driver.manual
        self.modify("INIT", pkey_index=0, port=1, access=manual["ACCESS_REMOTE_WRITE"])
        self.modify("RTR", path_mtu=3, dest_qpn=peer.qpn, rq_psn=77, max_dest_rd_atomic=1,
                    min_rnr_timer=12, av=manual.pack(
                        "av", dgid=peer.port.gid, dmac=peer.port.mac, hop_limit=64,
                        pdn=self.port.pdn, port=1))
        self.modify("RTS", sq_psn=77, timeout=14, retry_cnt=3, rnr_retry=3, max_rd_atomic=1)

    def write(self, local, length, lkey, remote, rkey):
        """Execute a signaled RDMA WRITE; return its CQE."""
        driver, manual = self.driver, self.driver.manual
        wqe = manual.pack("sq_wqe", wr_id=4711, opcode=manual["WR_RDMA_WRITE"], count=1,
                          flags=manual["WQE_SIGNALED"], rdma__addr=remote, rdma__rkey=rkey)
        wqe += manual.pack("sge", addr=local, length=length, lkey=lkey)
        slot = self.pi % (1 << self.LOG_SIZE)
        driver.machine.write(self.sq + (slot << self.SQ_STRIDE), wqe)
        self.pi += 1
        driver.ring("SQ", self.qpn, self.pi)
        cqe = self.cq.poll()
        return {field: manual.get("cqe", field, cqe)
                for field in ("wr_id", "qpn", "wqe_index", "opcode", "status")}
