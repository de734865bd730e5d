/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine tests: the kinds of schedules, and what they must meet. */
#include "sim.h"

const char *const sim_kind_name[SIM_KINDS] = {
    [SIM_PLAIN] = "D-006 D-010 D-049 B-062 B-064 B-065 B-066 B-067 G-002 "
                  "loss, doubles, disorder, damage",
    [SIM_DRAIN] = "A-084 A-085 A-087 A-088 A-089 A-112 SQD and back",
    [SIM_PRESSURE] = "D-049 the network takes no frames",
    [SIM_CUT] = "I-021 D-046 the cable comes out",
    [SIM_TO_ERR] = "A-098 A-099 A-100 A-115 G-008 moved to ERR",
    [SIM_TO_RESET] = "A-103 A-120 G-008 moved to RESET",
    [SIM_DESTROY] = "A-020 G-008 destroyed",
    [SIM_BAD_WR] = "I-052 bad WRs in between, of either end",
    [SIM_UNBIND] = "F-055 windows go while in use",
    [SIM_DRAIN_BAD] = "A-034 A-090 A-091 errors, also while QPs are in SQD",
};

const unsigned sim_must_see[SIM_KINDS] = {
    [SIM_PLAIN] = SAW(COMP) | SAW(FAULT) | SAW(GATE) |
                  SAW(SLOWED) | SAW(LATE) | SAW(GAP) | SAW(CHANGE),
    [SIM_DRAIN] = SAW(SQD) | SAW(DRAINING) | SAW(DRAINED) | SAW(RESUMED),
    [SIM_PRESSURE] = SAW(REFUSED),
    [SIM_CUT] = SAW(STRIKE) | SAW(ERROR) | SAW(FLUSH),
    [SIM_TO_ERR] = SAW(STRIKE) | SAW(ERROR) | SAW(FLUSH),
    [SIM_TO_RESET] = SAW(STRIKE) | SAW(ERROR) | SAW(FLUSH),
    [SIM_DESTROY] = SAW(STRIKE) | SAW(ERROR) | SAW(FLUSH),
    [SIM_BAD_WR] = SAW(ERROR) | SAW(FLUSH) | SAW(SQE) | SAW(BAD_RECV),
    [SIM_UNBIND] = SAW(STRIKE) | SAW(UNBOUND) | SAW(ERROR) | SAW(FLUSH),
    [SIM_DRAIN_BAD] = SAW(SQD) | SAW(DRAINING) | SAW(DRAINED) | SAW(RESUMED) |
                      SAW(REFUSED) | SAW(ERROR) | SAW(FLUSH) | SAW(SQE) |
                      SAW(BAD_RECV),
};

const char *const sim_event_name[SIM_EVENTS] = {
    [SIM_SAW_SQD] = "SQD", [SIM_SAW_DRAINING] = "RTS refused while draining",
    [SIM_SAW_DRAINED] = "SQ_DRAINED", [SIM_SAW_RESUMED] = "RTS after SQD",
    [SIM_SAW_REFUSED] = "a frame refused",
    [SIM_SAW_STRIKE] = "a blow at work", [SIM_SAW_UNBOUND] = "a window gone",
    [SIM_SAW_ERROR] = "an error", [SIM_SAW_FLUSH] = "a flush",
    [SIM_SAW_SQE] = "RTS after SQE",
    [SIM_SAW_BAD_RECV] = "a bad receive WQE",
    [SIM_SAW_COMP] = "an event of a CQ",
    [SIM_SAW_FAULT] = "a page fault",
    [SIM_SAW_GATE] = "a closed gate",
    [SIM_SAW_SLOWED] = "a lower rate",
    [SIM_SAW_LATE] = "late data",
    [SIM_SAW_GAP] = "a gap without a timer",
    [SIM_SAW_CHANGE] = "a change of mind",
    [SIM_SAW_PAUSE] = "a pause",
    [SIM_SAW_MOVE] = "another device takes over",
};
