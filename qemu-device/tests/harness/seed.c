/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "seed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t seed_parse(const char *text)
{
    if (strcmp(text, "date") == 0) {
        return (uint64_t)time(NULL) / 86400 * SEEDS_PER_DAY;
    }
    return strtoull(text, NULL, 0);
}

uint64_t seed_from_env(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? seed_parse(text) : otherwise;
}
