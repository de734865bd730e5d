# SPDX-License-Identifier: GPL-2.0
"""Requests of a guest that the launcher grants, and QEMU through it.

QMP can read and write any file of the user who runs QEMU, and start programs. A guest gets
the few commands that its tests need, for its own adapters and its own cables; everything else
is refused before QEMU sees it.
"""

import json
import math

READABLE = ('counters', 'objects', 'memory', 'max-memory', 'faults', 'bandwidth',
            'hostile-lies', 'hostile-names')
WRITABLE = ('faults', 'bandwidth', 'inject-fatal', 'hostile-seed', 'hostile-kinds', 'hostile-rate',
            'hostile-lie')
LONGEST_SNAPSHOT = 60           # seconds
LONGEST_LINE = 1 << 16          # bytes of a request


class Refused(Exception):
    """The guest's request is not on the list."""


def _is(*values):
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def _scalar(value):
    return isinstance(value, (str, int, bool))


def device(nic, number=0):
    """The id that QEMU has for the adapter, or for the @number-th that takes its place."""
    return f'qhca{nic.index + number}'


def path(nic):
    """Where QEMU has its properties."""
    return f'/machine/peripheral/{device(nic)}'


def adapter(text, nics):
    """The adapter with the number in @text, the first one without; raises Refused."""
    for nic in nics:
        if nic.kind == 'qhca' and str(nic.index) == (text or '0'):
            return nic
    raise Refused('this machine has no such adapter')


def plug(nic, number=0):
    """The -device of the adapter, as a dictionary: QEMU's own, or a server's; the @number-th that
    takes its place, at a port of its own."""
    place = {'id': device(nic, number)}
    if nic.arch.ports:
        place['bus'] = f'rp{nic.index + number}'
    if nic.socket:
        return {'driver': 'vfio-user-pci', **place,
                'socket': {'type': 'unix', 'path': nic.socket}}
    return {'driver': 'qhca', **place, 'netdev': f'n{nic.index}', 'mac': nic.mac}


def commands(nics):
    """The commands that a machine with these network functions may give, and for each of
    its arguments, all of which have to be there, a function that judges the value."""
    ours = [nic for nic in nics if nic.kind == 'qhca']
    ids = [device(nic) for nic in ours]
    paths = [path(nic) for nic in ours]
    names = ids + [f'n{nic.index}' for nic in nics]
    # QEMU 11.1 aborts when its vfio-user-pci is unplugged.
    unplug = {} if nics[0].socket else {'device_del': {'id': _is(*ids)}}
    return {
        **unplug,
        'query-status': {},
        'set_link': {'name': _is(*names), 'up': _is(True, False)},
        'qom-get': {'path': _is(*paths), 'property': _is(*READABLE)},
        'qom-set': {'path': _is(*paths), 'property': _is(*WRITABLE), 'value': _scalar},
    }


def command(text, nics):
    """The QMP command in @text, as text to send; raises Refused. It is written anew, so what
    was judged is what QEMU reads, whatever its parser makes of a name that is there twice."""
    try:
        asked = json.loads(text)
        name, arguments = asked.pop('execute'), asked.pop('arguments', {})
        judges = commands(nics)[name]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise Refused('a guest may not ask that of QEMU') from err
    if asked or not isinstance(arguments, dict) or set(arguments) != set(judges):
        raise Refused(f'{name}: a guest may not use other arguments than {sorted(judges)}')
    for word, judge in judges.items():
        if not judge(arguments[word]):
            raise Refused(f'{name}: a guest may not set {word} to that')
    return json.dumps({'execute': name, 'arguments': arguments})


def for_server(text, role, nics):
    """The command in @text as a server takes it, and its rail; None: it is one for QEMU."""
    asked = json.loads(text)
    arguments = asked['arguments']
    for nic in nics:
        if not nic.socket:
            continue
        if arguments.get('path') == path(nic):
            arguments['path'] = role
        elif asked['execute'] == 'set_link' and arguments['name'] in (
                device(nic), f'n{nic.index}'):
            arguments['name'] = role
        else:
            continue
        return json.dumps(asked), nic.index
    return None


def seconds(text):
    """How long a snapshot may wait; raises Refused."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= LONGEST_SNAPSHOT:
        raise Refused(f'snapshot takes 0 to {LONGEST_SNAPSHOT} seconds')
    return value


def error(text):
    """The answer to a request that is refused or fails."""
    return json.dumps({'error': {'desc': text}})
