/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debug.h"
#include "story.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "qhca/cmd.h"

static int wanted = -1;

bool story_wanted(void)
{
    if (wanted < 0) {
        wanted = getenv("QHCA_TEST_VERBOSE") != NULL;
    }
    return wanted;
}

void story_want(bool yes)
{
    wanted = yes;
}

void story_say(const char *who, unsigned node, uint64_t now, const char *fmt,
               ...)
{
    va_list ap;

    if (!story_wanted()) {
        return;
    }
    printf("# %14.3f us  %s %u  ", (double)now / 1000, who, node);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* Name of a BTH opcode; an operation has the same place in each service. */
static const char *opcode_name(unsigned opcode, char *buf, size_t len)
{
    static const char *const service[8] = {
        [SVC_RC >> 5] = "RC", [SVC_UC >> 5] = "UC", [SVC_UD >> 5] = "UD",
        [SVC_VENDOR >> 5] = "MASKED",
    };
    static const char *const op[32] = {
        "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_ONLY",
        "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST",
        "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST",
        "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST",
        "READ_RESP_ONLY", "ACK", "ATOMIC_ACK", "CMP_SWAP", "FETCH_ADD", NULL,
        "SEND_LAST_INV", "SEND_ONLY_INV",
    };
    const char *s = service[opcode >> 5 & 7], *o = op[opcode & 31];

    if (s && o) {
        snprintf(buf, len, "%s_%s", s, o);
    } else {
        snprintf(buf, len, "opcode 0x%02x", opcode);
    }
    return buf;
}

static const char *state_name(uint64_t state)
{
    static const char *const name[] = {
        "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
    };

    return state < sizeof(name) / sizeof(name[0]) ? name[state] : "?";
}

static const char *drop_reason(uint64_t counter)
{
    const char *name = qhca_counter_name((enum qhca_counter)counter);

    return name ? name : "?";
}

void story_engine(unsigned node, uint64_t now, enum qhca_trace_point point,
                  uint64_t a, uint64_t b, uint64_t c)
{
    static const char *const format[QHCA_TRACE_MAX] = {
        [QHCA_TRACE_CMD] = "command 0x%llx, slot %llu: status %llu",
        [QHCA_TRACE_DOORBELL] = "doorbell page %llu, offset 0x%llx: 0x%llx",
        [QHCA_TRACE_WQE] = "QP %llx: starts WQE %llu, opcode %llu",
        [QHCA_TRACE_CQE] = "CQ %llx: CQE of QP %llx, status %llu",
        [QHCA_TRACE_EVENT] = "event %llu of object %llx on EQ %llu",
        [QHCA_TRACE_RETRY] = "QP %llx: back to PSN %llx, %llu retries left",
        [QHCA_TRACE_FATAL] = "FATAL %llu",
        [QHCA_TRACE_FAULT] = "fault: rule %llu, hit %llu, object %llx",
    };
    unsigned long long x = a, y = b, z = c;
    char buf[32];

    if (!story_wanted()) {
        return;
    }
    switch (point) {
    case QHCA_TRACE_TX:
    case QHCA_TRACE_RX:
        story_say("node", node, now, "QP %llx: %s %s PSN %06llx", x,
                  point == QHCA_TRACE_TX ? "sends" : "gets",
                  opcode_name((unsigned)b, buf, sizeof(buf)), z);
        break;
    case QHCA_TRACE_QP_STATE:
        story_say("node", node, now, "QP %llx: %s -> %s", x, state_name(b),
                  state_name(c));
        break;
    case QHCA_TRACE_DROP:
        story_say("node", node, now, "QP %llx: packet dropped: %s, PSN %06llx",
                  x, drop_reason(b), z);
        break;
    default:
        printf("# %14.3f us  node %u  ", (double)now / 1000, node);
        printf(format[point], x, y, z);
        printf("\n");
        break;
    }
}
