/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, memory: who may touch which bytes. Protection domains, memory
 * regions and windows, their keys, and the lists of segments that work requests
 * describe their buffers by.
 */
#ifndef QHCA_ENGINE_MEMORY_H
#define QHCA_ENGINE_MEMORY_H

#include "../core/core.h"

#define QHCA_MAX_PD             4096u
#define QHCA_MAX_MR             65536u
#define QHCA_MAX_MW             65536u
#define QHCA_MAX_FAST_REG       512u
#define QHCA_MAX_MR_SIZE        (1ull << 36)
/* Keys of number 1, which the table of regions does not give out. */
#define QHCA_RESERVED_LKEY      0x00000100u
#define QHCA_NULL_LKEY          0x00000102u

/* struct vhca_pd - a protection domain: its users are MRs, MWs, SRQs, QPs */
struct vhca_pd {
    struct vhca_holder base;
};

/* struct vhca_mr - what a key names: a memory region, or a window on one */
struct vhca_mr {
    uint32_t key;               /* number << 8 | variant */
    uint16_t access;
    uint8_t type;               /* enum qhca_mr_type */
    uint8_t window;             /* enum qhca_mw_type, 0: a region */
    bool valid;                 /* registered, bound; else IBTA's state Free */
    struct vhca_pd *pd;
    uint64_t iova, length;
    /* A region's: */
    uint32_t offset;            /* of the byte at iova, in the first block */
    uint32_t windows;           /* bound to it */
    struct vhca_mem mem;
    /* A valid window's: */
    struct vhca_mr *region;
    uint64_t base;              /* address in the region of the byte at iova */
    struct vhca_key_user *binder;   /* type 2: the QP it was bound on */
    struct vhca_list bound;     /* node in binder->windows */
};

#define QHCA_ACCESS_REMOTE  (QHCA_ACCESS_REMOTE_WRITE | \
                             QHCA_ACCESS_REMOTE_READ | \
                             QHCA_ACCESS_REMOTE_ATOMIC | \
                             QHCA_ACCESS_FLUSH_GLOBAL | \
                             QHCA_ACCESS_FLUSH_PERSISTENT)

/* Who uses keys: @reserved allows QHCA_RESERVED_LKEY (kernel QPs). */
struct vhca_key_user {
    const struct vhca_pd *pd;
    uint32_t qpn;
    struct vhca_list windows;   /* of type 2, bound to it; a QP's only */
    bool reserved;
};

/* struct vhca_memop - REG_MR, BIND_MW or LOCAL_INV, in CPU order */
struct vhca_memop {
    uint32_t key;               /* the new one; LOCAL_INV: the one to go */
    uint32_t mr_key;            /* BIND_MW: the region */
    uint64_t addr, length;
    uint64_t table;             /* REG_MR: this and the next three */
    uint32_t num_blocks, offset;
    uint8_t block_shift;
    uint16_t access;
};

/* What an access to memory by key comes to. */
enum vhca_mem_result {
    QHCA_MEM_OK = 0,
    QHCA_MEM_DENIED,            /* no such key, range or right */
    QHCA_MEM_DMA,               /* guest memory failed */
};

struct vhca_memory {
    struct vhca_table pd, mr;
    uint32_t num_mw;            /* objects in mr that are windows */
    struct vhca_mr reserved_mr;         /* what the reserved key stands for */
    struct vhca_mr null_mr;             /* and the null key */
};

extern const struct vhca_room vhca_memory_room;

/* ---- key.c: keys and their use; conformance F-004 ---- */

/* The object of that very key, valid or not, or NULL. */
struct vhca_mr *vhca_mr_get(const struct qhca_engine *e, uint32_t key);
/* The object of @key's number, whatever the variant. */
struct vhca_mr *vhca_mr_by_number(const struct qhca_engine *e, uint32_t key);
/* Byte-exact, and without the sum of two guest values that could wrap. */
bool vhca_mr_in_range(const struct vhca_mr *mr, uint64_t addr, uint64_t len);
/*
 * Whether @key gives @user @access (QHCA_ACCESS_*; 0: local read) to all of
 * [@addr, @addr + @len). NULL if not, counted as QHCA_CNT_BAD_KEY. @len must
 * not be 0 (a zero-length access is not checked). DMA MRs and the reserved key
 * never serve remote access.
 */
struct vhca_mr *vhca_mr_check(struct qhca_engine *e,
                              const struct vhca_key_user *user, uint32_t key,
                              uint64_t addr, uint64_t len, uint16_t access);
/* The same as a question: nothing is counted. */
const struct vhca_mr *vhca_mr_find(const struct qhca_engine *e,
                                   const struct vhca_key_user *user,
                                   uint32_t key, uint64_t addr, uint64_t len,
                                   uint16_t access);
/* The same for all there is behind @key, whatever the range. */
struct vhca_mr *vhca_mr_check_whole(struct qhca_engine *e,
                                    const struct vhca_key_user *user,
                                    uint32_t key, uint16_t access);
/* Copy to or from a range that vhca_mr_check() passed. */
enum vhca_mem_result vhca_mr_read(struct qhca_engine *e,
                                  const struct vhca_mr *mr, uint64_t addr,
                                  void *buf, size_t len);
enum vhca_mem_result vhca_mr_write(struct qhca_engine *e,
                                   const struct vhca_mr *mr, uint64_t addr,
                                   const void *buf, size_t len);
/* The same, whose failure is not counted. */
bool vhca_mr_try_write(struct qhca_engine *e, const struct vhca_mr *mr,
                       uint64_t addr, const void *buf, size_t len);
/* Check and copy. */
enum vhca_mem_result vhca_key_read(struct qhca_engine *e,
                                   const struct vhca_key_user *user,
                                   uint32_t key, uint64_t addr, void *buf,
                                   size_t len, uint16_t access);
enum vhca_mem_result vhca_key_write(struct qhca_engine *e,
                                    const struct vhca_key_user *user,
                                    uint32_t key, uint64_t addr,
                                    const void *buf, size_t len,
                                    uint16_t access);
/*
 * The same, to be read in place: see vhca_dma_view(). False also if the key
 * does not give @access, which is not counted here.
 */
bool vhca_key_view(struct qhca_engine *e, const struct vhca_key_user *user,
                   uint32_t key, uint64_t addr, size_t len, uint16_t access,
                   struct vhca_view *view);
/* 8-byte atomics on a checked, aligned address. */
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

/* Whether a region can have it; remote write and atomic need local write. */
bool vhca_mr_access_ok(uint16_t access);
/* Whether a region can be as the command describes it: enum qhca_cmd_status. */
int vhca_mr_check_reg(const struct qhca_cmd_reg_mr *r);
/* Whether a region of type FAST has room for what REG_MR registers. */
bool vhca_mr_fast_reg_ok(const struct vhca_mr *mr, const struct vhca_memop *op);
/* After the windows. */
void vhca_mr_free_all(struct qhca_engine *e);
/* A new object's number and key. False: there are too many. */
bool vhca_mr_add_key(struct qhca_engine *e, struct vhca_mr *mr);
/* They go; the next key is another one (F-007). */
void vhca_mr_del_key(struct qhca_engine *e, struct vhca_mr *mr);
/*
 * Memory management work requests of a QP, which has put them in order:
 * enum qhca_cqe_status. REG_MR gives a Free region memory, rights and a key.
 */
enum qhca_cqe_status vhca_mr_fast_reg(struct qhca_engine *e,
                                      const struct vhca_key_user *user,
                                      const struct vhca_memop *op);
/*
 * Makes @key's object Free; one that is Free stays so. @remote: the peer of
 * @user asks for it. False: it must not be invalidated, or not by @user.
 */
bool vhca_mr_invalidate(struct qhca_engine *e, const struct vhca_key_user *user,
                        uint32_t key, bool remote);

/* ---- mw.c ---- */

/* Whether the device has windows of that type: enum qhca_cmd_status. */
int vhca_mw_check_type(const struct qhca_engine *e, unsigned type);
/* Before the regions, after those the windows were bound on. */
void vhca_mw_free_all(struct qhca_engine *e);
/*
 * BIND_MW; length 0 unbinds a window of type 1. The window holds on to @user
 * until it is unbound.
 */
enum qhca_cqe_status vhca_mw_bind(struct qhca_engine *e,
                                  struct vhca_key_user *user,
                                  const struct vhca_memop *op);
/* Whether @user can have @mw on @mr, whatever it is bound to now. */
bool vhca_mw_binding_ok(const struct vhca_mr *mw, const struct vhca_mr *mr,
                        const struct vhca_key_user *user,
                        const struct vhca_memop *op);
/* Takes a window off its region, if it is bound. */
void vhca_mw_unbind(struct vhca_mr *mw);
/*
 * The QP goes: QHCA_ERR_BUSY if windows keep it (F-054), else they are unbound:
 * QHCA_OK, or QHCA_AGAIN, as some still are bound.
 */
int vhca_mw_release_user(struct qhca_engine *e, struct vhca_key_user *user);

/* ---- snapshot.c ---- */

void vhca_memory_walk(struct vhca_snap *s);

/* ---- sg.c: scatter/gather lists ---- */

/* One SGE in CPU order. */
struct vhca_seg {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* Copies the @n SGEs of a WQE at @src; returns the sum of their lengths. */
uint64_t vhca_segs_parse(struct vhca_seg *segs, const uint8_t *src, unsigned n);
/* Writes them to @dst, as they stand in a WQE. */
void vhca_segs_format(uint8_t *dst, const struct vhca_seg *segs, unsigned n);
/*
 * Copies @len bytes between @buf and the byte range of the SGE list that starts
 * @off bytes in. Keys of the touched segments are checked each time (they may
 * have gone since). The range must be inside the list.
 */
enum vhca_mem_result vhca_segs_read(struct qhca_engine *e,
                                    const struct vhca_key_user *user,
                                    const struct vhca_seg *segs, unsigned n,
                                    uint64_t off, void *buf, size_t len);
enum vhca_mem_result vhca_segs_write(struct qhca_engine *e,
                                     const struct vhca_key_user *user,
                                     const struct vhca_seg *segs, unsigned n,
                                     uint64_t off, const void *buf, size_t len);
/* The same, to be read in place, as far as it can be: see vhca_dma_view(). */
void vhca_segs_view(struct qhca_engine *e, const struct vhca_key_user *user,
                    const struct vhca_seg *segs, unsigned n, uint64_t off,
                    size_t len, struct vhca_view *view);
/* The same write, of which nothing is counted if it fails. */
bool vhca_segs_try_write(struct qhca_engine *e,
                         const struct vhca_key_user *user,
                         const struct vhca_seg *segs, unsigned n, uint64_t off,
                         const void *buf, size_t len);
/*
 * Whether every non-empty segment is valid for @access over its whole length.
 */
bool vhca_segs_check(struct qhca_engine *e, const struct vhca_key_user *user,
                     const struct vhca_seg *segs, unsigned n, uint16_t access);

#endif /* QHCA_ENGINE_MEMORY_H */
