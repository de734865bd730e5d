# SPDX-License-Identifier: GPL-2.0
"""The kinds of parts: of which programs each consists, and how it runs them.

A program is what can be run by itself, and an item of pytest: a test program of the engine,
a section of guest/check.sh, a kselftest, a function of a test, a consumer. A part runs in
a process of its own and prints results in TAP and at least one sum; results.py reads both.
"""

import ast
import datetime
import functools
import glob
import os
import re
import shlex
import subprocess
import sys

import results
from vmlib.build import CACHE, SCRIPTS, TOP

VM = os.path.join(SCRIPTS, 'vm')
GUEST = 'selftests/guest'
CHECK = '/opt/qhca/guest/check.sh'


class Program:
    """@sources: the files, below TOP, or text that names the statements it is about.

    @runs: the runs that it is in, if not its part's. @owns: whether a result is of it.
    """

    def __init__(self, name, sources=(), runs=None, text=''):
        self.name, self.sources, self.runs, self.text = name, sources, runs, text

    def words(self):
        return self.text + ''.join(source(name) for name in self.sources)

    def owns(self, title):
        return re.search(rf'(?:^|[ /]){re.escape(self.name)}(?:[ /:.-]|$)', title)


@functools.cache
def source(name):
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


def found(pattern):
    return tuple(os.path.relpath(name, TOP)
                 for name in sorted(glob.glob(os.path.join(TOP, pattern), recursive=True)))


def vmflags():
    return os.environ.get('VMFLAGS', '').split()


def is_long():
    return bool(os.environ.get('FULL'))


def call(*command, **env):
    """The exit status of a command, which prints results."""
    return subprocess.run(command, env=dict(os.environ, **env), check=False).returncode


def script(name):
    return os.path.join(SCRIPTS, name)


def output(*command):
    """The one line that a build script prints, or None."""
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return None if result.returncode else result.stdout.strip()


def counted(name, *command, **env):
    """Like call(), for what prints no sum; @name: what its results are about."""
    print(f'# {name}', flush=True)
    report = results.Report()
    with subprocess.Popen(command, env=dict(os.environ, **env), stdout=subprocess.PIPE,
                          text=True, errors='replace') as process:
        for line in process.stdout:
            print(line, end='', flush=True)
            report.read(line)
    print(results.text_of(report.count()), flush=True)
    return process.returncode


def worst(statuses):
    """The status of several commands, all of which have run."""
    return max(map(abs, statuses))


class Part:
    """One part; a subclass says how it is run, and of which programs it consists."""

    def programs(self):
        """All of it, unless a subclass knows better."""
        return [Program('all', self.sources())]

    def owner(self, title):
        """Return the name of the program that a result is of, or None. Words behind the first may
        be names of others.
        """
        word = re.sub(r'^ *([a-z]\|)? *', '', title).partition(' ')[0]
        places = [(at.start(), -len(program.name), program.name)
                  for program in self.programs() if (at := program.owns(word))]
        return min(places)[2] if places else None

    def sources(self):
        return ()

    def run(self, chosen):
        """@chosen: the names of the programs, or None for all. Returns the exit status."""
        raise NotImplementedError


class Call(Part):
    """A function, or a script below scripts/ with its arguments."""

    def __init__(self, what, *args, count=None):
        self.what, self.args, self.count = what, args, count

    def run(self, chosen):
        if callable(self.what):
            return self.what(*self.args)
        command = [script(self.what), *self.args]
        return counted(self.count, *command) if self.count else call(*command)


class Guest(Part):
    """guest/check.sh in one machine. @sections: its arguments."""

    # Words behind these are names, to which a program of this folder belongs.
    NAMED = {'kselftest': 'selftests/*/{}.c', 'pyverbs': ''}
    EXTRA = re.compile(r'TEST_GEN_PROGS_EXTENDED := (.*)')

    def __init__(self, limit, options, sections):
        self.limit, self.options, self.sections = limit, shlex.split(options), sections.split()

    def split(self):
        """The sections, the last of which takes names, and these."""
        for i, word in enumerate(self.sections):
            if word in self.NAMED:
                return self.sections[:i], word, self.sections[i + 1:]
        return self.sections, None, []

    def programs(self):
        plain, last, names = self.split()
        out = [Program(name, found(f'{GUEST}/{name}*.sh')) for name in plain]
        if last == 'kselftest':
            out += [Program(name, found(self.NAMED[last].format(name)))
                    for name in names or self.kselftests()]
        elif last:
            out += [Program(name) for name in names or [last]]
        return out

    @classmethod
    def kselftests(cls):
        """Return the rows of tests.list: each C file of the folders, without EXTRA."""
        text = source('selftests/Makefile')
        folders = re.search(r'^FOLDERS := (.*)', text, re.M)[1].split()
        late = re.search(r'^LAST := (.*)', text, re.M)[1].split()
        names = sorted({os.path.basename(name)[:-2] for folder in folders
                        for name in found(f'selftests/{folder}/*.c')})
        left_out = cls.EXTRA.search(text)[1].split() + late
        return [name for name in names if name not in left_out] + late

    def words(self, chosen):
        plain, last, names = self.split()
        if chosen is None:
            return self.sections
        out = [name for name in plain if name in chosen]
        named = [program.name for program in self.programs()[len(plain):]
                 if program.name in chosen]
        return out + ([last, *(named if names or last == 'kselftest' else [])] if named else [])

    def command(self, chosen):
        return guest_command(self.limit, *self.options, '--', *self.words(chosen))

    def run(self, chosen):
        return call(*self.command(chosen))


def guest_command(limit, *options_and_sections):
    at = options_and_sections.index('--')
    return (VM, 'run', '--strict', '--timeout', str(limit), *options_and_sections[:at],
            *vmflags(), '--', CHECK, *options_and_sections[at + 1:])


def one_guest(limit, *options_and_sections):
    return call(*guest_command(limit, *options_and_sections))


class Machines(Part):
    """@count machines, all of which run a script of selftests/guest, whose results all count."""

    def __init__(self, count, options, words, around=()):
        self.count, self.options, self.words = count, shlex.split(options), words.split()
        self.around = around

    def sources(self):
        return (f'{GUEST}/{self.words[0]}',)

    def command(self, _chosen, *more):
        return (*self.around, VM, 'net', '-n', str(self.count), '--strict',
                '--timeout', '1200', *self.options, *more, *vmflags(), '--',
                f'/opt/qhca/guest/{self.words[0]}', *self.words[1:])

    def run(self, chosen, *more):
        return call(*self.command(chosen, *more))


class Steps(Part):
    """Several parts, one after the other."""

    def __init__(self, *steps):
        self.steps = steps

    def sources(self):
        return sum((step.sources() for step in self.steps), ())

    def run(self, chosen):
        return worst([step.run(None) for step in self.steps])


class Nested(Steps):
    """The same in one outer machine, so each under KVM. @limit: seconds for all."""

    def __init__(self, limit, *steps):
        super().__init__(*steps)
        self.limit = limit

    def run(self, chosen):
        lines = ['status=0']
        for number, step in enumerate(self.steps, 1):
            lines += ['SECONDS=0', f'{shlex.join(step.command(None))} || status=$?',
                      f'echo "# step {number} of {len(self.steps)}: $SECONDS s"']
        return call(VM, 'nested', '--timeout', str(self.limit), '--', 'bash', '-c',
                    '\n'.join([*lines, 'exit $status']))


class Engine(Part):
    """The engine's tests. @target: of qemu-device/tests/Makefile; @suite: of meson.build."""

    MESON = 'qemu-device/tests/meson.build'
    UNIT = re.compile(r"^  '(test_\w+)'[,:]", re.M)
    LONG = re.compile(r"^    '([^']+)': \[", re.M)
    AGAIN = re.compile(r"foreach name : \[(.*?)\]\n  programs \+= \{'test_' \+ name \+ '([^']+)'",
                       re.S)
    ONE = re.compile(r"^programs \+= \{'([^']+)'", re.M)

    def __init__(self, target, *args, suite=None, groups=(), count=None):
        self.target, self.args, self.suite = target, args, suite
        self.groups, self.count = groups, count

    def tests(self):
        """Program to the tests of Meson's: tests with something set are also its own."""
        text, out = source(self.MESON), {}
        unit, _, rest = text.partition('\n  \'long\': {\n')
        names = self.UNIT.findall(unit) + self.ONE.findall(unit)
        names += [f'test_{name}{how}' for listed, how in self.AGAIN.findall(unit)
                  for name in re.findall(r"'(\w+)'", listed)]
        if self.suite != 'unit':
            names += self.LONG.findall(rest.partition('\n  },\n')[0])
        for name in names:
            out.setdefault(re.match(r'\w+', name)[0], []).append(name)
        return out

    def programs(self):
        if self.target != 'check':
            return [Program('all')]
        return [Program(name, found(f'qemu-device/tests/*/{name}.c') or
                        found(f'qemu-device/tests/{name}/*.c')) for name in self.tests()]

    def run(self, chosen):
        command = [script('check/engine.sh'), *self.groups, self.target, 'V=1', *self.args]
        if chosen is not None and self.target == 'check':
            tests = self.tests()
            command.append('TESTS=' + ' '.join(f"'{test}'" for name in chosen
                                               for test in tests[name]))
        elif self.suite:
            command.append(f'TESTS=--suite {self.suite}')
        return counted(self.count, *command) if self.count else call(*command)


class QTest(Part):
    """qemu-device/qtest. @qemu: what makes QEMU; @server: options of build/server.sh."""

    FOLDER = 'qemu-device/qtest'

    def __init__(self, qemu=('build/beside.sh',), server=None, only=None, seeds=None):
        self.qemu, self.server, self.only, self.seeds = qemu, server, only, seeds

    def programs(self):
        if self.only:
            return [Program('all')]
        served, unsanitized = self.names('SERVED'), self.names('UNSANITIZED')
        sanitized = {'--asan', '--tsan', '--debug'} & {*self.qemu, *(self.server or ())}
        # A server without a sanitizer runs only in the long form what one with it runs as well.
        plain = self.server == []
        return [Program(name, text=text,
                        runs=('full',) if plain and not name.startswith(unsanitized) else None)
                for name, text in self.functions()
                if (not name.startswith('server') if self.server is None else
                    name.startswith(served)) and not (sanitized and name.startswith(unsanitized))]

    @classmethod
    @functools.cache
    def functions(cls):
        """Name and description of each test."""
        return [(f'{os.path.basename(name)[5:-3]}.{node.name[5:]}', ast.get_docstring(node) or '')
                for name in found(f'{cls.FOLDER}/test_*.py')
                for node in ast.parse(source(name)).body
                if isinstance(node, ast.FunctionDef) and node.name.startswith('test_')]

    @classmethod
    @functools.cache
    def names(cls, table):
        """A table of its conftest.py."""
        return next(ast.literal_eval(node.value)
                    for node in ast.parse(source(f'{cls.FOLDER}/conftest.py')).body
                    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table)

    def run(self, chosen):
        qemu = output(script(self.qemu[0]), *self.qemu[1:])
        if qemu is None:
            return 1
        # Before pytest has found conftest.py it takes the second word of an option for a folder.
        command = [sys.executable, '-m', 'pytest', '--tap', f'--qemu={qemu}/qemu-qtest']
        if self.server is not None:
            server = output(script('build/server.sh'), *self.server)
            if server is None:
                return 1
            command.append(f'--server={server}/qhca-server')
        env = {'QHCA_FUZZ_SEEDS': seeds_of_today(self.seeds)} if self.seeds else {}
        return call(*command, *self.paths(chosen), **env)

    def paths(self, chosen):
        folder = os.path.join(TOP, self.FOLDER)
        if self.only:
            return [folder, '-k', self.only]
        if chosen is None:
            return [folder]
        return [f'{folder}/test_{module}.py::test_{name}'
                for module, name in (one.split('.', 1) for one in chosen)]


class Consumers(Part):
    """The consumers of guest/consumers/list that need so many machines, or some of them."""

    LIST = f'{GUEST}/consumers/list'
    # Builds that a consumer needs and no package has; without them its test fails.
    BRINGS = {'ucx-gtest': 'build/ucx-gtest.sh', 'rnbd': 'build/ulps.sh', 'smb': 'build/ulps.sh'}
    # A test of UCX's has four receivers of half a GB.
    NEEDS = {'ucx-gtest': ['--mem', '4G']}
    RUNS = {'check': ('check', 'full'), 'full': ('full',)}

    def __init__(self, machines, *only):
        self.machines, self.only = machines, only

    def rows(self):
        for line in source(self.LIST).splitlines():
            if line and not line.startswith('#'):
                name, machines, when = (cell.strip() for cell in line.split('|')[:3])
                yield name, int(machines), when

    def programs(self):
        return [Program(name, found(f'{GUEST}/consumers/{name}.sh'),
                        None if self.only else self.RUNS[when])
                for name, machines, when in self.rows()
                if machines == self.machines and
                (name in self.only if self.only else when != 'part')]

    def run(self, chosen):
        names = [program.name for program in self.programs()
                 if chosen is None or program.name in chosen]
        if not os.environ.get('RXE'):
            return self.together(names)
        # Each in a machine of its own, which it may crash.
        return worst([self.together([name]) for name in names])

    def together(self, names):
        full, other = is_long() or bool(self.only), os.environ.get('RXE')
        mode = ['run'] if self.machines == 1 else ['net', '-n', str(self.machines)]
        for name in names:
            mode += self.NEEDS.get(name, [])
            built = output(script(self.BRINGS[name])) if name in self.BRINGS else None
            mode += ['--put', f'{built}:{name}'] if built else []
        command = [VM, *mode, '--strict', '--timeout', '7200' if full else '2400',
                   *(['--no-device', '--rxe'] if other else []), *vmflags(), '--',
                   '/opt/qhca/guest/consumers.sh', *(['--full'] if full else []),
                   '--machines', str(self.machines), *names]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                              errors='replace') as process:
            lines = []
            for line in process.stdout:
                print(line, end='', flush=True)
                lines.append(line)
        self.keep(names, lines, ('rxe-' if other else '') + ('full' if full else 'check'))
        return process.returncode

    @staticmethod
    def keep(names, lines, where):
        """Keep the results of each, for docs/consumers.py."""
        folder = os.path.join(CACHE, 'consumers', where)
        os.makedirs(folder, exist_ok=True)
        for name in names:
            ours = [line for line in lines
                    if re.match(rf'([a-z]\| )?(not )?ok consumers/{name}(/| |$)', line)]
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.writelines(ours or [f'not ok consumers/{name} # has not run\n'])


def seeds_of_today(count):
    """FIRST-LAST; others tomorrow."""
    first = datetime.date.today().timetuple().tm_yday * count
    return f'{first}-{first + count - 1}'
