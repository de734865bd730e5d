# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP segments that are longer than a frame, at a tap: whether its kernel cuts them or the
device, what arrives is the same."""

import contextlib
import os
import socket
import struct
import tempfile

import contract as c
from fixture import MAC_BYTES, equal
from hca import PATIENCE, wait_for
from host import (IFF_MULTI_QUEUE, TUN_F_CSUM, TUN_F_TSO4, Tap, alone, bridge, give_up_rights,
                  set_offload)
from served import is_server
from test_life import SLOT_OFF, check_unplugged, plug, root_port
from test_tap import (GUEST, HOST, IPV4, MTU, Card, both_ways, datagrams, host, ip, roce, tapped,
                      words)

PEER = bytes.fromhex("525400abcdef")
IPV6 = b"\x86\xdd"
TAG = b"\x81\x00\x60\x05"
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
HEADER = 32         # TCP's, with timestamps
LONG = 60000


def tcp(data=b"", seq=1, ack=0, flags=ACK, ports=(7, 8)):
    return struct.pack(">HHIIBBHHH", *ports, seq, ack, HEADER // 4 << 4, flags, 0xffff, 0,
                       0) + b"\1\1\x08\x0a" + bytes(8) + data


def pseudo(packet):
    """The header that TCP's checksum covers as well."""
    if packet[0] >> 4 == 4:
        size = struct.unpack_from(">H", packet, 2)[0] - 20
        return packet[12:20] + struct.pack(">HH", 6, size)
    return packet[8:40] + struct.pack(">II", struct.unpack_from(">H", packet, 4)[0], 6)


def summed(packet):
    """A packet with the right checksum of TCP."""
    at = 36 if packet[0] >> 4 == 4 else 56
    data = pseudo(packet) + packet[at - 16:at] + packet[at + 2:] + bytes(len(packet) % 2)
    return packet[:at] + struct.pack(">H", roce.checksum(data)) + packet[at + 2:]


def ip6(data):
    return struct.pack(">IHBB", 6 << 28, len(data), 6, 64) + bytes(range(32)) + data


def segment(head, size=LONG):
    """A segment over IPv4 of no interest."""
    return head + ip(socket.IPPROTO_TCP, tcp(bytes(size)))


class Sender:
    """The guest's side of a queue for such segments."""

    def __init__(self, hca, card):
        self.hca = hca
        self.cq, self.queue = card.tx_cq, card.tx
        self.buf = hca.alloc(17)

    def send(self, frame, mss, start):
        """Send a frame with TCP at @start; return the bytes that the CQE counts."""
        self.hca.m.write(self.buf, frame)
        self.queue.post(self.buf, len(frame), c.ETH_TSO | c.ETH_CSUM, start, mss)
        self.queue.ring_doorbell()
        opcode, status, size, _ = wait_for(self.cq.poll, "sent frame")
        equal((opcode, status), (c.CQE_ETH_TX, c.WC_SUCCESS))
        return size


class Far:
    """Receives at another tap, whose kernel has to cut frames that are too long for it."""

    def __init__(self, fd):
        self.fd = fd
        os.set_blocking(fd, False)

    def next(self):
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.fd, 1 << 17)
            return data if data[6:12] == MAC_BYTES else None
        return None

    def receive(self, num):
        return [wait_for(self.next, "frame %d of %d" % (i, num)) for i in range(num)]


def check(frames, head, payload, mss):
    """Whether they are the segment with those headers in front of IP and that payload."""
    at = len(head) + (20 if head[-2:] == IPV4 else 40)
    for number, frame in enumerate(frames):
        packet, part = frame[len(head):], payload[number * mss:(number + 1) * mss]
        equal((frame[:len(head)], frame[at + HEADER:]), (head, part))
        equal(packet[:at + 20], summed(packet)[:at + 20])
        if head[-2:] == IPV4:
            equal(roce.checksum(packet[:20]), 0)
            equal(struct.unpack_from(">HH", packet, 2), (len(packet), 1 + number))
        else:
            equal(struct.unpack_from(">H", packet, 4)[0], len(packet) - 40)
        last = number == len(frames) - 1
        equal((struct.unpack_from(">I", frame, at + 4)[0], frame[at + 13]),
              (1 + number * mss, ACK | last * (PSH | FIN)))


def one(sender, far, head, mss, size=LONG):
    """Send a segment that @far receives; return how many frames the kernel got."""
    hca, payload = sender.hca, os.urandom(size)
    packet = (ip if head[-2:] == IPV4 else lambda _, data: ip6(data))(
        socket.IPPROTO_TCP, tcp(payload, flags=ACK | PSH | FIN))
    before = hca.counter("eth_tx_pkts"), hca.counter("eth_tx_bytes"), hca.tap.count("rx_packets")
    num, overhead = -(-size // mss), len(head + packet) - size
    sent = sender.send(head + packet, mss, overhead - HEADER)
    check(far.receive(num), head, payload, mss)
    equal((sent, hca.counter("eth_tx_pkts") - before[0], hca.counter("eth_tx_bytes") - before[1]),
          (num * overhead + size, num, num * overhead + size))
    return hca.tap.count("rx_packets") - before[2]


@contextlib.contextmanager
def bridged(program, mtu, options="", args=()):
    """A device at a tap, a bridge, and another tap."""
    taps = [Tap("tap%d" % i) for i in range(2)]
    for tap in taps:
        tap.set_mtu(mtu)
        tap.up()
    bridge("bridge", *taps)
    with taps[1].used() as fd, tapped(program, taps[0], options, args) as hca:
        hca.set_port(MAC_BYTES, c.PORT_ENABLE, mtu)
        taps[1].restart()
        card = Card(hca)
        os.write(fd, MAC_BYTES + PEER + b"\x88\xb5" + bytes(46))     # a switch learns from it
        card.receive(lambda data: data[6:12] == PEER)
        yield hca, Sender(hca, card), Far(fd)


def headers(mtu):
    """Return kinds of segments: headers in front of IP, and an MSS."""
    return [(PEER + MAC_BYTES + tag + kind, mtu - room - HEADER)
            for kind, room in ((IPV4, 20), (IPV6, 40)) for tag in (b"", TAG)]


def try_all(program, mtu):
    with bridged(program, mtu) as (_, sender, far):
        for head, mss in headers(mtu):
            for size in LONG, mss + 1, 65535 - 20 - HEADER:
                equal(one(sender, far, head, mss, size), 1)
            equal(one(sender, far, head, mss, mss), 1)


@alone
def test_whole(program):
    """segments leave whole, and whoever has to cut them makes the frames that the device would"""
    try_all(program, 1500)


@alone
def test_jumbo(program):
    """segments leave whole with long frames, too"""
    try_all(program, 9000)


@alone
def test_cut(program):
    """a tap without vnet headers gets frames"""
    with bridged(program, 1500, ",vnet_hdr=off") as (_, sender, far):
        for head, mss in headers(1500):
            equal(one(sender, far, head, mss), -(-LONG // mss))


@alone
def test_down(program):
    """segments that an interface does not take are lost as frames are"""
    with bridged(program, 1500) as (hca, sender, far):
        head, mss = headers(1500)[0]
        for _ in range(2):
            one(sender, far, head, mss)
            hca.tap.up(False)
            before = hca.counter("eth_tx_pkts")
            sender.send(segment(head), mss, 34)
            equal(hca.counter("eth_tx_pkts") - before, -(-LONG // mss))
            hca.tap.up()
        hca.tap.remove()
        sender.send(segment(head), mss, 34)
        hca.ok(c.CMD_NOP)


@alone
def test_mtu(program):
    """segments with frames that are longer than the interface's pass, as far as they do whole"""
    with bridged(program, 1500) as (hca, sender, far):
        hca.set_port(MAC_BYTES, c.PORT_ENABLE, MTU)
        head, size = headers(MTU)[0]
        sender.send(segment(head), size, 34)
        equal([len(frame) for frame in far.receive(-(-LONG // size))][:2], [MTU + 14] * 2)
        sender.send(segment(head, size), size, 34)      # one frame
        sender.send(segment(head, 100), size, 34)
        equal(len(far.receive(1)[0]), len(head) + 20 + HEADER + 100)


@alone
def test_hostile(program):
    """what cannot be a segment is an error, and no frame"""
    with bridged(program, 1500) as (hca, sender, far):
        head, mss = headers(1500)[0]
        good = segment(head)
        for frame, size, start in (
                (good, 0, 34), (good, mss, 33), (good, mss, 0xffff), (good[:60], mss, 34),
                (good[:46] + b"\x40" + good[47:], mss, 34), (good, mss + 1, 34),
                (good[:23] + b"\x11" + good[24:], mss, 34), (good, 0xffff, 34)):
            hca.m.write(sender.buf, frame)
            before = hca.counter("eth_tx_err"), hca.tap.count("rx_packets")
            sender.queue.post(sender.buf, len(frame), c.ETH_TSO | c.ETH_CSUM, start, size)
            sender.queue.ring_doorbell()
            assert wait_for(sender.cq.poll, "error")[1] != c.WC_SUCCESS
            equal((hca.counter("eth_tx_err"), hca.tap.count("rx_packets")),
                  (before[0] + 1, before[1]))
        one(sender, far, head, mss)


@alone
def test_socket(program):
    """a socket of the host's kernel gets a stream of segments"""
    with tapped(program, host(1500)) as hca, socket.create_server((HOST, 0)) as server:
        hca.set_port(MAC_BYTES, c.PORT_ENABLE)
        hca.tap.add_neighbour(GUEST, MAC_BYTES)
        card = Card(hca)
        sender = Sender(hca, card)
        head, mss = hca.tap.mac + MAC_BYTES + IPV4, 1448
        ports, text = (7, server.getsockname()[1]), os.urandom(4 * LONG)

        def packet(seq, ack, flags, data=b""):
            return head + summed(ip(socket.IPPROTO_TCP, tcp(data, seq, ack, flags, ports)))

        card.send(packet(0, 0, SYN))
        answer = card.receive(lambda data: data[23:24] == b"\6" and data[47] == SYN | ACK)
        ack = struct.unpack_from(">I", answer, 38)[0] + 1
        card.send(packet(1, ack, ACK))
        server.settimeout(PATIENCE)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE)
            for at in range(0, len(text), LONG):
                sender.send(packet(1 + at, ack, ACK | PSH, text[at:at + LONG]), mss, 34)
                got = b""
                while len(got) < LONG:
                    got += connection.recv(LONG)
                equal(got, text[at:at + LONG])
            # The other way frames come complete, and no longer than the MTU; one after the
            # other, if the kernel has had to repeat its SYN.
            connection.send(text[:4000])
            got = b""
            while len(got) < 4000:
                data = card.receive(lambda data: data[23:24] == b"\6" and data[47] & PSH or
                                    len(data) > 200)
                assert len(data) <= 1514 and data[14:] == summed(data[14:])
                if struct.unpack_from(">I", data, 38)[0] == (ack + len(got)) & 0xffffffff:
                    got += data[34 + (data[46] >> 4) * 4:]
                    card.send(packet(1 + len(text), (ack + len(got)) & 0xffffffff, ACK))
            equal(got, text[:4000])


@alone
def test_capture(program):
    """a capture of the network has a segment as it leaves"""
    with tempfile.NamedTemporaryFile() as file:
        with bridged(program, 1500, "", (
                "-object", "filter-dump,id=dump,netdev=net0,file=" + file.name)) as (
                    _, sender, far):
            head, mss = headers(1500)[0]
            one(sender, far, head, mss)
        data = file.read()[24:]
    sizes = []
    while data:
        size, = struct.unpack_from("<8xI", data)
        if data[22:28] == MAC_BYTES:
            sizes.append(size)
        data = data[16 + size:]
    equal(sizes, [len(head) + 20 + HEADER + LONG])


@alone
def test_unsummed(program):
    """checksums that the kernel leaves out, because somebody has asked for that, are added"""
    with tapped(program, host()) as hca, datagrams() as sock:
        hca.tap.add_neighbour(GUEST, MAC_BYTES)
        card = Card(hca)
        both_ways(card, sock)
        set_offload(hca.m.server.process.pid if is_server(program) else hca.m.get_pid(),
                    TUN_F_CSUM)
        for size in 1, 2, 3, 100, 1001, 1400:
            both_ways(card, sock, size)


@alone
def test_queues(program):
    """what the kernel puts in any queue of a tap that has several is received"""
    for options in ",queues=4", ",queues=4,vnet_hdr=off":
        tap = host(flags=IFF_MULTI_QUEUE)
        with tapped(program, tap, options) as hca, contextlib.ExitStack() as stack:
            tap.add_neighbour(GUEST, MAC_BYTES)
            card = Card(hca)
            socks = [stack.enter_context(datagrams()) for _ in range(50)]
            for sock in socks:          # whose port chooses the queue
                both_ways(card, sock)
            texts = {os.urandom(100) for _ in socks}
            for sock, text in zip(socks, texts):    # more than there is room for
                sock.sendto(text, (GUEST, 7))
            for _ in socks:
                texts.remove(card.receive(lambda data: data[42:] in texts)[42:])
        tap.remove()


@alone
def test_plugged(program):
    """devices at a netdev one after the other, each of which gets what it can receive"""
    tap = host()
    give_up_rights()
    with root_port(program, words(program, tap.name)[1]) as (machine, port, slot), \
            datagrams() as sock:
        for aggregate in False, True, False:
            set_offload(machine.get_pid(), TUN_F_CSUM | TUN_F_TSO4)
            equal(tap.segmentation(), True)
            hca = plug(machine, port, slot, netdev="net0", aggregate=aggregate)
            equal(tap.segmentation(), False)
            hca.set_port(MAC_BYTES, c.PORT_ENABLE, MTU)
            hca.tap = tap
            tap.restart()
            tap.add_neighbour(GUEST, MAC_BYTES)
            both_ways(Card(hca), sock)
            port.write(slot, 2, SLOT_OFF)
            check_unplugged(hca)
