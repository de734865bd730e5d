# SPDX-License-Identifier: GPL-2.0
"""The device as a process of its own: qhca-server, for all machines of one run."""

import json
import os
import re
import subprocess
import time

from . import logs, requests
from .build import note
from .session import die_with_parent

PATIENCE = 30       # seconds until it listens


def socket_path(directory, role):
    """Where machine @role finds its adapter."""
    return os.path.join(directory, role, 'hca')


class Server:
    """One process; leaving the context ends it. @adapters: role -> its properties."""

    def __init__(self, program, directory, run_dir, adapters, uplink=None):
        self.control = os.path.join(directory, 'server')
        self.log = logs.Pipe(os.path.join(run_dir, 'server.err'), logs.LIMIT)
        self.args = [program, '--verbose', '--control', self.control]
        if uplink:
            self.args += ['--uplink', uplink]
        for role, properties in adapters.items():
            self.args += ['--socket', ','.join([socket_path(directory, role), f'id={role}',
                                                *properties])]
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(
            self.args, stdin=subprocess.DEVNULL, stdout=self.log.fd, stderr=self.log.fd,
            start_new_session=True, preexec_fn=die_with_parent)
        self.log.start()
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.control):
            if self.process.poll() is not None or time.monotonic() > end:
                break
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.log.finish()
        self.died = code not in (0, -15)
        if self.died:
            note(f'qhca-server failed, status {code}')

    def translate(self, text, role, nics):
        """The command in @text as the server takes it; None: it is one for QEMU."""
        asked = json.loads(text)
        arguments = asked['arguments']
        if arguments.get('path') == requests.PATH:
            arguments['path'] = role
        elif asked['execute'] == 'set_link' and re.fullmatch(
                f'{requests.DEVICE}|n{nics[0].index}', arguments['name']):
            arguments['name'] = role
        else:
            return None
        return json.dumps(asked)
