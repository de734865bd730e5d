/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: messages.
 *
 * A machine can cause as many as it likes, by what its guest does as well as by
 * coming and going, and must not fill a disk with them: it may write some in a
 * burst, then one a second, and the others are counted. Each HCA has two
 * allowances, so that messages about mistakes of guests hide no others.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "hca.h"

#define LOG_EVERY_NS    1000000000u
#define LOG_BURST_NS    (100u * (uint64_t)LOG_EVERY_NS)

bool hca_verbose;

/*
 * The thread that accepts a connection also has messages. ThreadSanitizer does
 * not know glib's locks.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void print(const struct hca *hca, const char *format, va_list args)
{
    g_autofree char *text = g_strdup_vprintf(format, args);

    fprintf(stderr, "qhca-server: %s: %s\n", hca->name, text);
}

/* When one more may be printed. */
static uint64_t next_of(const struct hca_messages *m)
{
    return m->paid > LOG_BURST_NS ? m->paid - LOG_BURST_NS : 0;
}

static void pay(struct hca_messages *m, uint64_t now)
{
    m->paid = MAX(m->paid, now) + LOG_EVERY_NS;
}

static void limited(struct hca *hca, struct hca_messages *m, const char *format,
                    va_list args)
{
    uint64_t now = hca_now();

    pthread_mutex_lock(&lock);
    if (now < next_of(m)) {
        m->left_out++;
    } else {
        pay(m, now);
        print(hca, format, args);
    }
    pthread_mutex_unlock(&lock);
}

void hca_log(struct hca *hca, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    limited(hca, &hca->messages[0], format, args);
    va_end(args);
}

void hca_note(struct hca *hca, const char *format, ...)
{
    va_list args;

    if (hca_verbose) {
        va_start(args, format);
        limited(hca, &hca->messages[1], format, args);
        va_end(args);
    }
}

uint64_t hca_log_watch(struct hca *hca, uint64_t now)
{
    uint64_t again = UINT64_MAX;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < G_N_ELEMENTS(hca->messages); i++) {
        struct hca_messages *m = &hca->messages[i];

        if (m->left_out && now >= next_of(m)) {
            fprintf(stderr, "qhca-server: %s: %u messages were left out\n",
                    hca->name, m->left_out);
            m->left_out = 0;
            pay(m, now);
        }
        again = m->left_out ? MIN(again, next_of(m)) : again;
    }
    pthread_mutex_unlock(&lock);
    return again;
}
