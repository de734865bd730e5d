#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print as shell text what a CI system would run for a project: commands.py SYSTEM PROJECT.

SYSTEM is github: the steps of action.yml, with what PROJECT's workflow gives them; or
gitlab: PROJECT's job with the template that it extends. Of the steps that only those
systems can do (checking out, caching, installing), nothing is printed.
"""

import re
import shlex
import sys

import yaml


def load(name):
    with open(name, encoding='utf-8') as file:
        return yaml.safe_load(file)


def subshell(environment, directory, command):
    lines = ['('] + [f'export {name}={value}' for name, value in environment.items()]
    return '\n'.join(lines + [f'cd {shlex.quote(directory)}', command, ')'])


def github(project):
    action = load('action.yml')
    [job] = load(f'{project}/.github/workflows/test.yml')['jobs'].values()
    [given] = [step['with'] for step in job['steps'] if '/qhca@' in step['uses']]
    inputs = {name: about.get('default') for name, about in action['inputs'].items()}
    unknown = set(given) - set(inputs)
    missing = {name for name, about in action['inputs'].items()
               if about.get('required') and name not in given}
    if unknown or missing:
        sys.exit(f'inputs: unknown {unknown}, missing {missing}')
    inputs.update(given)

    def value(text):
        return re.sub(r'\$\{\{ inputs\.(\w+) \}\}', lambda found: inputs[found[1]], text)

    for step in action['runs']['steps']:
        if 'run' in step:
            yield subshell({name: shlex.quote(value(text))
                            for name, text in step.get('env', {}).items()},
                           value(step.get('working-directory', '.')), step['run'])


def gitlab(project):
    template = load('scripts/ci/gitlab.yml')
    jobs = load(f'{project}/.gitlab-ci.yml')
    for job in (job for job in jobs.values() if 'extends' in job):
        base = template[job['extends']]
        variables = {**base['variables'], **job['variables']}
        yield subshell({name: f'"{text}"' for name, text in variables.items()}, '.',
                       '\n'.join(base['script']).replace('/opt/qhca-source', '"$QHCA_TOP"'))


if __name__ == '__main__':
    print('\n'.join({'github': github, 'gitlab': gitlab}[sys.argv[1]](sys.argv[2])))
