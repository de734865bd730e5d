# SPDX-License-Identifier: GPL-2.0-or-later
"""A server's own: sockets, shared memory, several machines, hostile peers."""

import contextlib
import mmap
import os
import re
import socket
import struct
import subprocess
import tempfile
import time
import types

import contract as c
from fixture import equal, start
from hca import PAGE, PATIENCE, wait_for
from machine import HERE, RAM_SIZE
from rc import Port, Qp, connected, rdma
from served import Server, cpu_time, machine, machines
from vfio_user import HEAD, READ, Client, Refused


@contextlib.contextmanager
def two(program):
    """Two running devices of one server, and the server."""
    with Server(program, "", "") as server:
        yield start(machines(server)), server


@contextlib.contextmanager
def memory(size=RAM_SIZE):
    fd = os.memfd_create("ram", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    try:
        yield fd
    finally:
        os.close(fd)


def is_refused(function, *args):
    try:
        function(*args)
    except Refused:
        return True
    return False


def pair(hcas, **kwargs):
    """Connected QPs and their buffers, one of each machine."""
    ports = [Port(hca, hca.mac, host) for host, hca in enumerate(hcas, 1)]
    return connected(*ports, **kwargs), [port.memory() for port in ports]


def write_works(qps, buffers, text=b"across"):
    """A WRITE from the first machine to the second."""
    (one, _), (src, dst) = qps, buffers
    one.hca.m.write(src.addr, text)
    one.post(c.WR_RDMA_WRITE, src, len(text), rdma(dst))
    equal(one.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
    equal(dst_memory(qps).read(dst.addr, len(text)), text)


def dst_memory(qps):
    return qps[1].hca.m


def test_wrong_options(program):
    """wrong options and properties end the server with a message"""
    for text, says in (("vectors=1", "'vectors' must be between"),
                       ("mac=01:00:00:00:00:00", "unicast"), ("nonsense=1", "'nonsense'"),
                       ("mac=52:54:00:00:00", "'mac'"), ("mac=52:54:00:00:00:00:1", "'mac'"),
                       ("uars=x", "'uars'"), ("faults=drop sometimes", "faults: line 1"),
                       ("frames=maybe", "'frames'"), ("vectors=-1", "'vectors'"),
                       ("vectors=4294967298", "'vectors'"), ("frames", "'frames'"),
                       ("dm-size=3K", "'dm-size' must be"), ("dm-size=64KK", "'dm-size'"),
                       ("dm-size=17179869185G", "'dm-size'"), ("seed= -1", "'seed'"),
                       ("seed=18446744073709551616", "'seed'"), ("vectors= 8", "'vectors'"),
                       ("mac=52:54:00:00:+1: 1", "'mac'"), ("mac=0:0:0:0:0:0", "'mac'"),
                       ("id=", "'id'"), ("spoofchk=maybe", "'spoofchk'"),
                       ("loopback-capture=/nowhere/x", "/nowhere/x: No such"),
                       ("max-qp=4294967295", "'max-qp' is too large")):
        done = subprocess.run([program, "--socket", "/nowhere/socket," + text], check=False,
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode in (1, 2) and says in done.stderr, (text, done)
    for words in ([], ["--socket"], ["--uplink", "carrier:pigeon", "--socket", "/nowhere/x"],
                  ["--socket", "/nowhere/x"], ["--socket", "/" + "x" * 200],
                  ["--socket", ""], ["--socket", ",id=x"], ["--socket", "/x", "--control", ""],
                  ["--socket", "/x", "--uplink", ""], ["--socket", "/x", "--uplink", "stream:"],
                  ["--socket", "/x", "--uplink", "dgram::/y"],
                  ["--socket", "/x,id=a", "--socket", "/y,id=a"],
                  ["--socket", "/x,mac=2:0:0:0:0:1", "--socket", "/y,mac=02:0:0:0:0:01"],
                  ["--socket", "/x", "--control", "/y", "--control", "/z"],
                  ["--socket", "/x", "--uplink", "tap:a", "--uplink", "tap:b"]):
        done = subprocess.run([program, *words], check=False, capture_output=True, text=True,
                              timeout=PATIENCE)
        assert done.returncode in (1, 2) and done.stderr, (words, done)


def test_trace_names(program):
    """the trace events are those of QEMU's table, but for some, and others are refused"""
    with open(os.path.join(HERE, "../trace-events"), encoding="utf-8") as file:
        table = set(re.findall(r"^(\w+)\(", file.read(), re.M))
    done = subprocess.run([program, "--trace", "help"], check=True, capture_output=True, text=True)
    names = done.stdout.split()
    equal((len(names), len(table - set(names)), set(names) - table), (len(set(names)), 3, set()))
    done = subprocess.run([program, "--trace", "qhca_nothing", "--socket", "/nowhere/x"],
                          check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "'qhca_nothing'" in done.stderr, done


def test_removed(program):
    """a fault rule takes the adapter away from its machine, and the next one finds it"""
    with Server(program, "", "") as server:
        other = machine(server, 1)
        for rule in "timer after=200ms remove", "cmd opcode=nop once remove":
            hca, = start([machine(server, 0)])
            hca.m.cmd("qom-set", path="hca0", property="faults", value=rule)
            hca.ok(c.CMD_NOP)
            equal(hca.m.client.sock.recv(1), b"")
            assert "hca0: a fault rule removes the adapter" in server.text(), server.text()
            hca.m.close()
            wait_for(lambda: not server.connected(), "free adapter")
        start([machine(server, 0)])[0].ok(c.CMD_NOP)
        start([other])[0].ok(c.CMD_NOP)


def test_not_shared(program):
    """memory that is not shared is not reached, and the server says what to do"""
    with Server(program, "") as server:
        with Client(server.paths[0]) as client:
            client.share(0, RAM_SIZE, None)
            assert "not shared: give QEMU -object memory-backend-memfd" in server.text()


def test_mappings(program):
    """mappings that overlap or are not there are refused, and so are too many"""
    with Server(program, "") as server, Client(server.paths[0]) as client, memory() as fd:
        client.share(PAGE, PAGE, fd)
        assert is_refused(client.share, 0, PAGE + 1, fd)
        assert is_refused(client.share, PAGE + 1, 1, fd)
        assert is_refused(client.unshare, PAGE, PAGE // 2)
        client.unshare(PAGE, PAGE)
        assert is_refused(client.unshare, PAGE, PAGE)
        for number in range(1000):
            if is_refused(client.share, number * PAGE, PAGE, fd):
                break
        assert 10 <= number < 999, number
        client.read(c.BAR_REGS, 0, 4)


def test_read_only_memory(program):
    """memory that is handed over for reading is not written"""
    with Server(program, "") as server:
        hca, = start(machines(server))
        port = Port(hca, hca.mac)
        one, _ = connected(port)
        src, dst = port.memory(), port.memory()
        end = hca.next_page
        hca.m.client.unshare(0, RAM_SIZE)
        hca.m.client.share(0, dst.addr, hca.m.fd)
        hca.m.client.share(dst.addr, PAGE, hca.m.fd, 1, dst.addr)
        hca.m.client.share(end, RAM_SIZE - end, hca.m.fd, 3, end)
        one.post(c.WR_RDMA_WRITE, src, 8, rdma(dst))
        assert one.done()[1] == c.WC_REM_OP_ERR


def test_memory_taken_back(program):
    """memory that is taken back is not reached any more, whatever was used last"""
    with Server(program, "") as server:
        hca, = start(machines(server))
        rest, size = hca.next_page, RAM_SIZE - hca.next_page
        hca.m.client.unshare(0, RAM_SIZE)
        hca.m.client.share(0, rest, hca.m.fd)
        hca.m.client.share(rest, size, hca.m.fd, 3, rest)
        port = Port(hca, hca.mac)
        before = hca.counter("dma_err")
        qps, (src, dst) = connected(port), (port.memory(), port.memory())
        write_works(qps, (src, dst))
        hca.m.client.unshare(rest, size)
        qps[0].post(c.WR_RDMA_WRITE, src, 1, rdma(dst))
        wait_for(lambda: hca.counter("dma_err") > before, "error")


def test_device_memory(program):
    """device memory can be mapped, and cannot be made smaller"""
    with Server(program, ",dm-size=64K") as server, Client(server.paths[0]) as client:
        client.write(c.BAR_DM, 4000, b"word")
        size, fds = client.region(c.BAR_DM)
        equal(size, 65536)
        with mmap.mmap(fds[0], 65536) as dm:
            equal(dm[4000:4004], b"word")
            dm[0:4] = b"back"
        equal(client.read(c.BAR_DM, 0, 4), b"back")
        try:
            os.ftruncate(fds[0], 0)
            raise AssertionError("the memory of the device has shrunk")
        except PermissionError:
            os.close(fds[0])


def test_reconnect(program):
    """a machine that is gone leaves a device as after power-on to the next"""
    with Server(program, "") as server:
        for _ in range(5):
            hca, = start(machines(server))
            Port(hca, hca.mac)
            assert server.get("objects") > 0
            hca.m.close()
            wait_for(lambda: not server.connected(), "end")
            equal(server.get("objects"), 0)


def test_two_machines(program):
    """a WRITE from machine to machine, without a frame"""
    with two(program) as (hcas, server):
        qps, buffers = pair(hcas)
        for number in range(20):
            write_works(qps, buffers, b"number %d" % number)
        equal([server.get("port", name)["sent"] for name in ("hca0", "hca1")], [0, 0])


def test_without_time(program):
    """frames to a machine that has no time to take them are not overtaken without a frame"""
    for props in ("", ",cpu-share=1"), (",cpu-share=1", ""):
        with Server(program, *props) as server:
            qps, (src, dst) = pair(start(machines(server)), timeout=0)     # wait for ever

            def both_ways_used():
                """A full send queue in one step: a slow host gives time back between WQEs."""
                for opcode in 8 * (c.WR_RDMA_WRITE, c.WR_RDMA_READ):
                    qps[0].put(opcode, src, PAGE, rdma(dst))
                qps[0].ring()
                for _ in range(16):
                    equal(qps[0].done()[1], c.WC_SUCCESS)
                counts = server.get("counters")
                equal(counts["retransmit"], 0)
                return 0 < server.get("port")["sent"] < counts["tx_pkts"]

            for _ in range(50):
                both_ways_used()
            wait_for(both_ways_used, "frame, or no way without one")


def test_machine_goes(program):
    """a machine that goes is a peer that does not answer, and comes back as a new one"""
    with two(program) as (hcas, server):
        qps, buffers = pair(hcas)
        write_works(qps, buffers)
        hcas[1].m.close()
        wait_for(lambda: not server.connected("hca1"), "end")
        qps[0].post(c.WR_RDMA_WRITE, buffers[0], 8, rdma(buffers[1]))
        equal(qps[0].done(), (c.CQE_RDMA_WRITE, c.WC_RETRY_EXC_ERR))
        assert server.get("port", "hca1")["dropped"] > 0
        hcas[1], = start([machine(server, 1)])
        equal(server.get("port", "hca1")["dropped"], 0)
        write_works(*pair(hcas))


def test_late_frame(program):
    """a frame that a timer has sent arrives at once, at whichever machine"""
    with two(program) as (hcas, server):
        qps, buffers = pair(hcas)
        for qp, src, dst in zip(qps, buffers, reversed(buffers)):
            path = "hca%d" % qps.index(qp)
            server.qmp("qom-set", path=path, property="faults", value="tx delay=5ms")
            took = []
            for _ in range(5):
                begin = time.monotonic()
                qp.post(c.WR_RDMA_WRITE, src, 8, rdma(dst))
                equal(qp.done(), (c.CQE_RDMA_WRITE, c.WC_SUCCESS))
                took.append(time.monotonic() - begin)
            assert min(took) < 0.04, took       # before the timer that sends it again
            server.qmp("qom-set", path=path, property="faults", value="")


def towards(hca, mac):
    """Send a WRITE to a QP that does not exist, behind @mac."""
    qp = Qp(Port(hca, hca.mac))
    qp.connect(types.SimpleNamespace(qpn=77, port=types.SimpleNamespace(
        gid=bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 99]), mac=mac)))
    buffer = qp.port.memory()
    qp.post(c.WR_RDMA_WRITE, buffer, 8, rdma(buffer))


FAR = bytes.fromhex("525400000099")


def exchange(hca, server, receive, send):
    """A frame to an address that no port has goes up, and one to a port comes down."""
    towards(hca, FAR)
    frame = receive()
    equal((frame[:6], frame[6:12]), (FAR, hca.mac))
    before = server.get("port")["received"]
    send(hca.mac + FAR + frame[12:])
    wait_for(lambda: server.get("port")["received"] == before + 1, "frame")
    send(b"short")
    send(hca.mac + FAR + bytes.fromhex("88080001ffff").ljust(46, b"\0"))     # a pause
    send(b"\xff" * 6 + FAR + frame[12:])
    wait_for(lambda: server.get("port")["received"] == before + 2, "frame")


def test_uplink_dgram(program):
    """frames go to other hosts and come from them, as datagrams"""
    with tempfile.TemporaryDirectory() as top, socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM) as far:
        far.bind(top + "/there")
        far.settimeout(PATIENCE)
        with Server(program, "", args=(
                "--uplink", "dgram:%s/here:%s/there" % (top, top))) as server:
            far.connect(top + "/here")
            exchange(start(machines(server))[0], server, lambda: far.recv(65536), far.send)


def test_uplink_stream(program):
    """frames go to other hosts and come from them, in a stream, also in pieces"""
    with tempfile.TemporaryDirectory() as top, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(top + "/hub")
        listener.listen(1)
        with Server(program, "", args=("--uplink", "stream:%s/hub" % top)) as server:
            far = listener.accept()[0]
            far.settimeout(PATIENCE)

            def receive():
                size, = struct.unpack(">I", far.recv(4, socket.MSG_WAITALL))
                return far.recv(size, socket.MSG_WAITALL)

            def send(frame):
                for part in struct.pack(">I", len(frame)), frame[:20], frame[20:]:
                    far.sendall(part)
                    time.sleep(0.02)
            exchange(start(machines(server))[0], server, receive, send)
            far.sendall(b"\xff" * 8)           # a frame of 4 GiB
            wait_for(lambda: "the uplink is gone" in server.text(), "end")
            far.close()


def test_link(program):
    """a link that is down carries nothing, at either end, and the guest sees it"""
    with two(program) as (hcas, server):
        for number, hca in enumerate(hcas):
            name, (qps, (src, dst)) = "hca%d" % number, pair(hcas)
            hcas[0].m.write(src.addr, b"too late")
            before = server.get("port", "hca1")
            equal(server.qmp("set_link", name=name, up=False), {"return": {}})
            wait_for(lambda hca=hca: not hca.reg("STATUS") & c.STATUS_LINK_UP, "carrier loss")
            qps[0].post(c.WR_RDMA_WRITE, src, 8, rdma(dst))
            equal(qps[0].done(), (c.CQE_RDMA_WRITE, c.WC_RETRY_EXC_ERR))
            equal(hcas[1].m.read(dst.addr, 8), bytes(8))
            lost = server.get("port", "hca1")["dropped"] - before["dropped"]
            equal((lost > 0, server.get("port", "hca1")["received"]),
                  (number == 1, before["received"]))
            equal(server.qmp("set_link", name=name, up=True), {"return": {}})
            wait_for(lambda hca=hca: hca.reg("STATUS") & c.STATUS_LINK_UP, "carrier")
            write_works(*pair(hcas))


def test_control(program):
    """commands of the control socket that are wrong get an error"""
    with Server(program, "") as server:
        for command, arguments in (
                ("quit", {}), ("qom-get", {}), ("qom-get", {"path": "hca0", "property": "x"}),
                ("qom-get", {"path": "hca1", "property": "faults"}),
                ("qom-set", {"path": "hca0", "property": "counters", "value": 1}),
                ("qom-set", {"path": "hca0", "property": "faults", "value": 1}),
                ("qom-set", {"path": "hca0", "property": "faults", "value": "tx drp"}),
                ("qom-set", {"path": "hca0", "property": "faults", "value": "tx drop\0rx drop"}),
                ("qom-set", {"path": "hca0", "property": "inject-fatal", "value": "yes"}),
                ("set_link", {"name": "hca0", "up": "no"})):
            assert "desc" in server.qmp(command, **arguments)["error"], command
        with socket.socket(socket.AF_UNIX) as sock:     # several, in pieces, without a space
            sock.settimeout(PATIENCE)
            sock.connect(server.path("control"))
            command = b'{"execute":"qmp_capabilities","id":7}'
            for part in (command[:9], command[9:] + command, command + command[:-1], b"}"):
                sock.sendall(part)
                time.sleep(0.05)
            with sock.makefile("rb") as file:
                equal([file.readline().rstrip() for _ in range(5)][1:],
                      4 * [b'{"return":{},"id":7}'])
        for text in (b"nonsense\n", b"[]\n", b"{\n", b"\0\n", b"x" * 100000):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(server.path("control"))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    sock.sendall(text)      # it may have had enough
        equal(server.get("faults"), "")


def test_stalled(program):
    """a machine that stops in the middle of a message is no burden to another"""
    head = HEAD.pack(1, READ, 32, 0, 0)
    for sent in (b"", b"\0" * 8, head, head + b"x"):
        for greet in (False, True):
            with Server(program, "", "") as server, Client(server.paths[1]) as other, \
                    Client(server.paths[0], greet) as client:
                client.sock.sendall(sent)
                end = time.monotonic() + 1.3
                while time.monotonic() < end:
                    start_of = time.monotonic()
                    other.read(c.BAR_REGS, 0, 4)
                    assert time.monotonic() - start_of < 0.5
                if greet and sent:
                    wait_for(lambda: "does not go on with a message" in server.text(), "message")
                    wait_for(lambda: not server.connected(), "end")


def test_idle(program):
    """a server whose machines do nothing takes no CPU time"""
    with two(program) as (hcas, server):
        write_works(*pair(hcas))
        time.sleep(0.5)
        before = cpu_time(server.process.pid)
        time.sleep(1)
        assert cpu_time(server.process.pid) - before <= 0.01


def test_deaf(program):
    """a machine that does not take its answers loses its connection"""
    with Server(program, "", "") as server, Client(server.paths[1]) as other, \
            Client(server.paths[0]) as client:
        client.sock.setblocking(False)
        ask = HEAD.pack(1, READ, 32, 0, 0) + struct.pack("<QII", 0, c.BAR_DM, 32768)
        end = time.monotonic() + 20
        while server.connected():
            assert time.monotonic() < end, "still connected"
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                client.sock.send(ask)
            other.read(c.BAR_REGS, 0, 4)


def test_shrunk(program):
    """a machine that takes its memory away loses its connection, and no other does"""
    with two(program) as (hcas, server):
        qps, buffers = pair(hcas)
        os.ftruncate(hcas[1].m.fd, 0)
        qps[0].post(c.WR_RDMA_WRITE, buffers[0], 8, rdma(buffers[1]))
        wait_for(lambda: "hca1: the machine has taken memory away" in server.text(), "message")
        wait_for(lambda: not server.connected("hca1"), "end")
        port = Port(hcas[0], hcas[0].mac)
        write_works(connected(port), [port.memory(), port.memory()])
