# SPDX-License-Identifier: GPL-2.0
"""One QMP command at a time, for tests that act on the device from outside."""

import json
import time

from . import patience


async def _execute(path, text):
    from qemu.qmp import Message, QMPClient     # pylint: disable=import-outside-toplevel
    client = QMPClient()
    await client.connect(path)
    try:
        return await client.execute_msg(Message(text.encode()))
    finally:
        await client.disconnect()


def execute(path, text, limit=10):
    """Run the command given as JSON, which usually takes up to @limit seconds; the reply as one
    line of JSON."""
    # Loaded on first use: it takes longer than all else the launcher loads.
    import asyncio      # pylint: disable=import-outside-toplevel
    try:
        reply = {'return': asyncio.run(asyncio.wait_for(
            _execute(path, text), limit * patience.factor()))}
    except Exception as err:    # pylint: disable=broad-except
        reply = {'error': {'desc': str(err) or type(err).__name__}}
    return json.dumps(reply)


def snapshot(path, seconds):
    """Save the machine, let it run for a while, and load it: to the guest, that while has
    never been. The reply as one line of JSON."""
    for command in ('savevm qhca', 'loadvm qhca', 'delvm qhca'):
        reply = execute(path, json.dumps({'execute': 'human-monitor-command', 'arguments':
                                          {'command-line': command}}), 300)
        said = json.loads(reply).get('return', reply)
        if said:
            return json.dumps({'error': {'desc': f'{command}: {said}'}})
        if command.startswith('savevm'):
            time.sleep(seconds)
    return '{"return": {}}'
