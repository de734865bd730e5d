# SPDX-License-Identifier: GPL-2.0-or-later
"""The command queue, and commands that must fail."""

import struct

import contract as c
from fixture import MAC_BYTES, equal, running
from hca import NO_MEMORY, wait_for


def test_nop(qemu):
    """every slot is used many times, phases alternate"""
    with running(qemu) as hca:
        for _ in range(5 * hca.entries):
            equal(hca.cmd(c.CMD_NOP).status, c.OK)
        equal(hca.poll(), None)


def test_batch(qemu):
    """a full ring of commands with one doorbell, completed in order"""
    with running(qemu) as hca:
        for _ in range(3):
            tokens = [hca.queue(c.CMD_NOP) for _ in range(hca.entries)]
            hca.ring()
            equal([wait_for(hca.poll, "completion").token for _ in tokens],
                  tokens)


def test_log_sizes(qemu):
    """rings of every advertised size"""
    with running(qemu) as hca:
        for log_size in range(0, (hca.reg("CMD_CAPS") &
                                  c.CMD_CAPS_LOG_MAX) + 1):
            hca.set_reg("RESET", c.RESET_KEY)
            hca.start(log_size)
            for _ in range(2):
                count = (1 << log_size)
                for _ in range(count):
                    hca.queue(c.CMD_NOP)
                hca.ring()
                for _ in range(count):
                    equal(wait_for(hca.poll, "completion").status, c.OK)


def test_query_device(qemu):
    """identity and limits of the device"""
    with running(qemu, ",uars=64,max-qp=100,shadow-doorbells=off") as hca:
        box = hca.alloc()
        hca.ok(c.CMD_QUERY_DEVICE, mailbox=box)
        (_, guid, _, caps, _, _, _, max_qp, _, max_uar, *_) = struct.unpack(
            "<4Q26I", hca.m.read(box, 136))
        equal(guid.to_bytes(8, "big"), bytes([MAC_BYTES[0] ^ 2]) +
              MAC_BYTES[1:3] + b"\xff\xfe" + MAC_BYTES[3:])
        equal((max_qp, max_uar), (100, 64))
        equal(caps, 0)


def test_capabilities(qemu):
    """what not every device has, according to its properties"""
    for props, caps in ((",shadow-doorbells=on", c.CAP_SHADOW),
                        (",shadow-doorbells=off,guest-faults=on", c.CAP_FAULTS)):
        with running(qemu, props) as hca:
            box = hca.alloc()
            hca.ok(c.CMD_QUERY_DEVICE, mailbox=box)
            equal(struct.unpack("<4Q", hca.m.read(box, 32))[3], caps)


def test_query_counters(qemu):
    """the command and QOM show the same counters"""
    with running(qemu) as hca:
        for size in (1, 2, 4):
            hca.m.mmio_write(size, hca.db_addr("SQ"), 0)
        box = hca.alloc()
        hca.ok(c.CMD_QUERY_COUNTERS, mailbox=box)
        values = struct.unpack("<%dQ" % c.CNT_MAX,
                               hca.m.read(box, 8 * c.CNT_MAX))
        names = {v: k[4:].lower() for k, v in vars(c).items()
                 if k.startswith("CNT_") and k != "CNT_MAX"}
        shown = hca.m.qom_get(hca.path, "counters")
        equal({names[i]: v for i, v in enumerate(values)},
              {k: v for k, v in shown.items() if k != "nested-mmio"})
        equal(values[c.CNT_BAD_DOORBELL], 3)


def test_unknown(qemu):
    """opcodes that do not exist"""
    with running(qemu) as hca:
        opcodes = (0x0f, 0x7f, 0x100, 0xffff)
        for opcode in opcodes:
            equal(hca.cmd(opcode).status, c.ERR_OPCODE)
        equal(hca.counter("bad_cmd"), len(opcodes))
        equal(hca.cmd(c.CMD_NOP).status, c.OK)


def test_no_object(qemu):
    """commands on objects that do not exist"""
    with running(qemu) as hca:
        box = hca.alloc()
        for opcode in (c.CMD_DESTROY_EQ, c.CMD_DESTROY_ETHQ, c.CMD_DEALLOC_PD,
                       c.CMD_DEREG_MR, c.CMD_DEALLOC_MW, c.CMD_DESTROY_CQ,
                       c.CMD_QUERY_CQ, c.CMD_DESTROY_QP, c.CMD_QUERY_QP):
            for obj in (0, 0x123456, 0xffffff, 0xffffffff):
                comp = hca.cmd(opcode, struct.pack("<I", obj), box)
                equal((opcode, obj, comp.status), (opcode, obj, c.ERR_OBJ))


def test_mailbox(qemu):
    """mailboxes that are missing, misplaced or out of reach"""
    with running(qemu) as hca:
        for opcode in (c.CMD_QUERY_DEVICE, c.CMD_CREATE_QP):
            equal(hca.cmd(opcode, mailbox=NO_MEMORY).status, c.ERR_DMA)
            equal(hca.cmd(opcode, mailbox=hca.mem + 8).status, c.ERR_PARAM)
            equal(hca.cmd(opcode, mailbox=hca.bar[c.BAR_DB]).status,
                  c.ERR_DMA)
        equal(hca.counter("bad_doorbell"), 0)


def test_life_of_objects(qemu):
    """objects are created, cannot be destroyed while in use, and are destroyed"""
    with running(qemu) as hca:
        none = hca.m.qom_get(hca.path, "objects")
        idle = hca.m.qom_get(hca.path, "memory")
        eqn = hca.create_eq(vector=1)
        cq = hca.create_cq(eqn)
        pdn = hca.ok(c.CMD_ALLOC_PD)
        equal(hca.m.qom_get(hca.path, "objects"), none + 3)
        assert hca.m.qom_get(hca.path, "memory") > idle > 0
        assert hca.m.qom_get(hca.path, "max-memory") > 20 * idle
        equal(hca.destroy(c.CMD_DESTROY_EQ, eqn), c.ERR_BUSY)
        equal(hca.destroy(c.CMD_DEALLOC_PD, pdn), c.OK)
        equal(hca.destroy(c.CMD_DESTROY_CQ, cq.cqn), c.OK)
        equal(hca.destroy(c.CMD_DESTROY_EQ, eqn), c.OK)
        equal(hca.m.qom_get(hca.path, "objects"), none)
        equal(hca.m.qom_get(hca.path, "memory"), idle)


def test_numbers_follow_seed(qemu):
    """object numbers are the same with the same seed, and differ without a seed"""
    def numbers(props):
        with running(qemu, props) as hca:
            eqn = hca.create_eq()
            return [hca.create_cq(eqn).cqn for _ in range(8)]
    first = numbers(",seed=1")
    equal(numbers(",seed=1"), first)
    assert numbers(",seed=2") != first
    assert numbers("") != numbers("")


def test_interrupt(qemu):
    """the async EQ gets port events and raises its vector when armed"""
    args = ("-netdev", "hubport,hubid=0,id=net0")
    with running(qemu, ",netdev=net0", args) as hca:
        eqn = hca.create_eq(vector=3, flags=c.EQ_ASYNC)
        hca.set_port(MAC_BYTES, c.PORT_ENABLE)
        while hca.poll_eq(eqn):
            pass                # enabling the port may raise a link event
        hca.took_irq(3)
        hca.arm_eq(eqn)
        assert not hca.took_irq(3)
        hca.m.cmd("set_link", name="net0", up=False)
        event = wait_for(lambda: hca.poll_eq(eqn), "event")
        equal(event[:2], (c.EVENT_LINK_DOWN, 1))
        assert hca.took_irq(3), "no interrupt"
        hca.m.cmd("set_link", name="net0", up=True)
        event = wait_for(lambda: hca.poll_eq(eqn), "event")
        equal(event[:2], (c.EVENT_LINK_UP, 1))
        assert not hca.took_irq(3), "interrupt of an EQ that was not armed"
