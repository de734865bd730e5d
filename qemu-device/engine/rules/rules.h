/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine, faults: rules by which the device misbehaves on demand. This
 * room has the language of the rules, decides which of them act, and holds
 * packets back. The rooms below ask at each point, and do what a rule says. See
 * Documentation/faults.rst.
 */
#ifndef QHCA_ENGINE_RULES_H
#define QHCA_ENGINE_RULES_H

#include "../core/core.h"
#include "../wire/wire.h"

#define VHCA_MAX_RULES    24u
#define VHCA_RULE_GUEST    16u     /* most of them that the guest can set */
#define VHCA_RULE_TEXT     120u    /* bytes of a rule, with the final NUL */
#define VHCA_RULE_PRIOS    8u      /* classes of traffic */
#define VHCA_RULE_HELD     64u     /* packets held back */
#define VHCA_RULE_DATA     64u     /* pieces of data held back */
#define VHCA_RULE_BYTES    1024u   /* and how long they are at most */
#define VHCA_RULE_EARLY    16u     /* READs whose data are read early */
#define VHCA_EARLY_PIECES   8u      /* pieces of each */
#define VHCA_EARLY_BYTES    256u    /* and how long they are at most */
/* How long a reordered packet waits for the next one. */
#define VHCA_RULE_SWAP_NS  10000000u

/* The points at which rules are judged. */
enum vhca_rule_point {
    VHCA_RULE_TX,              /* a RoCE frame leaves */
    VHCA_RULE_RX,              /* a RoCE frame has arrived */
    VHCA_RULE_CQE,             /* a WR is about to complete with success */
    VHCA_RULE_EVENT,           /* an event is about to be written to an EQ */
    VHCA_RULE_IRQ,             /* a vector is about to be raised */
    VHCA_RULE_CMD,             /* a command is about to be executed */
    VHCA_RULE_TIMER,           /* time passes */
    VHCA_RULE_PORT,            /* always: properties of the port */
    VHCA_RULE_POINTS
};

/* Numbers that a rule can match, besides the kind. */
enum vhca_rule_field {
    VHCA_RULE_QPN,
    VHCA_RULE_PSN,
    VHCA_RULE_CQN,
    VHCA_RULE_OBJ,
    VHCA_RULE_VECTOR,
    VHCA_RULE_FIELDS
};

/* struct vhca_rule_at - what a rule is to judge */
struct vhca_rule_at {
    uint8_t point;
    uint8_t kind;               /* opcode, type of event */
    uint32_t field[VHCA_RULE_FIELDS];
};

enum vhca_rule_action {
    VHCA_RULE_NONE,
    VHCA_RULE_DROP,
    VHCA_RULE_DUPLICATE,
    VHCA_RULE_DELAY,           /* ns */
    VHCA_RULE_REORDER,
    VHCA_RULE_CORRUPT,         /* enum vhca_rule_damage */
    VHCA_RULE_WRONG_PSN,       /* difference */
    VHCA_RULE_MARK,            /* ECN bits */
    VHCA_RULE_NAK,             /* AETH syndrome */
    VHCA_RULE_RAISE,           /* enum qhca_event, of the QP */
    VHCA_RULE_FAIL,            /* enum qhca_cqe_status or qhca_cmd_status */
    VHCA_RULE_OVERRUN,
    VHCA_RULE_STALL,           /* ns; 0: forever */
    VHCA_RULE_SLOW,            /* Mbit/s */
    VHCA_RULE_LATE,            /* ns */
    VHCA_RULE_ORDER,
    /* These act later, from a timer, and not on what the point has: */
    VHCA_RULE_LINK_DOWN,       /* ns */
    VHCA_RULE_PAUSE,           /* ns */
    VHCA_RULE_FATAL,
    VHCA_RULE_REMOVE,
};

enum vhca_rule_damage { VHCA_RULE_PAYLOAD, VHCA_RULE_ICRC };

/* struct vhca_effect - what a rule does, and the value for that */
struct vhca_effect {
    enum vhca_rule_action action;
    uint64_t value;
};

/*
 * struct vhca_rule - one rule
 * @nth, @after, @times, @ppm: which matches the rule acts on: after the first
 *      @after, every @nth, each with a chance of @ppm in a million, until it
 *      has acted @times (0: always)
 * @every: TIMER: period in ns; then @after is in ns as well
 * @within: ORDER: for at most so many ns data are held back
 * @grain: and in pieces that end at multiples of it
 * @prio: PAUSE: the class of traffic, or VHCA_RULE_PRIOS: all of them
 */
struct vhca_rule {
    char text[VHCA_RULE_TEXT];
    uint64_t seed;              /* in force where the rule was read */
    uint8_t point;
    struct vhca_effect does;
    uint64_t kinds[4];          /* opcodes or types of event, a bit each */
    struct vhca_rule_range {
        uint32_t from, to;
    } field[VHCA_RULE_FIELDS];
    uint64_t nth, after, times, ppm, every;
    uint64_t seen, hits, rng;
    uint64_t due;               /* TIMER: when it acts next */
    uint64_t within, grain, prio;
};

/* struct vhca_rule_held - a frame held back */
struct vhca_rule_held {
    bool used, swap;            /* @swap: until the next one has passed */
    bool loop, net;             /* TX: where it goes */
    uint8_t point;
    uint32_t qpn, from;
    uint64_t when, order;
    size_t len;
    uint8_t frame[ROCE_MAX_FRAME];
};

/* struct vhca_rule_data - data that have not reached memory yet */
struct vhca_rule_data {
    uint64_t addr, due;
    uint32_t qpn;               /* the QP that writes them */
    uint32_t len;
    uint8_t bytes[VHCA_RULE_BYTES];
};

/* struct vhca_early - pieces of the data of a READ, read early */
struct vhca_early {
    struct vhca_timer timer;    /* runs while others wait to be read */
    uint32_t qpn;               /* the one that answers */
    unsigned num;               /* of pieces */
    uint32_t off[VHCA_EARLY_PIECES], len[VHCA_EARLY_PIECES];
    uint8_t bytes[VHCA_EARLY_PIECES][VHCA_EARLY_BYTES];
};

struct vhca_rules {
    struct vhca_rule rule[VHCA_MAX_RULES];
    unsigned num_rules;
    unsigned num_host;          /* the operator's; they come first */
    char complaint[256];        /* what was wrong with the guest's last text */
    struct vhca_rule_held *held;   /* VHCA_RULE_HELD, once a rule is set */
    unsigned num_held;
    /*
     * VHCA_RULE_DATA for the memory room and VHCA_RULE_EARLY for the
     * responder, once a rule for the order is set.
     */
    struct vhca_rule_data *data;
    struct vhca_early *early;
    unsigned next_early;
    uint64_t order;
    unsigned wanted;            /* 1 << LINK_DOWN, PAUSE, FATAL, REMOVE */
    uint64_t link_ns;           /* how long the link is to be down */
    uint64_t pause_ns;          /* how long these classes are to be paused */
    uint8_t pause_classes;
    uint64_t link_back;         /* when the link is up again; 0: not down */
    uint64_t stalled;           /* when commands go on; 0: not stalled */
    struct vhca_rule *slow;   /* the one for the bandwidth, or NULL */
    struct vhca_rule *late;   /* the one for the latency, or NULL */
    struct vhca_rule *disorder;   /* the one for the order, or NULL */
    uint32_t mbit;              /* what @slow lets the port send; 0: all */
    struct vhca_pace pace;      /* by which it does */
    struct vhca_timer timer;    /* for all of this; the device room runs it */
};

extern const struct vhca_room vhca_rules_room;

/* The points of packets, a bit each. */
#define VHCA_RULE_PACKETS  (1u << VHCA_RULE_TX | 1u << VHCA_RULE_RX)

/* ---- faults.c ---- */

/*
 * Whether any rule is for @point: without rules this branch is all they cost.
 */
static inline bool vhca_rules_at(const struct qhca_engine *e,
                                  enum vhca_rule_point point)
{
    return __builtin_expect(e->fault_points >> point & 1, 0);
}

/* Whether a rule of either engine is for packets, or holds one back. */
static inline bool vhca_rules_between(const struct qhca_engine *e,
                                       const struct qhca_engine *at)
{
    return __builtin_expect((e->fault_points | at->fault_points) &
                            VHCA_RULE_PACKETS, 0);
}

/*
 * Return what the first rule does that matches @at and acts, after counting and
 * tracing it; VHCA_RULE_NONE if there is none, or if its action is one that
 * follows later, from the timer.
 */
struct vhca_effect vhca_rule_judge(struct qhca_engine *e,
                                   const struct vhca_rule_at *at);
/*
 * Replace the rules of the operator, or of the guest. Returns false if the text
 * is wrong; then nothing has changed.
 */
bool vhca_rules_set(struct qhca_engine *e, bool guest, const char *text,
                     struct qhca_fault_error *err);
/*
 * Print the rules from @from up to @to, a line each; returns the length, as
 * snprintf() does.
 */
size_t vhca_rules_print(const struct qhca_engine *e, unsigned from,
                         unsigned to, char *buf, size_t size);
/* Pay for @len bytes at the pace of the rule for the bandwidth. */
void vhca_rule_slow(struct qhca_engine *e, size_t len);
/* Draw a number below @max, which must not be above 2^32. */
uint64_t vhca_rule_draw(struct vhca_rule *r, uint64_t max);
/* Let rules of the timer act that are due. */
void vhca_rules_tick(struct qhca_engine *e);
/* The clock will show @now: let rules of the timer wait as long as before. */
void vhca_rules_set_clock(struct qhca_engine *e, uint64_t now);
/* Recompute @fault_points and the timer after rules or held frames changed. */
void vhca_rules_update(struct qhca_engine *e);

/* ---- parse.c, value.c, names.c: the language ---- */

/*
 * Parse at most @max rules in @text. @no_remove: why none may remove the
 * device, or NULL. Returns how many, or -1 with @err set.
 */
int vhca_rule_parse(const char *text, const char *no_remove,
                     struct vhca_rule *rule, unsigned max,
                     struct qhca_fault_error *err);

/* struct vhca_rule_span - a part of the text */
struct vhca_rule_span {
    const char *at, *end;
};

bool vhca_rule_is(const struct vhca_rule_span *s, const char *word);

/* The values that a word takes behind its equals sign. */
enum vhca_rule_takes {
    VHCA_TAKES_NOTHING,         /* the value is @min */
    VHCA_TAKES_NUMBER,          /* from @min to @max */
    VHCA_TAKES_RANGE,           /* of numbers, or one number */
    VHCA_TAKES_KINDS,
    VHCA_TAKES_PERCENT,
    VHCA_TAKES_TIME,            /* from @min to @max ns */
    VHCA_TAKES_NAME,            /* one of @names */
};

/*
 * struct vhca_rule_word - a word of the language
 * @points: points at which it has a meaning, a bit each
 * @action: what the rule does; 0: the word says when
 * @off: offset in the rule of the word's value
 */
struct vhca_rule_word {
    const char *name;
    uint8_t points, takes, action;
    size_t off;
    uint64_t min, max;
    const struct vhca_rule_name *names;
};

/*
 * Parse a value into the field of the rule at @to. Returns NULL, or the place
 * of an error, which @err->what describes.
 */
const char *vhca_rule_value(const struct vhca_rule_word *w,
                             struct vhca_rule_span s, void *to,
                             struct qhca_fault_error *err);

/* struct vhca_rule_name - the name of a number; the last row has no name */
struct vhca_rule_name {
    const char *name;
    uint8_t value;
};

extern const struct vhca_rule_name vhca_rule_damages[];
extern const struct vhca_rule_name vhca_rule_marks[];
extern const struct vhca_rule_name vhca_rule_orders[];
extern const struct vhca_rule_name vhca_rule_naks[];
extern const struct vhca_rule_name vhca_rule_qp_events[];
extern const struct vhca_rule_name vhca_rule_cqe_statuses[];
extern const struct vhca_rule_name vhca_rule_cmd_statuses[];
/*
 * Set the bits of the kinds that match @name, of @len bytes, in which * stands
 * for any string. @points: points that have these kinds. Returns false if no
 * kind matches.
 */
bool vhca_rule_kinds(unsigned points, const char *name, size_t len,
                      uint64_t kinds[4]);

/* ---- packet.c: frames ---- */

/*
 * struct vhca_rule_frame - a RoCE frame at a point
 * @frame: may be modified
 * @qpn: TX: number of the sender
 * @from: RX: number of the QP that sent it if it is looped back, else 0
 * @does: result: what the caller has to do: NAK or RAISE
 */
struct vhca_rule_frame {
    enum vhca_rule_point point;
    uint8_t *frame;
    size_t len;
    uint32_t qpn, from;
    bool loop, net;
    struct vhca_effect does;
};

/* Judge packet @p at @point; @qpn: TX: of the sender, RX: of the receiver. */
struct vhca_effect vhca_rule_packet(struct qhca_engine *e,
                                    enum vhca_rule_point point, uint32_t qpn,
                                    const struct roce_packet *p);
/*
 * Apply @f->does to the frame, which holds packet @p. Returns how often the
 * frame passes now: once, twice, or not at all.
 */
unsigned vhca_rule_act(struct qhca_engine *e, struct vhca_rule_frame *f,
                        const struct roce_packet *p);
/* vhca_rule_packet() and vhca_rule_act() for a frame. */
unsigned vhca_rule_frame(struct qhca_engine *e, struct vhca_rule_frame *f);
/*
 * Return the first frame that waits for @f to pass, or NULL; call
 * vhca_rule_release() after sending it on.
 */
struct vhca_rule_held *vhca_rule_behind(struct qhca_engine *e,
                                          const struct vhca_rule_frame *f);
/* Let the timer send @h on as soon as possible. */
void vhca_rule_hurry(struct qhca_engine *e, struct vhca_rule_held *h);
/* Let the timer deliver @f once more, unless all places are taken. */
void vhca_rule_repeat(struct qhca_engine *e, const struct vhca_rule_frame *f);
/* Return the held frame that is due first, or NULL; release it after use. */
struct vhca_rule_held *vhca_rule_due(struct qhca_engine *e);
void vhca_rule_release(struct qhca_engine *e, struct vhca_rule_held *h);

#endif /* QHCA_ENGINE_RULES_H */
