# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver that acts at random, repeatable by seed.

QHCA_FUZZ_SEEDS=FIRST-LAST runs other seeds than the few of a normal run, preferably
with a sanitizer build (scripts/build/qemu.sh --debug).
"""

import random
import struct

import contract as c
from fixture import MAC_BYTES, equal, running_two
from hca import NO_MEMORY, PAGE, wait_for
from rc import Port, connected
from seeds import each_seed

STEPS = 600


class Fuzzer:
    """Random actions on one device, which has some objects to start with."""

    def __init__(self, hca, rng):
        self.hca, self.rng = hca, rng
        self.numbers = [0, 1, 0xffffff]
        self.prepare()
        self.actions = ([self.command] * 6 + [self.send] * 10 +
                        [self.receive] * 5 + [self.ethernet] * 4 +
                        [self.doorbell] * 3 + [self.ring_memory] * 2 +
                        [self.odd_access] * 2 + [self.clock] * 2 +
                        [self.register, self.msix, self.bus_master, self.link])

    def prepare(self):
        """Bring the device up (again), with two connected QPs."""
        hca = self.hca
        hca.set_reg("RESET", c.RESET_KEY)
        hca.next_page = hca.mem
        hca.command(0x6)
        hca.enable_msix()
        hca.start()
        hca.create_eq(vector=0, flags=c.EQ_ASYNC)
        port = Port(hca, MAC_BYTES)
        self.qps = connected(port)
        self.ethqs = [hca.create_ethq(self.qps[0].cq, direction)
                      for direction in (c.ETH_TX, c.ETH_RX)]
        self.memory = [port.memory() for _ in range(2)]
        self.numbers += [port.pdn, port.eqn, 1, 2] + [
            n for qp in self.qps for n in (qp.qpn, qp.cq.cqn)] + [
            mr.key for mr in self.memory]
        self.pages = range(hca.mem, hca.next_page, PAGE)

    def number(self):
        if self.rng.random() < 0.9:
            return self.rng.choice(self.numbers)
        return self.rng.getrandbits(32)

    def address(self):
        return self.rng.choice((
            self.rng.choice(self.pages), self.rng.choice(self.pages),
            self.hca.bar[c.BAR_REGS], self.hca.bar[c.BAR_DB],
            self.hca.bar[c.BAR_MSIX], NO_MEMORY, 0xfee00000,
            self.rng.getrandbits(64)))

    def small(self):
        return self.rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 31,
                                self.rng.getrandbits(8)))

    def body(self):
        """48 random bytes, sometimes similar to the body of a command."""
        rng = self.rng
        words = [self.number() if rng.random() < 0.5 else self.small()
                 for _ in range(12)]
        data = bytearray(struct.pack("<12I", *words))
        if rng.random() < 0.7:      # beginning with a struct qhca_buf
            struct.pack_into("<QIBB", data, 0, self.address(),
                             rng.choice((1, 2, 512, 513, 1 << 31)),
                             rng.choice((0, 0, 1, 2, 3, 4)),
                             rng.choice((12, 12, 12, 21, 31, 32)))
            data[20:24] = bytes(4)
        return bytes(data)

    def command(self):
        hca = self.hca
        if hca.state != c.STATE_RUNNING:
            self.prepare()
        opcodes = [v for k, v in vars(c).items() if k.startswith("CMD_") and
                   k not in ("CMD_CAPS_LOG_MAX",)]
        hca.queue(self.rng.choice(opcodes), self.body(),
                  self.rng.choice((0, self.address())))
        hca.ring()
        comp = hca.poll()
        if comp and comp.status == c.OK and comp.obj:
            self.numbers.append(comp.obj)

    def doorbell(self):
        hca, rng = self.hca, self.rng
        page = rng.choice((0, 0, 0, 1, 1023))
        off = rng.choice((c.DB_SQ, c.DB_RQ, c.DB_CQ_ARM, c.DB_EQ, c.DB_ETH,
                          c.DB_SRQ, 8 * rng.randrange(512)))
        if off == c.DB_CMD:
            return
        index = rng.choice((self.small(), self.small(), rng.getrandbits(32)))
        hca.m.mmio_write(8, hca.bar[c.BAR_DB] + page * PAGE + off,
                         self.number() & 0xffffff | rng.getrandbits(1) << 24 |
                         index << 32)

    def sane(self):
        """True most of the time, or every connection would soon be in an error state."""
        return self.rng.random() < 0.95

    def target(self):
        """(address, key), valid most of the time."""
        mr = self.rng.choice(self.memory)
        if self.sane():
            return mr.addr + 8 * self.rng.randrange(256), mr.key
        return self.address(), self.number()

    def length(self):
        if self.sane():
            return self.rng.choice((0, 1, 8, 64, 1024, 1025, 2000))
        return self.rng.choice((4000, 1 << 31, self.rng.getrandbits(32)))

    def send(self):
        """Write a send WQE with any opcode, and ring the doorbell."""
        rng, qp = self.rng, self.rng.choice(self.qps)
        addr, key = self.target()
        opcode = rng.randrange(8) if self.sane() else rng.randrange(12)
        flags = rng.getrandbits(3) if self.sane() else rng.getrandbits(8)
        count = 1 if self.sane() else rng.choice((0, 8, 600))
        length = 8 if opcode in (6, 7) and self.sane() else self.length()
        wqe = struct.pack("<QBBHIQI4xQQ", qp.sq_pi, opcode, flags, count,
                          self.number(), addr, key, 1, 1).ljust(64, b"\0")
        addr, key = self.target()
        wqe += struct.pack("<QII", addr, length, key)
        self.hca.m.write(qp.sq + 128 * (qp.sq_pi % 16), wqe)
        self.ring("SQ", qp, "sq_pi", qp.qpn)

    def receive(self):
        qp = self.rng.choice(self.qps)
        addr, key = self.target()
        self.hca.m.write(qp.rq + 32 * (qp.rq_pi % 16), struct.pack(
            "<QH6xQII", qp.rq_pi, 1 if self.sane() else self.small(), addr,
            2000 if self.sane() else self.length(), key))
        self.ring("RQ", qp, "rq_pi", qp.qpn)

    def ethernet(self):
        rng, queue = self.rng, self.rng.choice(self.ethqs)
        self.hca.m.write(queue.ring + 32 * (queue.pi % 16), struct.pack(
            "<QQIHHHH4x", queue.pi, self.target()[0], self.length(),
            rng.choice((0, 0, 1, 2, 4, 6)), 5, self.small(), self.small()))
        self.ring("ETH", queue, "pi", queue.number)

    def ring(self, doorbell, owner, index, number):
        """Ring the doorbell, sometimes for more entries than were written."""
        setattr(owner, index, getattr(owner, index) +
                (1 if self.sane() else 3))
        self.hca.doorbell(doorbell, number, getattr(owner, index))
        if self.rng.random() < 0.5:     # poll completions to make room
            for cq in {qp.cq for qp in self.qps}:
                while cq.poll():
                    pass

    def ring_memory(self):
        """Overwrite memory that the device reads or has written."""
        data = struct.pack("<QIIQQ", self.address(), self.number(),
                           self.number(), self.address(),
                           self.rng.getrandbits(64))
        page = self.rng.choice(self.pages)
        if page not in (self.hca.sq, self.hca.cq):
            self.hca.m.write(page + 16 * self.rng.randrange(16), data)

    def odd_access(self):
        hca, rng = self.hca, self.rng
        base = rng.choice((hca.bar[c.BAR_REGS], hca.bar[c.BAR_DB]))
        size = rng.choice((1, 2, 4, 8))
        if base == hca.bar[c.BAR_DB] and size == 8:
            size = 4
        off = rng.randrange(PAGE - 8)
        if base == hca.bar[c.BAR_REGS] and off // 4 == c.REG_RESET // 4:
            return
        if rng.getrandbits(1):
            hca.m.mmio_write(size, base + off, rng.getrandbits(8 * size))
        else:
            hca.m.mmio_read(size, base + off)

    def register(self):
        rng = self.rng
        if rng.random() < 0.3:
            self.hca.set_reg("RESET", c.RESET_KEY)
        for name in ("CMD_SQ_LO", "CMD_CQ_LO", "CMD_LOG_SIZE", "CONTROL"):
            self.hca.set_reg(name, rng.choice((0, 1, 8, 4096,
                                               rng.getrandbits(32))))

    def msix(self):
        """Aim a vector at memory, at the device itself, or anywhere."""
        addr = self.address() & ~3
        entry = self.hca.bar[c.BAR_MSIX] + 16 * self.rng.randrange(5)
        self.hca.m.mmio_write(4, entry, addr & 0xffffffff)
        self.hca.m.mmio_write(4, entry + 4, addr >> 32)
        self.hca.m.mmio_write(4, entry + 8, c.RESET_KEY)

    def bus_master(self):
        self.hca.command(self.rng.choice((0x2, 0x6, 0x6)))

    def clock(self):
        self.hca.m.clock_step(self.rng.choice((1000, 10 ** 7, 10 ** 9)))

    def link(self):
        self.hca.m.cmd("set_link", name=self.hca.path.rsplit("/")[-1],
                       up=bool(self.rng.getrandbits(1)))

    def step(self):
        self.rng.choice(self.actions)()


def check_alive(hca):
    """Check that the device works after a reset."""
    hca.set_reg("RESET", c.RESET_KEY)
    equal(hca.state, c.STATE_RESET)
    wait_for(lambda: hca.m.qom_get(hca.path, "objects") == 0, "reset")
    hca.next_page = hca.mem
    hca.command(0x6)
    hca.start()
    equal(hca.cmd(c.CMD_NOP).status, c.OK)


def run_seed(qemu, seed):
    rng = random.Random(seed)
    with running_two(qemu) as hcas:
        fuzzers = [Fuzzer(hca, rng) for hca in hcas]
        for step in range(1, STEPS + 1):
            rng.choice(fuzzers).step()
            if step % 30 == 0:
                rng.choice(fuzzers).prepare()
        for hca in hcas:
            check_alive(hca)


def test_random(qemu):
    """random commands, rings, doorbells and registers on two devices"""
    each_seed("1-4", lambda seed: run_seed(qemu, seed))
