# SPDX-License-Identifier: GPL-2.0-or-later
"""The others wait only for one turn while the host provides memory for a machine."""

import contract as c
from fixture import equal
from rc import Mr, Port, connected, rdma
from test_server import memory
from test_server_hostile import FAR, ring
from test_server_line import three
from test_server_memory import cpu_of_loop
from vfio_user import HEAD

SIZE, WRITES = 4 << 20, 8


def test_new_memory(program):
    """others have turns while one moves data between places that nobody has touched before"""
    with three(program) as (server, hcas, line), memory(2 * SIZE * WRITES) as fd:
        hca, other = hcas[2], hcas[0].m.client
        hca.m.client.share(FAR, 2 * SIZE * WRITES, fd)
        port = Port(hca, hca.mac, 3)
        one, _ = connected(port)
        areas = [Mr(port, FAR + SIZE * number, SIZE) for number in range(2 * WRITES)]
        line.works()
        before, longest = cpu_of_loop(server), []
        for src, dst in zip(areas[::2], areas[1::2]):
            one.put(c.WR_RDMA_WRITE, src, SIZE, rdma(dst))
            ring(one)
            took = [0]
            while not one.cq.poll():
                since = line.clock()
                other.read(c.BAR_REGS, 0, 4)
                took.append(line.clock() - since)
            hca.m.client.receive(HEAD.size + 16)
            longest.append(max(took))
        whole = (cpu_of_loop(server) - before) / 1e9 / WRITES
        typical = sorted(longest)[WRITES // 2]
        line.works()
        equal(hca.state, c.STATE_RUNNING)
        assert typical < max(0.003, whole / 4), (longest, whole)
