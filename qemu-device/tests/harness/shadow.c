/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: doorbells in memory, as a driver uses them. */
#include <stdlib.h>

#include "shadow.h"

void shadow_start(struct shadow *s, struct guest *g, unsigned page)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_CREATE_SHADOW) };

    memset(s, 0, sizeof(*s));
    s->g = g;
    s->page = page;
    s->buf = guest_buf(g, sizeof(struct qhca_shadow) +
                          SHADOW_SLOTS * sizeof(__le64), 12, 1);
    cmd.create_shadow.buf = s->buf.desc;
    cmd.create_shadow.uar = htole32(page);
    cmd.create_shadow.slots = htole32(SHADOW_SLOTS);
    REQUIRE(guest_cmd(g, &cmd, NULL) == QHCA_OK);
}

struct qhca_shadow *shadow_header(struct shadow *s)
{
    return guest_ptr(s->g, gbuf_addr(&s->buf, 0), sizeof(struct qhca_shadow));
}

__le64 *shadow_slot(struct shadow *s, unsigned slot)
{
    uint64_t off = offsetof(struct qhca_shadow, slot) + slot * sizeof(__le64);

    return guest_ptr(s->g, gbuf_addr(&s->buf, off), sizeof(__le64));
}

bool shadow_write(struct shadow *s, unsigned slot, uint64_t val)
{
    struct qhca_shadow *header = shadow_header(s);

    *shadow_slot(s, slot) = htole64(val);
    header->rung[slot / 64] |= htole64(UINT64_C(1) << slot % 64);
    header->look |= htole64(UINT64_C(1) << slot / 64);
    return header->ask;
}

void shadow_ask(struct shadow *s)
{
    qhca_engine_doorbell(s->g->e, *s->g->clock, s->page, QHCA_DB_SHADOW, 0);
}

/* ---- a guest that rings in memory whenever it can ---- */

void shadow_setup(struct guest *g)
{
    for (unsigned i = 0; g->in_memory && i < SHADOW_PAGES; i++) {
        shadow_start(&g->shadows[i], g, i);
    }
}

static unsigned find_slot(struct shadow *s, uint64_t key)
{
    unsigned i = 0;

    while (i < s->used && s->key[i] != key) {
        i++;
    }
    if (i == s->used && i < SHADOW_SLOTS) {
        s->key[s->used++] = key;
    }
    return i;
}

bool shadow_ring(struct guest *g, unsigned page, unsigned off, uint64_t val)
{
    const uint64_t in_memory = 1 << QHCA_DB_SQ / 8 | 1 << QHCA_DB_RQ / 8 |
                               1 << QHCA_DB_SRQ / 8 | 1 << QHCA_DB_EQ / 8 |
                               1 << QHCA_DB_ETH / 8;
    struct shadow *s;
    unsigned slot;

    if (!g->in_memory || page >= SHADOW_PAGES || off % 8 || off / 8 >= 64 ||
        !(in_memory >> off / 8 & 1) || val & QHCA_DB_KIND) {
        return false;
    }
    s = &g->shadows[page];
    slot = find_slot(s, (uint64_t)off << 32 | (val & QHCA_DB_OBJ));
    if (slot == SHADOW_SLOTS) {
        return false;
    }
    if (shadow_write(s, slot, val | QHCA_PREP(QHCA_DB_KIND,
                                              (uint64_t)off / 8))) {
        shadow_ask(s);
    } else if (g->looks_late) {
        g->scheduled = g->look = true;
        return true;
    }
    /* A front end looks while it is awake, and sleeps now and then. */
    qhca_engine_look(g->e, *g->clock);
    if (++g->rings % 3 == 0) {
        qhca_engine_rest(g->e, *g->clock);
    }
    return true;
}
