/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: PDs, regions and windows in a saved state. Bindings come after
 * all objects; the window lists of QPs are saved with the QPs.
 */
#include "../save/save.h"
#include "memory.h"

static const struct vhca_snap_kind pd_kind = {
    "PD", sizeof(struct vhca_holder), 0, NULL, vhca_snap_holder
};

static const struct vhca_snap_field mr_fields[] = {
    VHCA_SNAP_ANY(struct vhca_mr, key, access),
    VHCA_SNAP_MAX(struct vhca_mr, QHCA_MR_ODP, type),
    VHCA_SNAP_MAX(struct vhca_mr, QHCA_MW_2B, window),
    VHCA_SNAP_ANY(struct vhca_mr, iova, length, offset),
    { 0 }
};
VHCA_SNAP_KNOWS(struct vhca_mr, 112);

/* Return the bytes from the first block to the end of the region. */
static uint64_t extent(const struct vhca_mr *mr)
{
    return mr->valid ? mr->offset + mr->length : 1;
}

/* Apply REG_MR's checks; @length: for type FAST the number of blocks. */
static bool region_ok(const struct vhca_mr *mr, uint64_t length)
{
    bool fast = mr->type == QHCA_MR_FAST;
    bool odp = mr->type == QHCA_MR_ODP;
    const struct qhca_cmd_reg_mr r = {
        .iova = htole64(mr->iova), .length = htole64(length),
        .offset = htole32(mr->offset), .type = mr->type,
        .access = fast ? 0 : htole16(mr->access),
        .buf.block_shift = odp ? mr->pages.shift : mr->mem.block_shift,
    };

    return vhca_mr_check_reg(&r) == QHCA_OK;
}

/* Addresses that no registration of a FAST region uses are not checked. */
static void walk_fast(struct vhca_snap *s, struct vhca_mr *mr)
{
    struct vhca_mem *mem = &mr->mem, used;
    uint64_t size;

    mem->block_shift = (uint8_t)vhca_snap_num(s, "block_shift",
                                              mem->block_shift, 1,
                                              QHCA_BLOCK_SHIFT_MAX);
    uint8_t shift = mem->block_shift;
    uint32_t n = vhca_snap_count(s, "num_blocks", mem->num_blocks,
                                 sizeof(uint64_t));

    if (!vhca_snap_check(s, region_ok(mr, n), "num_blocks")) {
        return;
    }
    if (s->load && vhca_mem_reserve(s->e, mem, n) != QHCA_OK) {
        vhca_snap_refuse(s, "num_blocks", "is %u, and cannot be allocated", n);
        return;
    }
    mem->block_shift = shift;
    vhca_snap_u64s(s, "block", mem->block, n);
    if (!mr->valid) {
        return;
    }

    const struct vhca_memop op = {
        .addr = mr->iova, .length = mr->length, .offset = mr->offset,
        .num_blocks = shift ? n : n & ~1u, .block_shift = shift,
        .access = mr->access,
    };

    if (!shift) {
        vhca_snap_check(s, vhca_mr_fast_reg_ok(mr, &op) &&
                           vhca_mem_pieces_ok(mem, mr->length), "pieces");
        return;
    }

    used = *mem;
    size = 1ull << shift;
    used.num_blocks = (uint32_t)((extent(mr) + size - 1) >> shift);
    vhca_snap_check(s, vhca_mr_fast_reg_ok(mr, &op) &&
                       vhca_mem_blocks_ok(&used), "registration");
}

static void walk_memory(struct vhca_snap *s, struct vhca_mr *mr)
{
    if (mr->window) {
        return;
    }
    if (mr->type == QHCA_MR_FAST) {
        walk_fast(s, mr);
        return;
    }
    if (mr->type == QHCA_MR_MEM) {
        vhca_snap_mem(s, &mr->mem, extent(mr));
    } else if (mr->type == QHCA_MR_ODP) {
        mr->pages.shift = (uint8_t)vhca_snap_num(s, "page_shift",
                                                 mr->pages.shift, 1,
                                                 QHCA_BLOCK_SHIFT_MAX);
    }
    if (vhca_snap_check(s, region_ok(mr, mr->length), "region") &&
        mr->type == QHCA_MR_ODP) {
        vhca_pages_walk(s, mr);
    }
}

/* Windows are loaded unbound; walk_bindings() binds them. */
static void walk_mr(struct vhca_snap *s, void *obj)
{
    struct vhca_memory *m = s->e->memory;
    struct vhca_mr *mr = obj;
    bool valid;

    vhca_snap_fields(s, mr_fields, mr);
    valid = vhca_snap_num(s, "valid", mr->valid, 1, 1);
    uint32_t pdn = vhca_snap_obj(s, "pdn", vhca_holder_number(mr->pd));

    if (s->load) {
        mr->pd = vhca_table_get(&m->pd, pdn);
        mr->valid = valid && !mr->window;
    }
    vhca_snap_check(s, mr->pd, "pdn");
    vhca_snap_check(s, mr->key >> 8 == s->number, "key");
    vhca_snap_check(s, mr->window || mr->type == QHCA_MR_FAST || mr->valid,
                    "valid");
    vhca_snap_check(s, !s->load || (mr->window ? m->num_mw < VHCA_MAX_MW :
                                    m->mr.used - m->num_mw < VHCA_MAX_MR),
                    "number of them");
    walk_memory(s, mr);
    if (s->load && s->bad && mr->type == QHCA_MR_ODP) {
        /* The caller releases the member mem only, so free the pages here. */
        vhca_pages_clear(s->e, &mr->pages, 0, mr->pages.num, true);
        memset(&mr->mem, 0, sizeof(mr->mem));
    }
}

static void enlist_mr(struct qhca_engine *e, void *obj, uint32_t number)
{
    struct vhca_mr *mr = obj;

    (void)number;               /* part of the key */
    vhca_list_init(&mr->bound);
    mr->pd->users++;
    e->memory->num_mw += mr->window != 0;
    e->memory->num_odp += !mr->window && mr->type == QHCA_MR_ODP;
}

static const struct vhca_snap_kind mr_kind = {
    "MR", sizeof(struct vhca_mr), offsetof(struct vhca_mr, mem), walk_mr,
    enlist_mr
};

/* ---- bindings ---- */

/* Apply BIND_MW's checks to the binding. */
static bool binding_ok(const struct vhca_mr *mw, const struct vhca_mr *mr)
{
    bool zero_based = mw->iova != mw->base;
    const struct vhca_key_user user = { .pd = mw->pd };
    const struct vhca_memop op = {
        .addr = mw->base, .length = mw->length,
        .access = mw->access | (zero_based ? QHCA_ACCESS_ZERO_BASED : 0),
    };

    return (!zero_based || !mw->iova) && vhca_mw_binding_ok(mw, mr, &user, &op);
}

static void walk_binding(struct vhca_snap *s, struct vhca_mr *mw)
{
    uint32_t key = vhca_snap_u32(s, "region", s->load ? 0 : mw->region->key,
                                 UINT32_MAX);
    struct vhca_mr *mr = vhca_mr_get(s->e, key);

    mw->base = vhca_snap_num(s, "base", mw->base, sizeof(mw->base), UINT64_MAX);
    if (vhca_snap_check(s, binding_ok(mw, mr), "region") && s->load) {
        mw->region = mr;
        mw->valid = true;
        mr->windows++;
    }
}

static void walk_bindings(struct vhca_snap *s)
{
    struct vhca_mr *mw;

    s->kind = "MW";
    vhca_table_each(&s->e->memory->mr, mw) {
        s->number = mw->key;
        if (mw->window && !s->bad &&
            vhca_snap_num(s, "bound", mw->valid, 1, 1)) {
            walk_binding(s, mw);
        }
    }
    s->kind = NULL;
}

void vhca_memory_walk(struct vhca_snap *s)
{
    vhca_snap_table(s, &s->e->memory->pd, &pd_kind);
    vhca_snap_table(s, &s->e->memory->mr, &mr_kind);
    walk_bindings(s);
}
