/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: rates, and what the network says, in a hostile session. */
#include "harness/debug.h"
#include "fuzz.h"

#include <stdio.h>

#define QHCA_CC(id, name, min, max, value)  { min, max },
static const struct {
    uint32_t min, max;
} limits[] = {
#include "qhca/congestion.def"
};

/* Valid parameters, at their ends or between, which matter to what follows. */
void fuzz_fill_congestion(struct fuzz *f, struct qhca_congestion *c)
{
    for (unsigned i = 0; i < QHCA_CC_MAX; i++) {
        uint32_t range = limits[i].max - limits[i].min;
        uint64_t at = one_in(f, 4) ? 0 : one_in(f, 4) ? range :
                      rnd(f, range + 1ull);

        c->value[i] = htole32(limits[i].min + (uint32_t)at);
    }
    c->value[QHCA_CC_NP_ENABLE] = htole32(!one_in(f, 8));
    c->value[QHCA_CC_RP_ENABLE] = htole32(!one_in(f, 8));
}

/* Gives the QP another limit, if its state allows one. */
void fuzz_rate(struct fuzz *f, const struct rc_qp *q)
{
    struct qhca_cmd c = { .opcode = htole16(QHCA_CMD_MODIFY_QP) };
    struct qhca_qp_attr a = { 0 };

    a.rate_limit = htole32(one_in(f, 3) ? 0 :
                           one_in(f, 3) ? (uint32_t)nasty(f) :
                                          100000 + (uint32_t)rnd(f, 5000000));
    c.modify_qp.qpn = htole32(q->qpn);
    c.modify_qp.attr_mask = htole32(QHCA_QP_RATE_LIMIT);
    c.mailbox = htole64(f->n.g->mbox);
    memcpy(guest_ptr(f->n.g, f->n.g->mbox, sizeof(a)), &a, sizeof(a));
    fuzz_command(f, &c);
}

void fuzz_speed(struct fuzz *f)
{
    static const char *const rules[] = {
        "", "port bandwidth=%u", "port ce=%u%%", "port latency=%uus",
        "port bandwidth=%u\nport ce=7%%",
        "port order=adversarial within=%uus",
        "port latency=%uus\nport order=adversarial grain=8",
        "port ce=%u%%\nport bandwidth=1\nport bandwidth=100000",
    };
    struct guest *g = f->n.g;
    bool known = one_in(f, 2);
    uint64_t value = known ? rnd(f, VHCA_PORT_SPEED + 1) : nasty(f);
    struct qhca_fault_error err;
    char text[100];

    if (one_in(f, 2)) {
        qhca_engine_set_bandwidth(g->e, *g->clock, (unsigned)value);
        return;
    }
    snprintf(text, sizeof(text), rules[rnd(f, ARRAY_SIZE(rules))],
             (unsigned)(known ? value % 101 : value));
    qhca_engine_set_faults(g->e, *g->clock, text, &err);
}

/* Marks a packet, or makes a notification of it. */
void fuzz_congest(struct fuzz *f, struct roce_packet *p)
{
    if (one_in(f, 3)) {
        p->tclass = (uint8_t)rnd(f, 256) | (one_in(f, 2) ? IP_ECN_CE : 0);
    }
    if (one_in(f, 12)) {
        p->opcode = ROCE_CNP;
        p->ackreq = one_in(f, 9);
        p->payload_len = one_in(f, 9) ? rnd(f, 40) : CNP_LEN;
    }
}
