# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that a machine hands over in pieces: DIMMs, NUMA nodes, what is plugged later.

An access knows nothing of where one ends and the next begins.
"""

import contextlib
import mmap
import os
import struct

import contract as c
from fixture import equal, start
from hca import PAGE
from rc import Mr, Port, atomic, connected, rdma
from served import Server, machines
from test_server_hostile import FAR

READ_WRITE, READ_ONLY = 3, 1
FILE = 16 * PAGE
# Borders in the middle of pages, a piece of one byte, and one of some pages.
ODD = (4096, 1, 4090, 5, 12300, 4076, 8200)
DATA = bytes(i * 7 + i // 251 & 0xff for i in range(FILE))
DM_EDGE = c.ADDR_DM - PAGE      # behind this page are the addresses of the device's own memory


class Pieces:
    """Adjacent pieces of a machine's memory from @base on, each with a file of its own."""

    def __init__(self, hca, base, sizes, rights=None):
        self.client, self.base, self.pieces = hca.m.client, base, []
        for number, size in enumerate(sizes):
            fd = os.memfd_create("piece", os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, FILE)
            self.pieces.append((base, size, fd, mmap.mmap(fd, FILE)))
            self.share(number, (rights or {}).get(number, READ_WRITE))
            base += size
        self.size = base - self.base

    def share(self, number, rights=READ_WRITE):
        """Its bytes have the same place in a page of the file as in one of the machine."""
        base, size, fd, _ = self.pieces[number]
        self.client.share(base, size, fd, rights, base % PAGE)

    def unshare(self, number):
        self.client.unshare(*self.pieces[number][:2])

    def read(self):
        return b"".join(mem[base % PAGE:base % PAGE + size] for base, size, _, mem in self.pieces)

    def fill(self, data=b""):
        for base, size, _, mem in self.pieces:
            mem[base % PAGE:base % PAGE + size] = data[:size].ljust(size, b"\0")
            data = data[size:]

    def close(self):
        for _, _, fd, mem in self.pieces:
            mem.close()
            os.close(fd)


@contextlib.contextmanager
def pieces(program, *sizes, rights=None, props="", base=FAR):
    """Memory in pieces, the region of a machine that has it, one of a peer, and their ports."""
    with Server(program, props, props) as server:
        hcas = start(machines(server))
        ports = [Port(hca, hca.mac, host) for host, hca in enumerate(hcas, 1)]
        mem = Pieces(hcas[0], base, sizes, rights)
        with contextlib.closing(mem):
            far = Mr(ports[1], ports[1].hca.alloc(FILE // PAGE), FILE)
            yield mem, Mr(ports[0], base, mem.size // PAGE * PAGE), far, ports


def ended(one, *post):
    """The status of a WR."""
    one.post(*post)
    return one.done()[1]


# The status of each way in which @size bytes get to @off of @near, or from there.

def read_into(a, _, near, far, size, off):
    return ended(a, c.WR_RDMA_READ, near, size, rdma(far), off)


def written_by_peer(_, b, near, far, size, off):
    return ended(b, c.WR_RDMA_WRITE, far, size, rdma(near, off))


def sent_by_peer(a, b, near, far, size, off):
    a.post_recv(near, size, off)
    return ended(b, c.WR_SEND, far, size)


def written_from(a, _, near, far, size, off):
    return ended(a, c.WR_RDMA_WRITE, near, size, rdma(far), off)


def read_by_peer(_, b, near, far, size, off):
    return ended(b, c.WR_RDMA_READ, far, size, rdma(near, off))


# With the status if they are not there.
INTO = {read_into: c.WC_LOC_PROT_ERR, written_by_peer: c.WC_REM_OP_ERR,
        sent_by_peer: c.WC_REM_OP_ERR}
FROM = {written_from: c.WC_LOC_PROT_ERR, read_by_peer: c.WC_REM_OP_ERR}


def moved(way, mem, near, far, ports, size, off):
    """The status of one way; what has been moved is checked if that is all of it."""
    peer, into = ports[1].hca.m, way in INTO
    mem.fill(b"" if into else bytes(off) + DATA[:size])
    peer.write(far.addr, DATA[:size] if into else bytes(size))
    status = way(*connected(*ports), near, far, size, off)
    if status == c.WC_SUCCESS:
        equal(peer.read(far.addr, size), DATA[:size])
        equal(mem.read(), (bytes(off) + DATA[:size]).ljust(mem.size, b"\0"))
    return status


def all_move(*where):
    for way in (*INTO, *FROM):
        equal((way.__name__, moved(way, *where)), (way.__name__, c.WC_SUCCESS))


def none_moves(ways, *where):
    for way, status in ways.items():
        equal((way.__name__, moved(way, *where)), (way.__name__, status))


def test_two(program):
    """data in the first of two adjacent pieces, in the second, and across the border"""
    for props in ("", ",frames=on"):
        with pieces(program, 8 * PAGE, 8 * PAGE, props=props) as at:
            for size, off in ((16, 7 * PAGE), (16, 8 * PAGE), (16, 8 * PAGE - 8),
                              (PAGE, 7 * PAGE + 1), (8 * PAGE, 4 * PAGE + 11)):
                all_move(*at, size, off)


def test_many(program):
    """data across pieces of all lengths, more than two of them at a time"""
    for props in ("", ",frames=on"):
        with pieces(program, *ODD, props=props) as at:
            for size, off in ((32, 4090), (4200, 4000), (32768, 0), (20000, 8190)):
                all_move(*at, size, off)


def test_hole(program):
    """a piece that is missing is an error, as is what only lies in front of one"""
    with pieces(program, *[4 * PAGE] * 3) as at:
        mem = at[0]
        for missing in (1, 2):
            all_move(*at, 9 * PAGE, 100)
            mem.unshare(missing)
            none_moves(INTO | FROM, *at, 9 * PAGE, 100)
            none_moves(INTO | FROM, *at, 16, 4 * missing * PAGE - 8)
            all_move(*at, 16, 4 * missing * PAGE - 16)
            mem.share(missing)


def test_rights(program):
    """a piece for reading only, between others, can be read and not written"""
    for number in range(3):
        with pieces(program, *[4 * PAGE] * 3, rights={number: READ_ONLY}) as at:
            for way in FROM:
                equal(moved(way, *at, 9 * PAGE, 8), c.WC_SUCCESS)
            none_moves(INTO, *at, 9 * PAGE, 8)
            edge = 4 * PAGE * (number or 1)
            none_moves(INTO, *at, 16, edge - 8)


def test_atomics(program):
    """an atomic in two pieces, or that the machine has made an unaligned one, is an error"""
    with pieces(program, PAGE + 4, PAGE - 4, PAGE, PAGE) as (mem, near, far, ports):
        far_page = Mr(ports[1], far.addr)
        for off, status in ((PAGE - 8, c.WC_SUCCESS), (PAGE, c.WC_REM_OP_ERR),
                            (2 * PAGE, c.WC_SUCCESS)):
            for opcode, body in ((c.WR_ATOMIC_FETCH_AND_ADD, atomic(near, 1, offset=off)),
                                 (c.WR_ATOMIC_CMP_AND_SWP, atomic(near, 1, offset=off)),
                                 (c.WR_ATOMIC_WRITE, rdma(near, off))):
                _, b = connected(*ports)
                equal((off, ended(b, opcode, far_page, 8, body)), (off, status))
        base, size, fd, _ = mem.pieces[3]
        mem.unshare(3)
        mem.client.share(base, size, fd, offset=4)
        _, b = connected(*ports)
        equal(ended(b, c.WR_ATOMIC_FETCH_AND_ADD, far_page, 8, atomic(near, 1, offset=3 * PAGE)),
              c.WC_REM_OP_ERR)


def test_rings(program):
    """queues, their entries and mailboxes, may lie across borders as well"""
    with Server(program, "") as server:
        hca, = machines(server)
        ram, base = hca.m, hca.mem
        ram.client.unshare(0, len(ram.ram))
        border = 0
        # In every page of what the driver uses, in the middle of an entry of any size.
        for page in range(base, base + 32 * PAGE, 2 * PAGE):
            for end in (page + 100, page + 2 * PAGE - 17, page + 2 * PAGE):
                ram.client.share(border, end - border, ram.fd, offset=border)
                border = end
        ram.client.share(border, len(ram.ram) - border, ram.fd, offset=border)
        start([hca])
        port = Port(hca, hca.mac)
        a, b = connected(port)
        src, dst = port.memory(), port.memory()
        for number in range(40):
            data = struct.pack("<I", number) * 100
            ram.write(src.addr, data)
            b.post_recv(dst, len(data))
            equal(ended(a, c.WR_SEND, src, len(data)), c.WC_SUCCESS)
            equal(b.done()[1], c.WC_SUCCESS)
            equal(ram.read(dst.addr, len(data)), data)


def test_edge_of_device_memory(program):
    """where the machine's addresses end, those of the device's own memory do not follow"""
    edge_is_one(program, PAGE)


def test_memory_behind_edge(program):
    """nor does memory of the machine there, even if it is one piece with what is in front"""
    edge_is_one(program, 2 * PAGE)


def edge_is_one(program, size):
    """Nothing can be moved across the edge, where the machine has so much memory."""
    with pieces(program, size, base=DM_EDGE) as (_, _near, far, ports):
        both = Mr(ports[0], DM_EDGE, 2 * PAGE)
        for way, status in (INTO | FROM).items():
            equal(way(*connected(*ports), both, far, 16, PAGE - 8), status)
        equal(ports[0].hca.m.read(ports[0].hca.bar[c.BAR_DM], 8), bytes(8))
