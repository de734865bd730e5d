#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/vm that start machines; prints TAP and a sum.

  check-vm.py options [OPTION…]     what goes into a machine and comes out of it, and what
                                    a guest cannot have
  check-vm.py lab [OPTION…]         a lab of two, one of three on qhca-server, and labs whose
                                    keepers are killed, until nothing is left

OPTIONs go to scripts/vm.
"""

import contextlib
import glob
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
# pylint: disable=wrong-import-position
from vmlib import lab                                   # noqa: E402
from vmlib.build import SCRIPTS                         # noqa: E402

VM = os.path.join(SCRIPTS, 'vm')
COUNT = {'passed': 0, 'failed': 0, 'skipped': 0}


def result(good, name, reason=''):
    COUNT['passed' if good else 'failed'] += 1
    print(f'{"ok" if good else "not ok"} vm/{name}' + (f' # {reason}' if not good else ''),
          flush=True)
    return good


def skip(name, reason):
    COUNT['skipped'] += 1
    print(f'ok vm/{name} # SKIP {reason}', flush=True)


# ---- options

# In the guest. Its output in TAP is part of the test: JUnit has to have it.
JOB = r'''
echo "cwd $PWD"
./program; cat /data/file; echo "from the guest" >out
command -v hello && echo "hello there"
echo kept >>/root/kept; cat /root/kept
ip route show default; cat /etc/resolv.conf
python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())' "$URL"
[ -z "$NAME" ] || getent ahostsv4 "$NAME"
printf '1..3\nok 1 - one\nnot ok 2 - two\nok 3 - three # SKIP not here\n'
exit 3
'''
PLAIN = 'cat /root/kept; dumpe2fs -h /dev/vda 2>&1 | grep features; ip route show default; hello'


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):                   # pylint: disable=invalid-name
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'hello from the host')

    def log_message(self, *_):          # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def web():
    """A server that only this machine reaches; its port."""
    server = http.server.HTTPServer(('127.0.0.1', 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def name_to_resolve():
    """One that this host can: its mirror's; or nothing."""
    script = '. "$0"/lib.sh; debian_mirror'
    url = subprocess.run(['bash', '-c', script, SCRIPTS], check=False, text=True,
                         capture_output=True).stdout.strip()
    name = urllib.parse.urlsplit(url).hostname or ''
    try:
        socket.getaddrinfo(name, 80)
        return name
    except OSError:
        return ''


def run(extra, *words, mode='run'):
    done = subprocess.run([VM, mode, '--timeout', '400', *extra, *words], check=False, text=True,
                          stdout=subprocess.PIPE)
    sys.stdout.write(''.join(f'# {line}\n' for line in done.stdout.splitlines()))
    return done.returncode, done.stdout


def options(extra):
    with tempfile.TemporaryDirectory() as top, web() as port:
        here, data = os.path.join(top, 'here, with a comma'), os.path.join(top, 'data')
        disk, junit = os.path.join(top, 'disk'), os.path.join(top, 'junit.xml')
        os.mkdir(here)
        os.mkdir(data)
        with open(os.path.join(here, 'program'), 'w', encoding='ascii') as file:
            file.write('#!/bin/sh\necho a program of the host\n')
            os.fchmod(file.fileno(), 0o755)
        with open(os.path.join(data, 'file'), 'w', encoding='ascii') as file:
            file.write('a file of the host\n')
        name = name_to_resolve()
        status, out = run(extra, '--internet', '--mount', here, '--mount', f'{data}:/data',
                          '--package', 'hello', '--keep', disk, '--junit', junit,
                          '--env', f'URL=http://10.0.2.2:{port}/', '--env', f'NAME={name}',
                          '--', JOB)
        result(status == 3, 'exit status', f'{status}')
        result('cwd /mnt\na program of the host\na file of the host\n' in out, 'mount')
        result(read(os.path.join(here, 'out')) == 'from the guest\n', 'mount, written')
        result('hello there' in out, 'package')
        result('hello from the host' in out and 'default via 10.0.2.2' in out, 'internet')
        if name:
            result(re.search(r'^\d+\.\d+\.\d+\.\d+ +STREAM', out, re.M), 'internet, names')
        else:
            skip('internet, names', 'this host resolves none')
        junit_tests(junit)
        status, out = run(extra, '--package', 'hello', '--keep', disk, '--', PLAIN)
        result(status == 0 and out.startswith('kept\n'), 'keep', f'status {status}')
        result('has_journal' in out and 'needs_recovery' in out, 'keep, with a journal')
        result('default' not in out, 'no internet unless asked for')
        result('Hello, world!' in out, 'package, once more')
        status, _ = run(extra, '--', '[ ! -e /root/kept ] && ! command -v hello')
        result(status == 0, 'nothing else is kept', f'status {status}')
    last_words(extra)
    greedy(extra)
    nested(extra)


def last_words(extra):
    """The user sees the last words of a QEMU that ends at its start."""
    done = subprocess.run([VM, 'run', *extra, '--device-arg', 'vectors=1', '--', 'true'],
                          check=False, text=True, capture_output=True)
    result(done.returncode == 125 and "'vectors' must be between" in done.stderr, 'last words',
           f'status {done.returncode}: {done.stderr}')


def wishes(file):
    """Requests of a guest that wants this file of its host; the last one is harmless."""
    asked = {'migrate': {'uri': f'exec:touch {file}'}, 'screendump': {'filename': file},
             'human-monitor-command': {'command-line': f'pmemsave 0 4096 {file}'},
             'device_add': {'driver': 'qhca', 'loopback-capture': file}, 'query-status': {}}
    return [json.dumps({'execute': name, 'arguments': arguments})
            for name, arguments in asked.items()]


def greedy(extra):
    """The guest asks for a file; then the host asks QEMU, which may not do it either."""
    with tempfile.TemporaryDirectory() as top:
        file, sock, said = (os.path.join(top, name) for name in ('file', 'qmp', 'said'))
        with open(said, 'wb') as out, subprocess.Popen(
                [VM, 'run', '--timeout', '200', *extra, '--qemu-arg=-qmp',
                 f'--qemu-arg=unix:{sock},server=on,wait=off', '--',
                 ''.join(f"qhca-host qmp '{wish}'\n" for wish in wishes(file))
                 + 'echo asked; sleep 15'], stdout=out) as machine:
            end = time.monotonic() + 200
            while 'asked' not in (read(said) or '') and time.monotonic() < end:
                time.sleep(0.2)
            answers = (read(said) or '').splitlines()
            refused = [line for line in answers if 'may not' in line]
            result(len(refused) == 4, 'a guest that wants a file', f'{answers}')
            result(any('running' in line for line in answers), 'a guest that asks for less')
            result(not os.path.exists(file), 'no file for the guest')
            migrate(sock, f'exec:touch {file}')
            machine.wait()
        result(not os.path.exists(file), 'QEMU starts no program')


def migrate(path, uri):
    """Tells the QEMU behind this socket to migrate; what it answers does not matter."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect(path)
        for command in ({'execute': 'qmp_capabilities'},
                        {'execute': 'migrate', 'arguments': {'uri': uri}}):
            sock.sendall(json.dumps(command).encode())
            with contextlib.suppress(OSError):
                print(f'# {sock.recv(4096)!r}')
        time.sleep(3)


# In the outer machine: $1 is the launcher.
IN_OUTER = r'''
vm=$1; shift
"$vm" run "$@" -- 'dmesg | grep Hypervisor; exit 3'; echo "=run $?"
"$vm" net -n 9 -- true; echo "=memory $?"
"$vm" run --qemu /none -- true; echo "=qemu $?"
exit 7
'''


def nested(extra):
    """One machine in another under KVM; there are no machines without memory, a program or a CPU
    for them."""
    status, out = run([], '--', 'sh', '-c', IN_OUTER, 'sh', VM, *extra, mode='nested')
    result(status == 7, 'nested, exit status', f'{status}')
    result('Hypervisor detected: KVM' in out and '=run 3\n' in out, 'nested, under KVM')
    result(' are available in the outer one' in out and '=memory 126\n' in out, 'nested, memory')
    result('/none is not in the outer machine' in out and '=qemu 126\n' in out, 'nested, QEMU')
    status, out = run(['--qemu-arg=-cpu', '--qemu-arg=max,svm=off'], '--', 'true', mode='nested')
    result(status == 1 and 'no virtualization' in out, 'nested, CPU', f'status {status}')


def read(path):
    try:
        with open(path, encoding='utf-8') as file:
            return file.read()
    except OSError:
        return None


def junit_tests(path):
    suites = ET.parse(path).getroot().findall('testsuite') if os.path.exists(path) else []
    result(len(suites) == 1, 'junit', f'{len(suites)} suites')
    for suite in suites[:1]:
        count = [suite.get(key) for key in ('tests', 'failures', 'skipped')]
        result(count == ['4', '2', '1'], 'junit, TAP', f'{count}')
        status = [case.find('failure').get('message') for case in suite
                  if case.get('name') == 'command' and case.find('failure') is not None]
        result(status == ['exit status 3'], 'junit, exit status', f'{status}')


# ---- the lab

class Console:
    """`vm attach`, with a user who types."""

    def __init__(self, role):
        self.process = subprocess.Popen([VM, 'attach', role], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.number = 0

    def type(self, command):
        """A command and the status that it will end with; do not wait."""
        self.number += 1
        self.process.stdin.write(f'{command}; echo "=""{self.number}" $?\n'.encode())
        self.process.stdin.flush()

    def answer(self, limit=120):
        """The status of the last command, and all output since."""
        out, end = '', time.monotonic() + limit
        while time.monotonic() < end:
            out += (self.process.stdout.read() or b'').decode(errors='replace')
            if found := re.search(rf'^={self.number} (\d+)', out, re.M):
                return int(found[1]), out
            time.sleep(0.1)
        return None, out

    def leave(self):
        self.process.stdin.write(lab.DETACH)
        self.process.stdin.close()
        return self.process.wait(20)


def alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def processes(directory):
    """Those that have a path below directory in their command line, or had it made."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        with contextlib.suppress(OSError), open(path, 'rb') as file:
            if directory.encode() in file.read():
                found.append(int(path.split('/')[2]))
    return found


def children(pid):
    with contextlib.suppress(OSError), \
            open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(word) for word in file.read().split()]
    return []


def ping_pong(name, server, client):
    """Two machines, by their names, over RDMA; also their host names and addresses."""
    consoles = {role: Console(role) for role in (server, client)}
    command = 'ibv_rc_pingpong -d $QHCA_DEV -g $QHCA_GID -c -n 50'
    consoles[server].type(f'hostname; getent hosts {client}; {command}')
    time.sleep(3)
    consoles[client].type(f'hostname; ping -c 1 {server} && {command} {server}')
    for role in client, server:
        status, out = consoles[role].answer()
        print(''.join(f'# {role}: {line}\n' for line in out.splitlines()), end='')
        result(status == 0 and '50 iters' in out,
               f'{name}, {client} to {server}, ibv_rc_pingpong in {role}', f'{status}')
        result(re.search(rf"[\r\n]{role}\r?\n", out),
               f'{name}, {client} to {server}, host name of {role}')
    return consoles


def in_the_lab():
    consoles = ping_pong('lab', 'a', 'b')
    a, b = consoles['a'], consoles['b']
    second = subprocess.run([VM, 'attach', 'a'], check=False, stdin=subprocess.DEVNULL,
                            capture_output=True, text=True)
    result(second.returncode == 2 and 'another terminal' in second.stderr, 'lab, one at a time')
    result(a.leave() == 0 and b.leave() == 0, 'lab, leaving a console')
    a = Console('a')
    a.type('echo again')
    result(a.answer()[0] == 0, 'lab, coming back')
    a.leave()


def labs(extra):
    lab_of_two(extra)
    lab_of_server(extra)
    killed_lab('lab of one', extra)
    killed_lab('lab of one with a server', ['--server', *extra])


def start_lab(name, machines, extra):
    """Return the launcher's state of the lab, or None."""
    status = call_lab(machines, extra)
    if not result(status == 0, f'{name}, start', f'status {status}'):
        return None
    with open(lab.STATE, encoding='utf-8') as file:
        return json.load(file)


def call_lab(machines, extra):
    return subprocess.run([VM, 'lab', '-n', str(machines), *extra], check=False,
                          stdin=subprocess.DEVNULL).returncode


def lab_of_two(extra):
    state = start_lab('lab', 2, extra)
    if not state:
        return
    try:
        pids = [state['pid'], *children(state['pid'])]
        result(len(pids) == 4, 'lab, keeper, switch and two machines', f'{pids}')
        again = call_lab(2, extra)
        result(again == 2, 'lab, only one', f'status {again}')
        in_the_lab()
    finally:
        stop_lab('lab-stop', pids, state['directory'])
    status = subprocess.run([VM, 'attach', 'a'], check=False).returncode
    result(status == 2, 'lab-stop, nothing to attach to', f'status {status}')


def stop_lab(name, pids, directory):
    status = subprocess.run([VM, 'lab-stop'], check=False).returncode
    result(status == 0, name, f'status {status}')
    left = [pid for pid in pids if alive(pid)] + processes(directory)
    result(not left, f'{name}, no process', f'{left}')
    paths = [path for path in (directory, lab.STATE) if os.path.exists(path)]
    result(not paths, f'{name}, no socket and no file', f'{paths}')


def family(pid):
    """A process and all that come from it."""
    return [pid, *(one for child in children(pid) for one in family(child))]


def lab_of_server(extra):
    """Machines of one server, of which one is switched off; the others go on."""
    name = 'lab of a server'
    state = start_lab(name, 3, ['--server', *extra])
    if not state:
        return
    try:
        pids = family(state['pid'])
        servers = [pid for pid in pids if is_server(pid)]
        result(len(pids) == 7 and len(servers) == 2,
               f'{name}, keeper, switch, server and its keeper, three machines', f'{pids}')
        for server, client in ('a', 'b'), ('b', 'c'), ('c', 'a'):
            for console in ping_pong(name, server, client).values():
                console.leave()
        result(switch_off('c', state['machines']['c']['pid']), f'{name}, a machine is off')
        for console in ping_pong(f'{name}, without c', 'a', 'b').values():
            console.leave()
    finally:
        stop_lab(f'{name}, lab-stop', pids, state['directory'])


def is_server(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/cmdline', 'rb') as file:
        return b'--control' in file.read()
    return False


def switch_off(role, pid):
    """Leave the shell of a machine, as a user does."""
    console = Console(role)
    console.process.stdin.write(b'exit\n')
    console.process.stdin.flush()
    end = time.monotonic() + 60
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.2)
    console.process.stdin.close()
    console.process.wait(20)
    return not alive(pid)


def killed_lab(name, extra):
    """Its keeper dies without a chance to clean up."""
    state = start_lab(name, 1, extra)
    if not state:
        return
    pids = family(state['pid'])
    result(len(pids) == (5 if '--server' in extra else 2),
           f'{name}, keeper and machine, with what they need', f'{pids}')
    os.kill(state['pid'], signal.SIGKILL)
    time.sleep(2)
    stop_lab(f'{name}, killed', pids, state['directory'])


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ('options', 'lab'):
        print(__doc__)
        return 2
    {'options': options, 'lab': labs}[sys.argv[1]](sys.argv[2:])
    print(', '.join(f'{number} {kind}' for kind, number in COUNT.items()))
    return 1 if COUNT['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
