/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, memory: who may touch which bytes: protection domains, memory
 * regions and windows, their keys, and the scatter/gather lists of work
 * requests.
 */
#ifndef QHCA_ENGINE_MEMORY_H
#define QHCA_ENGINE_MEMORY_H

#include "../core/core.h"

#define VHCA_MAX_PD             4096u
#define VHCA_MAX_MR             65536u
#define VHCA_MAX_MW             65536u
#define VHCA_MAX_FAST_REG       1024u
#define VHCA_MAX_MR_SIZE        (1ull << 36)
/* Keys with number 1, which the table of regions never hands out. */
#define VHCA_RESERVED_LKEY      0x00000100u
#define VHCA_NULL_LKEY          0x00000102u

/* struct vhca_pages - the pages of a region of type ODP, see pages.c */
struct vhca_pages {
    struct vhca_node *root;     /* NULL: all are absent */
    uint64_t num;
    uint32_t nodes;
    uint8_t levels;
    uint8_t shift;              /* log2 of the size of a page */
};

/* struct vhca_mr - what a key names: a memory region, or a window on one */
struct vhca_mr {
    uint32_t key;               /* number << 8 | variant */
    uint16_t access;
    uint8_t type;               /* enum qhca_mr_type */
    uint8_t window;             /* enum qhca_mw_type, 0: a region */
    bool valid;                 /* registered or bound; else IBTA's Free */
    struct vhca_holder *pd;
    uint64_t iova, length;
    /* A region has: */
    uint32_t offset;            /* of the byte at iova in the first block */
    uint32_t windows;           /* number of windows bound to it */
    union {
        struct vhca_mem mem;
        struct vhca_pages pages;    /* if it is of type ODP */
    };
    /* A bound window has: */
    struct vhca_mr *region;
    uint64_t base;              /* address in the region of the byte at iova */
    struct vhca_key_user *binder;   /* type 2: the QP it was bound on */
    struct vhca_list bound;     /* node in binder->windows */
};

#define VHCA_ACCESS_REMOTE  (QHCA_ACCESS_REMOTE_WRITE | \
                             QHCA_ACCESS_REMOTE_READ | \
                             QHCA_ACCESS_REMOTE_ATOMIC | \
                             QHCA_ACCESS_FLUSH_GLOBAL | \
                             QHCA_ACCESS_FLUSH_PERSISTENT)

/*
 * struct vhca_key_user - the identity under which keys are used; @reserved
 * allows VHCA_RESERVED_LKEY (kernel QPs)
 */
struct vhca_key_user {
    const struct vhca_holder *pd;
    uint32_t qpn;
    struct vhca_list windows;   /* windows of type 2 bound on this QP */
    bool reserved;
};

/* struct vhca_memop - REG_MR, BIND_MW or LOCAL_INV, in CPU order */
struct vhca_memop {
    uint32_t key;               /* LOCAL_INV: the old key, else the new one */
    uint32_t mr_key;            /* BIND_MW: key of the region */
    uint64_t addr, length;
    uint64_t table;             /* REG_MR: this and the next three */
    uint32_t num_blocks, offset;
    uint8_t block_shift;
    uint16_t access;
};

/* The result of an access to memory by key. */
enum vhca_mem_result {
    VHCA_MEM_OK = 0,
    VHCA_MEM_DENIED,            /* no such key, range or right */
    VHCA_MEM_DMA,               /* guest memory failed */
    VHCA_MEM_FAULT,             /* a page is absent, see e->memory->miss */
};

/*
 * struct vhca_miss - the last absent page that was needed: that with the byte
 * at @off, counted from the first page of the region with @key, as were the
 * @len - 1 bytes behind it
 */
struct vhca_miss {
    uint64_t off, len;
    uint32_t key;
    uint8_t shift;              /* log2 of the page size */
    bool write;
};

/* struct vhca_late - data that are held back, see late.c */
struct vhca_late {
    unsigned num;               /* of e->rules->data in use */
    struct vhca_timer timer;    /* for the first of them that is due */
};

struct vhca_memory {
    struct vhca_table pd;       /* users of a PD are MRs, MWs, SRQs and QPs */
    struct vhca_table mr;
    uint32_t num_mw;            /* objects in mr that are windows */
    uint32_t num_odp;           /* and that are regions of type ODP */
    struct vhca_mr reserved_mr;         /* the region of VHCA_RESERVED_LKEY */
    struct vhca_mr null_mr;             /* the region of VHCA_NULL_LKEY */
    struct vhca_miss miss;
    struct vhca_late late;
};

extern const struct vhca_room vhca_memory_room;

/* ---- key.c: keys and their use; conformance F-004 ---- */

/* Return the object of exactly this key, valid or not, or NULL. */
struct vhca_mr *vhca_mr_get(const struct qhca_engine *e, uint32_t key);
/* Return the object of @key's number, whatever the variant, or NULL. */
struct vhca_mr *vhca_mr_by_number(const struct qhca_engine *e, uint32_t key);
/* Whether the range is inside; byte-exact, and safe against wrapping sums. */
bool vhca_mr_in_range(const struct vhca_mr *mr, uint64_t addr, uint64_t len);
/*
 * Return the object of @key if it gives @user @access (QHCA_ACCESS_*; 0: local
 * read) to all of [@addr, @addr + @len), or NULL. @len must not be 0 (a
 * zero-length access is not checked). DMA MRs and the reserved key never serve
 * remote access.
 */
struct vhca_mr *vhca_mr_find(const struct qhca_engine *e,
                             const struct vhca_key_user *user, uint32_t key,
                             uint64_t addr, uint64_t len, uint16_t access);
/* vhca_mr_find(); counts QHCA_CNT_BAD_KEY if the key does not. */
struct vhca_mr *vhca_mr_check(struct qhca_engine *e,
                              const struct vhca_key_user *user, uint32_t key,
                              uint64_t addr, uint64_t len, uint16_t access);
/* As vhca_mr_check(), but without a range: check @access alone. */
struct vhca_mr *vhca_mr_check_whole(struct qhca_engine *e,
                                    const struct vhca_key_user *user,
                                    uint32_t key, uint16_t access);
/*
 * Copy from or to a range that vhca_mr_find() has accepted; @qpn: the QP that
 * writes. Failures to read are counted; for those to write, see
 * vhca_write_counted().
 */
enum vhca_mem_result vhca_mr_read(struct qhca_engine *e,
                                  const struct vhca_mr *mr, uint64_t addr,
                                  void *buf, size_t len);
enum vhca_mem_result vhca_mr_write(struct qhca_engine *e, uint32_t qpn,
                                   const struct vhca_mr *mr, uint64_t addr,
                                   const void *buf, size_t len);
/* Write to a region, not a window, without holding data back; for late.c. */
enum vhca_mem_result vhca_mr_put(struct qhca_engine *e,
                                 const struct vhca_mr *mr, uint64_t addr,
                                 const void *buf, size_t len);
/*
 * Find the DMA address of the byte at @addr of @mr, and reduce @len to how
 * many bytes are contiguous from there on. Returns false if it has none, or is
 * on a page that is absent, or not there to @write to.
 */
bool vhca_mr_run(struct qhca_engine *e, const struct vhca_mr *mr,
                 uint64_t addr, size_t *len, bool write, uint64_t *at);
/*
 * Count a write that failed, by its result, which is returned. A caller that
 * writes the first of several packets again does so only then.
 */
enum vhca_mem_result vhca_write_counted(struct qhca_engine *e,
                                        enum vhca_mem_result result);
/*
 * vhca_mr_find(), then vhca_dma_view(). Returns false also if the key does not
 * give @access, and counts nothing.
 */
bool vhca_key_view(struct qhca_engine *e, const struct vhca_key_user *user,
                   uint32_t key, uint64_t addr, size_t len, uint16_t access,
                   struct vhca_view *view);
/*
 * Find out whether all pages of a range that vhca_mr_find() has accepted can be
 * written: OK or FAULT.
 */
enum vhca_mem_result vhca_mr_probe(struct qhca_engine *e,
                                   const struct vhca_mr *mr, uint64_t addr,
                                   uint64_t len);
/* After FAULT: @more bytes behind the access will also be needed. */
static inline void vhca_miss_extend(struct qhca_engine *e, uint64_t more)
{
    e->memory->miss.len += more;
}
/* The little-endian number of a word that is @v to the guest's CPU, or back. */
static inline uint64_t vhca_word(const struct qhca_engine *e, uint64_t v)
{
    return e->big_endian ? __builtin_bswap64(v) : v;
}
/*
 * 8-byte atomics at an aligned address that vhca_mr_check() has accepted; to
 * add is for little-endian words only.
 */
enum vhca_mem_result vhca_mr_cas(struct qhca_engine *e,
                                 const struct vhca_mr *mr, uint64_t addr,
                                 uint64_t compare, uint64_t swap,
                                 uint64_t *old);
enum vhca_mem_result vhca_mr_add(struct qhca_engine *e,
                                 const struct vhca_mr *mr, uint64_t addr,
                                 uint64_t add, uint64_t *old);
enum vhca_mem_result vhca_mr_store(struct qhca_engine *e,
                                   const struct vhca_mr *mr, uint64_t addr,
                                   const uint8_t *bytes);

/* ---- mr.c ---- */

/* Check the parameters of REG_MR; returns enum qhca_cmd_status. */
int vhca_mr_check_reg(const struct qhca_cmd_reg_mr *r);
/* Whether REG_MR fits into the region, which is of type FAST. */
bool vhca_mr_fast_reg_ok(const struct vhca_mr *mr, const struct vhca_memop *op);
/* Free all regions, for a reset; the windows must have been freed. */
void vhca_mr_free_all(struct qhca_engine *e);
/* Give a new object a number and a key. Returns false if there are too many. */
bool vhca_mr_add_key(struct qhca_engine *e, struct vhca_mr *mr);
/* Take back number and key of an object; they are not reused soon (F-007). */
void vhca_mr_del_key(struct qhca_engine *e, struct vhca_mr *mr);
/*
 * Execute REG_MR: give a Free region memory, rights and a key. The requester
 * keeps the order of such requests.
 */
enum qhca_cqe_status vhca_mr_fast_reg(struct qhca_engine *e,
                                      const struct vhca_key_user *user,
                                      const struct vhca_memop *op);
/*
 * Make the object of @key Free; if it is Free already, nothing changes.
 * @remote: the peer of @user requests it. Returns false if the object must not
 * be invalidated, or not by @user.
 */
bool vhca_mr_invalidate(struct qhca_engine *e, const struct vhca_key_user *user,
                        uint32_t key, bool remote);

/* ---- pages.c: regions of type ODP ---- */

/* Start with no pages for @bytes from the first page on. */
void vhca_pages_init(struct vhca_pages *t, uint64_t bytes, uint8_t shift);
/* Set page @i to @page, not 0; returns QHCA_OK or an error. */
int vhca_pages_set(struct qhca_engine *e, struct vhca_pages *t, uint64_t i,
                   uint64_t page);
/*
 * Make pages absent. Returns QHCA_OK, or VHCA_AGAIN if the budget ended first,
 * which it cannot with @all.
 */
int vhca_pages_clear(struct qhca_engine *e, struct vhca_pages *t,
                     uint64_t first, uint64_t num, bool all);
/* Whether @page can be one of a region with pages of that size. */
bool vhca_page_ok(uint64_t page, uint8_t shift);
/*
 * Use the range at @off, counted from the first page. These count failures to
 * read, as vhca_mr_read() does.
 */
enum vhca_mem_result vhca_pages_copy(struct qhca_engine *e,
                                     const struct vhca_mr *mr, uint64_t off,
                                     uint8_t *buf, size_t len, bool write);
bool vhca_pages_view(struct qhca_engine *e, const struct vhca_mr *mr,
                     uint64_t off, size_t len, struct vhca_view *view);
/* Find the DMA address of the byte at @off, to be written. */
enum vhca_mem_result vhca_pages_addr(struct qhca_engine *e,
                                     const struct vhca_mr *mr, uint64_t off,
                                     uint64_t *addr);
/* As vhca_mr_run(); an absent page is noted in e->memory->miss. */
bool vhca_pages_run(struct qhca_engine *e, const struct vhca_mr *mr,
                    uint64_t off, size_t *len, bool write, uint64_t *addr);
enum vhca_mem_result vhca_pages_probe(struct qhca_engine *e,
                                      const struct vhca_mr *mr, uint64_t off,
                                      uint64_t len);
/* Walk over the pages of @mr in a saved state. */
void vhca_pages_walk(struct vhca_snap *s, struct vhca_mr *mr);

/* ---- mw.c ---- */

/* Free all windows, for a reset: after the QPs, before the regions. */
void vhca_mw_free_all(struct qhca_engine *e);
/*
 * Execute BIND_MW; length 0 unbinds a window of type 1. A type 2 window refers
 * to @user until it is unbound.
 */
enum qhca_cqe_status vhca_mw_bind(struct qhca_engine *e,
                                  struct vhca_key_user *user,
                                  const struct vhca_memop *op);
/* Whether @user may bind @mw to @mr, whatever it is bound to now. */
bool vhca_mw_binding_ok(const struct vhca_mr *mw, const struct vhca_mr *mr,
                        const struct vhca_key_user *user,
                        const struct vhca_memop *op);
/* Unbind a window from its region, if it is bound. */
void vhca_mw_unbind(struct vhca_mr *mw);
/*
 * Unbind all windows of a QP that is to be destroyed (F-054). Returns QHCA_OK,
 * or VHCA_AGAIN if the budget ended first.
 */
int vhca_mw_release_user(struct qhca_engine *e, struct vhca_key_user *user);

/* ---- late.c: data that are held back by a fault rule ---- */

#define VHCA_EVERY_QP   UINT32_MAX

/* Place what QP @qpn has written, or every QP. */
void vhca_late_place(struct qhca_engine *e, uint32_t qpn);
/*
 * Before the device reports something, place the data of QP @qpn, or of every
 * QP, that are held back.
 */
static inline void vhca_late_finish(struct qhca_engine *e, uint32_t qpn)
{
    if (__builtin_expect(e->late_data, 0)) {
        vhca_late_place(e, qpn);
    }
}
/* Place what is held back for bytes of a region. */
void vhca_late_meet(struct qhca_engine *e, const struct vhca_mr *mr,
                     uint64_t addr, size_t len);
/* Write to a region, some of it later; there is a rule for that. */
enum vhca_mem_result vhca_late_write(struct qhca_engine *e, uint32_t qpn,
                                      const struct vhca_mr *mr, uint64_t addr,
                                      const uint8_t *buf, size_t len);
/* For the room: create, and drop all data. */
void vhca_late_init(struct qhca_engine *e);
void vhca_late_forget(struct qhca_engine *e);

/* ---- snapshot.c ---- */

void vhca_memory_walk(struct vhca_snap *s);

/* ---- sg.c: scatter/gather lists ---- */

/* struct vhca_seg - an SGE in CPU order */
struct vhca_seg {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* Read the @n SGEs of a WQE at @src; returns the sum of their lengths. */
uint64_t vhca_segs_parse(struct vhca_seg *segs, const uint8_t *src, unsigned n);
/* Write @segs to @dst in the format of a WQE. */
void vhca_segs_format(uint8_t *dst, const struct vhca_seg *segs, unsigned n);
/*
 * Copy @len bytes between @buf and an SGE list, from byte @off of the list on;
 * the range must be inside. The keys of the segments are checked each time, as
 * they may have been invalidated since. Failures are counted as by
 * vhca_mr_read() and vhca_mr_write().
 */
enum vhca_mem_result vhca_segs_read(struct qhca_engine *e,
                                    const struct vhca_key_user *user,
                                    const struct vhca_seg *segs, unsigned n,
                                    uint64_t off, void *buf, size_t len);
enum vhca_mem_result vhca_segs_write(struct qhca_engine *e, uint32_t qpn,
                                     const struct vhca_key_user *user,
                                     const struct vhca_seg *segs, unsigned n,
                                     uint64_t off, const void *buf, size_t len);
/* Append to @view as much of the range as can be read in place. */
void vhca_segs_view(struct qhca_engine *e, const struct vhca_key_user *user,
                    const struct vhca_seg *segs, unsigned n, uint64_t off,
                    size_t len, struct vhca_view *view);
/*
 * Find out whether the pages of a range of the list can be written, as far as
 * its keys allow that. Returns OK or FAULT.
 */
enum vhca_mem_result vhca_segs_probe(struct qhca_engine *e,
                                     const struct vhca_key_user *user,
                                     const struct vhca_seg *segs, unsigned n,
                                     uint64_t off, uint64_t len);
/* Whether a segment is in a region of type ODP. */
bool vhca_segs_paged(const struct qhca_engine *e, const struct vhca_seg *segs,
                     unsigned n);
/* Whether the key of each non-empty segment gives @access to all of it. */
bool vhca_segs_check(struct qhca_engine *e, const struct vhca_key_user *user,
                     const struct vhca_seg *segs, unsigned n, uint16_t access);

#endif /* QHCA_ENGINE_MEMORY_H */
