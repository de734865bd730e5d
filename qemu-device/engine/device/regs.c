/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: registers. A row for each register says what it allows; any
 * other access is counted and ignored.
 */
#include "device.h"

/*
 * struct reg - a register
 * @constant: its value, if there is no @read; 0: write-only
 * @write: NULL: read-only
 */
struct reg {
    const char *name;
    uint32_t constant;
    uint32_t (*read)(struct qhca_engine *e);
    void (*write)(struct qhca_engine *e, uint32_t val);
};

#define READ(name, value) \
    static uint32_t read_##name(struct qhca_engine *e) \
    { \
        return (value); \
    }
/* One half of a 64-bit address, see set_half(). */
#define HALF(name, address, shift) \
    READ(name, (uint32_t)((address) >> (shift))) \
    static void write_##name(struct qhca_engine *e, uint32_t val) \
    { \
        set_half(e, &(address), shift, val); \
    }

READ(cmd_timeout, e->cfg.cmd_timeout_ms)
READ(vectors, e->cfg.num_vectors)
READ(control, e->state == QHCA_STATE_RESET ? 0 :
              QHCA_CONTROL_ENABLE |
              (e->big_endian ? QHCA_CONTROL_BIG_ENDIAN : 0))
READ(fatal, e->fatal)
READ(cmd_log_size, e->cmdq->log_size)
READ(cmd_progress, e->cmdq->steps)
READ(clock_hi, e->device->clock_hi)
READ(db_caps, QHCA_PREP(QHCA_DB_CAPS_PAGES, e->cfg.num_uars) |
              QHCA_PREP(QHCA_DB_CAPS_LOG_STRIDE, e->cfg.log_db_stride))
READ(status, QHCA_PREP(QHCA_STATUS_STATE, (uint32_t)e->state) |
             (e->port->link ? QHCA_STATUS_LINK_UP : 0))
READ(mac_lo, e->cfg.mac[0] | (uint32_t)e->cfg.mac[1] << 8 |
             (uint32_t)e->cfg.mac[2] << 16 | (uint32_t)e->cfg.mac[3] << 24)
READ(mac_hi, e->cfg.mac[4] | (uint32_t)e->cfg.mac[5] << 8)

static void write_control(struct qhca_engine *e, uint32_t val)
{
    const uint32_t known = QHCA_CONTROL_ENABLE | QHCA_CONTROL_BIG_ENDIAN;

    if (e->state != QHCA_STATE_RESET) {
        if ((val & known) != read_control(e)) {
            vhca_count(e, QHCA_CNT_BAD_REG);
            vhca_guest_error(e, "CONTROL: 0x%x, and only a reset changes 0x%x",
                             val, read_control(e));
        }
        return;
    }
    if (!(val & QHCA_CONTROL_ENABLE)) {
        return;
    }
    if (!vhca_cmdq_start(e)) {
        vhca_guest_error(e, "command rings 0x%llx 0x%llx of 2^%u entries",
                         (unsigned long long)e->cmdq->sq,
                         (unsigned long long)e->cmdq->cq,
                         e->cmdq->log_size);
        vhca_fatal(e, QHCA_FATAL_CMDQ_CONFIG);
        return;
    }
    e->big_endian = val & QHCA_CONTROL_BIG_ENDIAN;
    e->state = QHCA_STATE_RUNNING;
    vhca_rules_update(e);
}

static void write_reset(struct qhca_engine *e, uint32_t val)
{
    if (val != QHCA_RESET_KEY) {
        vhca_count(e, QHCA_CNT_BAD_REG);
        vhca_guest_error(e, "RESET: 0x%x is not the key", val);
        return;
    }
    vhca_reset(e);
}

static bool base_writable(struct qhca_engine *e)
{
    if (e->state == QHCA_STATE_RESET) {
        return true;
    }
    vhca_count(e, QHCA_CNT_BAD_REG);
    vhca_guest_error(e, "command ring registers: device not in reset");
    return false;
}

static void set_half(struct qhca_engine *e, uint64_t *reg, unsigned shift,
                     uint32_t val)
{
    if (base_writable(e)) {
        *reg &= ~((uint64_t)UINT32_MAX << shift);
        *reg |= (uint64_t)val << shift;
    }
}

HALF(cmd_sq_lo, e->cmdq->sq, 0)
HALF(cmd_sq_hi, e->cmdq->sq, 32)
HALF(cmd_cq_lo, e->cmdq->cq, 0)
HALF(cmd_cq_hi, e->cmdq->cq, 32)

static void write_cmd_log_size(struct qhca_engine *e, uint32_t val)
{
    if (base_writable(e)) {
        /* Saturate, so that ENABLE refuses it. */
        e->cmdq->log_size = (uint8_t)MIN_OF(val, 0xffu);
    }
}

static uint32_t read_clock_lo(struct qhca_engine *e)
{
    e->device->clock_hi = (uint32_t)(e->now >> 32);
    return (uint32_t)e->now;
}

#define CMD_CAPS    QHCA_PREP(QHCA_CMD_CAPS_LOG_MAX, (uint32_t)VHCA_CMD_LOG_MAX)
#define EQ_CAPS     (QHCA_PREP(QHCA_EQ_CAPS_MAX, VHCA_MAX_EQ) | \
                     QHCA_PREP(QHCA_EQ_CAPS_LOG_MAX, (uint32_t)VHCA_EQ_LOG_MAX))

#define REG_CONST(reg, val) [QHCA_REG_##reg / 4] = { #reg, val, NULL, NULL }
#define REG_RO(reg, fn)     [QHCA_REG_##reg / 4] = { #reg, 0, read_##fn, NULL }
#define REG_WO(reg, fn)     [QHCA_REG_##reg / 4] = { #reg, 0, NULL, write_##fn }
#define REG_RW(reg, fn) \
    [QHCA_REG_##reg / 4] = { #reg, 0, read_##fn, write_##fn }

static const struct reg regs[] = {
    REG_CONST(MAGIC, QHCA_MAGIC),
    REG_CONST(VERSION, QHCA_VERSION),
    REG_CONST(CMD_CAPS, CMD_CAPS),
    REG_RO(CMD_TIMEOUT, cmd_timeout),
    REG_RO(DB_CAPS, db_caps),
    REG_CONST(EQ_CAPS, EQ_CAPS),
    REG_RO(VECTORS, vectors),
    REG_RW(CONTROL, control),
    REG_RO(STATUS, status),
    REG_WO(RESET, reset),
    REG_RO(FATAL, fatal),
    REG_RW(CMD_SQ_LO, cmd_sq_lo),
    REG_RW(CMD_SQ_HI, cmd_sq_hi),
    REG_RW(CMD_CQ_LO, cmd_cq_lo),
    REG_RW(CMD_CQ_HI, cmd_cq_hi),
    REG_RW(CMD_LOG_SIZE, cmd_log_size),
    REG_RO(CMD_PROGRESS, cmd_progress),
    REG_RO(MAC_LO, mac_lo),
    REG_RO(MAC_HI, mac_hi),
    REG_RO(CLOCK_LO, clock_lo),
    REG_RO(CLOCK_HI, clock_hi),
};

static const struct reg *find_reg(unsigned off)
{
    if (off % 4 || off / 4 >= ARRAY_SIZE(regs) || !regs[off / 4].name) {
        return NULL;
    }
    return &regs[off / 4];
}

uint32_t vhca_reg_read(struct qhca_engine *e, unsigned off)
{
    const struct reg *reg = find_reg(off);

    if (!reg || !(reg->read || reg->constant)) {
        vhca_count(e, QHCA_CNT_BAD_REG);
        vhca_guest_error(e, "read of register %s (0x%x)",
                         reg ? reg->name : "?", off);
        return 0;
    }
    return reg->read ? reg->read(e) : reg->constant;
}

void vhca_reg_write(struct qhca_engine *e, unsigned off, uint32_t val)
{
    const struct reg *reg = find_reg(off);

    if (!reg || !reg->write) {
        vhca_count(e, QHCA_CNT_BAD_REG);
        vhca_guest_error(e, "write of register %s (0x%x)",
                         reg ? reg->name : "?", off);
        return;
    }
    reg->write(e, val);
}
