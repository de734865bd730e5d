# SPDX-License-Identifier: GPL-2.0-or-later
"""How a server begins, what it leaves, and what the next one makes of that."""

import contextlib
import fcntl
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import time
from unittest import mock

import contract as c
from fixture import equal, start
from hca import PAGE, PATIENCE, wait_for
from rc import Port, connected
from served import Server, children, machine, machines, size_of
from test_leaks import give_back
from test_limits import BAD_BANDWIDTHS, refuses_bandwidths, set_bandwidth, speed
from test_server import memory, write_works
from test_server_hostile import lingering, num_fds
from vfio_user import GET_INFO, READ, Client


def refused(program, *words):
    """Start a server that must not get its path; what it says."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False,
                          timeout=PATIENCE)
    equal(done.returncode, 1)
    return done.stderr


def works(server):
    """The first machine of a server does what it should."""
    hca, = start(machines(server))
    port = Port(hca, hca.mac)
    write_works(connected(port), [port.memory(), port.memory()])
    hca.m.close()


def test_leave_memory(program):
    """machines that have gone, and commands, leave no memory in use"""
    with Server(program, "") as server:
        for life in (lambda: works(server), server.connected):
            give_back(server.process.pid, life)


def test_in_use(program):
    """paths that are in use are refused with a message, and work on"""
    with Server(program, "") as server, Client(server.paths[0]) as client:
        free = server.path("free")
        for words in (["--socket", server.paths[0]],
                      ["--socket", free, "--control", server.path("control")]):
            assert "Address already in use" in refused(program, *words)
            assert not server.connected() or client.read(c.BAR_REGS, 0, 4)
        assert server.connected(), server.text()


def test_bound_only(program):
    """a path is in use as soon as somebody has it, also for datagrams"""
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, "here")
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_UNIX, kind) as sock:
                sock.bind(path)
                before = os.stat(path).st_ino
                assert "in use" in refused(program, "--socket", path)
                assert "in use" in refused(program, "--socket", top + "/x", "--uplink",
                                           "dgram:%s:%s/there" % (path, top))
                equal(os.stat(path).st_ino, before)
            os.unlink(path)


def test_no_socket(program):
    """what is no socket is not removed"""
    with tempfile.TemporaryDirectory() as top:
        path, link = os.path.join(top, "file"), os.path.join(top, "link")
        with open(path, "w", encoding="ascii") as file:
            file.write("precious")
        left = socket.socket(socket.AF_UNIX)
        left.bind(os.path.join(top, "left"))
        left.close()
        os.symlink("left", link)
        for name in path, link:
            assert "in use" in refused(program, "--socket", name)
            assert "in use" in refused(program, "--socket", top + "/x", "--uplink",
                                       "dgram:%s:%s/there" % (name, top))
        with open(path, encoding="ascii") as file:
            equal(file.read(), "precious")
        assert os.path.islink(link)


def test_killed(program):
    """after a server that was killed there is another at the same paths, and after that"""
    with tempfile.TemporaryDirectory() as top, socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM) as far:
        far.bind(top + "/there")
        with Server(program, "", args=(
                "--uplink", "dgram:%s/here:%s/there" % (top, top))) as server:
            works(server)
            for _ in range(3):
                server.kill()
                assert os.path.exists(server.paths[0])
                server.start()
                works(server)


def test_killed_with_machine(program):
    """a machine of a server that is killed loses its connection, and is let in by the next"""
    with Server(program, "") as server:
        hca, = start(machines(server))
        server.kill()
        with contextlib.suppress(ConnectionResetError):
            equal(hca.m.client.sock.recv(1), b"")
        server.start()
        works(server)


def ends_well(server, client, end=signal.SIGKILL, also=lambda: None):
    """A connection ends without an error, in time, with its server."""
    os.kill(server.process.pid, signal.SIGSTOP)
    also()
    for _ in range(50):
        client.send(READ, struct.pack("<QII", 0, c.BAR_REGS, 4))
    os.kill(server.process.pid, end)
    os.kill(server.process.pid, signal.SIGCONT)
    client.sock.settimeout(PATIENCE)
    while client.sock.recv(65536):
        pass
    server.process.wait(PATIENCE)
    server.watchdog.cancel()
    server.start()


def test_killed_at_work(program):
    """the connections of a server end without an error, whatever it had yet to read"""
    for end in signal.SIGKILL, signal.SIGTERM:
        with Server(program, "", "") as server, Client(server.paths[0]) as client, \
                Client(server.paths[1], greet=False) as other:
            client.read(c.BAR_REGS, 0, 4)
            other.sock.close()
            ends_well(server, client, end)


def test_killed_behind_slow_close(program):
    """nor does it matter to one what others had yet to read"""
    with Server(program, "", "", "") as server, contextlib.ExitStack() as stack:
        first, other, last = [stack.enter_context(Client(path)) for path in server.paths]
        held = []

        def send():
            for client in first, last:
                sock, peer = lingering()
                client.send(GET_INFO, bytes(16), [sock.fileno()])
                sock.close()
                held.append(peer)

        ends_well(server, other, also=send)
        for peer in held:
            peer.close()


def test_keeper_behind_slow_close(program):
    """nor what a machine that is gone has left there, even if the keeper is the last to close it"""
    with Server(program, "", "") as server, Client(server.paths[1]) as other:
        pid, (keeper,) = server.process.pid, children(server.process.pid)
        before = num_fds(server)
        sock, peer = lingering()
        with Client(server.paths[0]) as client:
            os.kill(keeper, signal.SIGSTOP)
            os.kill(pid, signal.SIGSTOP)
            # The server reads no more than half of a header.
            socket.send_fds(client.sock, [bytes(8)], [peer.fileno()])
            socket.send_fds(client.sock, [bytes(8)], [sock.fileno()])
            sock.close()
            os.kill(pid, signal.SIGCONT)
            wait_for(lambda: num_fds(server) == before, "end of the connection")
        os.kill(keeper, signal.SIGCONT)
        ends_well(server, other, also=lambda: time.sleep(0.5))
        peer.close()


def test_half_closed(program):
    """connections that a machine ends on its side only do not take the place of another's"""
    with Server(program, "", "") as server, contextlib.ExitStack() as stack:
        for _ in range(130):
            client = stack.enter_context(Client(server.paths[0]))
            client.sock.shutdown(socket.SHUT_WR)
            equal(client.sock.recv(1), b"")
            wait_for(lambda: not server.connected(), "end")
        with Client(server.paths[1]) as other:
            ends_well(server, other)


def test_few_fds(program):
    """a server that may raise its limit of file descriptors keeps the connections of all"""
    with Server(["prlimit", "--nofile=12:4096", program], *12 * [""]) as server, \
            contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(path)) for path in server.paths]
        for client in clients:
            client.read(c.BAR_REGS, 0, 4)
        ends_well(server, clients[-1])


def test_low_limit(program):
    """a server says that a machine can take what others need"""
    for limit, enough in (1299, False), (1300, True):
        with Server(["prlimit", "--nofile=%d" % limit, program], "", "") as server:
            equal("the limit of file descriptors is 1299: with less than 1300" in server.text(),
                  not enough)


def test_closed_output(program):
    """what a server has to say does no harm where it has no standard output and error"""
    for closed in "2>&-", "0<&- 2>&-":
        shell = 'exec "$@" ' + closed
        with Server(["sh", "-c", shell, "sh", program], "") as server, \
                Client(server.paths[0]) as client:
            flood(client, 5)
            client.read(c.BAR_REGS, 0, 4)
            ends_well(server, client)


def test_keeper(program):
    """nothing stays of the connections of a server, nor of the server itself"""
    with Server(program, "") as server:
        pid, = children(server.process.pid)
        wait_for(lambda: not os.path.exists("/proc/%d/fd/2" % pid), "work of the keeper")
        fds = len(os.listdir("/proc/%d/fd" % pid))
        for _ in range(300):
            with Client(server.paths[0]) as client:
                client.read(c.BAR_REGS, 0, 4)
        wait_for(lambda: len(os.listdir("/proc/%d/fd" % pid)) == fds, "end of connections")
        server.kill()
        wait_for(lambda: not os.path.exists("/proc/%d/fd" % pid) or is_zombie(pid), "end")
        server.start()


def is_zombie(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "Z"


def test_terminated(program):
    """a server ends when it is asked to, even while a message is awaited"""
    with Server(program, "", "") as server, Client(server.paths[0], greet=False):
        os.kill(server.process.pid, signal.SIGTERM)
        equal(server.process.wait(PATIENCE), 0)
        server.watchdog.cancel()
        server.start()


def told(program, address):
    """Return the server's message to its starter, when its sockets are there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address)
        sock.settimeout(PATIENCE)
        name = address if address[0] != "\0" else "@" + address[1:]
        with mock.patch.dict(os.environ, NOTIFY_SOCKET=name), Server(program, "") as server, \
                Client(server.paths[0]) as client:
            client.read(c.BAR_REGS, 0, 4)
            return sock.recv(100)


def test_notify(program):
    """a service manager hears when the server is ready, and one that is gone harms nothing"""
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, "notify")
        equal(told(program, path), b"READY=1")
        equal(told(program, "\0" + path), b"READY=1")
        for name in path, "/nowhere/x", "x" * 200, "":      # the first has no process
            with mock.patch.dict(os.environ, NOTIFY_SOCKET=name):
                with Server(program, "") as server:
                    works(server)


def test_race(program):
    """of servers that begin at once at a path that was left, one gets it"""
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, "socket")
        for _ in range(10):
            racers = [subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", program, "--socket", path],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(3)]
            try:
                equal(sorted(racer.stdout.readline() for racer in racers),
                      [b"", b"", b"ready\n"])
                with Client(path) as client:
                    client.read(c.BAR_REGS, 0, 4)
            finally:
                for racer in racers:
                    racer.kill()
                    racer.wait(PATIENCE)
                    racer.stdout.close()


def test_locked(program):
    """a directory that somebody else keeps locked holds up no server for long"""
    with tempfile.TemporaryDirectory() as top:
        holder = os.open(top, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(holder, fcntl.LOCK_EX)
            begin = time.monotonic()
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", program, "--socket", top + "/socket"],
                stdout=subprocess.PIPE)
            equal(process.stdout.readline(), b"ready\n")
            assert 0.5 < time.monotonic() - begin < 10
        finally:
            os.close(holder)
            process.kill()
            process.wait(PATIENCE)
            process.stdout.close()


WRONG = "guest error: "


def flood(client, num):
    """Accesses that are wrong; there are two messages for each."""
    for _ in range(num):
        client.read(c.BAR_REGS, 1, 2)


def messages(server, text):
    return server.text().count(text)


def left_out(server):
    return sum(map(int, re.findall(r"hca0: (\d+) messages were left out", server.text())))


def test_flood(program):
    """messages that a guest causes are limited, and counted, and hide no others"""
    with Server(program, "") as server:
        with Client(server.paths[0]) as client:
            flood(client, 3000)
            assert 50 < messages(server, WRONG) < 200, messages(server, WRONG)
        wait_for(lambda: "the machine is gone" in server.text(), "message")
        wait_for(lambda: messages(server, WRONG) + left_out(server) == 6000, "count")
        with Client(server.paths[0]) as client:
            flood(client, 1)
        wait_for(lambda: messages(server, WRONG) + left_out(server) == 6002, "message")


def test_flood_of_machines(program):
    """machines that come and go are no flood of messages, either"""
    with Server(program, "") as server:
        for _ in range(200):
            with Client(server.paths[0]) as client:
                client.read(c.BAR_REGS, 0, 4)
        said = ("a machine is connected", "the machine is gone")
        wait_for(lambda: sum(messages(server, text) for text in said) + left_out(server) == 400,
                 "count")
        assert sum(messages(server, text) for text in said) < 200


def test_flood_at_end(program):
    """a server that ends reports what it has left out"""
    with Server(program, "") as server, Client(server.paths[0]) as client:
        flood(client, 500)
        os.kill(server.process.pid, signal.SIGTERM)
        equal(server.process.wait(PATIENCE), 0)
        server.watchdog.cancel()
        equal(messages(server, WRONG) + left_out(server), 1000)
        server.start()


def test_bandwidth(program):
    """the port's speed changes while it runs, and no port has some speeds"""
    with Server(program, ",bandwidth=1000") as server:
        hca, = start([machine(server, 0)])
        eqn = hca.create_eq(flags=c.EQ_ASYNC)
        equal(speed(hca), 1000)
        refuses_bandwidths(hca, BAD_BANDWIDTHS + (None,))
        equal((speed(hca), hca.poll_eq(eqn)), (1000, None))
        for mbits in 400, 0, 100000:
            old = speed(hca)
            set_bandwidth(hca, mbits)
            equal(hca.m.qom_get(hca.path, "bandwidth"), mbits)
            equal(speed(hca), mbits or 100000)
            event = hca.poll_eq(eqn)
            equal(event and event[:2],
                  None if speed(hca) == old else (c.EVENT_SPEED_CHANGE, 1))


def test_without_threads(program):
    """machines come, share memory and go where the server cannot have another thread"""
    with Server(program, "", "", "") as server, memory(PAGE) as fd:
        pid = server.process.pid
        limits = resource.prlimit(pid, resource.RLIMIT_DATA)
        most = (size_of(pid, "VmData") << 10) + (4 << 20)       # a thread needs 8 MiB
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, limits[1]))
        for _ in range(2):
            clients = [Client(path, greet=False) for path in server.paths]
            for client in clients:
                client.greet()
                client.share(0, PAGE, fd)
                client.unshare(0, PAGE)
                client.sock.close()
            for number in range(3):
                wait_for(lambda hca="hca%d" % number: not server.connected(hca), "end")
