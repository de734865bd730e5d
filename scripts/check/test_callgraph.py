# SPDX-License-Identifier: GPL-2.0
"""Tests for callgraph.py: a house of two rooms, whose calls are known."""

import os
import shutil
import tempfile
import unittest

import callgraph

HEADER = '''
struct timer {
    void (*fn)(int n);
};
struct row {
    void (*run)(int n);
    void (*stop)(int n);
};
void set(struct timer *t, void (*fn)(int n));
'''
ABOVE = '''
#include "../house.h"
static struct timer *due;
void set(struct timer *t, void (*fn)(int n)) { t->fn = fn; due = t; }
static int twice(int n) { return n ? twice(n - 1) : 0; }
void expire(int n) { due->fn(twice(n)); }
'''
BELOW = '''
#include "../house.h"
static struct timer t;
void expire(int n);
static void late(int n) { (void)n; }
static void stop(int n) { expire(n); }
static void again(int n);
static const struct row rows[] = { { .run = again, .stop = stop } };
static void again(int n) { rows[n].run(n); }
void start(int n) { set(&t, late); rows[n].stop(n); }
'''
# Handed on: @o twice to both(), which calls leaf() with it and what is behind it, then by .on.
WALKED = '''
struct obj { int n; struct obj *next; };
struct op {
    void (*on)(struct obj *o);
};
static void leaf(struct obj *o) { o->n++; }
static void value(int n) { (void)n; }
static void both(struct obj *o) { leaf(o); leaf(o->next); value(o->n); }
static const struct op ops[] = { { .on = leaf } };
void walk(struct obj *p, struct obj *o)
{
    struct obj *next = o->next;
    both(o);
    both(next);
    leaf(p);
    ops[p->n].on(o);
}
'''


@unittest.skipUnless(shutil.which('gcc'), 'no compiler here: lint runs it where there is one')
class CallGraph(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as house:
            for name, text in (('house.h', HEADER), ('above/a.c', ABOVE), ('below/b.c', BELOW),
                               ('walked/c.c', WALKED)):
                path = os.path.join(house, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(text)
            self.graph = callgraph.Graph(house, house, house)

    def test_edges(self):
        self.assertEqual({edge for edge in self.graph.edges() if 'walk' not in edge[0]}, {
            ('expire', 'above/a.c:twice', None), ('expire', 'below/b.c:late', 'fn'),
            ('above/a.c:twice', 'above/a.c:twice', None),
            ('below/b.c:stop', 'expire', None), ('below/b.c:again', 'below/b.c:again', 'run'),
            ('start', 'set', None), ('start', 'below/b.c:stop', 'stop')})

    def test_walk(self):
        visits, files = self.graph.walk('walk')
        self.assertEqual((visits, [os.path.basename(file) for file in files]), (5, ['c.c']))

    def test_cycles(self):
        self.assertEqual(sorted(self.graph.cycles()), [['above/a.c:twice'], ['below/b.c:again']])


if __name__ == '__main__':
    unittest.main()
