# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames that never leave the device, in a file for Wireshark."""

import os
import struct
import sys
import tempfile

import contract as c
from fixture import MAC_BYTES, equal, refused, running
from hca import PAGE
from machine import HERE
from rc import Port, connected, rdma

sys.path.append(os.path.join(HERE, "../tests/oracle"))
import flows    # noqa: E402  pylint: disable=wrong-import-position
import roce     # noqa: E402  pylint: disable=wrong-import-position

SECTION, INTERFACE, PACKET = 0x0a0d0d0a, 1, 6
OPCODE, WRITE_ONLY, SEND_ONLY, ACK = 14 + 20 + 8, 0x0a, 0x04, 0x11


def blocks(data):
    """Type and content of each block; its length is at both ends."""
    while data:
        kind, length = struct.unpack_from("<II", data)
        equal(struct.unpack_from("<I", data, length - 4)[0], length)
        equal(length % 4, 0)
        yield kind, data[8:length - 4]
        data = data[length:]


def packets(data):
    for kind, content in blocks(data):
        if kind == PACKET:
            interface, _, _, length, original = struct.unpack_from("<5I", content)
            equal((interface, original), (0, length))
            yield content[20:20 + length]


def test_loopback(qemu):
    """each frame between two QPs of a port is in the file, once and marked"""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "loop,back")
        with running(qemu, ",loopback-capture=" + path.replace(",", ",,")) as hca:
            port = Port(hca, MAC_BYTES)
            a, b = connected(port)
            src, dst = port.memory(), port.memory()
            hca.m.write(src.addr, b"captured")
            a.post(c.WR_RDMA_WRITE, src, 7, rdma(dst))
            equal(a.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
            b.post_recv(dst, PAGE)
            a.post(c.WR_SEND, src, 8)
            equal(a.done(), (c.CQE_SEND, c.WC_SUCCESS))
            with open(path, "rb") as file:      # no need to wait for QEMU's end
                data = file.read()
        kinds = [kind for kind, _ in blocks(data)]
        equal(kinds[:2], [SECTION, INTERFACE])
        assert b"hca0-loopback\0" in data[:200], data[:200]
        frames = list(packets(data))
        equal([frame[OPCODE] for frame in frames], [WRITE_ONLY, ACK, SEND_ONLY, ACK])
        assert b"capture" in frames[0] and b"captured" in frames[2]
        equal({frame[:12] for frame in frames}, {MAC_BYTES * 2})
        heard = flows.Flows()
        equal([wrong for frame in frames for wrong in heard.hear(roce.decode(frame))], [])


def test_full(qemu):
    """a full disk ends the capture, which is reported once, and not the device's work"""
    with running(qemu, ",loopback-capture=/dev/full") as hca:
        port = Port(hca, MAC_BYTES)
        a, _ = connected(port)
        src, dst = port.memory(), port.memory()
        for _ in range(2):
            a.post(c.WR_RDMA_WRITE, src, 7, rdma(dst))
            equal(a.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
    equal(hca.m.get_log().count("no frames are captured from now on"), 1)


def test_refused(qemu):
    """a file that cannot be created is an error"""
    said = refused(qemu, ",loopback-capture=/none/file")
    assert "/none/file" in said, said
