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

# Matches that mean nothing: boot messages of healthy kernels, and programs that crash,
# which their own tests judge.
HARMLESS = re.compile(r'kasan: KernelAddressSanitizer initialized|KASAN: .*enabled'
                      r'|DMA-API: (preallocated \d+ debug entries|debugging enabled by)'
                      r'|traps: .*general protection fault ip:')


# Two MRs of the same memory are as they should be, and so are nine.
OVERLAP = re.compile(r'[^\n]*-\[ cut here \]-+\n[^\n]*DMA-API: [^\n]*'
                     r'(cacheline tracking EEXIST|overlapping mappings of cacheline)'
                     r'.*?---\[ end trace [^\n]*\n'
                     r'([^\n]*DMA-API: Mapped at:\n([^\n]*\+0x[^\n]*\n)*)?', re.DOTALL)


def find(text, context=30):
    """The first complaint with the lines after it, or None."""
    lines = OVERLAP.sub('', text).splitlines()
    for number, line in enumerate(lines):
        if SPLAT.search(line) and not HARMLESS.search(line):
            return '\n'.join(lines[max(0, number - 2):number + context])
    return None
