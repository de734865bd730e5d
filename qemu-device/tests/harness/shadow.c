/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: doorbells in memory, as a driver uses them. */
#include <stdlib.h>

#include "shadow.h"

int shadow_create(struct guest *g, const struct gbuf *buf, unsigned page,
                  unsigned slots)
{
    struct qhca_cmd cmd = {
        .opcode = htole16(QHCA_CMD_CREATE_SHADOW),
        .create_shadow.buf = buf->desc,
        .create_shadow.uar = htole32(page),
        .create_shadow.slots = htole32(slots),
    };

    return guest_cmd(g, &cmd, NULL);
}

void shadow_start(struct shadow *s, struct guest *g, unsigned page,
                  unsigned slots)
{
    memset(s, 0, sizeof(*s));
    s->g = g;
    s->page = page;
    s->buf = guest_buf(g, sizeof(struct qhca_shadow) +
                          slots * sizeof(__le64), 12, 1);
    REQUIRE(shadow_create(g, &s->buf, page, slots) == QHCA_OK);
}

uint64_t shadow_doorbell(unsigned off, uint32_t obj, uint32_t index)
{
    return (uint64_t)index << 32 | (uint64_t)off / 8 << 25 | obj;
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

bool shadow_ring_sq(struct shadow *s, unsigned slot, const struct rc_qp *q)
{
    return shadow_write(s, slot,
                        shadow_doorbell(QHCA_DB_SQ, q->qpn, q->sq_pi));
}

void shadow_flood(struct shadow *s)
{
    struct qhca_shadow *header = shadow_header(s);

    header->look = UINT64_MAX;
    memset(header->rung, 0xff, sizeof(header->rung));
}

bool shadow_look(struct guest *g)
{
    bool found = qhca_engine_look(g->e, *g->clock);

    guest_settle(g);
    return found;
}

void shadow_ask(struct shadow *s)
{
    qhca_engine_doorbell(s->g->e, *s->g->clock, s->page, QHCA_DB_SHADOW, 0);
}

/* ---- a guest that rings in memory whenever it can ---- */

void shadow_setup(struct guest *g)
{
    for (unsigned i = 0; g->in_memory && i < SHADOW_PAGES; i++) {
        shadow_start(&g->shadows[i], g, i, SHADOW_SLOTS);
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
        qhca_host_schedule(&g->host);
        g->look = true;
        return true;
    }
    /*
     * A front end looks while it is awake, and sleeps now and then; always if
     * it sees nothing, as while the engine has no time left.
     */
    if (!qhca_engine_look(g->e, *g->clock) || ++g->rings % 3 == 0) {
        qhca_engine_rest(g->e, *g->clock);
    }
    return true;
}
