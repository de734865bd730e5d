# SPDX-License-Identifier: GPL-2.0
"""Messages of a program to its twin in the other machine: lines of JSON over TCP."""

import json
import socket


class Link:
    """The server's end listens from the start, the client's is given its address."""

    def __init__(self, port, server=None):
        self.peer = (server, int(port))
        self.listener = None if server else socket.create_server(('', int(port)))
        self.stream = None

    def open(self):
        """Waits for the other end. The server takes one client."""
        sock = self.listener.accept()[0] if self.listener else \
            socket.create_connection(self.peer)
        self.stream = sock.makefile('rw', encoding='ascii')

    def say(self, what):
        """One line to the other end."""
        self.stream.write(json.dumps(what) + '\n')
        self.stream.flush()

    def hear(self):
        """One line from there."""
        return json.loads(self.stream.readline())
