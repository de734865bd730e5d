# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that a machine gives back holds up no other, however much it is."""

import mmap
import os
import signal
import struct
import time

import contract as c
from fixture import equal
from hca import PAGE, wait_for
from rc import Mr, Port, connected, rdma
from served import machine
from test_server import memory
from test_server_hostile import FAR, lingering
from test_server_line import three
from vfio_user import DMA_MAP, DMA_UNMAP, GET_INFO, HEAD, INFO


def used_memory(hca, fd, size, num):
    """Hand over the same memory @num times, and have the server touch all of it."""
    port = Port(hca, hca.mac, 3)
    one, _ = connected(port)
    areas = []
    for number in range(num):
        hca.m.client.share(FAR + number * size, size, fd)
        areas.append(Mr(port, FAR + number * size, size))
    for src, dst in zip(areas[::2], areas[1::2]):
        one.post(c.WR_RDMA_WRITE, src, size, rdma(dst))
        wait_for(one.cq.poll, "completion")


def unmapping(size, num):
    """Return the cost of unmapping so much memory on this machine, in ns of CPU time."""
    fd = os.memfd_create("cost")
    os.ftruncate(fd, size)
    areas = [mmap.mmap(fd, size, mmap.MAP_SHARED | mmap.MAP_POPULATE) for _ in range(num)]
    os.close(fd)
    before = time.thread_time_ns()
    for area in areas:
        area.close()
    return time.thread_time_ns() - before


def test_memory_of_one_that_goes(program):
    """a machine that goes, with much memory in use, does not hold up others"""
    size, num = 256 << 20, 8            # of the same memory, each with its page tables
    with three(program) as (server, hcas, line), memory(size) as fd:
        used_memory(hcas[2], fd, size, num)
        line.works()
        hcas[2].m.close()
        took = [line.works()]
        while server.connected("hca2"):
            took.append(line.works())
        whole = unmapping(size, num) / 1e9
        assert max(took) < max(0.015, 0.8 * whole), (took, whole)


def cpu_of_loop(server):
    """Nanoseconds of CPU time that the server's loop has had."""
    with open("/proc/%d/schedstat" % server.process.pid, encoding="ascii") as file:
        return int(file.read().split()[0])


def test_device_memory_of_one_that_goes(program):
    """a machine that goes, with much memory of the device, does not hold up others, either"""
    size = 512 << 20
    with three(program, properties=("", "", ",dm-size=512M")) as (server, hcas, line):
        _, fds = hcas[2].m.client.region(c.BAR_DM)
        touch(fds[0], size)
        os.close(fds[0])
        before = cpu_of_loop(server)
        hcas[2].m.close()
        wait_for(lambda: not server.connected("hca2"), "end")
        line.works()
        took, whole = cpu_of_loop(server) - before, freeing(size)
        assert took < 0.8 * whole, (took, whole)
        equal(machine(server, 2).m.client.read(c.BAR_DM, 0, 1), bytes(1))


def freeing(size):
    """Return the cost of freeing so much memory on this machine, in ns of CPU time."""
    fd = os.memfd_create("cost")
    os.ftruncate(fd, size)
    touch(fd, size)
    before = time.thread_time_ns()
    os.close(fd)
    return time.thread_time_ns() - before


def touch(fd, size):
    with mmap.mmap(fd, size) as mem:
        for page in range(0, size, PAGE):
            mem[page] = 1


def test_memory_behind_slow_close(program):
    """nor does one that gives memory back while its file descriptors cannot be closed"""
    size, num = 256 << 20, 8
    with three(program) as (server, hcas, line), memory(size) as fd:
        client = hcas[2].m.client
        used_memory(hcas[2], fd, size, num)
        sock, peer = lingering()
        os.kill(server.process.pid, signal.SIGSTOP)       # its close() has to be the last
        client.send(GET_INFO, INFO, [sock.fileno()])
        sock.close()
        for _ in range(10):
            client.send(GET_INFO, INFO, [fd] * 8)
        os.kill(server.process.pid, signal.SIGCONT)
        for _ in range(11):
            client.receive(HEAD.size + len(INFO))
        before = cpu_of_loop(server)
        for number in range(num):
            client.unshare(FAR + number * size, size)
        took = cpu_of_loop(server) - before
        line.works()
        peer.close()
        whole = unmapping(size, num)
        assert took < max(15e6, 0.8 * whole), (took, whole)


def cost_of(server, action):
    """The CPU time of the server's loop for it, in ns."""
    before = cpu_of_loop(server)
    action()
    return cpu_of_loop(server) - before


def come_and_go(client, fd):
    """Share small pieces of memory, and take each back immediately."""
    for _ in range(10):
        for _ in range(8):
            client.send(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 2 * FAR, PAGE), [fd])
            client.send(DMA_UNMAP, struct.pack("<IIQQ", 24, 0, 2 * FAR, PAGE))
        client.receive(8 * (2 * HEAD.size + 24))


def test_memory_behind_much_memory(program):
    """nor does one that gives back more pieces of memory than can wait"""
    size, num = 256 << 20, 16
    with three(program) as (server, hcas, line), memory(size) as fd:
        client = hcas[2].m.client
        used_memory(hcas[2], fd, size, num)
        pieces = [FAR + number * size for number in range(num)]
        rounds = max(cost_of(server, lambda: come_and_go(client, fd)) for _ in range(3))
        before = cpu_of_loop(server)
        for base in pieces[:num // 2]:
            client.unshare(base, size)
        come_and_go(client, fd)
        for base in pieces[num // 2:]:
            client.unshare(base, size)
        took = cpu_of_loop(server) - before - rounds
        line.works()
        whole = max(unmapping(size, num // 2) for _ in range(3))
        assert took < max(12e6, 0.8 * whole), (took, whole)
