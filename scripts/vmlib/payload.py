# SPDX-License-Identifier: GPL-2.0
"""The payload disk: a tar with our guest scripts, builds and the job."""

import io
import os
import shlex
import tarfile

from .build import TOP

LIMIT = 4 << 30     # bytes that a guest may send back


def _add_text(tar, name, text, mode=0o644):
    info = tarfile.TarInfo(name)
    data = text.encode()
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def _plain(info):
    """Same owner for all, no caches, no marker files of ours."""
    base = os.path.basename(info.name)
    if base in ('.complete', '__pycache__'):
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = 'root'
    return info


def command_text(words):
    """One word is shell text, as with ssh; several are an argument vector."""
    return words[0] if len(words) == 1 else shlex.join(words)


def write(path, dirs, command, env, gets, puts):
    """Write the tar to path. env: name -> value, gets: guest paths to return,
    puts: (host path, name below /opt/qhca)."""
    with tarfile.open(path, 'w', format=tarfile.GNU_FORMAT) as tar:
        tar.add(os.path.join(TOP, 'selftests/guest'), 'guest', filter=_plain)
        for name in ('qemu-device/tests/oracle/roce.py', 'qemu-device/tests/oracle/tables.py',
                     'Documentation/conformance.md'):
            tar.add(os.path.join(TOP, name), f'guest/{os.path.basename(name)}', filter=_plain)
        for name in ('modules', 'provider', 'userspace-provider', 'selftests'):
            if dirs.get(name):
                tar.add(dirs[name], name, filter=_plain)
        header = os.path.join(TOP, 'include')
        if os.path.isdir(header):
            tar.add(header, 'include', filter=_plain)
        for host, guest in puts:
            tar.add(host, guest.lstrip('/'), filter=_plain)
        lines = ''.join(f'export {key}={shlex.quote(str(value))}\n'
                        for key, value in sorted(env.items()))
        _add_text(tar, 'job/env', lines)
        _add_text(tar, 'job/get', ''.join(f'{g}\n' for g in gets))
        _add_text(tar, 'job/cmd', f'{command}\n', 0o755)


def unpack_results(path, targets):
    """Extract the files that came back to their places on the host.

    targets maps a guest path to a host path. Names in the tar are relative to
    the guest's root; only the ones asked for are taken. Returns what is missing.
    """
    missing = dict(targets)
    left = LIMIT        # a header can promise any size: holes cost the guest nothing
    with tarfile.open(path, 'r', ignore_zeros=True) as tar:
        members = tar.getmembers()
        for guest, host in targets.items():
            name = guest.strip('/')
            for member in members:
                inside = member.name.strip('/')
                if inside != name and not inside.startswith(name + '/'):
                    continue
                if not (member.isfile() or member.isdir()):
                    continue
                rest = os.path.relpath(inside, name)
                target = host if rest == '.' else os.path.join(host, rest)
                if '..' in rest.split('/'):
                    continue
                left -= member.size
                if left < 0:
                    raise tarfile.TarError(f'more than {LIMIT} bytes')
                _extract(tar, member, target)
                missing.pop(guest, None)
    return list(missing)


def _extract(tar, member, target):
    if member.isdir():
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    with tar.extractfile(member) as src, open(target, 'wb') as dst:
        while chunk := src.read(1 << 20):
            dst.write(chunk)
