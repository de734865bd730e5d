/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the pages of regions of type ODP. A region has a tree of nodes,
 * each of which stands for 512 pages or nodes, and exists only while one of
 * them is present; so a region may cover the whole address space of a process.
 */
#include <stdlib.h>

#include "../save/save.h"
#include "memory.h"

#define NODE_SHIFT  9
#define NODE_SLOTS  (1u << NODE_SHIFT)
#define MAX_LEVELS  5u

_Static_assert(QHCA_TABLE_ENTRIES == NODE_SLOTS, "SET_PAGES fits two leaves");
_Static_assert(QHCA_ODP_SIZE_MAX >> QHCA_BLOCK_SHIFT_MIN ==
               1ull << MAX_LEVELS * NODE_SHIFT, "a tree has room for all");

struct vhca_node {
    uint32_t used;              /* slots that are not 0 */
    union {
        uint64_t page[NODE_SLOTS];  /* level 0: as in struct qhca_pages */
        struct vhca_node *child[NODE_SLOTS];
    };
};

_Static_assert(sizeof(struct vhca_node) == QHCA_NODE_BLOCKS * sizeof(uint64_t),
               "a node counts as what it takes");

/* Return the slot of page @i at @level. */
static unsigned slot(uint64_t i, unsigned level)
{
    return (i >> level * NODE_SHIFT) % NODE_SLOTS;
}

void vhca_pages_init(struct vhca_pages *t, uint64_t bytes, uint8_t shift)
{
    *t = (struct vhca_pages) {
        .num = ((bytes - 1) >> shift) + 1, .levels = 1, .shift = shift,
    };
    while (t->levels < MAX_LEVELS && t->num > 1ull << t->levels * NODE_SHIFT) {
        t->levels++;
    }
}

static uint64_t page_at(const struct vhca_pages *t, uint64_t i)
{
    const struct vhca_node *node = t->root;

    for (unsigned level = t->levels - 1; node && level > 0; level--) {
        node = node->child[slot(i, level)];
    }
    return node ? node->page[slot(i, 0)] : 0;
}

/* ---- changing ---- */

static struct vhca_node *new_node(struct qhca_engine *e, struct vhca_pages *t)
{
    struct vhca_node *node = NULL;

    if (QHCA_NODE_BLOCKS <= VHCA_MAX_TABLE_BLOCKS - e->table_blocks) {
        node = calloc(1, sizeof(*node));
    }
    if (node) {
        t->nodes++;
        e->table_blocks += QHCA_NODE_BLOCKS;
        vhca_spend(e, 1);
    }
    return node;
}

/* Return the leaf of page @i, with all nodes above it, or NULL. */
static struct vhca_node *make_leaf(struct qhca_engine *e, struct vhca_pages *t,
                                   uint64_t i)
{
    struct vhca_node **at = &t->root, *parent = NULL;

    for (unsigned level = t->levels; level-- > 0;) {
        if (!*at) {
            *at = new_node(e, t);
            if (*at && parent) {
                parent->used++;
            }
        }
        if (!*at || !level) {
            break;
        }
        parent = *at;
        at = &parent->child[slot(i, level)];
    }
    return *at;
}

/* Free the nodes on the way to page @i that have nothing below them. */
static void prune(struct qhca_engine *e, struct vhca_pages *t, uint64_t i)
{
    struct vhca_node **way[MAX_LEVELS] = { &t->root };
    unsigned depth = 0;

    while (*way[depth] && depth + 1 < t->levels) {
        way[depth + 1] = &(*way[depth])->child[slot(i, t->levels - 1 - depth)];
        depth++;
    }
    if (!*way[depth]) {
        if (!depth) {
            return;
        }
        depth--;                /* the last one that exists */
    }
    while (!(*way[depth])->used) {
        free(*way[depth]);
        *way[depth] = NULL;
        t->nodes--;
        e->table_blocks -= QHCA_NODE_BLOCKS;
        if (!depth) {
            return;
        }
        depth--;
        (*way[depth])->used--;
    }
}

int vhca_pages_set(struct qhca_engine *e, struct vhca_pages *t, uint64_t i,
                   uint64_t page)
{
    struct vhca_node *leaf = make_leaf(e, t, i);

    if (!leaf) {
        prune(e, t, i);
        return QHCA_ERR_NO_RESOURCE;
    }
    leaf->used += !leaf->page[slot(i, 0)];
    leaf->page[slot(i, 0)] = page;
    return QHCA_OK;
}

/* Return how many slots of @node are empty from @from on. */
static unsigned gap(const struct vhca_node *node, unsigned from)
{
    unsigned to = from;

    while (to < NODE_SLOTS && !node->child[to]) {
        to++;
    }
    return to - from;
}

/*
 * Return the leaf of page *@i, or NULL, and advance *@i to the next page that
 * may have a leaf.
 */
static struct vhca_node *leaf_at(const struct vhca_pages *t, uint64_t *i)
{
    struct vhca_node *node = t->root;
    unsigned level = t->levels - 1u;

    for (; node && level > 0; level--) {
        unsigned at = slot(*i, level), empty = gap(node, at);

        if (empty) {
            *i = ((*i >> level * NODE_SHIFT) + empty) << level * NODE_SHIFT;
            return NULL;
        }
        node = node->child[at];
    }
    *i = node ? (*i | (NODE_SLOTS - 1)) + 1 : t->num;
    return node;
}

static void clear_leaf(struct vhca_node *leaf, unsigned from, unsigned to)
{
    for (; from < to; from++) {
        leaf->used -= leaf->page[from] != 0;
        leaf->page[from] = 0;
    }
}

int vhca_pages_clear(struct qhca_engine *e, struct vhca_pages *t,
                     uint64_t first, uint64_t num, bool all)
{
    uint64_t i = first, end = first + MIN_OF(num, t->num - first);

    while (i < end && t->root) {
        uint64_t at = i;
        struct vhca_node *leaf;

        if (!all && !vhca_may_go_on(e)) {
            return VHCA_AGAIN;  /* what is cleared already costs little */
        }
        leaf = leaf_at(t, &i);
        vhca_spend(e, 1);
        if (leaf) {
            clear_leaf(leaf, slot(at, 0),
                       i <= end ? NODE_SLOTS : slot(end, 0));
            prune(e, t, at);
        }
    }
    return QHCA_OK;
}

/* ---- commands ---- */

static struct vhca_mr *find_region(struct qhca_engine *e,
                                   const struct qhca_cmd_pages *c, int *status)
{
    struct vhca_mr *mr = vhca_mr_get(e, le32toh(c->key));
    uint64_t first = le64toh(c->first), num = le64toh(c->num);

    if (!mr || mr->window || mr->type != QHCA_MR_ODP) {
        *status = QHCA_ERR_OBJ;
        return NULL;
    }
    if (!num || first >= mr->pages.num || num > mr->pages.num - first) {
        *status = QHCA_ERR_PARAM;
        return NULL;
    }
    return mr;
}

bool vhca_page_ok(uint64_t page, uint8_t shift)
{
    uint64_t low = (1ull << shift) - 1;

    return !page || ((page & QHCA_PAGE_READ) &&
                     !(page & low & ~QHCA_PAGE_FLAGS));
}

/*
 * After an error some of the pages may have been set. The driver has to name
 * them all in CLEAR_PAGES or DEREG_MR before it frees them.
 */
int vhca_do_set_pages(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    const struct qhca_pages *pages = (const void *)c->mbox;
    uint64_t first = le64toh(c->cmd->pages.first);
    int status = QHCA_OK;
    struct vhca_mr *mr = find_region(e, &c->cmd->pages, &status);
    uint64_t num = le64toh(c->cmd->pages.num);

    if (!mr) {
        return status;
    }
    if (num > QHCA_TABLE_ENTRIES) {
        return QHCA_ERR_LIMIT;
    }
    for (uint64_t i = 0; i < num; i++) {
        if (!vhca_page_ok(le64toh(pages->page[i]), mr->pages.shift)) {
            return QHCA_ERR_PARAM;
        }
    }
    vhca_spend(e, (unsigned)(1 + num / VHCA_UNIT_PAGES));
    for (uint64_t i = 0; i < num && status == QHCA_OK; i++) {
        if (pages->page[i]) {
            status = vhca_pages_set(e, &mr->pages, first + i,
                                    le64toh(pages->page[i]));
        }
    }
    return status;
}

int vhca_do_clear_pages(struct qhca_engine *e, struct vhca_cmd_ctx *c)
{
    int status = QHCA_OK;
    struct vhca_mr *mr = find_region(e, &c->cmd->pages, &status);

    return mr ? vhca_pages_clear(e, &mr->pages, le64toh(c->cmd->pages.first),
                                 le64toh(c->cmd->pages.num), false) : status;
}

/* ---- use ---- */

bool vhca_pages_run(struct qhca_engine *e, const struct vhca_mr *mr,
                    uint64_t off, size_t *len, bool write, uint64_t *addr)
{
    uint8_t shift = mr->pages.shift;
    uint64_t size = 1ull << shift, page = page_at(&mr->pages, off >> shift);

    if (!(page & (write ? QHCA_PAGE_WRITE : QHCA_PAGE_READ))) {
        e->memory->miss = (struct vhca_miss) {
            .key = mr->key, .off = off, .len = *len, .shift = shift,
            .write = write,
        };
        return false;
    }
    *len = (size_t)MIN_OF((uint64_t)*len, size - (off & (size - 1)));
    *addr = (page & ~QHCA_PAGE_FLAGS) + (off & (size - 1));
    return true;
}

enum vhca_mem_result vhca_pages_copy(struct qhca_engine *e,
                                     const struct vhca_mr *mr, uint64_t off,
                                     uint8_t *buf, size_t len, bool write)
{
    uint64_t addr;
    bool done;
    size_t n;

    for (; len > 0; buf += n, off += n, len -= n) {
        n = len;
        if (!vhca_pages_run(e, mr, off, &n, write, &addr)) {
            return VHCA_MEM_FAULT;
        }
        done = write ? vhca_dma_try_write(e, addr, buf, n) :
                       vhca_dma_read(e, addr, buf, n);
        if (!done) {
            return VHCA_MEM_DMA;
        }
    }
    return VHCA_MEM_OK;
}

bool vhca_pages_view(struct qhca_engine *e, const struct vhca_mr *mr,
                     uint64_t off, size_t len, struct vhca_view *view)
{
    uint64_t addr;
    size_t n;

    for (; len > 0; off += n, len -= n) {
        n = len;
        if (!vhca_pages_run(e, mr, off, &n, false, &addr) ||
            !vhca_dma_view(e, addr, n, view)) {
            return false;
        }
    }
    return true;
}

enum vhca_mem_result vhca_pages_addr(struct qhca_engine *e,
                                     const struct vhca_mr *mr, uint64_t off,
                                     uint64_t *addr)
{
    size_t n = 1;

    return vhca_pages_run(e, mr, off, &n, true, addr) ? VHCA_MEM_OK :
                                                   VHCA_MEM_FAULT;
}

enum vhca_mem_result vhca_pages_probe(struct qhca_engine *e,
                                      const struct vhca_mr *mr, uint64_t off,
                                      uint64_t len)
{
    uint64_t addr;
    size_t n;

    vhca_spend(e, (unsigned)((len >> mr->pages.shift) / VHCA_UNIT_PAGES));
    for (; len > 0; off += n, len -= n) {
        n = (size_t)len;
        if (!vhca_pages_run(e, mr, off, &n, true, &addr)) {
            return VHCA_MEM_FAULT;
        }
    }
    return VHCA_MEM_OK;
}

/* ---- saved states ---- */

/* Walk over a leaf: its pages that are present, each with its place. */
static void walk_leaf(struct vhca_snap *s, struct vhca_mr *mr,
                      struct vhca_node *leaf, uint64_t first)
{
    uint32_t n = vhca_snap_u32(s, "pages", leaf ? leaf->used : 0, NODE_SLOTS);
    unsigned at = 0;

    for (; n > 0 && !s->bad; n--, at++) {
        uint64_t page;

        while (leaf && !leaf->page[at]) {
            at++;
        }
        at = (unsigned)vhca_snap_num(s, "page", at, 2, NODE_SLOTS - 1);
        page = vhca_snap_num(s, "page", leaf ? leaf->page[at] : 0,
                             sizeof(page), UINT64_MAX);
        vhca_snap_check(s, page && vhca_page_ok(page, mr->pages.shift) &&
                           first + at < mr->pages.num, "page");
        if (s->load && !s->bad &&
            vhca_pages_set(s->e, &mr->pages, first + at, page) != QHCA_OK) {
            vhca_snap_refuse(s, "page", "cannot be allocated");
        }
    }
}

void vhca_pages_walk(struct vhca_snap *s, struct vhca_mr *mr)
{
    struct vhca_pages *t = &mr->pages;
    uint64_t i = 0, at;
    uint32_t n = 0;

    if (s->load) {
        vhca_pages_init(t, mr->offset + mr->length, t->shift);
    }
    for (at = 0; t->root && at < t->num;) {
        n += leaf_at(t, &at) != NULL;
    }
    n = vhca_snap_count(s, "pages", n, 12);
    for (; n > 0 && !s->bad; n--) {
        struct vhca_node *leaf = NULL;

        for (at = i; !s->load && !leaf; ) {
            at = i;
            leaf = leaf_at(t, &i);
        }
        at = vhca_snap_num(s, "pages", at, sizeof(at), t->num - 1);
        walk_leaf(s, mr, leaf, at & ~(uint64_t)(NODE_SLOTS - 1));
    }
}
