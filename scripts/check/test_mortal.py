#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of vmlib/server.py, and of what guests may have done to the server."""

import json
import os
import tempfile
import unittest

from vmlib import server, session

SERVER = """#!/usr/bin/env python3
import os, socket, sys, time
path = sys.argv[sys.argv.index('--control') + 1]
if os.path.exists(path):
    os.unlink(path)
sock = socket.socket(socket.AF_UNIX)
sock.bind(path)
sock.listen()
time.sleep(60)
"""


class Mortal(unittest.TestCase):
    """A server that guests may kill, and one that they may not."""

    def test_acts(self):
        with tempfile.TemporaryDirectory() as top:
            program = os.path.join(top, 'program')
            with open(program, 'w', encoding='ascii') as file:
                file.write(SERVER)
            os.chmod(program, 0o700)
            one = session.Session('a', 'tcg', os.path.join(top, 'r'), os.path.join(top, 's'))
            for mortal in (False, True):
                with server.Server(program, top, top, {'a': []}, mortal=mortal) as process:
                    one.servers = [process]
                    first = process.process.pid
                    self.assertTrue(process.listens())
                    reply = json.loads(one.request('server kill'))
                    self.assertEqual('error' not in reply, mortal)
                    self.assertEqual(process.listens(), not mortal)
                    for _ in range(2):
                        one.request('server start')
                        self.assertTrue(process.listens())
                    self.assertEqual(process.process.pid == first, not mortal)


if __name__ == '__main__':
    unittest.main()
