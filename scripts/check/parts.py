# SPDX-License-Identifier: GPL-2.0
"""The parts of the tests, and how each is run; pytest collects their programs from here.

A row: name | kind | runs it is in | its group | what it is (kinds.py).

JOBS parts run together, in this order as far as they fit: pairs first, then the long ones.
kind: `one` machine or none; `pair`: two machines or more, which must answer each other in
time, so only one of these runs at a time, with priority over the others when CPU is short;
`idle`: no time limits, takes the CPU that the others leave; `all`: runs alone.
"""

import datetime
import os
import subprocess
import tempfile

import kinds
from kinds import (CACHE, VM, Call, Consumers, Engine, Guest, Machines, Nested, QTest, Steps,
                   call, counted, is_long, one_guest, script, seeds_of_today, vmflags, worst)

FAULTS = '--device-arg guest-faults=on'
RAILS = f'--faults {kinds.TOP}/selftests/guest/rails.faults'
CORE = 'kverbs life kselftest device translate events cq notify mw srq mcast faults removal ' \
       'abi abi_resp doorbell forged'


class Wire(Machines):
    """Two machines, and capture.py on the frames between them."""

    def __init__(self, options):
        super().__init__(2, options, 'pair-wire.sh')

    def sources(self):
        return (*super().sources(), 'scripts/check/capture.py')

    def run(self, chosen, *more):
        with tempfile.NamedTemporaryFile(dir=f'{CACHE}/tmp', suffix='.pcap') as file:
            return worst([super().run(chosen, '--pcap', file.name),
                          call('python3', script('check/capture.py'), '--wire', file.name)])


# In a network namespace of its own, where there is a bridge.
BRIDGED = ('unshare', '--map-root-user', '--net', 'sh', '-ec',
           'ip link add br0 type bridge; ip link set br0 up; exec "$@"', 'sh')


class Mcast(Machines):
    """Three machines at a bridge of the host's, or at the launcher's hub."""

    def run(self, chosen, *more):
        probe = subprocess.run([*BRIDGED, 'ip', 'tuntap', 'add', 'dev', 'probe', 'mode', 'tap'],
                               capture_output=True, check=False)
        bridged = not probe.returncode
        self.around = BRIDGED if bridged else ()
        return super().run(chosen, '--link', 'bridge:br0' if bridged else 'hub')


class Life(Guest):
    """The device goes and comes back: once in each way, with a look at everything now and
    then, which is what takes long; or often, with a look after each, and a disk beside.
    """

    def run(self, chosen):
        if not is_long():
            return one_guest(1500, '--env', 'LIFE_CYCLES=1', '--env', 'LIFE_TOGETHER=6',
                             '--', 'life')
        cycles = os.environ.get('LIFE_CYCLES', '20')
        return one_guest(7200, '--env', f'LIFE_CYCLES={cycles}', '--env', 'LIFE_NVME=1',
                         '--env', f'KILL_CYCLES={cycles}', '--', 'life', 'kselftest', 'kill')


class Sanitized(Guest):
    """On a kernel that sees what others do not, and is slow."""

    def __init__(self, options, sections, limit=14400):
        super().__init__(limit, '--mem 3G --env KSELFTEST_TIMEOUT=2400 --env KSELFTEST_PATIENCE=3 '
                         '--env KVERBS_TIMEOUT=1200 ' + options, sections)


class Hostile(Guest):
    """A device that deceives its drivers; the long form: also seeds of the day, on the debug
    kernel.
    """

    def run(self, chosen):
        if not is_long():
            return super().run(chosen)
        seeds, nvme = seeds_of_today(8), seeds_of_today(3)
        return Sanitized(f'--hostile --debug-kernel --env FULL=1 --env HOSTILE_SEEDS=1-16,{seeds} '
                         f'--env HOSTILE_NVME_SEEDS=4,7,8,{nvme}', 'lies hostile').run(chosen)


# Two send to one through a hub that has no room for it, with and without pauses. There is room for
# frames that are on their way when the hub asks, however late the hub itself is.
INCAST = Steps(*(Machines(3, f'--rate 100 --queue {queue} {how}', f'net-incast.sh {name}')
                 for queue, how, name in ((300, '--pause 60:30', 'paused'),
                                          (4000, '--pfc 60:30', 'asked'), (300, '', 'losing'))))


def consumers_in_disorder():
    """Those that rely on nothing but what the specification grants, as faults.rst says."""
    return call(VM, 'run', '--strict', '--timeout', '1600', '--fault', 'port order=adversarial',
                *vmflags(), '--', '/opt/qhca/guest/consumers.sh', 'nvme', 'nfs', 'iser', 'srp',
                'p9', 'libfabric', 'qperf', 'rsockets')


def other_kernel(name):
    """The driver on another kernel."""
    return worst([
        one_guest(3600, '--kernel', name, '--device-arg', 'guest-faults=on', '--',
                  'kverbs', 'eth', 'tools', 'kselftest'),
        call(VM, 'run', '--strict', '--kernel', name, '--timeout', '1200', *vmflags(), '--',
             '/opt/qhca/guest/consumers.sh', 'nvme')])


# The device in QEMU, two machines, and a server.
KVM = Nested(1200,
             Guest(600, FAULTS, 'kverbs card exits kselftest device translate cq notify srq mw'),
             Machines(2, '', 'pair-rdma.sh place'),
             Guest(600, f'--server {FAULTS}', 'exits kselftest device translate notify'))

# Tests that know the layout of something, or move data; without those that need huge pages, device
# memory, udmabuf, or an IOMMU that maps as much as a user may have.
OTHER_ORDER = Guest(3600, f'--arch s390x {FAULTS}', '''
    kselftest abi abi_core abi_resp abi_srq abi_wq answers caps cm cm_xrc counters cq cq_stamps
    device domain doorbell errno events extended faults flow_counters flush forged given import
    mr_reg mw notify odp qp_effects raw rwq srq ten_steps translate ud xrc''')


def net_tests():
    """The kernel's own tests of network drivers, from the newest kernel, in a machine that has both
    ends of the cable. Some want five channels, so there are six CPUs, and two vectors
    for each.
    """
    built = kinds.output(script('build/net-tests.sh'), '--kernel', '7')
    return 1 if built is None else call(
        VM, 'run', '--strict', '--timeout', '1800', '--kernel', '7', '--both-ends', '--smp', '6',
        '--device-arg', 'vectors=13', '--package', 'socat', '--package', 'python3-yaml',
        '--package', 'jq', '--put', f'{built}:net-tests', *vmflags(), '--',
        '/opt/qhca/guest/net-tests.sh')


def minutes(spare):
    """How long what goes on for MINUTES takes, and its limit; 0: until something fails."""
    seconds = int(os.environ.get('MINUTES', '10')) * 60
    return seconds, seconds + spare if seconds else 1 << 30


def soak_guest():
    seconds, limit = minutes(600)
    return one_guest(limit, '--env', f'SOAK_SECONDS={seconds}', '--', 'soak')


def churn(kernel):
    """Changes of the device, its network card and its users, all at a time."""
    seconds, limit = minutes(14400)
    return Sanitized(f'{kernel} --env PATIENCE=300 --env CHURN_SECONDS={seconds}', 'churn',
                     limit).run(None)


def uverbs_fuzz():
    """With another seed every day, which is in the output."""
    return Sanitized(f'--debug-kernel --env FUZZ_SEED={datetime.date.today():%Y%m%d} '
                     '--env FUZZ_MS=300000', 'kselftest uverbs_fuzz').run(None)


def tsan_qemu():
    """QEMU's threads: CPUs of the guest ring while the main loop works, or takes the device
    away.
    """
    return worst([
        one_guest(3600, '--tsan-qemu', '--env', 'KSELFTEST_TIMEOUT=1500', '--', 'kselftest',
                  'stress', 'translate'),
        Guest(1800, f'--tsan-qemu --env PATIENCE=600 --env LIFE_CYCLES=1 {UNPLUG}',
              'life').run(None)])


# Linux minds the slot, not ACPI, and lets programs map BARs.
UNPLUG = "--smp 4 --kernel-arg iomem=relaxed --qemu-arg=-global " \
         "--qemu-arg=ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off --env 'LIFE_WAYS=plug off'"


def fuzz():
    """Each kind of input for half a minute."""
    return Engine('fuzz', 'FUZZ_TIME=30', groups=('--extra',), count='fuzz/libFuzzer').run(None)


def soak():
    """COUNT schedules of the simulator, starting with SEED."""
    return Engine('soak', *(f'{name}={os.environ[name]}' for name in ('COUNT', 'SEED')
                            if os.environ.get(name)), count='sim/schedules').run(None)


def instructions():
    """Messages cost the engine, and posting and polling the provider, no more instructions than
    before, however busy this machine is; with UPDATE the new counts are kept.
    """
    update = os.environ.get('UPDATE', '')
    return worst([Engine('instructions', f'UPDATE={update}', groups=('--valgrind',),
                         count='instructions').run(None),
                  counted('provider-instructions', script('check/provider-instructions.sh'))])


# The patches for other projects apply to their releases, and what they bring builds there.
SERIES = Call('release/export.sh', '--check', 'linux', 'qemu', 'rdma-core', count='export')


def long_form(name, option='--full'):
    """A script that has a longer form."""
    return Call(lambda: call(script(name), *([option] if is_long() else [])))


def counts(name, *args):
    """A script of scripts/cluster, which prints no sum."""
    return Call(f'cluster/{name}.py', *args, count=name)


def launcher(*args):
    return Call(lambda: call(script('check/check-vm.py'), *args, *vmflags()))


CHECK, FULL, QUICK = ('check', 'full'), ('full',), ('quick', 'check', 'full')
RXE = '--nic-b virtio'

PARTS = (
    ('rxe', 'pair', CHECK, 'rxe', Machines(2, RXE, 'pair-rdma.sh')),
    ('pair-rdma', 'pair', CHECK, 'pair',
     Machines(2, '', 'pair-rdma.sh perf ipv6 place cm cnp odp')),
    ('pair', 'pair', CHECK, 'pair', Machines(2, '', 'pair.sh')),
    ('aggregate', 'pair', FULL, 'pair',
     Machines(2, '--device-arg aggregate=on', 'pair-rdma.sh perf place')),
    ('pair-loss', 'pair', CHECK, 'pair', Machines(2, '--loss 1', 'pair-rdma.sh loss')),
    ('consumers-pair', 'pair', CHECK, '', Consumers(2)),
    ('wire', 'pair', CHECK, 'pair', Wire('--link dgram')),
    ('rxe-wire', 'pair', CHECK, 'rxe', Wire(f'{RXE} --link udp')),
    ('rxe-loss', 'pair', CHECK, 'rxe', Machines(2, f'{RXE} --loss 1', 'pair-rdma.sh loss')),
    ('rxe-odp', 'pair', FULL, 'rxe', Machines(2, f'--kernel 7 {RXE}', 'pair-rdma.sh odp')),
    ('mcast', 'pair', CHECK, 'pair', Mcast(3, '', 'net-mcast.sh')),
    # Their network cards leave segments of TCP to the host's kernel.
    ('taps', 'pair', FULL, 'pair', Steps(
        Machines(2, '--link bridge:br0', 'pair.sh', BRIDGED),
        Machines(2, '--link bridge:br0', 'pair-rdma.sh perf', BRIDGED))),
    ('incast', 'pair', FULL, 'pair', INCAST),
    ('life', 'one', CHECK, '', Life(1500, '', 'life')),
    ('kselftest', 'one', CHECK, 'guest', Guest(2400, FAULTS, 'kselftest')),
    ('engine', 'one', CHECK, '', Engine('check')),
    # The device as a process of its own: under AddressSanitizer, in its sandbox, and with a
    # machine of Debian's QEMU, also when the process is killed.
    ('server-asan', 'one', CHECK, 'server', QTest(server=['--asan'])),
    ('server', 'one', CHECK, 'server', QTest(server=[])),
    ('server-killed', 'one', CHECK, 'server',
     Guest(1200, f'--mortal-server {FAULTS} --env LIFE_WAYS=server', CORE)),
    ('consumers', 'one', CHECK, '', Consumers(1)),
    ('hostile', 'one', CHECK, 'variants',
     Hostile(600, '--hostile --env HOSTILE_SEEDS=3-4 --env HOSTILE_SECONDS=4', 'lies hostile')),
    ('kernel', 'one', CHECK, 'guest', Guest(1200, '', 'claims eth kverbs soak')),
    # A machine with several adapters, to which rails.sh lets things happen.
    ('rails', 'one', CHECK, '', Guest(1200, f'{RAILS} --hcas 2', 'rails')),
    ('disorder', 'one', FULL, 'variants', Call(consumers_in_disorder)),
    ('rails-8', 'one', FULL, 'variants',
     Guest(1800, f'{RAILS} --hcas 8 --smp 4 --mem 4G', 'rails')),
    ('rails-server', 'one', FULL, 'server', Guest(1200, f'{RAILS} --server --hcas 2', 'rails')),
    # Faults of two adapters, and whether the verdict on a program is right.
    ('scenarios', 'one', CHECK, '', long_form('check/scenarios.sh')),
    ('unplug', 'one', FULL, 'variants', Guest(1800, UNPLUG, 'life')),
    ('vm', 'one', FULL, 'launcher', launcher('options')),
    ('lab', 'pair', FULL, 'launcher', launcher('lab')),
    ('tour', 'one', FULL, '', Call('docs/tour.py', '--check')),
    ('snapshot', 'one', FULL, 'variants', Guest(1200, '', 'snapshot')),
    ('pyverbs', 'one', CHECK, 'guest', Guest(1200, '', 'tools speeds cm pyverbs')),
    ('matrix', 'one', CHECK, 'guest', Guest(2400, '', 'matrix')),
    # All that runs on the device in QEMU.
    ('server-guest', 'one', FULL, 'server', Guest(1800, '--server', 'eth tools cm pyverbs')),
    ('server-kselftest', 'one', FULL, 'server',
     Guest(2400, f'--server {FAULTS}', 'kverbs kselftest')),
    ('server-pair', 'pair', FULL, 'server',
     Machines(2, '--mortal-server', 'pair-rdma.sh perf ipv6 place cm killed')),
    ('server-fuzz', 'one', FULL, 'server', QTest(server=['--asan'], only='server_fuzz', seeds=100)),
    # Threads that accept connections and close file descriptors, beside the one that does the rest.
    ('tsan-server', 'one', FULL, 'server',
     QTest(server=['--tsan'], only='test_server.py or test_rc.py or test_dm.py')),
    ('qtest', 'one', QUICK, '', QTest()),
    ('beside', 'one', CHECK, '', long_form('check/check-beside.sh')),
    ('instructions', 'one', CHECK, '', Call(instructions)),
    ('cluster', 'one', CHECK, '', counts('test_cluster')),
    ('cluster-captures', 'one', CHECK, '', counts('test_captures')),
    ('cluster-dcqcn', 'one', CHECK, '', counts('test_dcqcn')),
    ('lint', 'idle', FULL, '', long_form('lint.sh', '--all')),
    ('engine-quick', 'one', ('quick',), '', Engine('check', suite='unit')),
    ('sim-quick', 'one', ('quick',), '', Engine('soak', 'COUNT=500', count='sim/schedules')),
    ('core', 'one', ('quick',), '', Guest(1200, '', 'core')),
    # UCX's own tests, some 20 minutes of them.
    ('ucx-gtest', 'one', FULL, '', Consumers(1, 'ucx-gtest')),
    ('pyverbs-sid', 'one', FULL, 'variants', Guest(1200, '--rdma-core sid', 'pyverbs')),
    ('pyverbs-new', 'one', FULL, 'variants', Guest(1200, '--kernel 7 --rdma-core sid', 'pyverbs')),
    ('iommu', 'one', FULL, 'variants', Guest(2400, f'--iommu {FAULTS}', 'kselftest')),
    ('no-dm', 'one', FULL, 'variants', Guest(
        1200, '--device-arg dm-size=0 --device-arg eth-queues=1',
        'eth kselftest dm device caps ten_steps')),
    ('db-stride', 'one', FULL, 'variants', Guest(
        1200, '--device-arg db-stride=64K',
        'kselftest doorbell abi ten_steps import tenants kill uverbs_fuzz')),
    # A group of its own: its machines are as usual, but all below them is KVM's. In no run yet: in
    # one of six a CPU stopped for good behind kverbs, for an unknown reason.
    ('kvm', 'pair', (), 'kvm', KVM),
    ('slow', 'one', CHECK, 'variants', Guest(
        600, '--device-arg cpu-share=1 --device-arg cmd-timeout-ms=250 --env SLOW_MS=250',
        'kselftest slow')),
    ('bounce', 'one', FULL, 'variants', Guest(1200, '--kernel-arg swiotlb=force', 'kverbs')),
    ('frames', 'one', FULL, 'variants',
     Guest(2400, f'--device-arg frames=on {FAULTS}', 'kselftest')),
    ('kernel-6.1', 'one', FULL, 'kernels', Call(other_kernel, '6.1')),
    ('kernel-7', 'one', FULL, 'kernels', Call(other_kernel, '7')),
    ('arm64', 'one', FULL, 'kernels',
     Guest(3600, f'--arch arm64 {FAULTS}', 'kselftest uars doorbell ten_steps')),
    ('arm64-server', 'one', FULL, 'kernels',
     Guest(3600, f'--arch arm64 --server {FAULTS}', 'kselftest uars doorbell ten_steps')),
    ('s390x', 'one', FULL, 'kernels', OTHER_ORDER),
    ('s390x-pair', 'pair', FULL, 'kernels',
     Machines(2, '--arch b:s390x', 'pair-rdma.sh perf ipv6')),
    ('net-tests', 'one', FULL, 'kernels', Call(net_tests)),
    ('eth-alone', 'one', FULL, 'variants', Guest(1200, '--setup eth', 'eth-alone')),
    ('life-debug', 'one', FULL, 'debug', Sanitized(
        '--debug-kernel --env LIFE_CYCLES=3 --env PATIENCE=300',
        'life kselftest nomem nopages kill')),
    ('nomem-eth', 'one', FULL, 'debug', Sanitized(
        '--debug-kernel --kernel-arg dma_debug=off --env KSELFTEST_TIMEOUT=7000',
        'kselftest nomem_eth nomem_restart')),
    ('debug', 'one', FULL, 'debug', Sanitized(f'--debug-kernel {FAULTS}', 'kverbs kselftest')),
    # Races of two CPUs. KCSAN looks at more accesses than usual, and longer, for both CPUs are
    # threads of this machine's.
    ('kcsan', 'one', FULL, 'debug', Sanitized(
        f'--kcsan {FAULTS} --kernel-arg kcsan.skip_watch=500 --kernel-arg kcsan.udelay_task=200',
        'kverbs soak kselftest translate stress events cq notify srq mw mcast kill '
        'removal undone cm import xrc faults nomem nopages counters')),
    ('rt', 'one', FULL, 'debug', Sanitized(
        f'--rt-kernel {FAULTS}', 'kverbs eth kselftest translate stress events cq notify srq mcast '
        'kill removal cm nomem nopages')),
    ('asan-qemu', 'one', FULL, 'variants', Guest(3600, f'--debug-qemu {FAULTS}', 'kselftest')),
    ('asan-qtest', 'one', FULL, 'variants', QTest(('build/qemu.sh', '--debug'), seeds=10)),
    ('tsan-qemu', 'one', FULL, 'variants', Call(tsan_qemu)),
    # All tests of the engine; the same compiler.
    ('msan', 'one', FULL, '', Engine('msan', groups=('--extra',))),
    ('nightly', 'one', FULL, '', Engine('nightly')),
    ('uverbs-fuzz', 'one', FULL, '', Call(uverbs_fuzz)),
    ('churn', 'one', FULL, 'debug', Call(churn, '--debug-kernel')),
    ('churn-kcsan', 'one', FULL, 'debug', Call(churn, '--kcsan')),
    ('fuzz', 'one', FULL, '', Call(fuzz)),
    ('soak-guest', 'one', FULL, '', Call(soak_guest)),
    ('export', 'one', FULL, '', SERIES),
    ('packages', 'one', FULL, '', Call('release/check-packages.sh')),
    ('oci', 'one', FULL, '', Call('release/check-oci.sh')),
    # The example project, as CI systems run it.
    ('example', 'one', FULL, '', Call('ci/example.sh', count='example')),
    # Which statements the parts that have ended have tested.
    ('conformance', 'all', CHECK, '', Call('docs/conformance.py', '--results')),
    ('cluster-random', 'all', FULL, '', counts('fuzz', '--count', '40')),
    ('cluster-captures-drawn', 'one', FULL, '', counts('test_captures', '--drawn', '60')),
    ('cluster-numbers', 'all', FULL, '', counts('test_cluster', '--numbers')),
    ('cluster-dcqcn-numbers', 'one', FULL, '', counts('test_dcqcn', '--numbers')),
    ('soak', 'one', (), '', Call(soak)),
)
