# SPDX-License-Identifier: GPL-2.0
"""Disks that outlive their machine: qcow2 overlays of an image."""

import json
import os
import shutil
import subprocess

from .build import BuildError, note


def _tool(qemu):
    beside = os.path.join(os.path.dirname(qemu), 'qemu-img')
    tool = beside if os.path.exists(beside) else shutil.which('qemu-img')
    if not tool:
        raise BuildError(f'--keep needs qemu-img, and there is none beside {qemu}')
    return tool


def _run(*args):
    done = subprocess.run(args, check=False, text=True, capture_output=True)
    if done.returncode:
        raise BuildError(done.stderr.strip())
    return done.stdout


def _release(image):
    with open(os.path.join(image, 'release'), encoding='ascii') as file:
        return file.read().strip()


def _pin(image, path):
    """The image stays in the cache as long as the disk exists: cache_trim in lib.sh."""
    name = os.path.join(image, 'kept')
    known = []
    if os.path.exists(name):
        with open(name, encoding='utf-8') as file:
            known = file.read().splitlines()
    if path not in known:
        with open(name, 'a', encoding='utf-8') as file:
            file.write(path + '\n')


def keep(path, dirs):
    """Make the disk if there is none; returns its path and the image that is below it."""
    path, image, tool = os.path.abspath(path), dirs['image'], _tool(dirs['qemu'])
    if not os.path.exists(path):
        _run(tool, 'create', '-q', '-f', 'qcow2', '-F', 'raw', '-b',
             os.path.join(image, 'rootfs.ext4'), path)
        note(f'{path}: a new disk')
    else:
        below = json.loads(_run(tool, 'info', '-U', '--output=json', path))
        image = os.path.dirname(below.get('backing-filename', ''))
        if not os.path.exists(os.path.join(image, 'rootfs.ext4')):
            raise BuildError(f'{path}: the image below it, {image or "none"}, is gone')
        if not dirs['kernel'] and _release(image) != _release(dirs['image']):
            raise BuildError(f'{path}: the modules are for kernel {_release(dirs["image"])}, '
                             f'and it was made with {_release(image)}; start a new disk')
        if image != dirs['image']:
            note(f'{path}: with the image that it was made with, {image}')
    _pin(image, path)
    return path, image
