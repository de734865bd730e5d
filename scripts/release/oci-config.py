#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""oci-config.py CONFIG SECCOMP WORD…: make a bundle's CONFIG what `podman run IMAGE WORD…` would
start for a user, with the system calls that the engines' profile SECCOMP leaves him. check-oci.sh
uses it."""

import json
import sys


def applies(entry, caps):
    """Does an entry of the profile count on this machine, with these capabilities?"""
    needs, never = entry.get('includes') or {}, entry.get('excludes') or {}
    return (set(needs.get('caps') or ()) <= caps
            and 'amd64' in (needs.get('arches') or ['amd64'])
            and not caps.intersection(never.get('caps') or ())
            and 'amd64' not in (never.get('arches') or ()))


def seccomp(profile, caps):
    """The profile as the runtime specification has it."""
    keys = ('names', 'action', 'args', 'errnoRet')
    return {
        'defaultAction': profile['defaultAction'],
        'defaultErrnoRet': profile.get('defaultErrnoRet', 1),
        'architectures': ['SCMP_ARCH_X86_64'],
        'syscalls': [{key: entry[key] for key in keys if entry.get(key) is not None}
                     for entry in profile['syscalls'] if applies(entry, caps)],
    }


def main(path, profile, *words):
    with open(path, encoding='utf-8') as file:
        config = json.load(file)
    process = config['process']
    process['args'] = process['args'][:1] + list(words)
    process['terminal'] = False
    process['user'] = {'uid': 1000, 'gid': 1000}
    process['noNewPrivileges'] = True
    # As for a user who is not root; podman leaves root eleven of them.
    process['capabilities'] = {}
    # There may be no manager of cgroups here.
    config['mounts'] = [m for m in config['mounts'] if m['type'] != 'cgroup']
    config['linux'].pop('resources', None)
    with open(profile, encoding='utf-8') as file:
        config['linux']['seccomp'] = seccomp(json.load(file), set())
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(config, file)


if __name__ == '__main__':
    main(*sys.argv[1:])
