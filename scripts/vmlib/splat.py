# SPDX-License-Identifier: GPL-2.0
"""Recognise kernel complaints: any of these fails the run."""

import re

SPLAT = re.compile(
    r'WARNING: (CPU|possible|suspicious|inconsistent|bad unlock|Nested lock)'
    r'|BUG: |kernel BUG at|Oops: |Call Trace:|Kernel panic'
    r'|general protection fault|Unable to handle kernel'
    r'|INFO: task .* blocked for more than|INFO: (possible|suspicious|trying to register)'
    r'|rcu: INFO: |soft lockup|hard LOCKUP|detected stalls'
    r'|KASAN|UBSAN:|KCSAN:|kmemleak: \d+ new|DMA-API:'
    r'|refcount_t: |list_(add|del) corruption|Slab corruption|Redzone|Poison overwritten'
    r'|unregister_netdevice: waiting for|Object remaining')

# Matches that mean nothing: boot messages of healthy kernels, programs that crash, which
# their own tests judge, and what the kernel itself gets no memory for in `nomem`.
HARMLESS = re.compile(r'kasan: KernelAddressSanitizer initialized|KASAN: .*enabled'
                      r'|DMA-API: (preallocated \d+ debug entries|debugging (en|dis)abled )'
                      r'|DMA-API: cacheline tracking ENOMEM'
                      r'|traps: .*general protection fault ip:')


# Two MRs of the same memory are as they should be, and so are nine.
OVERLAP = re.compile(r'DMA-API: .*(cacheline tracking EEXIST|overlapping mappings of cacheline)')
TRACE = re.compile(r'DMA-API: Mapped at:|\+0x[0-9a-f]+/0x')

# Reports about races and locks.
REPORT = re.compile(r'[^\n]*={50,}\n[^\n]*(BUG: KCSAN: .*?\n[^\n]*={50,}'
                    r'|WARNING: possible circular locking .*?\n[^\n]*</TASK>)\n', re.DOTALL)
# The function that made one of the two accesses, or told a helper to.
ACCESS = re.compile(r'(read|write) [^\n]* by [^\n]*:\n([^\n]*\n)?[^\n]*\[qhca')
# The core takes these locks in both orders, see testing.rst.
CORE_LOCKS = ('rdma_umap_open+', 'trying to acquire lock', 'uverbs_user_mmap_disassociate+')

# An uninitialised lock of the core's, see testing.rst.
CORE_LOCK = re.compile(r'DEBUG_LOCKS_WARN_ON\(lock->magic != lock\)(?s:.*?)'
                       r' mutex_lock_nested\S*\n[^\n]* ib_uverbs_(at|de)tach_mcast\+')

LEAKS = re.compile(r'[^\n]*kmemleak: \d+ new[^\n]*\n')
LEAKED = re.compile(r'unreferenced object .*?backtrace[^\n]*((?:\n[^\n]*\+0x[0-9a-f]+/0x[^\n]*)+)',
                    re.DOTALL)
# Leaks of the core, see testing.rst: tasks and their parts, statistics of a port, objects that a
# flow rule refers to.
CORE_LEAK = re.compile(r' (copy_process|prepare_creds|setup_port|flow_resources_alloc)\+')

# A slow machine prints this in the middle of anything.
NOTE = re.compile(r'[^\n]*hrtimer: interrupt took \d+ ns\n')


def _without_leaks(text):
    """Remove reports of leaks if all are the core's."""
    leaked = LEAKED.findall(text)
    return LEAKS.sub('', text) if leaked and all(map(CORE_LEAK.search, leaked)) else text


def _ours(match):
    """A report, or nothing if the drivers have no part in it."""
    if 'KCSAN' in match[1]:
        ours = ACCESS.search(match[1])
    else:
        ours = not all(word in match[1] for word in CORE_LOCKS)
    return match[0] if ours else ''


def _is_theirs(block):
    """Whether nothing but overlaps or that lock is complained of in it."""
    if sum('WARNING: ' in line for line in block) == 1 and CORE_LOCK.search('\n'.join(block)):
        return True
    said = [line for line in block if 'DMA-API: ' in line and not TRACE.search(line)]
    return said and all(map(OVERLAP.search, said)) and not any(
        'WARNING: ' in line and 'kernel/dma/debug.c' not in line for line in block)


def _without_theirs(lines):
    """Blocks of two CPUs may be mixed. Behind them is where the mapping was made."""
    out, block, depth, skipping = [], [], 0, False
    for line in lines:
        depth += ' cut here ' in line
        if not depth:
            skipping = skipping and TRACE.search(line)
            out += [] if skipping else [line]
            continue
        block.append(line)
        depth -= '[ end trace ' in line
        if not depth:
            skipping = _is_theirs(block)
            out += [] if skipping else block
            block = []
    return out + block


def find(text, context=30):
    """The first complaint with the lines after it, or None."""
    text = _without_leaks(NOTE.sub('', text))
    lines = _without_theirs(REPORT.sub(_ours, text).splitlines())
    for number, line in enumerate(lines):
        if SPLAT.search(line) and not HARMLESS.search(line):
            return '\n'.join(lines[max(0, number - 2):number + context])
    return None


# QEMU's sanitizers.
UNDEFINED = re.compile(r'[^\n]*qhca[^\n]*runtime error:(?:[^\n]*\n?){20}')
RACE = re.compile(r'WARNING: ThreadSanitizer: .*?\n={18}', re.DOTALL)
STACK = re.compile(r'(?:[Rr]ead|[Ww]rite) of size [^\n]*\n((?: +#\d[^\n]*\n)+)')
FRAME = re.compile(r' +#\d+ \S+ (?!\S*libsanitizer)(\S+)')


def _of_device(race):
    """Whether code of the device makes one of the accesses, or has both made; a guest that
    reads its memory while the device writes it is as it should be."""
    stacks = [FRAME.findall(stack) for stack in STACK.findall(race)]
    inner = [stack[0] for stack in stacks if stack]
    return not any('accel/tcg/' in path for path in inner) and bool(inner) and (
        any('/qhca/' in path for path in inner) or
        all(any('/qhca/' in path for path in stack) for stack in stacks))


def sanitizer(text):
    """The first report about the device, or ''."""
    if found := UNDEFINED.search(text):
        return found.group()
    return next(filter(_of_device, RACE.findall(text)), '')
