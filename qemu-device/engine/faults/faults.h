/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, faults: rules by which the device misbehaves on demand. Here is
 * the language, what a rule matches, and what is held back; the rooms below ask
 * at each point, and do what the rule says. Documentation/faults.rst.
 */
#ifndef QHCA_ENGINE_FAULTS_H
#define QHCA_ENGINE_FAULTS_H

#include "../core/core.h"
#include "../wire/wire.h"

#define QHCA_FAULT_RULES    24u
#define QHCA_FAULT_GUEST    16u     /* of them are the guest's, at most */
#define QHCA_FAULT_TEXT     120u    /* of one, with its end */
#define QHCA_FAULT_HELD     64u     /* packets that come later */
/* How long a packet that changes places waits for the next one. */
#define QHCA_FAULT_SWAP_NS  10000000u

/* Where rules look. */
enum vhca_fault_point {
    QHCA_FAULT_TX,              /* a RoCE frame leaves */
    QHCA_FAULT_RX,              /* one has arrived */
    QHCA_FAULT_CQE,             /* a WR is about to complete with success */
    QHCA_FAULT_EVENT,           /* there is something to tell an EQ */
    QHCA_FAULT_IRQ,             /* a vector is about to be raised */
    QHCA_FAULT_CMD,             /* a command is about to be executed */
    QHCA_FAULT_TIMER,           /* time passes */
    QHCA_FAULT_POINTS
};

/* What of it they look at, besides its kind: numbers. */
enum vhca_fault_field {
    QHCA_FAULT_QPN,
    QHCA_FAULT_PSN,
    QHCA_FAULT_CQN,
    QHCA_FAULT_OBJ,
    QHCA_FAULT_VECTOR,
    QHCA_FAULT_FIELDS
};

/* struct vhca_fault_at - what has come to a point */
struct vhca_fault_at {
    uint8_t point;
    uint8_t kind;               /* opcode, type of event */
    uint32_t field[QHCA_FAULT_FIELDS];
};

enum vhca_fault_action {
    QHCA_FAULT_NONE,
    QHCA_FAULT_DROP,
    QHCA_FAULT_DUPLICATE,
    QHCA_FAULT_DELAY,           /* ns */
    QHCA_FAULT_REORDER,
    QHCA_FAULT_CORRUPT,         /* enum vhca_fault_damage */
    QHCA_FAULT_WRONG_PSN,       /* what is added to it */
    QHCA_FAULT_NAK,             /* AETH syndrome */
    QHCA_FAULT_RAISE,           /* enum qhca_event, of the QP */
    QHCA_FAULT_FAIL,            /* enum qhca_cqe_status or qhca_cmd_status */
    QHCA_FAULT_OVERRUN,
    QHCA_FAULT_STALL,           /* ns; 0: for good */
    /* These go their own way, and whatever has come to the point passes: */
    QHCA_FAULT_LINK_DOWN,       /* ns */
    QHCA_FAULT_FATAL,
    QHCA_FAULT_REMOVE,
};

enum vhca_fault_damage { QHCA_FAULT_PAYLOAD, QHCA_FAULT_ICRC };

/* struct vhca_fault - what a rule does, and with which value */
struct vhca_fault {
    enum vhca_fault_action action;
    uint64_t value;
};

/*
 * struct vhca_fault_rule - one rule
 * @nth, @after, @times, @ppm: which of those that match it acts upon: every
 *      nth behind the first so many, so often in all (0: always), and of those
 *      a millionth times @ppm
 * @every: TIMER: its period, and @after is a time, too; ns
 */
struct vhca_fault_rule {
    char text[QHCA_FAULT_TEXT];
    uint64_t seed;              /* as it was when the rule was read */
    uint8_t point;
    struct vhca_fault does;
    uint64_t kinds[4];          /* a bit each */
    struct vhca_fault_range {
        uint32_t from, to;
    } field[QHCA_FAULT_FIELDS];
    uint64_t nth, after, times, ppm, every;
    uint64_t seen, hits, rng;
    uint64_t due;               /* TIMER */
};

/* struct vhca_fault_held - a frame that is held back */
struct vhca_fault_held {
    bool used, swap;            /* @swap: until the next one has passed */
    bool loop, net;             /* TX: to where */
    uint8_t point;
    uint32_t qpn, from;
    uint64_t when, order;
    size_t len;
    uint8_t frame[ROCE_MAX_FRAME];
};

struct vhca_faults {
    struct vhca_fault_rule rule[QHCA_FAULT_RULES];
    unsigned num_rules;
    unsigned num_host;          /* the operator's, which come first */
    char complaint[256];        /* about the guest's last ones */
    struct vhca_fault_held *held;   /* QHCA_FAULT_HELD, once a rule is set */
    unsigned num_held;
    uint64_t order;
    unsigned wanted;            /* 1 << LINK_DOWN, FATAL, REMOVE */
    uint64_t link_ns;           /* how long the link is to be down */
    uint64_t link_back;         /* when it comes back; 0: it is not down */
    uint64_t stalled;           /* until when commands are; 0: they are not */
    struct vhca_timer timer;    /* for all that; @fn is the device room's */
};

extern const struct vhca_room vhca_faults_room;

/* The points of packets, a bit each. */
#define QHCA_FAULT_PACKETS  (1u << QHCA_FAULT_TX | 1u << QHCA_FAULT_RX)

/* ---- faults.c ---- */

/* Whether some rule looks there: the one branch that all others pay. */
static inline bool vhca_faults_at(const struct qhca_engine *e,
                                  enum vhca_fault_point point)
{
    return __builtin_expect(e->fault_points >> point & 1, 0);
}

/* Whether a rule of either looks at packets, or one waits for the next. */
static inline bool vhca_faults_between(const struct qhca_engine *e,
                                       const struct qhca_engine *at)
{
    return __builtin_expect((e->fault_points | at->fault_points) &
                            QHCA_FAULT_PACKETS, 0);
}

/*
 * What the first rule does that matches and has its turn; counted and traced.
 * What goes its own way is left to the timer, and here it is nothing.
 */
struct vhca_fault vhca_fault_judge(struct qhca_engine *e,
                                   const struct vhca_fault_at *at);
/*
 * Replaces the rules of the operator, or of the guest. False: the text is
 * wrong, and nothing has changed.
 */
bool vhca_faults_set(struct qhca_engine *e, bool guest, const char *text,
                     struct qhca_fault_error *err);
/*
 * The rules from @from up to @to, a line each; returns the length, as
 * snprintf() does.
 */
size_t vhca_faults_print(const struct qhca_engine *e, unsigned from,
                         unsigned to, char *buf, size_t size);
/* Rules of the timer act whose time has come. */
void vhca_faults_tick(struct qhca_engine *e);
/* What is held, what is to happen when, or the rules, have changed. */
void vhca_faults_update(struct qhca_engine *e);

/* ---- parse.c, value.c, names.c: the language ---- */

/*
 * Reads the rules in @text, @max of them at most. @no_remove: why none may take
 * the device out; or NULL. Returns how many, or -1: something is wrong.
 */
int vhca_fault_parse(const char *text, const char *no_remove,
                     struct vhca_fault_rule *rule, unsigned max,
                     struct qhca_fault_error *err);

/* struct vhca_fault_span - part of the text */
struct vhca_fault_span {
    const char *at, *end;
};

bool vhca_fault_is(const struct vhca_fault_span *s, const char *word);

/* What a word takes behind its equals sign. */
enum vhca_fault_takes {
    QHCA_TAKES_NOTHING,         /* the value is @min */
    QHCA_TAKES_NUMBER,          /* from @min to @max */
    QHCA_TAKES_RANGE,           /* of numbers, or a single one */
    QHCA_TAKES_KINDS,
    QHCA_TAKES_PERCENT,
    QHCA_TAKES_TIME,            /* from @min to @max ns */
    QHCA_TAKES_NAME,            /* of @names */
};

/*
 * struct vhca_fault_word - one of the language
 * @points: where it has a meaning, a bit each
 * @action: what it makes happen; 0: it says when
 * @off: where in the rule its value goes
 */
struct vhca_fault_word {
    const char *name;
    uint8_t points, takes, action;
    size_t off;
    uint64_t min, max;
    const struct vhca_fault_name *names;
};

/*
 * Reads a value into the field of the rule at @to. Returns where something is
 * wrong, with @err->what saying what, or NULL.
 */
const char *vhca_fault_value(const struct vhca_fault_word *w,
                             struct vhca_fault_span s, void *to,
                             struct qhca_fault_error *err);

/* struct vhca_fault_name - a name for a number; the last has none */
struct vhca_fault_name {
    const char *name;
    uint8_t value;
};

extern const struct vhca_fault_name vhca_fault_damages[];
extern const struct vhca_fault_name vhca_fault_naks[];
extern const struct vhca_fault_name vhca_fault_qp_events[];
extern const struct vhca_fault_name vhca_fault_cqe_statuses[];
extern const struct vhca_fault_name vhca_fault_cmd_statuses[];
/*
 * Sets the bits of the kinds at @points, which have the same, whose name is
 * @name, of @len bytes, in which a * stands for anything. False: there is none.
 */
bool vhca_fault_kinds(unsigned points, const char *name, size_t len,
                      uint64_t kinds[4]);

/* ---- packet.c: frames ---- */

/*
 * struct vhca_fault_frame - a RoCE frame at its point
 * @frame: may be written, and have another content afterwards
 * @qpn: TX: of the sender
 * @from: RX: number of the QP that has sent it, if it is looped back, else 0
 * @does: out: what the caller has to do; NAK or RAISE
 */
struct vhca_fault_frame {
    enum vhca_fault_point point;
    uint8_t *frame;
    size_t len;
    uint32_t qpn, from;
    bool loop, net;
    struct vhca_fault does;
};

/* What a rule does to @p at @point; @qpn: of the sender, RX: its own. */
struct vhca_fault vhca_fault_packet(struct qhca_engine *e,
                                    enum vhca_fault_point point, uint32_t qpn,
                                    const struct roce_packet *p);
/*
 * Does @f->does to the frame, which holds packet @p. Returns how often it goes
 * on: once, twice, or not now.
 */
unsigned vhca_fault_act(struct qhca_engine *e, struct vhca_fault_frame *f,
                        const struct roce_packet *p);
/* Judges the frame and acts. */
unsigned vhca_fault_frame(struct qhca_engine *e, struct vhca_fault_frame *f);
/*
 * The first that waited for @f to pass, or NULL; vhca_fault_release() when it
 * has been sent on.
 */
struct vhca_fault_held *vhca_fault_behind(struct qhca_engine *e,
                                          const struct vhca_fault_frame *f);
/* The timer sends it on, as soon as there is time for it. */
void vhca_fault_hurry(struct qhca_engine *e, struct vhca_fault_held *h);
/* The timer delivers @f once more; without a free place it does not. */
void vhca_fault_repeat(struct qhca_engine *e, const struct vhca_fault_frame *f);
/* One whose time has come, the first of them, or NULL; likewise. */
struct vhca_fault_held *vhca_fault_due(struct qhca_engine *e);
void vhca_fault_release(struct qhca_engine *e, struct vhca_fault_held *h);

#endif /* QHCA_ENGINE_FAULTS_H */
