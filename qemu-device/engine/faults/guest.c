/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, faults: rules set by the guest, if the operator allows it.
 */
#include <stdio.h>

#include "faults.h"

/*
 * Keep what is wrong with @text for the guest, as comments: the line, unless it
 * is longer than 80 characters, and a mark under the place.
 */
static void complain(struct vhca_faults *f, const char *text,
                     const struct qhca_fault_error *err)
{
    size_t len;

    for (unsigned line = err->line; line > 1; line--) {
        text = strchr(text, '\n') + 1;
    }
    len = strcspn(text, "\n");
    if (len < 80 && err->column <= 80) {
        snprintf(f->complaint, sizeof(f->complaint), "# %.*s\n# %*s %.80s\n",
                 (int)len, text, (int)err->column, "^", err->what);
    } else {
        snprintf(f->complaint, sizeof(f->complaint),
                 "# line %u, column %u: %.80s\n", err->line, err->column,
                 err->what);
    }
}

int vhca_do_set_faults(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const char *text = (const char *)c->mbox;
    struct qhca_fault_error err;

    if (!e->cfg.guest_faults) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    if (!memchr(text, '\0', sizeof(struct qhca_faults_text))) {
        return QHCA_ERR_PARAM;
    }
    e->faults->complaint[0] = '\0';
    if (!vhca_faults_set(e, true, text, &err)) {
        complain(e->faults, text, &err);
        return QHCA_ERR_PARAM;
    }
    return QHCA_OK;
}

int vhca_do_query_faults(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct vhca_faults *f = e->faults;
    size_t len = strlen(f->complaint);

    if (!e->cfg.guest_faults) {
        return QHCA_ERR_NOT_SUPPORTED;
    }
    memcpy(c->mbox, f->complaint, len);
    vhca_faults_print(e, f->num_host, f->num_rules, (char *)c->mbox + len,
                      sizeof(struct qhca_faults_text) - len);
    return QHCA_OK;
}
