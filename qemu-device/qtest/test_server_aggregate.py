# SPDX-License-Identifier: GPL-2.0-or-later
"""A server's uplink to machines whose adapters have aggregate=on."""

import subprocess

from fixture import MAC_BYTES
from hca import PATIENCE, wait_for
from test_net import aggregate, frame, wired
from test_server import FAR


def test_receive(program):
    """each frame of an aggregate that is whole goes to its port, unless they are not wanted"""
    for props, most in ("", 1), (",aggregate=on", 3):
        with wired(program, props) as hca:
            frames = [frame(number, MAC_BYTES, FAR) for number in range(4)]
            hca.wire.sendto(aggregate(frames)[:-1], hca.peer)
            hca.wire.sendto(frames[0], hca.peer)
            wait_for(lambda: hca.m.server.get("port")["received"] == most + 1, "frames")


def test_refused(program):
    """there are no aggregates without an uplink that can take them"""
    for words, says in ((), "--aggregate needs"), (("--uplink", "tap:none"), "takes no aggregates"):
        done = subprocess.run([program, "--socket", "/nowhere/x", "--aggregate", *words],
                              check=False, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode in (1, 2) and says in done.stderr, done
