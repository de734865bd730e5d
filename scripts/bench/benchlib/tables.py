# SPDX-License-Identifier: GPL-2.0
"""The measurements, and which figures are compared."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Step:
    """One run of a program. subject: whose figures it gives; device: what it runs on,
    for guest/bench.sh."""
    subject: str
    device: str
    command: str

    @property
    def line(self):
        return f'{self.device} {self.command}'

    @property
    def is_rival(self):
        """Others' code: what goes wrong there is no failure of ours."""
        return self.device != 'qhca'


@dataclass(frozen=True)
class Measurement:
    """Steps that are compared with each other: in each round one after the other, and in
    every other round the other way round."""
    name: str
    steps: tuple
    rounds: int

    def order(self, number):
        return self.steps[::-1] if number % 2 else self.steps


@dataclass(frozen=True)
class Row:
    """One line of a table: the figure (series, x) of one subject and how much better it is than
    another subject's, or the figure alone. target: of the ratio, or the most that the figure alone
    may be; 0: none."""
    title: str
    where: str
    measurement: str
    series: str
    x: int
    subject: str
    other: str = ''
    other_series: str = ''
    other_x: int = 0
    less: bool = False
    target: float = 0

    @property
    def against(self):
        """The other's (subject, series, x)."""
        return self.other, self.other_series or self.series, self.other_x or self.x


ONE, TWO, BOOT = 'one VM', 'two VMs', 'boot'
# The same with the device as a process of its own.
SERVED = {ONE: 'server, 1 VM', TWO: 'server, 2 VMs'}

# The headline, and its targets.
IN_QEMU = (
    Row('WRITE 64 KiB', ONE, 'write-64k', 'bandwidth', 65536, 'qhca', 'rxe', target=150),
    Row('READ 64 KiB', ONE, 'read-64k', 'bandwidth', 65536, 'qhca', 'rxe', target=100),
    Row('SEND 64 KiB', ONE, 'send-64k', 'bandwidth', 65536, 'qhca', 'rxe', target=100),
    Row('WRITE 1 MiB', ONE, 'write-1m', 'bandwidth', 1 << 20, 'qhca', 'memcpy', 'memcpy',
        target=.5),
    Row('WRITE 8 B', ONE, 'write-8', 'rate', 8, 'qhca', 'rxe', target=20),
    Row('ib_write_lat 8 B', ONE, 'write-lat', 'p50', 8, 'qhca', 'rxe', less=True, target=20),
    Row('ib_read_lat 8 B', ONE, 'read-lat', 'p50', 8, 'qhca', 'rxe', less=True, target=10),
    Row('1,000 QPs, 8 B', ONE, 'qps-1000', 'qps', 1000, 'qhca', 'qhca', other_x=1,
        target=.9),
    Row('NVMe 64 KiB', ONE, 'nvme-64k', 'bandwidth', 65536, 'qhca', 'rxe', target=10),
    Row('WRITE 64 KiB', TWO, 'write-64k', 'bandwidth', 65536, 'qhca', 'rxe', target=40),
    Row('ib_write_lat 8 B', TWO, 'write-lat', 'p50', 8, 'qhca', 'rxe', less=True, target=20),
    Row('power-on to ibv_devinfo', BOOT, 'boot', 'boot', 0, 'qhca', less=True, target=6),
)
SERVER_TARGETS = {(TWO, 'write-64k'): 150, (TWO, 'write-lat'): 5}
ROWS = IN_QEMU + tuple(
    replace(row, where=SERVED[row.where],
            target=SERVER_TARGETS.get((row.where, row.measurement), row.target))
    for row in IN_QEMU if row.where in SERVED)


LATENCIES = {ONE: ('write', 'read', 'read-events', 'send', 'send-events'), TWO: ('write', 'send')}

# Objects and connections, also of a server, whose commands are messages.
CONTROL = tuple(
    Row(title, where, measurement, measurement, x, 'qhca', 'rxe', target=1.5)
    for where in (ONE, SERVED[ONE]) for title, measurement, x in (
        ('connections, RDMA CM', 'connections', 1),
        ('QPs, created to destroyed', 'life', 1),
        ('MRs of 4 KiB', 'registration', 4096),
        ('MRs of 1 MiB', 'registration', 1 << 20)))

# The rest of what is no plot; it has no target but those.
MORE = (
    *CONTROL,
    *(Row(', '.join([name.partition('-')[0].upper() + ' 8 B', *name.split('-')[1:], series]), where,
          f'lat-{name}', series, 8, 'qhca', 'rxe', less=True)
      for where, names in LATENCIES.items() for name in names
      for series in ('p50', 'p99', 'p99.9')),
    Row('NVMe 64 KiB', ONE, 'nvme-tcp', 'bandwidth', 65536, 'qhca', 'tcp'),
    Row('NVMe 64 KiB', ONE, 'nvme-limits', 'bandwidth', 65536, 'qhca', 'loop'),
    Row('NVMe 64 KiB', ONE, 'nvme-limits', 'bandwidth', 65536, 'qhca', 'ram'),
    Row('NVMe 4 KiB', ONE, 'nvme-4k', 'rate', 4096, 'qhca', 'rxe'),
    Row('NVMe 4 KiB', ONE, 'nvme-4k', 'rate', 4096, 'qhca', 'tcp'),
    Row('TCP', ONE, 'tcp', 'bandwidth', 0, 'lo'),
    Row('TCP, network card or virtio-net', TWO, 'tcp', 'bandwidth', 0, 'qhca', 'rxe'),
    Row('doorbells that do nothing', ONE, 'sizes', 'doorbell', 1, 'machine'),
)

BOTH = ('qhca', 'rxe')
# Before the measurements: the disks of fio.
NVME = tuple(Step(device, device, 'nvme') for device in ('qhca', 'rxe', 'tcp', 'loop'))


class Tables:
    """rounds: of the headline; brief: divides iterations and durations, to try things out."""

    def __init__(self, rounds=9, brief=1):
        self.rounds, self.brief = rounds, brief

    # ---- programs

    def perftest(self, tool, size, counts, options=''):
        """One step for each device, with iterations that take about as long."""
        return tuple(Step(device, device, f'{tool} -s {size} -n {max(5, n // self.brief)}{options}')
                     for device, n in counts.items())

    def bench(self, device, what, x='', subject=None, ms=100):
        points = f' BENCH_X={x}' if x else ''
        return Step(subject or device, device,
                    f'bench BENCH_MS={max(1, ms // self.brief)}{points} -t {what}')

    def fio(self, size, devices):
        ms = max(200, 1000 // self.brief)
        return tuple(Step(device, device, f'fio --rw=randrw --bs={size} --iodepth=16 --size=64m '
                          f'--time_based --runtime={ms}ms') for device in devices)

    # ---- tables

    def headline_one(self):
        tool, rounds = self.perftest, self.rounds
        memcpy = self.bench('qhca', 'memcpy', 1 << 20, 'memcpy')
        return (
            Measurement('write-64k', tool('ib_write_bw', 65536, {'qhca': 10000, 'rxe': 150}),
                        rounds),
            Measurement('read-64k', tool('ib_read_bw', 65536, {'qhca': 10000, 'rxe': 150}), rounds),
            Measurement('send-64k', tool('ib_send_bw', 65536, {'qhca': 10000, 'rxe': 100}), rounds),
            Measurement('write-1m', tool('ib_write_bw', 1 << 20, {'qhca': 1000}) + (memcpy,),
                        rounds),
            Measurement('write-8', tool('ib_write_bw', 8, {'qhca': 100000, 'rxe': 8000}), rounds),
            Measurement('write-lat', tool('ib_write_lat', 8, {'qhca': 20000, 'rxe': 2000}), rounds),
            Measurement('read-lat', tool('ib_read_lat', 8, {'qhca': 20000, 'rxe': 4000}), rounds),
            Measurement('qps-1000', (self.bench('qhca', 'qps:', '1,1000'),), rounds),
            Measurement('nvme-64k', self.fio('64k', ('qhca', 'rxe')), rounds),
        )

    def headline_two(self):
        tool, rounds = self.perftest, self.rounds
        return (
            Measurement('write-64k', tool('ib_write_bw', 65536, {'qhca': 3000, 'rxe': 150}),
                        rounds),
            Measurement('write-lat', tool('ib_write_lat', 8, {'qhca': 5000, 'rxe': 500}), rounds),
        )

    def latencies(self, where, rounds, counts):
        """All samples (-U), polling and with events, which a WRITE has none of."""
        return tuple(Measurement(f'lat-{name}', self.perftest(
            f'ib_{name.partition("-")[0]}_lat', 8, counts,
            f' -U{" -e" if name.endswith("-events") else ""}'), rounds)
            for name in LATENCIES[where])

    def sweep(self, name, rounds):
        """A kselftest that measures, for both devices."""
        return Measurement(name, tuple(self.bench(device, f'{name}:') for device in BOTH), rounds)

    def control(self):
        few = min(5, self.rounds)
        connections = f'cmtime -c {max(5, 200 // self.brief)}'
        return (
            self.sweep('registration', few), self.sweep('life', few),
            Measurement('connections', tuple(Step(d, d, connections) for d in BOTH), few),
        )

    def sweeps_one(self):
        few, fewer = min(5, self.rounds), min(3, self.rounds)
        limits = self.bench('qhca', 'limit: -t doorbell', subject='machine')
        sizes = self.sweep('sizes', few)
        seconds = max(1, 2 // self.brief)
        return (
            Measurement('sizes', (*sizes.steps, limits), few),
            self.sweep('qps', fewer), self.sweep('mrs', fewer), self.sweep('sges', few),
            *self.control(),
            *self.latencies(ONE, few, {'qhca': 5000, 'rxe': 2000}),
            Measurement('nvme-tcp', self.fio('64k', ('qhca', 'tcp')), few),
            Measurement('nvme-limits', self.fio('64k', ('qhca', 'loop', 'ram')), few),
            Measurement('nvme-4k', self.fio('4k', ('qhca', 'rxe', 'tcp')), few),
            Measurement('tcp', (Step('lo', 'tcp', f'iperf3 -t {seconds}'),), fewer),
        )

    def sweeps_two(self):
        """Fewer sizes, because here each is a run of perftest."""
        out, fewer = [], min(3, self.rounds)
        for tool in ('write', 'read', 'send'):
            steps = ()
            for size in (8, 64, 512, 4096, 32768, 262144, 2 << 20, 8 << 20):
                steps += self.perftest(f'ib_{tool}_bw', size, {
                    'qhca': max(10, min(20000, (64 << 20) // size)),
                    'rxe': max(5, min(1000, (4 << 20) // size))})
            out.append(Measurement(f'{tool}-sizes', steps, fewer))
        seconds = max(1, 2 // self.brief)
        return (
            *out, *self.latencies(TWO, fewer, {'qhca': 2000, 'rxe': 1000}),
            Measurement('tcp', tuple(Step(device, device, f'iperf3 -t {seconds}')
                                     for device in ('qhca', 'rxe')), fewer),
        )
