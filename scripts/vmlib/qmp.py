# SPDX-License-Identifier: GPL-2.0
"""One QMP command at a time, for tests that act on the device from outside."""

import json
import socket


def _read(stream):
    """The next reply, past any asynchronous events."""
    while line := stream.readline():
        message = json.loads(line)
        if 'event' not in message:
            return message
    return {'error': {'desc': 'QEMU closed the connection'}}


def execute(path, text):
    """Run the command given as JSON; the reply as one line of JSON."""
    try:
        command = json.loads(text)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(path)
            stream = sock.makefile('rw')
            _read(stream)
            for request in ({'execute': 'qmp_capabilities'}, command):
                stream.write(json.dumps(request) + '\n')
                stream.flush()
                reply = _read(stream)
            return json.dumps(reply)
    except (OSError, ValueError) as err:
        return json.dumps({'error': {'desc': str(err)}})
