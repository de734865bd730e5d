# SPDX-License-Identifier: GPL-2.0-or-later
"""Ports at a tap, with the host's kernel at its other end."""

import contextlib
import os
import re
import socket
import struct
import sys
from types import SimpleNamespace

import contract as c
from fixture import MAC_BYTES, equal, refused, running
from hca import PAGE, PATIENCE, wait_for
from host import (TUN, TUN_F_CSUM, TUN_F_TSO4, Tap, alone, give_up_rights,
                  nobody_may_open)
from machine import HERE
from rc import Port, Qp, connected, rdma
from served import is_server
from test_net import make_queue

sys.path.append(os.path.join(HERE, "../tests/oracle"))
import roce     # noqa: E402  pylint: disable=wrong-import-position

HOST, GUEST = "10.0.0.1", "10.0.0.2"
ACK, WRITE_ONLY = 0x11, 0x0a
ARP, IPV4, OTHER = b"\x08\x06", b"\x08\x00", b"\x88\xb5"
MTU = 4200


def words(program, name, options=""):
    """The properties and arguments for a device at that tap; with @options of a netdev, or of a
    server's port."""
    if is_server(program):
        return options, ("--uplink", "tap:" + name)
    return ",netdev=net0", ("-netdev", "tap,id=net0,ifname=%s,script=no,downscript=no%s" % (
        name, options))


@contextlib.contextmanager
def tapped(program, tap, options="", args=()):
    """A running device at a tap, of a program with no more rights than its user."""
    give_up_rights()
    props, net = words(program, tap.name, options)
    with running(program, props, (*net, *args)) as hca:
        hca.set_port(MAC_BYTES, c.PORT_ENABLE, MTU)
        hca.tap = tap
        tap.restart()
        yield hca


def host(mtu=MTU, flags=0):
    """A tap with an address."""
    tap = Tap("tap0", flags)
    tap.set_mtu(mtu)
    tap.set_address(HOST)
    tap.up()
    return tap


class Card:
    """The device as a network card, which sends and receives a frame at a time."""

    def __init__(self, hca):
        self.hca = hca
        self.tx_cq, self.tx = make_queue(hca, c.ETH_TX)
        self.rx_cq, self.rx = make_queue(hca, c.ETH_RX)
        self.out, self.buf = hca.alloc(4), hca.alloc(32)
        self.post(1 << self.rx.log_size)

    def post(self, num):
        for _ in range(num):
            at = self.rx.pi % (1 << self.rx.log_size)
            self.rx.post(self.buf + 4 * PAGE * at, 4 * PAGE)
        self.rx.ring_doorbell()

    def send(self, data):
        self.hca.m.write(self.out, data)
        self.tx.post(self.out, len(data))
        self.tx.ring_doorbell()
        equal(wait_for(self.tx_cq.poll, "sent frame")[:2], (c.CQE_ETH_TX, c.WC_SUCCESS))

    def next(self):
        """(status, frame) of the next frame, or None."""
        cqe = self.rx_cq.poll()
        if not cqe:
            return None
        at = self.buf + 4 * PAGE * ((self.rx_cq.ci - 1) % (1 << self.rx.log_size))
        data = self.hca.m.read(at, cqe[2]) if cqe[2] else b""
        self.post(1)
        return cqe[1], data

    def receive(self, wanted):
        """The next frame that is @wanted; the kernel sends others as well."""
        def look():
            found = self.next()
            return found and found[0] == c.WC_SUCCESS and wanted(found[1]) and found[1]
        return wait_for(look, "frame")

    def frame(self, kind, rest):
        return self.hca.tap.mac + MAC_BYTES + kind + rest

    def answer_arp(self):
        """Tell the kernel where the guest is, when it asks."""
        asked = self.receive(lambda data: data[12:14] == ARP and data[20:22] == b"\0\1")
        equal(asked[38:42], socket.inet_aton(GUEST))
        self.send(self.frame(ARP, asked[14:21] + b"\2" + MAC_BYTES + asked[38:42] +
                             asked[22:32]))


def ip(protocol, data, src=GUEST, dst=HOST):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(data), 1, 0x4000, 64, protocol, 0,
                       socket.inet_aton(src), socket.inet_aton(dst))
    return head[:10] + struct.pack(">H", roce.checksum(head)) + head[12:] + data


def udp(data, port):
    return struct.pack(">HHHH", 7, port, 8 + len(data), 0) + data


def is_udp(data):
    return data[12:14] == IPV4 and data[23] == socket.IPPROTO_UDP


def sums_up(packet):
    """Whether the checksums of a UDP datagram are right."""
    pseudo = packet[12:20] + b"\0\x11" + packet[24:26]
    data = packet[20:] + bytes(len(packet) % 2)
    return packet[26:28] != bytes(2) and (
        roce.checksum(packet[:20]), roce.checksum(pseudo + data)) == (0, 0)


@contextlib.contextmanager
def datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE)
        sock.bind((HOST, 0))
        yield sock


def both_ways(card, sock, size=100):
    """A datagram from the kernel's socket to the guest, and one back."""
    text = os.urandom(size)
    sock.sendto(text, (GUEST, 7))
    data = card.receive(lambda data: is_udp(data) and text in data)
    assert sums_up(data[14:42 + size]), data.hex()
    card.send(card.frame(IPV4, ip(socket.IPPROTO_UDP, udp(text[::-1], sock.getsockname()[1]))))
    equal(sock.recv(1 << 16), text[::-1])


@alone
def test_ethernet(program):
    """the host's kernel asks for the guest's address, and they exchange datagrams and a ping"""
    with tapped(program, host()) as hca, datagrams() as sock:
        card = Card(hca)
        sock.sendto(b"early", (GUEST, 7))
        card.answer_arp()
        assert b"early" in card.receive(is_udp)
        for size in 1, 100, 1472, MTU - 28:
            both_ways(card, sock, size)
        ping = b"\0\0\0\1\0\1" + os.urandom(1000)
        ping = b"\x08\0" + struct.pack(">H", roce.checksum(b"\x08\0" + ping)) + ping[2:]
        card.send(card.frame(IPV4, ip(socket.IPPROTO_ICMP, ping)))
        answer = card.receive(lambda data: data[23] == socket.IPPROTO_ICMP)
        equal((answer[34], answer[38:]), (0, ping[4:]))


class HostQp:
    """A QP that is this test's, at a socket of the host's."""

    qpn = 0x1234

    def __init__(self, tap):
        self.port = SimpleNamespace(mac=tap.mac, gid=bytes(10) + b"\xff\xff" +
                                    socket.inet_aton(HOST))
        self.inward = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        self.outward = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.inward.settimeout(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.inward.close()
        self.outward.close()

    def receive(self):
        """The next RoCE packet, as it has passed the kernel."""
        while True:
            frame = roce.decode(bytes(12) + IPV4 + self.inward.recv(1 << 16))
            if frame:
                equal((frame["bth.destqp"], frame.icrc), (self.qpn, frame.icrc_due()))
                return frame

    def send(self, peer, psn, headers, payload=b""):
        src, dst = (int.from_bytes(socket.inet_aton(text), "big") for text in (HOST, GUEST))
        packet = roce.Frame({
            "eth": {}, "ipv4": {"version": 4, "ihl": 5, "id": 1, "flags": 2, "ttl": 64,
                                "protocol": socket.IPPROTO_UDP, "src": src, "dst": dst},
            "udp": {"sport": 50000, "dport": roce.UDP_PORT},
            "bth": {"pkey": 0xffff, "destqp": peer.qpn, "psn": psn, **headers.pop("bth")},
            **headers}, payload).fit()
        self.outward.sendto(packet.pack()[14:], (GUEST, 0))


@alone
def test_roce(program):
    """a socket of the host is the peer of a QP, and each writes to the other"""
    with tapped(program, host()) as hca, HostQp(hca.tap) as far:
        hca.tap.add_neighbour(GUEST, MAC_BYTES)
        port = Port(hca, MAC_BYTES, 2)
        hca.set_port(MAC_BYTES, c.PORT_ENABLE, MTU)
        near, memory, data = Qp(port), port.memory(), os.urandom(3000)
        near.timeout = 20       # seconds: the peer is a script
        near.connect(far)
        hca.m.write(memory.addr, data)
        near.post(c.WR_RDMA_WRITE, memory, len(data), rdma(SimpleNamespace(key=5, addr=PAGE)))
        packets = [far.receive() for _ in range(3)]
        equal(b"".join(packet.payload for packet in packets), data)
        equal([packet["bth.psn"] for packet in packets], [1000, 1001, 1002])
        equal((packets[0]["reth.va"], packets[0]["reth.rkey"]), (PAGE, 5))
        far.send(near, 1002, {"bth": {"opcode": ACK}, "aeth": {"syndrome": 0x1f, "msn": 1}})
        equal(near.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        far.send(near, 1000, {"bth": {"opcode": WRITE_ONLY, "a": 1}, "reth": {
            "va": memory.addr, "rkey": memory.key, "dmalen": 1000}}, data[2000:])
        answer = far.receive()
        equal((answer["bth.opcode"], answer["bth.psn"], answer["aeth.msn"]), (ACK, 1000, 1))
        equal(hca.m.read(memory.addr, 1000), data[2000:])


@alone
def test_long(program):
    """frames longer than the MTU of either end do no harm"""
    with tapped(program, host(1500)) as hca, datagrams() as sock:
        card = Card(hca)
        hca.tap.add_neighbour(GUEST, MAC_BYTES)
        sock.sendto(bytes(4000), (GUEST, 7))        # in fragments
        equal([len(card.receive(is_udp)) for _ in range(3)], [1514, 1514, 1082])
        text = os.urandom(4000)
        card.send(card.frame(IPV4, ip(socket.IPPROTO_UDP, udp(text, sock.getsockname()[1]))))
        equal(sock.recv(1 << 16), text)
        hca.tap.set_mtu(65000)
        for size in MTU - 27, 20000, 64000:         # of one frame, which the device does not take
            sock.sendto(bytes(size), (GUEST, 7))
        both_ways(card, sock)


@alone
def test_offload(program):
    """what the tap's last user has asked of the kernel does not last: frames come complete"""
    tap = host()
    tap.use(TUN_F_CSUM | TUN_F_TSO4)
    with tapped(program, tap) as hca, datagrams() as sock:
        tap.add_neighbour(GUEST, MAC_BYTES)
        both_ways(Card(hca), sock)


@alone
def test_short(program):
    """frames that the host's kernel makes too short for Ethernet are padded"""
    with tapped(program, host()) as hca, socket.socket(socket.AF_PACKET,
                                                       socket.SOCK_RAW) as sock:
        card = Card(hca)
        sock.bind((hca.tap.name, 0))
        for size in 14, 15, 59, 60, 61:
            data = (MAC_BYTES + hca.tap.mac + OTHER).ljust(size, b"x")
            sock.send(data)
            equal(card.receive(lambda got: got[12:14] == OTHER), data.ljust(60, b"\0"))


@alone
def test_down(program):
    """frames to an interface that is down are lost, and pass again when it is up"""
    with tapped(program, host()) as hca, datagrams() as sock:
        card = Card(hca)
        for _ in range(3):
            sock.sendto(b"hello", (GUEST, 7))
            card.answer_arp()
            both_ways(card, sock)
            hca.tap.up(False)
            before = hca.tap.count("rx_drop")
            for _ in range(20):
                card.send(card.frame(IPV4, bytes(100)))
            wait_for(lambda: hca.tap.count("rx_drop") == before + 20, "lost frames")
            hca.ok(c.CMD_NOP)
            hca.tap.up()


@alone
def test_removed(program):
    """an interface that is removed while frames pass is a network without an end"""
    with tapped(program, host()) as hca, datagrams() as sock:
        card = Card(hca)
        hca.tap.add_neighbour(GUEST, MAC_BYTES)
        both_ways(card, sock)
        for number in range(200):
            if number == 100:
                hca.tap.remove()
            card.send(card.frame(IPV4, bytes(1000)))
        hca.ok(c.CMD_NOP)
        port = Port(hca, MAC_BYTES, 2)
        one, _ = connected(port)
        src, dst = port.memory(), port.memory()
        one.post(c.WR_RDMA_WRITE, src, 1000, rdma(dst))
        equal(one.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))


@alone
def test_refused(program):
    """the device does not start with an interface that is not there, or is not for it to open"""
    tap = host()
    give_up_rights()
    for name in "none", "lo":
        assert re.search("Operation not permitted|Invalid argument|No such device",
                         refused(program, *words(program, name)))
    with nobody_may_open(TUN):
        assert "Permission denied" in refused(program, *words(program, tap.name))
