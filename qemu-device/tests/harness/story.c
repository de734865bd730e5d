/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "debug.h"
#include "harness.h"
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

/* Name of a BTH opcode; the low 5 bits are the operation in each service. */
static const char *opcode_name(unsigned opcode)
{
    static const char *const service[8] = {
        [SVC_RC >> 5] = "RC", [SVC_UC >> 5] = "UC", [SVC_UD >> 5] = "UD",
    };
    static const char *const op[32] = {
        "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_ONLY",
        "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST",
        "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST",
        "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST",
        "READ_RESP_ONLY", "ACK", "ATOMIC_ACK", "CMP_SWAP", "FETCH_ADD", NULL,
        "SEND_LAST_INV", "SEND_ONLY_INV",
    };
    static char buf[32];
    const char *s = service[opcode >> 5 & 7], *o = op[opcode & 31];

    if (s && o) {
        snprintf(buf, sizeof(buf), "%s_%s", s, o);
    } else {
        snprintf(buf, sizeof(buf), "opcode 0x%02x", opcode);
    }
    return buf;
}

static const char *state_name(unsigned state)
{
    static const char *const name[] = {
        "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
    };

    return state < sizeof(name) / sizeof(name[0]) ? name[state] : "?";
}

/* ---- the points of trace.def ---- */

#define TELLS(name, params, ...) \
static void name(void *opaque, params) \
{ \
    const struct guest *g = opaque; \
\
    if (story_wanted()) { \
        story_say("node", g->net_port, *g->clock, __VA_ARGS__); \
    } \
}
#define ROW(...) __VA_ARGS__
#define PACKET      ROW(uint32_t qpn, unsigned opcode, uint32_t psn)
#define NO_PACKET   ROW(uint32_t qpn, const char *why, uint32_t psn)

TELLS(cmd, ROW(unsigned opcode, uint32_t slot, unsigned status),
      "command 0x%x, slot %u: status %u", opcode, slot, status)
TELLS(doorbell, ROW(unsigned page, unsigned off, uint64_t val),
      "doorbell page %u, offset 0x%x: 0x%llx", page, off,
      (unsigned long long)val)
TELLS(wqe, ROW(uint32_t qpn, uint32_t index, unsigned opcode),
      "QP %x: starts WQE %u, opcode %u", qpn, index, opcode)
TELLS(tx, PACKET, "QP %x: sends %s PSN %06x", qpn, opcode_name(opcode), psn)
TELLS(rx, PACKET, "QP %x: gets %s PSN %06x", qpn, opcode_name(opcode), psn)
TELLS(drop, NO_PACKET, "QP %x: packet dropped: %s, PSN %06x", qpn, why, psn)
TELLS(told_refuse, NO_PACKET, "QP %x: request refused: %s, PSN %06x", qpn, why,
      psn)
TELLS(retry, ROW(uint32_t qpn, uint32_t psn, unsigned left),
      "QP %x: back to PSN %x, %u retries left", qpn, psn, left)
TELLS(cqe, ROW(uint32_t cqn, uint32_t qpn, unsigned status),
      "CQ %x: CQE of QP %x, status %u", cqn, qpn, status)
TELLS(event, ROW(unsigned type, uint32_t obj, uint32_t eqn),
      "event %u of object %x on EQ %u", type, obj, eqn)
TELLS(told_state, ROW(uint32_t qpn, unsigned from, unsigned to),
      "QP %x: %s -> %s", qpn, state_name(from), state_name(to))
TELLS(fatal, ROW(unsigned reason), "FATAL %u", reason)
TELLS(page_fault, ROW(uint32_t qpn, unsigned kind, uint32_t key, uint64_t off),
      "QP %x: page fault of kind %u, key %08x, offset 0x%llx", qpn, kind, key,
      (unsigned long long)off)
TELLS(fault, ROW(unsigned rule, uint64_t hits, uint32_t obj),
      "fault: rule %u, hit %llu, object %x", rule, (unsigned long long)hits,
      obj)

static void refuse(void *opaque, NO_PACKET)
{
    struct guest *g = opaque;

    g->failed_check = why;
    told_refuse(opaque, qpn, why, psn);
}

static void qp_state(void *opaque, ROW(uint32_t qpn, unsigned from,
                                       unsigned to))
{
    struct guest *g = opaque;

    if (g->on_qp_state) {
        g->on_qp_state(g, qpn, from, to);
    }
    told_state(opaque, qpn, from, to);
}

#undef ROW

const struct qhca_engine_traces story_traces = {
#define VHCA_TRACE(name, params, args) .name = name,
#include "trace.def"
};
