# SPDX-License-Identifier: GPL-2.0-or-later
"""Head of line: a slow or stopped peer holds up no other."""

import contextlib
import os
import signal
import socket
import struct
import tempfile
import time

import contract as c
from fixture import equal, start
from hca import PAGE, PATIENCE, wait_for
from machine import LIFE
from rc import Port, connected, rdma
from served import Server, machine, machines
from test_net import frame, make_queue
from test_server_hostile import lingering
from vfio_user import Client

NOBODY = bytes.fromhex("525400999999")
TOO_LONG = 0.4      # seconds for a WRITE that takes a millisecond; frames wait 100 ms, once


@contextlib.contextmanager
def three(program, *args, properties=("", "", "")):
    """Running devices of one server, with a connection between the first and the second, where
    a WRITE can be posted and waited for."""
    with Server(program, *properties, args=args) as server:
        hcas = start(machines(server))
        ports = [Port(hca, hca.mac, host) for host, hca in enumerate(hcas, 1)]
        for port in ports:
            port.hca.set_port(port.mac, c.PORT_ENABLE, PAGE)
        yield server, hcas, Line(ports[:2])


def without_cpu(*pids):
    """The seconds that the first threads of processes have waited until they could run."""
    waited = 0
    for pid in pids:
        with open("/proc/%d/schedstat" % pid, encoding="ascii") as file:
            waited += int(file.read().split()[1])
    return waited / 1e9


class Line:
    """A connection between two machines that also have other things to do."""

    def __init__(self, ports):
        self.qps = connected(*ports)
        self.pids = os.getpid(), ports[0].hca.m.server.process.pid
        self.src, self.dst = [port.memory() for port in ports]

    def post(self, text):
        one = self.qps[0]
        one.hca.m.write(self.src.addr, text)
        one.post(c.WR_RDMA_WRITE, self.src, len(text), rdma(self.dst))

    def clock(self):
        """Seconds, without those in which this host had no CPU for one of the two."""
        return time.monotonic() - without_cpu(*self.pids)

    def works(self, text=b"across"):
        """A WRITE arrives. Returns the seconds it took."""
        begin = self.clock()
        self.post(text)
        self.arrives(text)
        return self.clock() - begin

    def arrives(self, text):
        equal(self.qps[0].done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
        equal(self.qps[1].hca.m.read(self.dst.addr, len(text)), text)


class Flood:
    """Frames from @hca to @mac, as many as it gets rid of."""

    def __init__(self, hca, mac, size=100, source=None, log_size=3):
        self.hca, self.size = hca, size
        self.cq, self.tx = make_queue(hca, c.ETH_TX, log_size)
        self.buf = hca.alloc()
        hca.m.write(self.buf, frame(0, mac, source or hca.mac, size))

    def more(self):
        """Post frames while there is room. Returns how many have been sent in all."""
        while self.cq.poll():
            pass
        while self.tx.pi - self.cq.ci < 1 << self.tx.log_size:
            self.tx.post(self.buf, self.size)
        self.tx.ring_doorbell()
        return self.cq.ci

    def run(self, seconds, also=lambda: None):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.more()
            also()


class Trickle:
    """A receiver that takes a frame now and then, so that the next ones wait for its ring."""

    def __init__(self, hca, interval):
        self.cq, self.rx = make_queue(hca, c.ETH_RX)
        self.buf, self.interval, self.last = hca.alloc(), interval, 0

    def turn(self):
        while self.cq.poll():
            pass
        if time.monotonic() - self.last >= self.interval:
            self.last = time.monotonic()
            self.rx.post(self.buf, PAGE)
            self.rx.ring_doorbell()


def test_slow_receiver(program):
    """a machine that takes a frame now and then does not slow down those who send to it"""
    with three(program) as (_, hcas, line):
        slow = Trickle(hcas[2], 0.008)      # a frame waits for the ring for 10 ms
        flood = Flood(hcas[0], hcas[2].mac)
        slow.turn()
        flood.run(1, slow.turn)
        took = []
        for number in range(5):
            flood.run(0.05, slow.turn)
            line.post(b"number %d" % number)
            begin, end = line.clock(), None
            while not end:
                slow.turn()
                flood.more()
                end = line.qps[0].cq.poll()
            took.append(line.clock() - begin)
        assert max(took) < TOO_LONG, took


def test_stopped_receiver(program):
    """a machine that stands still with its ring full does not hold up those who send to it"""
    with three(program) as (_, hcas, line):
        slow = Trickle(hcas[2], 0)
        flood = Flood(hcas[0], hcas[2].mac)
        slow.turn()
        flood.run(0.2)
        took = [line.works(b"number %d" % number) for number in range(5)]
        assert max(took) < TOO_LONG, took


@contextlib.contextmanager
def far_end():
    """Where an uplink connects to; the words for the server, and the listener."""
    with tempfile.TemporaryDirectory() as top, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(top, "hub")
        listener.bind(path)
        listener.listen(1)
        yield ("--uplink", "stream:" + path), listener


def test_stopped_uplink(program):
    """an uplink that takes nothing does not hold up traffic between machines, whoever uses it"""
    for mac in (NOBODY, b"\xff" * 6):
        with far_end() as (words, listener), three(program, *words) as (_, hcas, line):
            far = listener.accept()[0]
            flood = Flood(hcas[0], mac, 1400)
            flood.run(0.7)
            took = [line.works(b"number %d" % number) for number in range(5)]
            assert max(took) < TOO_LONG, took
            far.close()


def test_trickling_uplink(program):
    """nor does one that takes a few bytes now and then"""
    with far_end() as (words, listener), three(program, *words) as (_, hcas, line):
        far = listener.accept()[0]
        flood = Flood(hcas[0], NOBODY, 1400)
        flood.run(0.7, lambda: far.recv(100))
        took = []
        for number in range(5):
            flood.run(0.05, lambda: far.recv(100))
            took.append(line.works(b"number %d" % number))
        assert max(took) < TOO_LONG, took
        far.close()


def test_uplink_pauses(program):
    """frames to an uplink that takes nothing for a moment wait for it, and none is lost"""
    with far_end() as (words, listener), three(program, *words) as (_, hcas, _):
        far = listener.accept()[0]
        flood = Flood(hcas[0], NOBODY, 4000)
        sent, end, since = 0, time.monotonic() + 5, time.monotonic()
        # For 50 ms nothing moves, so nothing is dropped.
        while time.monotonic() - since < 0.05:
            assert time.monotonic() < end, f"{sent} frames, and no end"
            if flood.more() != sent:
                sent, since = flood.cq.ci, time.monotonic()
        assert sent > 50, sent
        far.settimeout(PATIENCE)
        with far.makefile("rb") as stream:
            for _ in range(sent):
                size, = struct.unpack(">I", stream.read(4))
                equal(stream.read(size)[:6], NOBODY)
        far.close()


def test_uplink_recovers(program):
    """an uplink that takes frames again gets them whole, and what it did not get is counted"""
    with far_end() as (words, listener), three(program, *words) as (server, hcas, line):
        far = listener.accept()[0]
        flood = Flood(hcas[0], NOBODY, 1400)
        flood.run(0.7)
        far.settimeout(PATIENCE)
        with far.makefile("rb") as stream:
            for _ in range(1000):       # more than were waiting
                size, = struct.unpack(">I", stream.read(4))
                equal(size, 1400)
                equal(stream.read(size)[:6], NOBODY)
                flood.more()
        counts = server.get("uplink")
        assert counts["connected"] and counts["dropped"] and counts["sent"] > 1000, counts
        line.works()
        far.close()


def send_lingering(far, before):
    """Send file descriptors whose close() waits until the result is closed; None: the kernel has
    refused that, as it can since 6.16."""
    socks, peers = zip(*(lingering() for _ in range(2)))
    try:
        for sock in socks:
            socket.send_fds(far, [before + b"\0\0\0\4"], [sock.fileno()])
    except PermissionError:
        for peer in peers:
            peer.close()
        peers = None
    for sock in socks:
        sock.close()
    return peers


def test_fds_from_uplink(program):
    """nor does one that sends file descriptors, whose close() waits"""
    for before in b"", bytes(4):
        with far_end() as (words, listener), three(program, *words) as (server, _, line):
            far = listener.accept()[0]
            os.kill(server.process.pid, signal.SIGSTOP)       # its close() has to be the last
            peers = send_lingering(far, before)
            os.kill(server.process.pid, signal.SIGCONT)
            took = [line.works(b"number %d" % number) for number in range(5)]
            assert max(took) < TOO_LONG, took
            equal(server.get("uplink")["connected"], peers is None)
            equal("file descriptors come by the uplink" in server.text(), peers is not None)
            far.close()
            for peer in peers or ():
                peer.close()


class Sink:
    """A receiver that takes all that is there when it looks."""

    def __init__(self, hca):
        self.cq, self.rx = make_queue(hca, c.ETH_RX, 6)
        self.hca, self.buf = hca, hca.alloc()

    def look(self):
        while self.cq.poll():
            pass
        while self.rx.pi - self.cq.ci < 1 << self.rx.log_size:
            self.rx.post(self.buf, PAGE)
        self.rx.ring_doorbell()
        self.hca.reg("STATUS")          # is answered after that


def burst(server, sink, flood, end):
    """Fill the ring, the switch's queue and the sender's ring, and then take all, before @end.
    Returns how many frames were lost, and the seconds it took."""
    lost, full = flood.tx.pi - sink.cq.ci, flood.tx.pi + (1 << sink.rx.log_size) + 256
    begin = time.monotonic()
    sink.look()
    while flood.more() < full:
        assert time.monotonic() < end, "frames are not sent"
    while sum(map(server.get("port", "hca2").get, ("received", "dropped"))) < flood.tx.pi:
        assert time.monotonic() < end, "frames are neither received nor dropped"
        sink.look()
    took = time.monotonic() - begin
    sink.look()
    return flood.tx.pi - sink.cq.ci - lost, took


def test_no_loss_between_ports(program):
    """frames to a machine that takes them all, in its own time, are not lost"""
    with three(program) as (server, hcas, _):
        sink, flood = Sink(hcas[2]), Flood(hcas[0], hcas[2].mac, log_size=6)
        judged, end = 0, time.monotonic() + LIFE
        while judged < 5:
            assert time.monotonic() < end, f"{judged} bursts in time"
            lost, took = burst(server, sink, flood, end)
            # Frames wait 10 ms for a buffer; this or the server may have been without a CPU.
            if took < 0.01:
                equal(lost, 0)
            judged += not lost
        equal(server.get("uplink"), None)


def test_four_machines(program):
    """four machines write to each other, all at once, while another one comes and goes"""
    with Server(program, *5 * [""]) as server:
        hcas = start([machine(server, number) for number in range(4)])
        ports = [Port(hca, hca.mac, host) for host, hca in enumerate(hcas, 1)]
        lines = [Line((one, other)) for one in ports for other in ports if one is not other]
        for number in range(20):
            with Client(server.paths[4]) as client:
                client.read(c.BAR_REGS, 0, 4)
                for line in lines:
                    line.post(b"number %d" % number)
            for line in lines:
                line.arrives(b"number %d" % number)


def test_silent_client(program):
    """a connection that reads nothing, and one that begins a message, hold up nobody"""
    with three(program) as (server, hcas, line):
        silent = hcas[2].m.client
        silent.sock.setblocking(False)
        end = time.monotonic() + 1.5
        took = []
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                silent.sock.send(b"\x01\0\x09\0" + struct.pack("<III", 32, 0, 0) +
                                 struct.pack("<QII", 0, c.BAR_DM, 32768))
            took.append(line.works())
        assert max(took) < TOO_LONG, max(took)
        wait_for(lambda: not server.connected("hca2"), "end")


def test_crowded_table(program):
    """addresses that a machine sends from do not push those of adapters out of the switch"""
    with three(program) as (server, hcas, line):
        other = bytes([0x52, 0x54, 1]) + hcas[1].mac[3:]    # the table goes by the last half
        flood = Flood(hcas[2], NOBODY, source=other)
        flood.more()
        wait_for(flood.cq.poll, "sent frame")
        line.works()
        equal(server.get("port", "hca0")["sent"], 0)


def test_address_moves(program):
    """an address of one adapter may be used by another, which gets its frames until a reset"""
    with three(program) as (server, hcas, _):
        cq, rx = make_queue(hcas[2], c.ETH_RX)
        hcas[2].set_port(hcas[1].mac, c.PORT_ENABLE, PAGE)
        rx.post(hcas[2].alloc(), PAGE)
        rx.ring_doorbell()
        Flood(hcas[2], NOBODY, source=hcas[1].mac).more()
        wait_for(lambda: server.get("port", "hca2")["sent"], "sent frame")
        flood = Flood(hcas[0], hcas[1].mac)
        flood.more()
        wait_for(cq.poll, "frame")
        before = server.get("port", "hca1")["received"]     # what went to all
        hcas[1].set_reg("RESET", c.RESET_KEY)
        flood.more()
        wait_for(lambda: server.get("port", "hca1")["received"] > before, "frame after the reset")


def test_pause_of_another(program):
    """frames that ask for a pause get no further than the switch"""
    with three(program) as (server, hcas, line):
        flood = Flood(hcas[2], hcas[0].mac)
        for dst in hcas[0].mac, bytes.fromhex("0180c2000001"):
            hcas[2].m.write(flood.buf, dst + hcas[2].mac + bytes.fromhex("88080001ffff"))
            flood.more()
        wait_for(flood.cq.poll, "frame")
        line.works()
        equal(hcas[0].counter("rx_pause"), 0)
        equal(server.get("port", "hca2")["sent"], 0)


def test_stolen_address(program):
    """with spoofchk a machine sends from its own address only, and gets nobody else's frames"""
    with three(program, properties=("", "", ",spoofchk=on")) as (server, hcas, line):
        thief = Flood(hcas[2], NOBODY, source=hcas[1].mac)
        thief.more()
        wait_for(thief.cq.poll, "a frame that is dropped")
        line.works()
        equal(server.get("port", "hca2")["sent"], 0)
        assert server.get("port", "hca2")["spoofed"] > 0
        hcas[2].m.write(thief.buf, frame(0, NOBODY, hcas[2].mac, thief.size))
        thief.more()
        wait_for(lambda: server.get("port", "hca2")["sent"], "frame from its own address")


def test_stolen_address_across(program):
    """spoofchk holds for what would reach its destination without a frame, too"""
    with three(program) as (server, hcas, _):
        thief, other = Port(hcas[2], NOBODY, 3), Port(hcas[0], hcas[0].mac, 4)
        src, dst = thief.memory(), other.memory()
        for spoofchk, status in (False, c.WC_SUCCESS), (True, c.WC_RETRY_EXC_ERR):
            server.qmp("qom-set", path="hca2", property="spoofchk", value=spoofchk)
            equal(server.get("spoofchk", "hca2"), spoofchk)
            qp, _ = connected(thief, other)
            qp.post(c.WR_RDMA_WRITE, src, PAGE, rdma(dst))
            equal(qp.done(), (c.CQE_RDMA_WRITE, status))
            equal(server.get("port", "hca2")["spoofed"] > 0, spoofchk)


def test_kept_address(program):
    """nobody, here or behind the uplink, gets the frames to an adapter with spoofchk"""
    with far_end() as (words, listener), three(
            program, *words, properties=("", ",spoofchk=on", "")) as (server, hcas, line):
        far = listener.accept()[0]
        thief = Flood(hcas[2], NOBODY, source=hcas[1].mac)
        stolen = frame(0, hcas[0].mac, hcas[1].mac, 100)

        def steal():
            sent, came = (server.get("port", "hca2")["sent"], server.get("port")["received"])
            far.sendall(struct.pack(">I", len(stolen)) + stolen)
            thief.more()
            wait_for(lambda: server.get("port", "hca2")["sent"] > sent and
                     server.get("port")["received"] > came, "frames from an address of another")

        steal()
        line.works()
        equal(server.get("port")["sent"], 0)
        for spoofchk in False, True:    # the stolen address is given back
            steal()
            server.qmp("qom-set", path="hca1", property="spoofchk", value=spoofchk)
        line.works()
        equal(server.get("port")["sent"], 0)
        far.close()
