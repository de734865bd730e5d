# SPDX-License-Identifier: GPL-2.0-or-later
"""A server's uplink to a tap: which it takes, what it says and what it counts."""

import subprocess
import time

from fixture import MAC_BYTES, equal
from hca import PATIENCE, wait_for
from host import TUN, alone, give_up_rights, interfaces, nobody_may_open
from served import cpu_time
from test_server_line import NOBODY, Flood, three
from test_tap import host, tapped
from test_tap_long import LONG, bridged, headers, one, segment


def refused(program, name, says):
    """The server does not start, and says why; with LeakSanitizer it then says more."""
    done = subprocess.run([program, "--socket", "/nowhere/x", "--uplink", "tap:" + name],
                          check=False, capture_output=True, text=True, timeout=PATIENCE)
    equal((done.returncode, done.stderr.partition("\n")[0]),
          (1, "qhca-server: uplink tap:%s: %s" % (name, says)))


@alone
def test_names(program):
    """an interface that does not exist is not made, and the server says what is wrong with one"""
    tap = host()
    before = interfaces()
    for _ in "an operator with all rights", "one with none":
        for name in "none", "tap%d", "", "x" * 16:
            refused(program, name, "No such device")
        refused(program, "lo", "Invalid argument")
        with tapped(program, tap):
            refused(program, tap.name, "Device or resource busy")
    equal(interfaces(), before)


@alone
def test_not_allowed(program):
    """a server that may not open /dev/net/tun says so"""
    tap = host()
    give_up_rights()
    with nobody_may_open(TUN):
        refused(program, tap.name, TUN + ": Permission denied")
    with tapped(program, tap):
        pass


@alone
def test_down(program):
    """frames that an interface does not take are counted, and said once until it takes one"""
    tap = host()
    give_up_rights()
    with three(program, "--uplink", "tap:" + tap.name) as (server, hcas, line):
        flood = Flood(hcas[0], NOBODY)
        for times in 1, 2:
            tap.up(False)
            lost = server.get("uplink")["dropped"]
            flood.run(0.2)
            wait_for(lambda: server.get("uplink")["dropped"] > lost + 100, "lost frames")
            line.works()
            tap.up()
            sent = server.get("uplink")["sent"]
            flood.run(0.2)
            wait_for(lambda: server.get("uplink")["sent"] > sent + 100, "frames")
            equal([server.text().count("the uplink takes " + what) for what in (
                "no frames: Input/output error", "frames again")], [times, times])


@alone
def test_removed(program):
    """without the interface machines reach each other, and the server neither hangs nor spins"""
    tap = host()
    give_up_rights()
    with three(program, "--uplink", "tap:" + tap.name) as (server, hcas, line):
        equal(server.get("uplink")["connected"], True)
        flood = Flood(hcas[0], NOBODY)
        flood.run(0.2)
        tap.remove()
        flood.run(0.2)
        line.works()
        wait_for(lambda: not server.get("uplink")["connected"], "end of the uplink")
        equal(server.text().count("the uplink is gone"), 1)
        before = cpu_time(server.process.pid)
        time.sleep(0.5)
        assert cpu_time(server.process.pid) - before < 0.2
        lost = server.get("uplink")["dropped"]
        flood.run(0.1)
        wait_for(lambda: server.get("uplink")["dropped"] > lost, "lost frames")


@alone
def test_long(program):
    """only what is known to be behind the uplink leaves whole, and is not counted as that"""
    with bridged(program, 1500) as (hca, sender, far):
        head, mss = headers(1500)[0]
        pieces = -(-LONG // mss)
        for dst, arrived in (b"\2\0\0\0\0\1", pieces), (head[:6], 1), (b"\xff" * 6, pieces):
            before = hca.m.server.get("port")["sent"]
            equal(one(sender, far, dst + head[6:], mss), arrived)
            equal(hca.m.server.get("port")["sent"] - before, pieces)


@alone
def test_spoofed(program):
    """segments from another's address are as many frames that are not sent"""
    with bridged(program, 1500, ",spoofchk=on") as (hca, sender, far):
        head, mss = headers(1500)[0]
        equal(one(sender, far, head, mss), 1)
        sent = hca.m.server.get("uplink")["sent"]
        sender.send(segment(head.replace(MAC_BYTES, b"\2\0\0\0\0\1")), mss, 34)
        equal((hca.m.server.get("port")["spoofed"], hca.m.server.get("uplink")["sent"]),
              (-(-LONG // mss), sent))
