# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks of a machine's QEMU against a server and the other machines there."""

import contextlib
import mmap
import os
import resource
import signal
import socket
import struct
import time

import contract as c
from fixture import equal, start
from hca import PAGE, wait_for
from machine import RAM_SIZE
from rc import Mr, Port, connected, rdma
from served import Server, cpu_time, machine, machines, size_of
from test_server import is_refused, memory
from vfio_user import (CONFIG, GET_INFO, GREETING, HEAD, INFO, MSIX, READ, SET_IRQS, VERSION,
                       WRITE, Client, Gone, Refused)

FAR = 1 << 40               # where no machine of the tests has memory
TRIGGER = 0x20              # SET_IRQS: send the messages


@contextlib.contextmanager
def attack(program, *properties):
    """A server, the connection of the attacker, and one of another machine."""
    with Server(program, *(properties or ("", ""))) as server, \
            Client(server.paths[1]) as other, Client(server.paths[0]) as client:
        yield server, client, other
        other.read(c.BAR_REGS, 0, 4)


def num_fds(server):
    return len(os.listdir("/proc/%d/fd" % server.process.pid))


def copy_from(hca, addr, length):
    """The status of copying memory at @addr, and the data."""
    port = Port(hca, hca.mac)
    one, _ = connected(port)
    dst = port.memory()
    key = hca.ok(c.CMD_REG_MR, hca.buf(addr // PAGE * PAGE, 2) + struct.pack(
        "<QQIIHBBI", addr, length, port.pdn, 0, c.ACCESS_REMOTE_READ, c.MR_MEM, 0, addr % PAGE))
    one.post(c.WR_RDMA_READ, dst, length, struct.pack("<QI", addr, key))
    return one.done()[1], hca.m.read(dst.addr, length)


def test_unaligned_memory(program):
    """memory from the middle of a page on does not reach beyond the mapping"""
    with Server(program, "") as server, memory(2 * PAGE) as fd:
        hca, = start(machines(server))
        os.pwrite(fd, b"x" * PAGE + b"y" * PAGE, 0)
        hca.m.client.share(FAR, PAGE, fd, offset=PAGE - 16)
        equal(copy_from(hca, FAR, PAGE), (c.WC_SUCCESS, b"x" * 16 + b"y" * (PAGE - 16)))


def test_unreadable_memory(program):
    """memory that is handed over for nothing is not read"""
    with Server(program, "") as server:
        hca, = start(machines(server))
        for flags in (0, 2):
            hca.m.client.share(FAR, PAGE, hca.m.fd, flags)
            assert copy_from(hca, FAR, 8)[0] != c.WC_SUCCESS
            hca.m.client.unshare(FAR, PAGE)


def test_config_space(program):
    """accesses to configuration space of every offset and length"""
    with attack(program) as (_, client, _other):
        for off in [*range(0x120), 0xff0, 0xfff]:
            for length in [*range(1, 20), 64, 256]:
                for data in (b"\0" * length, b"\xff" * length):
                    for call in (lambda: client.read(CONFIG, off, length),
                                 lambda: client.write(CONFIG, off, data)):
                        with contextlib.suppress(Refused):
                            call()


def test_part_of_register(program):
    """a write of one byte to a register of configuration space leaves the others"""
    with attack(program) as (_, client, _other):
        client.write(CONFIG, 0x10, struct.pack("<I", 0xfe5a4000))
        client.write(CONFIG, 0x10, b"\0")
        equal(client.read(CONFIG, 0x10, 4), struct.pack("<I", 0xfe5a4000))
        client.write(CONFIG, 4, struct.pack("<H", 0x406))
        client.write(CONFIG, 4, b"\2")
        equal(client.read(CONFIG, 4, 2), struct.pack("<H", 0x402))


def trigger(client, num):
    """Have the server send messages to the machine."""
    client.ask(SET_IRQS, struct.pack("<IIIII", 20, TRIGGER | 1, MSIX, 0, num))


def test_many_messages(program):
    """each message is one for its eventfd"""
    with attack(program) as (_, client, _other):
        event = os.eventfd(0, os.EFD_NONBLOCK)
        client.listen([event])
        for _ in range(1000):
            trigger(client, 1)
        equal(os.eventfd_read(event), 1000)
        os.close(event)


def test_full_eventfd(program):
    """messages that cannot be delivered, or not to an eventfd, do not make the server wait"""
    full = os.eventfd(0)
    os.eventfd_write(full, (1 << 64) - 2)
    pipe = os.pipe()
    os.set_blocking(pipe[1], False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe[1], b"x" * 65536)
    os.set_blocking(pipe[1], True)
    for fd in (full, pipe[1]):
        with attack(program) as (_, client, _other):
            client.listen([fd])
            with contextlib.suppress(Refused):
                trigger(client, 1)
    with Server(program, "") as server:
        hca = machine(server, 0)
        hca.events = [full]
        hca.m.client.listen([full] * 4)
        hca.start()
        hca.arm_eq(hca.create_eq(vector=2, flags=c.EQ_ASYNC))
        server.qmp("qom-set", path="hca0", property="inject-fatal", value=True)
        wait_for(lambda: hca.state == c.STATE_FATAL, "fatal state")
    for fd in (full, *pipe):
        os.close(fd)


def test_lost_fds(program):
    """file descriptors of messages that are wrong or not complete are closed"""
    ask = HEAD.pack(1, GET_INFO, 32, 0, 0) + INFO
    with Server(program, "") as server:
        before = num_fds(server)
        for data, num in ((ask, 40), (ask[:8], 8), (ask, 40)):
            with Client(server.paths[0]) as client:
                socket.send_fds(client.sock, [data], [client.sock.fileno()] * num)
                with contextlib.suppress(Gone):
                    client.receive(1)
            wait_for(lambda: not server.connected(), "end")
        wait_for(lambda: num_fds(server) <= before, "file descriptors closed")


def test_urgent(program):
    """data that is not in line does not make the server wait, or busy"""
    head = HEAD.pack(1, READ, 17, 0, 0)
    for data in (b"", head):
        with attack(program) as (server, client, other):
            client.sock.sendall(data)
            try:
                client.sock.send(b"x", socket.MSG_OOB)
            except OSError:
                return          # an old kernel
            other.read(c.BAR_REGS, 0, 4)
            before = cpu_time(server.process.pid)
            time.sleep(0.5)
            assert cpu_time(server.process.pid) - before < 0.2


def test_long_answer(program):
    """an answer that is longer than the socket's buffer does not make the server wait"""
    with attack(program) as (_, client, _other):
        assert is_refused(client.read, c.BAR_DB, 0, 1 << 20)


def test_shrunk_beyond_limit(program):
    """memory that is taken away, and is more than the server may have, ends the machine only"""
    size = 1 << 39
    with Server(program, "", "") as server, memory(size) as fd, Client(server.paths[1]) as other:
        hca = machine(server, 0)
        start([hca])
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_DATA)
        used = size_of(server.process.pid, "VmData") << 10
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (used + (256 << 20), limits[1]))
        hca.m.client.share(FAR, size, fd)
        os.ftruncate(fd, PAGE)
        port = Port(hca, hca.mac)
        one, _ = connected(port)
        length = 3 << 20
        src, dst = Mr(port, hca.alloc(length // PAGE), length), Mr(port, FAR + size // 2, length)
        with contextlib.suppress(Gone):
            one.post(c.WR_RDMA_WRITE, src, length, rdma(dst))
        wait_for(lambda: not server.connected(), "end")
        assert "the machine has taken memory away" in server.text(), server.text()
        other.read(c.BAR_REGS, 0, 4)


def ring(qp):
    """Ring the doorbell of a QP's send queue, and do not wait for the answer."""
    qp.hca.m.client.send(WRITE, struct.pack("<QIIQ", c.DB_SQ, c.BAR_DB, 8,
                                            qp.qpn | qp.sq_pi << 32))


def post_many(server, qps, src, dst, step):
    """Write a byte to places that are @step apart, with a doorbell message for each QP, all of
    which arrive together."""
    where = 0
    os.kill(server.process.pid, signal.SIGSTOP)
    for qp in qps:
        for _ in range(15):
            qp.put(c.WR_RDMA_WRITE, src, 1, rdma(dst, where))
            where += step
        ring(qp)
    os.kill(server.process.pid, signal.SIGCONT)


def test_shrunk_everywhere(program):
    """nor is it more that the server needs if many places in it are used at once"""
    size, step, most = 1 << 39, 4 << 20, 96 << 20
    with Server(program, "", "") as server, memory(size) as fd, Client(server.paths[1]) as other:
        hca = machine(server, 0)
        start([hca])
        hca.m.client.share(FAR, size, fd)
        os.ftruncate(fd, PAGE)
        port = Port(hca, hca.mac)
        qps = [connected(port)[0] for _ in range(4)]
        src, dst = port.memory(), Mr(port, FAR, 60 * step)
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_DATA)
        used = size_of(server.process.pid, "VmData") << 10
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (used + most, limits[1]))
        post_many(server, qps, src, dst, step)
        wait_for(lambda: not server.connected(), "end")
        assert "the machine has taken memory away" in server.text(), server.text()
        other.read(c.BAR_REGS, 0, 4)


def lingering():
    """A socket whose last close() waits for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = socket.create_connection(listener.getsockname())
        peer, _ = listener.accept()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(b"x" * 65536)
    return sock, peer


def test_slow_close(program):
    """a file descriptor whose close() waits does not make the server wait"""
    ask = HEAD.pack(1, GET_INFO, 32, 0, 0) + INFO
    for first, data in ((b"", ask), (b"", ask[:8]), (ask[:16], ask[16:])):
        with attack(program) as (server, client, other):
            sock, peer = lingering()
            os.kill(server.process.pid, signal.SIGSTOP)       # its close() has to be the last
            client.sock.sendall(first)
            socket.send_fds(client.sock, [data], [sock.fileno()])
            sock.close()
            os.kill(server.process.pid, signal.SIGCONT)
            time.sleep(0.1)
            client.sock.close()
            other.read(c.BAR_REGS, 0, 4)
            peer.close()


def test_many_closes(program):
    """a machine that gives file descriptors back faster than they can be closed waits for that"""
    with attack(program) as (server, client, _other):
        events = [os.eventfd(0) for _ in range(8)]
        ask = struct.pack("<IIIII", 20, 0x24, MSIX, 0, len(events))
        for _ in range(10):
            os.kill(server.process.pid, signal.SIGSTOP)       # all together
            for _ in range(60):
                client.send(SET_IRQS, ask, events)
            os.kill(server.process.pid, signal.SIGCONT)
            client.receive(60 * HEAD.size)
        for fd in events:
            os.close(fd)


def test_stuck_close(program):
    """a machine whose file descriptors cannot be closed loses its connection after a while"""
    with attack(program) as (server, client, other):
        sock, peer = lingering()
        os.kill(server.process.pid, signal.SIGSTOP)       # its close() has to be the last
        client.send(GET_INFO, bytes(16), [sock.fileno()])
        sock.close()
        for _ in range(50):
            client.send(GET_INFO, bytes(16), [other.sock.fileno()] * 8)
        os.kill(server.process.pid, signal.SIGCONT)
        wait_for(lambda: not server.connected(), "end")
        assert "cannot be closed: closing the connection" in server.text(), server.text()
        other.read(c.BAR_REGS, 0, 4)
        with Client(server.paths[0], False) as heir:
            heir.send(VERSION, GREETING)
            time.sleep(0.1)
            assert not server.connected(), "a machine is let in while that waits"
            peer.close()
            wait_for(server.connected, "next machine")


def test_address_space(program):
    """the memory of one machine leaves room for that of another"""
    with attack(program) as (_, client, other), memory() as fd:
        got = sum(0 if is_refused(client.share, number << 43, 1 << 39, fd) else 1 << 39
                  for number in range(64))
        assert 0 < got <= 1 << 40, got
        client.unshare(0, 1 << 39)
        client.share(0, 1 << 39, fd)
        other.share(0, RAM_SIZE, fd)


def test_busy_pair(program):
    """two machines that keep each other busy leave time for a third"""
    with Server(program, "", "", "") as server, Client(server.paths[2]) as other:
        hcas = start([machine(server, number) for number in range(2)])
        length = 4 << 20
        ports = [Port(hca, hca.mac, host) for host, hca in enumerate(hcas, 1)]
        pairs = [connected(*ports) for _ in range(4)]
        areas = [Mr(port, port.hca.alloc(length // PAGE), length) for port in ports]
        for name in ("hca0", "hca1"):       # packets that are delayed are frames
            server.qmp("qom-set", path=name, property="faults", value="tx delay=1us")
        for qp, src, dst in 6 * [(pair[i], areas[i], areas[1 - i])
                                 for pair in pairs for i in range(2)]:
            qp.post(c.WR_RDMA_WRITE, src, length, rdma(dst))
        took = []
        while sum(took) < 2:
            begin = time.monotonic()
            other.read(c.BAR_REGS, 0, 4)
            took.append(time.monotonic() - begin)
        assert max(took) < 0.4, max(took)


def test_heir(program):
    """a machine that is gone leaves nothing in the device's memory, and sees none of the next"""
    with Server(program, ",dm-size=64K") as server:
        with Client(server.paths[0]) as client:
            _, fds = client.region(c.BAR_DM)
            client.write(c.BAR_DM, 0, b"old")
        wait_for(lambda: not server.connected(), "end")
        with mmap.mmap(fds[0], 65536) as dm, Client(server.paths[0]) as client:
            equal(client.read(c.BAR_DM, 0, 3), bytes(3))
            client.write(c.BAR_DM, 0, b"new")
            equal(dm[:3], b"old")
            _, more = client.region(c.BAR_DM)
            equal(os.pread(more[0], 3, 0), b"new")
        for fd in fds + more:
            os.close(fd)


def test_many_fds(program):
    """machines that take all file descriptors they can leave some for another"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        with Server(program, *[""] * 18) as server, contextlib.ExitStack() as stack, \
                memory(64 * PAGE) as fd:
            clients = [stack.enter_context(Client(path)) for path in server.paths]
            for client in clients:
                for number in range(60):
                    client.share(number * PAGE, PAGE, fd)
            clients[0].read(c.BAR_REGS, 0, 4)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def without_fds(server):
    """The server can open nothing more; with less than four sockets it could not even poll."""
    pid = server.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = set(map(int, os.listdir("/proc/%d/fd" % pid)))
    free = min(set(range(len(used) + 1)) - used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def test_no_fds(program):
    """connections that cannot be accepted do not make the server busy, and are accepted later"""
    with Server(program, *4 * [""]) as server, socket.socket(socket.AF_UNIX) as control:
        with without_fds(server):
            client = Client(server.paths[0], greet=False)
            control.connect(server.path("control"))
            before = cpu_time(server.process.pid)
            time.sleep(1)
            assert cpu_time(server.process.pid) - before < 0.2
        client.greet()
        client.read(c.BAR_REGS, 0, 4)
        client.sock.close()
        assert b"QMP" in control.recv(100)


def test_heir_without_fds(program):
    """nor is anything left to it where the server could not have new memory at once"""
    with Server(program, ",dm-size=64K", *3 * [""]) as server:
        client = Client(server.paths[0])
        _, fds = client.region(c.BAR_DM)
        with without_fds(server), mmap.mmap(fds[0], 65536) as dm:
            client.sock.close()
            wait_for(lambda: "no new memory of the device" in server.text(), "message")
            with Client(server.paths[0]) as client:
                client.write(c.BAR_DM, 0, b"new")
                equal(dm[:3], bytes(3))
        os.close(fds[0])


def test_config_of_heir(program):
    """configuration space is as after power-on for each machine"""
    with Server(program, "") as server:
        with Client(server.paths[0]) as client:
            before = client.read(CONFIG, 0, 4096)
            for off, val in ((4, 0x406), (0x10, 0x4000), (0x3c, 5), (0x44, 3), (0x52, 0x8000)):
                client.write(CONFIG, off, struct.pack("<H", val))
        wait_for(lambda: not server.connected(), "end")
        with Client(server.paths[0]) as client:
            equal(client.read(CONFIG, 0, 4096), before)


def test_short_messages(program):
    """messages of all kinds and lengths, with nothing but zeroes or ones in them"""
    with attack(program) as (_, client, _other):
        for command in (*range(20), 0xffff):
            for length in range(70):
                for byte in b"\0\xff":
                    with contextlib.suppress(Refused):
                        client.ask(command, bytes([byte]) * length)
