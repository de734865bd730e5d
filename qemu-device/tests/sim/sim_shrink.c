/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: reduces a schedule that fails.
 */
#include <stdio.h>

#include "sim.h"

/* Reduces *@value to @smaller if the schedule still fails. */
static bool try_less(bool (*fails)(void), unsigned *value, unsigned smaller)
{
    unsigned old = *value;

    *value = smaller;
    if (fails()) {
        return true;
    }
    *value = old;
    return false;
}

static void try_without(bool (*fails)(void), unsigned *without)
{
    *without = 1;
    *without = fails();
}

void sim_shrink(bool (*fails)(void))
{
    struct sim_limits *l = &sim_limits;

    l->pairs &= (1u << SIM_MAX_PAIRS) - 1;
    for (unsigned i = 0; i < SIM_MAX_PAIRS; i++) {
        try_less(fails, &l->pairs, l->pairs & ~(1u << i));
    }
    for (unsigned step = l->wr / 2; step > 0; ) {
        if (l->wr <= step || !try_less(fails, &l->wr, l->wr - step)) {
            step /= 2;
        }
    }
    for (unsigned i = 0; i < SIM_FEATURES; i++) {
        try_less(fails, &l->without, l->without | 1u << i);
    }
    try_without(fails, &l->no_loss);
    try_without(fails, &l->no_dup);
    try_without(fails, &l->no_reorder);
    try_without(fails, &l->no_corrupt);
}

void sim_print_replay(uint64_t seed, enum sim_kind kind, bool both,
                      unsigned save_load)
{
    const struct sim_limits *l = &sim_limits;

    printf("# replay: sim --seed %llu --kind %d --pairs 0x%x --wr %u"
           " --without 0x%x%s%s%s%s%s --fault '%s' --save-load %u --story\n",
           (unsigned long long)seed, (int)kind, l->pairs, l->wr, l->without,
           l->no_loss ? " --no-loss" : "", l->no_dup ? " --no-dup" : "",
           l->no_reorder ? " --no-reorder" : "",
           l->no_corrupt ? " --no-corrupt" : "", both ? " --both" : "",
           sim_faults, save_load);
}
