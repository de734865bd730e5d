/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: a hash of everything that engines do. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digest.h"
#include "tap.h"

static uint64_t digest;
static bool counting;

static const char *file_name(void)
{
    return getenv("QHCA_TEST_DIGEST");
}

bool digest_wanted(void)
{
    return file_name();
}

void digest_begin(void)
{
    digest = 0;
    counting = digest_wanted();
}

void digest_start(void)
{
    digest = 0;
    counting = true;
}

uint64_t digest_value(void)
{
    counting = false;
    return digest;
}

static void mix(uint64_t word)
{
    digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
    digest ^= digest >> 29;
}

void digest_feed(char what, uint64_t where, const void *buf, size_t len)
{
    const uint8_t *p = buf;
    uint64_t word;

    if (!counting) {
        return;
    }
    mix((uint64_t)what << 56 ^ len);
    mix(where);
    for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        mix(word);
    }
    if (len) {
        word = 0;
        memcpy(&word, p, len);
        mix(word);
    }
}

/* A single write() lets several processes share the file. */
void digest_end(const char *fmt, ...)
{
    char line[120];
    va_list ap;
    int fd, n;

    if (!counting) {
        return;
    }
    counting = false;
    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line) - 20, fmt, ap);
    va_end(ap);
    n += snprintf(line + n, sizeof(line) - (size_t)n, " %016llx\n",
                  (unsigned long long)digest);
    fd = open(file_name(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    REQUIRE(fd >= 0 && write(fd, line, (size_t)n) == n);
    close(fd);
}
