# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames between the device and a network backend."""

import contextlib

import contract as c
from fixture import MAC_BYTES, cable, equal, running, running_two
from hca import PAGE, Hca, wait_for
from served import is_server

PEER = bytes.fromhex("525400abcdef")
RING_LOG = 3
RX_BUDGET = 2048            # frames, or KiB, that cost nothing but their reception


@contextlib.contextmanager
def wired(qemu, props=""):
    """A running device and the socket at the other end of its wire, or of a server's uplink."""
    with cable() as (net, wire, peer):
        if is_server(qemu):
            net = ("--uplink", "dgram:%s:%s" % (peer, wire.getsockname()))
            net += ("--aggregate",) * props.count(",aggregate=on")
            props = props.replace(",aggregate=on", "")
        else:
            props = ",netdev=net0" + props
        with running(qemu, props, net) as hca:
            hca.set_port(MAC_BYTES, c.PORT_ENABLE)
            hca.peer = peer
            hca.wire = wire
            yield hca


def start_again(hca):
    hca.map_bars()
    hca.start()
    hca.set_port(MAC_BYTES, c.PORT_ENABLE)


def frame(number, dst=MAC_BYTES, src=PEER, size=100):
    head = dst + src + b"\x88\xb5" + number.to_bytes(4, "big")
    return head.ljust(size, b"\x5a")


def make_queue(hca, direction, log_size=RING_LOG):
    cq = hca.create_cq(hca.create_eq(vector=1), max(log_size, 4))
    queue = hca.create_ethq(cq, direction, log_size)
    return cq, queue


def test_transmit(qemu):
    """frames are sent as they were posted"""
    with wired(qemu) as hca:
        cq, tx = make_queue(hca, c.ETH_TX)
        buf = hca.alloc()
        for i in range(20):
            data = frame(i, PEER, MAC_BYTES, 60 + 70 * i)
            hca.m.write(buf, data)
            tx.post(buf, len(data))
            tx.ring_doorbell()
            equal(wait_for(cq.poll, "CQE")[:2],
                  (c.CQE_ETH_TX, c.WC_SUCCESS))
            equal(hca.wire.recv(65536), data)
        equal(hca.counter("eth_tx_pkts"), 20)


def test_transmit_back_pressure(qemu):
    """no frame is lost or duplicated when the network does not keep up"""
    with wired(qemu) as hca:
        cq, tx = make_queue(hca, c.ETH_TX)
        buf = hca.alloc(64)
        got = []
        for i in range(64):
            data = frame(i, PEER, MAC_BYTES)
            hca.m.write(buf + PAGE * i, data)
        for i in range(64):
            while tx.pi - cq.ci == 1 << RING_LOG:   # ring full: make room
                if not cq.poll():
                    got.append(hca.wire.recv(65536))
            tx.post(buf + PAGE * i, 100)
            tx.ring_doorbell()
        while len(got) < 64:
            got.append(hca.wire.recv(65536))
        equal(got, [frame(i, PEER, MAC_BYTES) for i in range(64)])
        hca.wire.setblocking(False)
        try:
            hca.wire.recv(65536)
        except BlockingIOError:
            pass
        else:
            raise AssertionError("a frame arrived twice")


def send_until_full(hca):
    """Send until a frame is refused; return how many are on the wire. Two more are in
    flight: the network holds one and the device the other."""
    cq, tx = make_queue(hca, c.ETH_TX)
    buf = hca.alloc()
    hca.m.write(buf, frame(0, PEER, MAC_BYTES))
    while True:
        tx.post(buf, 100)
        tx.ring_doorbell()
        if not cq.poll():
            return cq.ci - 2


def drain(wire):
    """Receive all frames on the wire; return their number."""
    wire.settimeout(0.2)
    count = 0
    with contextlib.suppress(TimeoutError):
        while wire.recv(65536):
            count += 1
    return count


def test_reset_takes_back(qemu):
    """a reset drops frames that are not on the wire yet, and unblocks the queue"""
    for reset in (Hca.flr, lambda hca: hca.set_reg("RESET", c.RESET_KEY)):
        with wired(qemu) as hca:
            on_wire = send_until_full(hca)
            reset(hca)
            equal(drain(hca.wire), on_wire)
            start_again(hca)
            equal(send_until_full(hca), on_wire)


def receive(hca, rx, cq, buf, count):
    """Post buffers for @count frames and return what arrives."""
    frames = []
    while len(frames) < count:
        batch = min(1 << RING_LOG, count - len(frames))
        for i in range(batch):
            rx.post(buf + PAGE * i, PAGE)
        rx.ring_doorbell()
        for i in range(batch):
            opcode, status, length, _ = wait_for(cq.poll, "frame")
            equal((opcode, status), (c.CQE_ETH_RX, c.WC_SUCCESS))
            frames.append(hca.m.read(buf + PAGE * i, length))
    return frames


def receive_one(hca, rx, cq, buf, data):
    rx.post(buf, PAGE)
    rx.ring_doorbell()
    hca.wire.sendto(data, hca.peer)
    _, _, length, _ = wait_for(cq.poll, "frame")
    return hca.m.read(buf, length)


def test_receive_waits(qemu):
    """frames wait for buffers, and arrive in order when buffers are posted"""
    with wired(qemu) as hca:
        cq, rx = make_queue(hca, c.ETH_RX)
        buf = hca.alloc(1 << RING_LOG)
        equal(receive_one(hca, rx, cq, buf, frame(0)), frame(0))
        for i in range(8):      # as many as a unix socket holds
            hca.wire.sendto(frame(i), hca.peer)
        equal(receive(hca, rx, cq, buf, 8), [frame(i) for i in range(8)])
        equal(hca.counter("eth_rx_no_buf"), 0)
        equal(hca.counter("eth_rx_pkts"), 9)


@contextlib.contextmanager
def no_buffers(qemu, args=()):
    """A device with an empty ring, that ring, its CQ, buffers, and a function that sends a
    frame to it from another device. The frames wait in the network between the two."""
    # The unconnected port accepts every frame, so the hub does not block the sender.
    args = ("-netdev", "hubport,hubid=0,id=nowhere", *args)
    with running_two(qemu, args) as hcas:
        for hca in hcas:
            hca.set_port(hca.mac, c.PORT_ENABLE, PAGE)
        tx_cq, tx = make_queue(hcas[0], c.ETH_TX)
        cq, rx = make_queue(hcas[1], c.ETH_RX)
        src, buf = hcas[0].alloc(), hcas[1].alloc(1 << RING_LOG)

        def send(data):
            hcas[0].m.write(src, data)
            tx.post(src, len(data))
            tx.ring_doorbell()
            equal(wait_for(tx_cq.poll, "CQE")[:2],
                  (c.CQE_ETH_TX, c.WC_SUCCESS))
        # A frame that finds a buffer makes the next ones wait for more.
        rx.post(buf, PAGE)
        rx.ring_doorbell()
        send(frame(0, hcas[1].mac))
        wait_for(cq.poll, "frame")
        yield hcas[1], rx, cq, buf, send


def test_receive_from_queue(qemu):
    """many frames that wait in the network are not lost with a small ring"""
    with no_buffers(qemu) as (hca, rx, cq, buf, send):
        frames = [frame(i, hca.mac) for i in range(30)]
        for data in frames:
            send(data)
        equal(receive(hca, rx, cq, buf, 30), frames)
        equal(hca.counter("eth_rx_no_buf"), 0)


def check_turns(qemu, size, most):
    """Check that at most @most frames of @size bytes, for others, are handled in one turn."""
    many = most + 100
    with no_buffers(qemu, ("-trace", "qhca_net_rx", "-trace", "qhca_bh")) as (hca, *_, send):
        for i in range(many):
            send(frame(i, PEER, size=size))
        before = hca.m.log().count("qhca_net_rx hca1")
        hca.m.clock_step(10_000_000)        # the rest waits no longer than this

        def turns():
            pieces = hca.m.log().split("qhca_bh hca1")
            return [piece.count("qhca_net_rx hca1") for piece in pieces]
        wait_for(lambda: sum(turns()) == before + many, "frames")
        equal(max(turns()), most)


def test_receive_in_turns(qemu):
    """many frames at once, even if for others, do not keep QEMU from other work"""
    check_turns(qemu, 100, RX_BUDGET)


def test_receive_long_in_turns(qemu):
    """fewer long frames, which take more time, are handled at once"""
    check_turns(qemu, 4096, RX_BUDGET // 4)


def test_receive_gives_up(qemu):
    """frames do not wait for ever, because RoCE frames may follow"""
    with wired(qemu) as hca:
        cq, rx = make_queue(hca, c.ETH_RX)
        buf = hca.alloc(1 << RING_LOG)

        def dropped(count):
            hca.m.clock_step(5_000_000)
            return hca.counter("eth_rx_no_buf") == count
        for drops in (0, 2):
            # A frame that finds a buffer makes the next ones wait for more.
            equal(receive_one(hca, rx, cq, buf, frame(1)), frame(1))
            hca.wire.sendto(frame(2), hca.peer)
            for _ in range(20):
                equal(hca.counter("eth_rx_no_buf"), drops)
            wait_for(lambda: dropped(drops + 1), "drop")
            hca.wire.sendto(frame(3), hca.peer)
            wait_for(lambda: hca.counter("eth_rx_no_buf") == drops + 2,
                     "drop without waiting")


def test_no_queue_no_wait(qemu):
    """without an Ethernet queue frames are dropped at once, after a reset too"""
    with wired(qemu) as hca:
        for i in range(100):
            hca.wire.sendto(frame(i), hca.peer)
        cq, rx = make_queue(hca, c.ETH_RX)
        equal(receive_one(hca, rx, cq, hca.alloc(), frame(0)), frame(0))
        hca.flr()
        start_again(hca)
        for i in range(100):
            hca.wire.sendto(frame(i), hca.peer)
        equal(hca.counter("eth_rx_pkts"), 1)


def test_filter(qemu):
    """frames to others are received only if the filter allows it"""
    with wired(qemu) as hca:
        cq, rx = make_queue(hca, c.ETH_RX)
        buf = hca.alloc(1 << RING_LOG)
        for _ in range(4):
            rx.post(buf, PAGE)
        rx.ring_doorbell()
        other = bytes.fromhex("525400999999")
        multicast = bytes.fromhex("01005e000001")
        broadcast = b"\xff" * 6

        def arrives(dst):
            before = cq.ci
            hca.wire.sendto(frame(1, dst), hca.peer)
            hca.wire.sendto(frame(2, MAC_BYTES), hca.peer)
            wait_for(lambda: hca.m.read(buf, 18)[:18] == frame(2)[:18] and
                     cq.poll(), "frame to us")
            more = cq.poll() is not None
            while cq.poll():
                pass
            hca.m.write(buf, bytes(18))
            for _ in range(cq.ci - before):
                rx.post(buf, PAGE)
            rx.ring_doorbell()
            return more
        equal([arrives(d) for d in (other, multicast, broadcast)],
              [False, False, True])
        hca.set_port(MAC_BYTES, c.PORT_ENABLE | c.PORT_ALLMULTI)
        equal([arrives(d) for d in (other, multicast, broadcast)],
              [False, True, True])
        hca.set_port(MAC_BYTES, c.PORT_ENABLE | c.PORT_PROMISC)
        equal([arrives(d) for d in (other, multicast, broadcast)],
              [True, True, True])


def aggregate(frames, seq=0):
    """An aggregate of frames, see engine/wire/aggregate.c."""
    head = frames[0][:12] + b"\x88\xb5" + b"qagg" + seq.to_bytes(2, "big") + bytes(2)
    return head + b"".join(len(f).to_bytes(2, "big") + f for f in frames)


def test_aggregate_transmit(qemu):
    """with aggregate=on frames sent at once are sent as one"""
    with wired(qemu, ",aggregate=on") as hca:
        cq, tx = make_queue(hca, c.ETH_TX)
        buf = hca.alloc(1 << RING_LOG)
        for count in (1, 2, 8, 8):
            sent = [frame(i, PEER, MAC_BYTES, 60 + 150 * i) for i in range(count)]
            for i, data in enumerate(sent):
                hca.m.write(buf + PAGE * i, data)
                tx.post(buf + PAGE * i, len(data))
            tx.ring_doorbell()
            for _ in sent:
                wait_for(cq.poll, "CQE")
            got = hca.wire.recv(1 << 17)
            seq = int.from_bytes(got[18:20], "big")
            assert got == (aggregate(sent, seq) if count > 1 else sent[0]), count


def test_aggregate_receive(qemu):
    """with aggregate=on each frame of an aggregate is received once, even if it has to wait"""
    with wired(qemu, ",aggregate=on") as hca:
        cq, rx = make_queue(hca, c.ETH_RX)
        buf = hca.alloc(1 << RING_LOG)
        equal(receive_one(hca, rx, cq, buf, frame(0)), frame(0))
        sent = [frame(i, size=60 + 60 * i) for i in range(20)]
        for seq in (1, 2):
            hca.wire.sendto(aggregate(sent, seq), hca.peer)
        hca.wire.sendto(aggregate(sent, 3)[:-1], hca.peer)
        equal(receive(hca, rx, cq, buf, 59), sent + sent + sent[:-1])
        rx.post(buf, PAGE)
        rx.ring_doorbell()
        hca.wire.sendto(frame(7), hca.peer)
        wait_for(cq.poll, "frame")
        equal(hca.m.read(buf, 100), frame(7))
        equal(hca.counter("eth_rx_no_buf"), 0)


def test_aggregate_lost(qemu):
    """with aggregate=on the rest of an aggregate that gets lost is not missing in the next"""
    with wired(qemu, ",aggregate=on") as hca:
        cq, rx = make_queue(hca, c.ETH_RX)
        buf = hca.alloc(1 << RING_LOG)
        sent = [frame(i) for i in range(4)]
        equal(receive_one(hca, rx, cq, buf, aggregate(sent, 1)), sent[0])
        hca.m.cmd("set_link", name="net0", up=False)
        rx.post(buf, PAGE)
        rx.ring_doorbell()      # the network delivers the rest, which the cable loses
        hca.m.clock_step(20000000)
        hca.m.cmd("set_link", name="net0", up=True)
        hca.wire.sendto(aggregate(sent, 2), hca.peer)
        wait_for(cq.poll, "frame")
        equal(hca.m.read(buf, 100), sent[0])
        equal(receive(hca, rx, cq, buf, 3), sent[1:])


def test_aggregate_off(qemu):
    """without aggregate=on an aggregate is a frame like any other"""
    with wired(qemu) as hca:
        cq, rx = make_queue(hca, c.ETH_RX)
        data = aggregate([frame(i) for i in range(5)])
        equal(receive_one(hca, rx, cq, hca.alloc(), data), data)


def test_link_down(qemu):
    """without carrier frames are dropped, and their WQEs complete"""
    with wired(qemu) as hca:
        cq, tx = make_queue(hca, c.ETH_TX)
        buf = hca.alloc()
        hca.m.write(buf, frame(1, PEER, MAC_BYTES))
        hca.m.cmd("set_link", name="net0", up=False)
        wait_for(lambda: not hca.reg("STATUS") & c.STATUS_LINK_UP, "link down")
        tx.post(buf, 100)
        tx.ring_doorbell()
        wait_for(cq.poll, "CQE")
        hca.m.cmd("set_link", name="net0", up=True)
        wait_for(lambda: hca.reg("STATUS") & c.STATUS_LINK_UP, "link up")
        hca.m.write(buf, frame(2, PEER, MAC_BYTES))
        tx.post(buf, 100)
        tx.ring_doorbell()
        equal(hca.wire.recv(65536), frame(2, PEER, MAC_BYTES))
