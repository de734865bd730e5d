# SPDX-License-Identifier: GPL-2.0
"""One QMP command at a time, for tests that act on the device from outside."""

import json


async def _execute(path, text):
    from qemu.qmp import Message, QMPClient     # pylint: disable=import-outside-toplevel
    client = QMPClient()
    await client.connect(path)
    try:
        return await client.execute_msg(Message(text.encode()))
    finally:
        await client.disconnect()


def execute(path, text):
    """Run the command given as JSON; the reply as one line of JSON."""
    # Loaded on first use: it takes longer than all else the launcher loads.
    import asyncio      # pylint: disable=import-outside-toplevel
    try:
        reply = {'return': asyncio.run(asyncio.wait_for(_execute(path, text), 10))}
    except Exception as err:    # pylint: disable=broad-except
        reply = {'error': {'desc': str(err) or type(err).__name__}}
    return json.dumps(reply)
