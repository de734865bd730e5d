#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of benchlib: figures are found, or their absence is noticed; what does not count
does not count."""

import csv
import os
import re
import tempfile
import unittest

import rails
from benchlib import figures, machines, plots, report, tables
from benchlib.results import Key, Results, headline

BW = '''---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 65536      20000            967.72             967.39 \t\t     0.015478
---------------------------------------------------------------------------------------
'''
SMALL = '''
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 8          25               0.00               0.00   \t\t     0.000190
'''
LAT = '''
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 8       200          15.66          34001.12      104.55  \t       11806.31     \t7264.27\t\t307.76 \t\t3400.12
'''  # noqa: E501 - as the tool prints it
CMTIME = '''Connect (20) QPs test
qp_conn                20
threads                 1
step             avg/iter  total(us)    us/conn    sum(us)    max(us)    min(us)
full connect         2000      40000          0          0      39000      38000
create id              10        200          9        180         20          5
cm_conn                20
threads                 1
step             avg/iter  total(us)    us/conn    sum(us)    max(us)    min(us)
full connect         1000      20000          0          0      39000      38000
'''
FIO = '''fio: a warning
{"jobs": [{"error": 0, "job options": {"bs": "64k"},
 "read": {"bw_bytes": 1048576, "iops": 16}, "write": {"bw_bytes": 2097152, "iops": 32}}]}
'''


class Figures(unittest.TestCase):
    def test_perftest(self):
        self.assertEqual(figures.parse('ib_write_bw', BW),
                         [('bandwidth', 65536, 967.39), ('rate', 65536, 967.39 * 16)])
        self.assertEqual(figures.parse('ib_write_bw', SMALL),
                         [('bandwidth', 8, 190 * 8 / figures.MIB), ('rate', 8, 190)])
        self.assertEqual(figures.parse('ib_read_lat', LAT),
                         [('p50', 8, 104.55), ('p99', 8, 307.76), ('p99.9', 8, 3400.12)])

    def test_samples(self):
        text = '#, usec\n' + ''.join(f'{n}, {n}.0\n' for n in range(1, 1001)) + LAT
        self.assertEqual(figures.parse('ib_send_lat', text),
                         [('p50', 8, 500), ('p99', 8, 990), ('p99.9', 8, 999)])

    def test_percentile(self):
        self.assertEqual(figures.percentile([3], 99.9), 3)
        self.assertEqual(figures.percentile([4, 1, 3, 2], 50), 2)

    def test_selftest(self):
        text = '1..1\n# figure qps 1 1.5e+06\n# figure qps 1000 1e6\nok 1 qps: x\n'
        self.assertEqual(figures.parse('bench', text), [('qps', 1, 1.5e6), ('qps', 1000, 1e6)])
        with self.assertRaises(figures.NoFigure):
            figures.parse('bench', text + 'not ok 2 qps: y\n')

    def test_json(self):
        self.assertEqual(figures.parse('fio', FIO), [('bandwidth', 65536, 3), ('rate', 65536, 48)])
        with self.assertRaises(figures.NoFigure):
            figures.parse('fio', FIO.replace('"error": 0', '"error": 5'))
        text = '{"end": {"sum_received": {"bits_per_second": 8388608}}}'
        self.assertEqual(figures.parse('iperf3', text), [('bandwidth', 0, 1)])

    def test_cmtime(self):
        """The connections with QPs, not those without."""
        self.assertEqual(figures.parse('cmtime', CMTIME), [('connections', 1, 500)])

    def test_nothing(self):
        for program in ('ib_write_bw', 'bench', 'fio', 'iperf3', 'cmtime'):
            with self.assertRaises(figures.NoFigure):
                figures.parse(program, 'Couldn\'t create IB resources\n')
        for bad in ('0.00', 'inf', 'nan'):      # of a run that was too short
            with self.assertRaises(figures.NoFigure):
                figures.parse('ib_write_bw', BW.replace('967.39', bad).replace('0.015478', bad))


def key(subject, measurement='m', series='p50', x=8):
    return Key(tables.ONE, measurement, subject, series, x)


class Judgement(unittest.TestCase):
    ROW = tables.Row('t', tables.ONE, 'm', 'p50', 8, 'qhca', 'rxe', less=True, target=4)

    def results(self, *rounds):
        out = Results()
        for number, (mine, theirs, stolen) in enumerate(rounds):
            out.add(key('qhca'), number, mine)
            if theirs is not None:
                out.add(key('rxe'), number, theirs)
            out.steal(tables.ONE, 'm', number, stolen)
        return out

    def test_ratio_of_rounds(self):
        """Each round has its own ratio, whatever the medians are."""
        results = self.results((1, 10, 0), (2, 6, 0), (3, 15, 0))
        self.assertEqual(headline(results, self.ROW)[2:],
                         (results.ratio(key('qhca'), key('rxe'), True), True))
        ratio = results.ratio(key('qhca'), key('rxe'), True)
        self.assertEqual((ratio.median, ratio.least, ratio.most, ratio.rounds), (5, 3, 10, 3))
        self.assertEqual(results.ratio(key('rxe'), key('qhca')).median, 5)

    def test_stolen(self):
        results = self.results((1, 2, 0), (1, 9, .02), (1, 3, .01))
        ratio = results.ratio(key('qhca'), key('rxe'), True)
        self.assertEqual((ratio.median, ratio.rounds, results.discarded()), (2.5, 2, 1))
        self.assertIs(headline(results, self.ROW)[3], False)

    def test_missing(self):
        """A rival that has failed gives no ratio, and no verdict."""
        self.assertEqual(headline(self.results((1, None, 0)), self.ROW), (1, None, None, None))
        self.assertEqual(self.results((1, None, 0), (2, 6, 0)).ratio(
            key('qhca'), key('rxe'), True).median, 3)
        self.assertIsNone(headline(self.results((1, 5, .5)), self.ROW)[3])

    def test_alone(self):
        row = tables.Row('t', tables.ONE, 'm', 'p50', 8, 'qhca', less=True, target=6)
        self.assertIs(headline(self.results((6, None, 0)), row)[3], True)
        self.assertIs(headline(self.results((6.1, None, 0)), row)[3], False)

    def test_same_subject(self):
        results = Results()
        results.add(key('qhca', series='qps', x=1), 0, 100)
        results.add(key('qhca', series='qps', x=1000), 0, 95)
        row = tables.Row('t', tables.ONE, 'm', 'qps', 1000, 'qhca', 'qhca', other_x=1, target=.9)
        self.assertEqual(headline(results, row)[2].median, .95)

    def test_other_series(self):
        row = next(row for row in tables.ROWS if row.other == 'memcpy')
        results, mine = Results(), Key(row.where, row.measurement, 'qhca', 'bandwidth', 1 << 20)
        results.add(mine, 0, 3)
        results.add(Key(row.where, row.measurement, 'memcpy', 'memcpy', 1 << 20), 0, 4)
        self.assertEqual(headline(results, row)[:2], (3, 4))

    def test_csv(self):
        results, again = self.results((1, 10, 0), (2, 6, .5)), Results()
        with tempfile.TemporaryDirectory() as directory:
            text = report.write(directory, results, [self.ROW], 'conditions')
            self.assertIn('1 of 2 rounds', text)
            self.assertIn('met', text.splitlines()[1])
            report.read_samples(os.path.join(directory, 'samples.csv'), again)
            with open(os.path.join(directory, 'headline.csv'), encoding='utf-8') as file:
                line = next(csv.DictReader(file))
        self.assertEqual((again.values, again.stolen), (results.values, results.stolen))
        self.assertEqual((line['ratio'], line['rounds'], line['met']), ('10.0', '1', '1'))


class Steps(unittest.TestCase):
    A, B = (tables.Step(name, name, 'bench -t x') for name in ('qhca', 'rxe'))

    def test_order(self):
        """ABBA, and the rounds of all measurements in turn."""
        plan = [tables.Measurement('m', (self.A, self.B), 2), tables.Measurement('n', (self.A,), 1)]
        order = [(m and m.name, number, step.subject) for m, number, step in
                 machines.schedule(plan, (self.A,))]
        self.assertEqual(order, [(None, 0, 'qhca'), ('m', 0, 'qhca'), ('m', 0, 'rxe'),
                                 ('n', 0, 'qhca'), ('m', 1, 'rxe'), ('m', 1, 'qhca')])

    def read(self, text):
        results = Results()
        reader = machines.Reader(results, tables.ONE, machines.schedule(
            [tables.Measurement('m', (self.A, self.B), 1)]))
        for line in text.splitlines():
            reader.line(line)
        return reader, results

    def test_reader(self):
        reader, results = self.read('@begin\n# figure qps 1 5\n@end 0 0\n'
                                    '@begin\n# figure qps 1 2\n@end 0 0\n')
        self.assertEqual(reader.done, 2)
        self.assertEqual(results.ratio(key('qhca', series='qps', x=1),
                                       key('rxe', series='qps', x=1)).median, 2.5)
        self.assertEqual(results.failures, [])

    def test_reader_failure(self):
        """The figures of a program that has failed do not count, the next program's do."""
        reader, results = self.read('@begin\n# figure qps 1 5\n@end 1 0\n'
                                    '@begin\n# figure qps 1 2\n@end 0 0\n')
        self.assertEqual((reader.done, len(results.failures)), (2, 1))
        self.assertEqual([k.subject for k in results.values], ['rxe'])

    def lat(self, *medians):
        """ib_write_lat on rxe with these medians, in a round each, next to a device's."""
        steps = [tables.Step(name, name, 'ib_write_lat -s 8') for name in ('qhca', 'rxe')]
        results = Results()
        reader = machines.Reader(results, tables.ONE, machines.schedule(
            [tables.Measurement('m', (step,), len(medians)) for step in steps]))
        for median in medians:
            for value in ('10.00', median):
                for line in f'@begin\n{LAT.replace("104.55", value)}\n@end 0 0'.splitlines():
                    reader.line(line)
        return results

    def test_rival_round(self):
        """A figure that is no number spoils the rival's round, and nothing else."""
        results = self.lat('40.00', 'inf', '20.00')
        self.assertEqual(results.failures, [])
        mine, theirs, ratio, met = headline(results, Judgement.ROW)
        self.assertEqual((mine, theirs, ratio.median, ratio.rounds, met), (10, 30, 3, 2, False))
        text = report.remarks(results, [Judgement.ROW], '')
        self.assertIn('discarded: one VM: round 2 of m: rxe ib_write_lat -s 8: ', text)
        self.assertNotIn('not measured', text)

    def test_rival_gone(self):
        results = self.lat('inf', 'nan')
        self.assertEqual(results.failures, [])
        self.assertEqual(headline(results, Judgement.ROW), (10, None, None, None))
        self.assertIn('not measured', report.table(results, [Judgement.ROW]))
        self.assertRegex(report.remarks(results, [Judgement.ROW], ''),
                         'not measured: one VM: t: no round has a figure of rxe: rxe ib_.* nan ')

    def test_rival_status(self):
        """So does a rival that hangs or crashes; but our own figures fail."""
        results = self.read('@begin\n# figure qps 1 5\n@end 0 0\n@begin\n@end 124 0\n')[1]
        self.assertEqual((results.failures, list(results.lost)), ([], [(tables.ONE, 'm', 'rxe')]))

    def test_host(self):
        self.assertLessEqual(0, machines.busy(.05))
        self.assertLessEqual(machines.busy(.05), 1)
        self.assertLessEqual(machines.Steal().share(), 1)

    def test_guest_steal(self):
        results = self.read('@begin\n# figure qps 1 5\n@end 0 99\n')[1]
        self.assertEqual(results.discarded(), 1)

    def test_tables(self):
        """All figures shown are measured."""
        plan = tables.Tables()
        subjects = {(where, m.name, step.subject) for where, measurements in (
            (tables.ONE, plan.headline_one() + plan.sweeps_one()),
            (tables.TWO, plan.headline_two() + plan.sweeps_two()),
            (tables.SERVED[tables.ONE], plan.headline_one() + plan.control()),
            (tables.SERVED[tables.TWO], plan.headline_two()))
            for m in measurements for step in m.steps}
        for row in tables.ROWS + tables.MORE:
            for subject in filter(None, (row.subject, row.other)):
                if row.where != tables.BOOT:
                    self.assertIn((row.where, row.measurement, subject), subjects)
        for plot in plots.PLOTS:
            for line in plot.lines:
                named = (line[1:] if isinstance(plot, plots.Latency) else
                         (line.measurement, line.subject))
                self.assertIn((plot.where, *named), subjects)


class Plots(unittest.TestCase):
    def test_percentiles(self):
        points = dict(plots.percentiles(range(1, 1001)))
        self.assertEqual((points[10], points[100], points[1000]), (900, 990, 999))
        self.assertEqual(plots.percentiles([]), [])
        self.assertEqual(plots.percentiles([7]), [])

    def test_script(self):
        """Lines with data are drawn, single values as levels, in both formats."""
        results = Results()
        for x in (8, 4096):
            results.add(key('qhca', 'qps', 'qps', x), 0, x)
        results.add(key('machine', 'sizes', 'doorbell', 1), 0, 1e6)
        plot = plots.rate('qps', 'title', 'x')
        lines = plots.data(results, plot)
        self.assertEqual([label for label, _ in lines],
                         ['qhca', 'limit: doorbells that do nothing'])
        text = plots.script(plot, lines)
        for part in ('8 8\n4096 4096\nEOD', '1e+06 with lines', '"one-qps.svg"', '"one-qps.png"'):
            self.assertIn(part, text)

    def test_kept(self):
        """The data that the documentation keeps is what was measured, and all that it shows."""
        lines = [('qhca, "fast"', [(8, 1.25), (8388608, 23456.789)]), ('level', [(1, 7)])]
        drawn = [(plot, lines) for plot in plots.PLOTS]
        with tempfile.TemporaryDirectory() as directory:
            plots.keep(directory, drawn)
            again = plots.kept(directory)
        self.assertEqual({plot.name for plot, _ in again}, set(plots.SHOWN))
        self.assertEqual(again[0][1], [('qhca, "fast"', [[8, 1.25], [8388608, 23457]]),
                                       ('level', [[1, 7]])])
        self.assertEqual({plot.name for plot, _ in plots.kept()}, set(plots.SHOWN))

    def test_shown(self):
        """The documentation shows these and no others."""
        page = os.path.join(os.path.dirname(plots.DOCUMENTS), 'performance.rst')
        with open(page, encoding='utf-8') as file:
            found = re.findall(r'^\.\. figure:: plots/(\S+)\.svg', file.read(), re.M)
        self.assertEqual(set(found), set(plots.SHOWN))

    def test_only_levels(self):
        results = Results()
        results.add(key('machine', 'sizes', 'doorbell', 1), 0, 1e6)
        self.assertEqual(plots.data(results, plots.rate('qps', 'title', 'x')), [])

    def test_size(self):
        self.assertEqual([plots.size_label(n) for n in (512, 4096, 8 << 20)],
                         ['512', '4 KiB', '8 MiB'])


class Rails(unittest.TestCase):
    """The report of vm --report."""

    def test_read(self):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, 'report')
            with open(path, 'w', encoding='utf-8') as file:
                file.write('seconds,machine,rail,tx_bytes,rx_bytes,retransmit,what\n'
                           '0.0,a,0,1000,0,0,\n0.5,a,0,126000,0,0,\n0.6,a,1,,,,link "down"\n'
                           '1.0,a,0,,,,\n1.5,a,0,5,0,0,\n2.0,a,0,125005,0,0,\n')
            moved, happened = rails.read(path)
        self.assertEqual(moved, {'a/0': [(0.5, 2.0), (2.0, 2.0)]})
        self.assertEqual(happened, [(0.6, 'a/1: link "down"')])
        text = rails.script(moved, happened)
        self.assertIn("set label \"a/1: link 'down'\" at 0.6", text)
        self.assertIn('$rail0 << EOD\n0.5 2\n2 2\nEOD', text)


if __name__ == '__main__':
    unittest.main()
