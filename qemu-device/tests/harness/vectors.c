/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: reading vectors.
 */
#include <stdlib.h>

#include "harness.h"
#include "vectors.h"

#define SPACE   "\n "

enum form {
    NUMBER,             /* in CPU order */
    BYTES,              /* as on the wire */
    IPV4,               /* an address: the last bytes of a GID */
};

#define FIELD(key, form, member) \
    { key, form, offsetof(struct roce_packet, member), \
      sizeof(((struct roce_packet *)NULL)->member) }

/* The engine's fields, by their names in the vectors. */
static const struct field {
    const char *key;
    enum form form;
    size_t offset, size;
} fields[] = {
    FIELD("eth.dmac", BYTES, dmac), FIELD("eth.smac", BYTES, smac),
    FIELD("vlan.pcp", NUMBER, sl), FIELD("vlan.vid", NUMBER, vlan),
    FIELD("ipv4.tos", NUMBER, tclass), FIELD("ipv4.ttl", NUMBER, hop_limit),
    FIELD("ipv4.src", IPV4, sgid), FIELD("ipv4.dst", IPV4, dgid),
    FIELD("ipv6.tclass", NUMBER, tclass),
    FIELD("ipv6.label", NUMBER, flow_label),
    FIELD("ipv6.hops", NUMBER, hop_limit),
    FIELD("ipv6.src", BYTES, sgid), FIELD("ipv6.dst", BYTES, dgid),
    FIELD("udp.sport", NUMBER, sport),
    FIELD("bth.opcode", NUMBER, opcode), FIELD("bth.se", NUMBER, solicited),
    FIELD("bth.pad", NUMBER, pad), FIELD("bth.pkey", NUMBER, pkey),
    FIELD("bth.destqp", NUMBER, dest_qp), FIELD("bth.a", NUMBER, ackreq),
    FIELD("bth.psn", NUMBER, psn),
    FIELD("deth.qkey", NUMBER, qkey), FIELD("deth.srcqp", NUMBER, src_qp),
    FIELD("xrceth.xrcsrq", NUMBER, srqn),
    FIELD("reth.va", NUMBER, va), FIELD("reth.rkey", NUMBER, rkey),
    FIELD("reth.dmalen", NUMBER, dma_len),
    FIELD("atomiceth.va", NUMBER, va), FIELD("atomiceth.rkey", NUMBER, rkey),
    FIELD("atomiceth.swapdata", NUMBER, swap_add),
    FIELD("atomiceth.cmpdata", NUMBER, compare),
    FIELD("aeth.syndrome", NUMBER, syndrome), FIELD("aeth.msn", NUMBER, msn),
    FIELD("atomicacketh.origremdata", NUMBER, atomic_orig),
    FIELD("immdt.imm", BYTES, imm), FIELD("ieth.rkey", NUMBER, inv_key),
    FIELD("feth.plt", NUMBER, flush_type),
    FIELD("feth.sel", NUMBER, flush_level),
};

/* These are only checked on receipt, or ignored. */
static const char *const not_kept[] = {
    "eth.type", "vlan.dei", "vlan.type", "ipv4.version", "ipv4.ihl",
    "ipv4.length", "ipv4.id", "ipv4.flags", "ipv4.offset", "ipv4.protocol",
    "ipv4.checksum", "ipv6.version", "ipv6.length", "ipv6.protocol",
    "udp.dport", "udp.length", "udp.checksum", "bth.m", "bth.tver", "bth.f",
    "bth.b", "bth.resv6", "bth.resv7", "deth.resv", "xrceth.resv", "feth.resv",
};

static size_t get_bytes(uint8_t *to, size_t room, const char *hex)
{
    size_t len = strlen(hex) / 2;
    unsigned byte;

    REQUIRE(strlen(hex) % 2 == 0 && len <= room);
    for (size_t i = 0; i < len; i++) {
        REQUIRE(sscanf(hex + 2 * i, "%2x", &byte) == 1);
        to[i] = (uint8_t)byte;
    }
    return len;
}

static uint64_t get_number(const char *hex)
{
    char *end;
    uint64_t number = strtoull(hex, &end, 16);

    REQUIRE(*hex && !*end);
    return number;
}

static void set_number(void *to, size_t size, uint64_t number)
{
    REQUIRE(size == 8 || !(number >> 8 * size));
    switch (size) {
    case 1:
        *(uint8_t *)to = (uint8_t)number;
        break;
    case 2:
        *(uint16_t *)to = (uint16_t)number;
        break;
    case 4:
        *(uint32_t *)to = (uint32_t)number;
        break;
    default:
        *(uint64_t *)to = number;
    }
}

static void set_field(struct roce_packet *p, const struct field *f,
                      const char *value)
{
    uint8_t *to = (uint8_t *)p + f->offset;

    switch (f->form) {
    case NUMBER:
        set_number(to, f->size, get_number(value));
        break;
    case BYTES:
        REQUIRE(get_bytes(to, f->size, value) == f->size);
        break;
    case IPV4:
        p->ipv4 = true;
        memset(to + 10, 0xff, 2);
        REQUIRE(get_bytes(to + 12, 4, value) == 4);
        break;
    }
}

/* Takes a word of a line "frame". */
static void set_frame(struct vector *v, const char *key, const char *value)
{
    bool known = false;

    if (!strcmp(key, "data")) {
        v->len = get_bytes(v->frame, sizeof(v->frame), value);
    } else if (!strcmp(key, "same")) {
        get_bytes(v->same, sizeof(v->same), value);
    } else if (!strcmp(key, "payload")) {
        v->p.payload_len = get_bytes(v->payload, sizeof(v->payload), value);
    } else {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
            if (!strcmp(fields[i].key, key)) {
                set_field(&v->p, &fields[i], value);
                return;
            }
        }
        for (size_t i = 0; i < ARRAY_SIZE(not_kept); i++) {
            known = known || !strcmp(not_kept[i], key);
        }
        REQUIRE(known);
    }
}

static void set_opcode(struct vector *v, const char *key, const char *value)
{
    const struct {
        const char *key, **text;
        bool *flag;
    } words[] = {
        { "op", &v->op, NULL }, { "place", &v->place, NULL },
        { "headers", &v->headers, NULL }, { "response", NULL, &v->response },
        { "payload", NULL, &v->payload_allowed },
        { "offered", NULL, &v->offered },
    };
    size_t i = 0;

    while (strcmp(words[i].key, key)) {
        REQUIRE(++i < ARRAY_SIZE(words));
    }
    if (words[i].text) {
        *words[i].text = value;
    } else {
        *words[i].flag = get_number(value);
    }
}

void vector_read(FILE *file, struct vector *v)
{
    char *save = NULL, *word;
    bool opcode;

    memset(v, 0, sizeof(*v));
    REQUIRE(fgets(v->line, sizeof(v->line), file));
    REQUIRE(strchr(v->line, '\n'));
    v->kind = strtok_r(v->line, SPACE, &save);
    v->name = strtok_r(NULL, SPACE, &save);
    REQUIRE(v->kind && v->name);
    opcode = !strcmp(v->kind, "opcode");
    v->what = "";
    if (opcode) {
        v->p.opcode = (uint8_t)get_number(v->name);
        v->name = strtok_r(NULL, SPACE, &save);
    } else if (!strcmp(v->kind, "frame")) {
        v->what = strtok_r(NULL, SPACE, &save);
    } else if (!strcmp(v->kind, "end")) {
        v->count = (unsigned)get_number(v->name);
    }
    REQUIRE(v->name && v->what);
    while ((word = strtok_r(NULL, SPACE, &save))) {
        char *value = strchr(word, '=');

        REQUIRE(value);
        *value++ = '\0';
        (opcode ? set_opcode : set_frame)(v, word, value);
    }
    /* VID 0 is an untagged frame or a priority tag, which is no VLAN. */
    v->p.vlan = v->p.vlan ? v->p.vlan : QHCA_NO_VLAN;
}

const char *vector_differs(const struct vector *v, const struct roce_packet *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        size_t at = fields[i].offset;

        if (memcmp((const uint8_t *)p + at, (const uint8_t *)&v->p + at,
                   fields[i].size)) {
            return fields[i].key;
        }
    }
    return p->ipv4 != v->p.ipv4 ? "IP version" :
           p->payload_len != v->p.payload_len ? "length of payload" : NULL;
}

enum roce_parse_result parse_copy(struct roce_packet *p, const uint8_t *frame,
                                  size_t len)
{
    static uint8_t payload[VECTOR_MAX_PAYLOAD];
    uint8_t *copy = malloc(len ? len : 1);
    enum roce_parse_result res;

    memcpy(copy, frame, len);
    res = roce_parse(p, copy, len);
    if (res == ROCE_OK) {
        REQUIRE(p->payload_len <= sizeof(payload));
        memcpy(payload, p->payload, p->payload_len);
        p->payload = payload;
    }
    free(copy);
    return res;
}
