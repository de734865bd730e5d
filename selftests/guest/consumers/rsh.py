#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""rsh.py --serve | rsh.py [-x] HOST COMMAND…

A remote shell for two machines that no other can reach: launchers of MPI start their daemons with
it. It prints the output of COMMAND and ends with its status.
"""

import os
import socket
import socketserver
import subprocess
import sys

PORT = 7700


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        command = self.rfile.read().decode()
        with subprocess.Popen(['/bin/sh', '-c', command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True) as proc:
            while data := os.read(proc.stdout.fileno(), 65536):
                self.wfile.write(data)
        self.wfile.write(bytes([proc.returncode & 255]))


def visit(host, command):
    sock = socket.create_connection((host, PORT))
    sock.sendall(command.encode())
    sock.shutdown(socket.SHUT_WR)
    held = b''          # the last byte is the status
    while data := sock.recv(65536):
        held += data
        os.write(1, held[:-1])
        held = held[-1:]
    return held[0] if held else 255


def main():
    args = [arg for arg in sys.argv[1:] if arg not in ('-x', '-n', '-q')]
    if args == ['--serve']:
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        socketserver.ThreadingTCPServer.daemon_threads = True
        with socketserver.ThreadingTCPServer(('', PORT), Handler) as server:
            server.serve_forever()
    return visit(args[0], ' '.join(args[1:]))


sys.exit(main())
