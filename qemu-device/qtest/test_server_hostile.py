# SPDX-License-Identifier: GPL-2.0-or-later
"""What the QEMU of a machine can try against a server and the other machines there."""

import os
import struct

import contract as c
from fixture import equal, start
from hca import PAGE
from rc import Port, connected
from served import Server, machines
from test_server import memory

FAR = 1 << 40               # where no machine of the tests has memory


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
