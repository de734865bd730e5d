/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "odp.h"

int odp_reg(struct guest *g, uint32_t pdn, uint64_t iova, uint64_t len,
            unsigned offset, unsigned shift, unsigned access, uint32_t *key)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_REG_MR) };

    cmd.reg_mr.type = QHCA_MR_ODP;
    cmd.reg_mr.buf.block_shift = (uint8_t)shift;
    cmd.reg_mr.iova = htole64(iova);
    cmd.reg_mr.length = htole64(len);
    cmd.reg_mr.offset = htole32(offset);
    cmd.reg_mr.pdn = htole32(pdn);
    cmd.reg_mr.access = htole16((uint16_t)access);
    return guest_cmd(g, &cmd, key);
}

struct odp odp_create(struct guest *g, uint32_t pdn, uint64_t addr,
                      uint64_t len)
{
    struct odp o = { .g = g, .flags = ODP_ALL };
    unsigned offset = addr & (QHCA_PAGE_SIZE - 1);

    REQUIRE(odp_reg(g, pdn, addr, len, offset, 12, ODP_ACCESS,
                    &o.key) == QHCA_OK);
    o.base = addr - offset;
    o.num = (offset + len + QHCA_PAGE_SIZE - 1) / QHCA_PAGE_SIZE;
    return o;
}

static struct qhca_cmd pages_cmd(unsigned opcode, uint32_t key, uint64_t first,
                                 uint64_t num)
{
    struct qhca_cmd cmd = { .opcode = htole16((uint16_t)opcode) };

    cmd.pages.key = htole32(key);
    cmd.pages.first = htole64(first);
    cmd.pages.num = htole64(num);
    return cmd;
}

int odp_set_raw(struct guest *g, uint32_t key, uint64_t first, uint64_t num,
                const struct qhca_pages *pages)
{
    struct qhca_cmd cmd = pages_cmd(QHCA_CMD_SET_PAGES, key, first, num);

    return guest_cmd_mbox(g, &cmd, pages, sizeof(*pages), NULL, 0, NULL);
}

int odp_clear(struct odp *o, uint64_t first, uint64_t num)
{
    struct qhca_cmd cmd = pages_cmd(QHCA_CMD_CLEAR_PAGES, o->key, first, num);

    return guest_cmd(o->g, &cmd, NULL);
}

void odp_set(struct odp *o, uint64_t first, uint64_t num, unsigned flags)
{
    struct qhca_pages pages = { 0 };

    REQUIRE(num <= QHCA_TABLE_ENTRIES);
    for (uint64_t i = 0; i < num; i++) {
        pages.page[i] = htole64((o->base + (first + i) * QHCA_PAGE_SIZE) |
                                flags);
    }
    CHECK_EQ(odp_set_raw(o->g, o->key, first, num, &pages), QHCA_OK);
}

bool odp_fault(struct guest *g, uint32_t qpn, unsigned kind,
               struct qhca_page_fault *f)
{
    struct qhca_page_faults all;

    if (guest_query(g, QHCA_CMD_QUERY_PAGE_FAULTS, qpn, &all, sizeof(all))) {
        return false;
    }
    *f = all.fault[kind];
    return f->open;
}

int odp_resume(struct guest *g, uint32_t qpn, unsigned kind, uint32_t sn,
               unsigned deny)
{
    struct qhca_cmd cmd = { .opcode = htole16(QHCA_CMD_RESUME_QP) };

    cmd.resume_qp.qpn = htole32(qpn);
    cmd.resume_qp.sn = htole32(sn);
    cmd.resume_qp.kind = (uint8_t)kind;
    cmd.resume_qp.deny = (uint8_t)deny;
    return guest_cmd(g, &cmd, NULL);
}

unsigned odp_answer(struct odp *o, uint32_t qpn)
{
    struct qhca_page_fault f;
    unsigned n = 0;

    for (unsigned kind = 0; kind < QHCA_PAGE_KINDS; kind++) {
        if (!odp_fault(o->g, qpn, kind, &f) || le32toh(f.key) != o->key) {
            continue;
        }

        uint64_t first = le64toh(f.first), num = le64toh(f.num);

        CHECK(num && first < o->num && num <= o->num - first);
        CHECK(f.write <= 1);
        if (!o->deny) {
            num = o->alone ? 1 : num;
            odp_set(o, first, num < QHCA_TABLE_ENTRIES ? num :
                              QHCA_TABLE_ENTRIES, o->flags);
        }
        /* STATE: the QP has met another page since, and there is an event. */
        if (odp_resume(o->g, qpn, kind, le32toh(f.sn), o->deny) == QHCA_OK) {
            n++;
        }
    }
    o->served += n;
    return n;
}

unsigned odp_serve(struct odp *o, struct node *n)
{
    struct qhca_eqe eqe;
    unsigned served = 0;

    while (eq_next(&n->async, &eqe)) {
        CHECK_EQ(eqe.type, QHCA_EVENT_PAGE_FAULT);
        served += odp_answer(o, le32toh(eqe.obj));
    }
    eq_arm(&n->async);
    return served;
}

void odp_run(struct odp *o, struct node *n)
{
    for (unsigned idle = 0; idle < 10; idle++) {
        guest_run(o->g);
        if (odp_serve(o, n)) {
            idle = 0;
        }
        guest_advance(o->g, 10000);     /* the RNR wait */
    }
    guest_settle(o->g);
}
