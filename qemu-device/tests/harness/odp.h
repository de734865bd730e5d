/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: regions of type ODP, and a driver that serves faults. */
#ifndef QHCA_TESTS_ODP_H
#define QHCA_TESTS_ODP_H

#include "rc.h"

/*
 * struct odp - a region of type ODP over memory that exists already: the pages
 * of both are the same, in the same order
 */
struct odp {
    struct guest *g;
    uint32_t key;
    uint64_t base;              /* address of its first page */
    uint64_t num;               /* pages */
    unsigned flags;             /* of the pages that odp_serve() sets */
    bool deny;                  /* answer that there is no such page */
    bool alone;                 /* set only the page that is missing */
    unsigned served;            /* faults answered */
};

#define ODP_ALL (QHCA_PAGE_READ | QHCA_PAGE_WRITE)
#define ODP_ACCESS \
    (REMOTE_ALL | QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_MW_BIND)

/*
 * A region of @len bytes at @addr, which is also its iova, with ODP_ACCESS; no
 * page is there.
 */
struct odp odp_create(struct guest *g, uint32_t pdn, uint64_t addr,
                      uint64_t len);
/* REG_MR with type ODP; returns its status. */
int odp_reg(struct guest *g, uint32_t pdn, uint64_t iova, uint64_t len,
            unsigned offset, unsigned shift, unsigned access, uint32_t *key);
/* SET_PAGES and CLEAR_PAGES; return the status. */
int odp_set_raw(struct guest *g, uint32_t key, uint64_t first, uint64_t num,
                const struct qhca_pages *pages);
int odp_clear(struct odp *o, uint64_t first, uint64_t num);
/* Makes pages present. */
void odp_set(struct odp *o, uint64_t first, uint64_t num, unsigned flags);
/* The open fault of @kind; false: there is none, or no such QP. */
bool odp_fault(struct guest *g, uint32_t qpn, unsigned kind,
               struct qhca_page_fault *f);
/* RESUME_QP; returns its status. */
int odp_resume(struct guest *g, uint32_t qpn, unsigned kind, uint32_t sn,
               unsigned deny);
/* Answers all open faults of the QP that are about @o; returns how many. */
unsigned odp_answer(struct odp *o, uint32_t qpn);
/* Takes the events of the node, which must be page faults, and answers. */
unsigned odp_serve(struct odp *o, struct node *n);
/* Plays a quick driver, until there is nothing to do any more. */
void odp_run(struct odp *o, struct node *n);

#endif /* QHCA_TESTS_ODP_H */
