/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine: the QP state machine as a table (conformance A.2 and A.3, after
 * IBTA 11.2.5.2). The driver checks the same with ib_core; the device checks
 * again, because it trusts no driver.
 */
#include "qps.h"

#define ST(s)       (1u << QHCA_QPS_##s)
#define TY(t)       QHCA_TYPE(t)
#define XRC         (TY(XRC_INI) | TY(XRC_TGT))
#define CONNECTED   (TY(RC) | TY(UC) | XRC)
#define DATAGRAM    (TY(UD) | TY(GSI))
#define ANY_TYPE    (CONNECTED | DATAGRAM)
#define ANY_STATE   0x7fu

#define PORT_PKEY   (QHCA_QP_PORT | QHCA_QP_PKEY_INDEX)
#define RTR_COMMON  (QHCA_QP_AV | QHCA_QP_PATH_MTU | QHCA_QP_DEST_QPN | \
                     QHCA_QP_RQ_PSN)
#define RTR_OPT     (QHCA_QP_ACCESS_FLAGS | QHCA_QP_PKEY_INDEX)
#define RTS_INITIATOR (QHCA_QP_TIMEOUT | QHCA_QP_RETRY_CNT | \
                       QHCA_QP_RNR_RETRY | QHCA_QP_SQ_PSN | \
                       QHCA_QP_MAX_QP_RD_ATOMIC)
#define RUN_OPT     (QHCA_QP_CUR_STATE | QHCA_QP_ACCESS_FLAGS)
#define SQD_COMMON  (QHCA_QP_PORT | QHCA_QP_AV | QHCA_QP_TIMEOUT | \
                     QHCA_QP_ACCESS_FLAGS | QHCA_QP_PKEY_INDEX)
#define SQD_INITIATOR (QHCA_QP_RETRY_CNT | QHCA_QP_RNR_RETRY | \
                       QHCA_QP_MAX_QP_RD_ATOMIC)
#define SQD_TARGET  (QHCA_QP_MAX_DEST_RD_ATOMIC | QHCA_QP_MIN_RNR_TIMER)

/* STATE itself is implied; a pair of states that no row names is illegal. */
static const struct {
    uint8_t from, to;           /* sets of states */
    uint16_t types;             /* set of QP types */
    uint32_t required, optional;
} transitions[] = {
    { ANY_STATE, ST(RESET), ANY_TYPE, 0, 0 },
    { ANY_STATE, ST(ERR), ANY_TYPE, 0, 0 },
    { ST(RESET), ST(INIT), CONNECTED, PORT_PKEY | QHCA_QP_ACCESS_FLAGS, 0 },
    { ST(RESET), ST(INIT), TY(UD), PORT_PKEY | QHCA_QP_QKEY, 0 },
    { ST(RESET), ST(INIT), TY(GSI), QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY, 0 },
    { ST(INIT), ST(INIT), CONNECTED, 0, PORT_PKEY | QHCA_QP_ACCESS_FLAGS },
    { ST(INIT), ST(INIT), TY(UD), 0, PORT_PKEY | QHCA_QP_QKEY },
    { ST(INIT), ST(INIT), TY(GSI), 0, QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY },
    { ST(INIT), ST(RTR), TY(RC) | TY(XRC_TGT),
      RTR_COMMON | QHCA_QP_MAX_DEST_RD_ATOMIC | QHCA_QP_MIN_RNR_TIMER,
      RTR_OPT },
    { ST(INIT), ST(RTR), TY(UC) | TY(XRC_INI), RTR_COMMON, RTR_OPT },
    { ST(INIT), ST(RTR), DATAGRAM, 0, QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY },
    { ST(RTR), ST(RTS), TY(RC), RTS_INITIATOR,
      RUN_OPT | QHCA_QP_MIN_RNR_TIMER },
    { ST(RTR), ST(RTS), TY(XRC_INI), RTS_INITIATOR, RUN_OPT },
    { ST(RTR), ST(RTS), TY(XRC_TGT), QHCA_QP_TIMEOUT | QHCA_QP_SQ_PSN,
      RUN_OPT | QHCA_QP_MIN_RNR_TIMER },
    { ST(RTR), ST(RTS), TY(UC), QHCA_QP_SQ_PSN, RUN_OPT },
    { ST(RTR), ST(RTS), DATAGRAM, QHCA_QP_SQ_PSN,
      QHCA_QP_CUR_STATE | QHCA_QP_QKEY },
    { ST(RTS) | ST(SQD), ST(RTS), TY(RC) | TY(XRC_TGT), 0,
      RUN_OPT | QHCA_QP_MIN_RNR_TIMER },
    { ST(RTS) | ST(SQD), ST(RTS), TY(UC) | TY(XRC_INI), 0, RUN_OPT },
    { ST(RTS) | ST(SQD) | ST(SQE), ST(RTS), DATAGRAM, 0,
      QHCA_QP_CUR_STATE | QHCA_QP_QKEY },
    { ST(SQE), ST(RTS), TY(UC), 0, RUN_OPT },
    { ST(RTS), ST(SQD), ANY_TYPE, 0, QHCA_QP_EN_SQD_ASYNC_NOTIFY },
    { ST(SQD), ST(SQD), TY(RC), 0, SQD_COMMON | SQD_INITIATOR | SQD_TARGET },
    { ST(SQD), ST(SQD), TY(XRC_INI), 0, SQD_COMMON | SQD_INITIATOR },
    { ST(SQD), ST(SQD), TY(XRC_TGT), 0, SQD_COMMON | SQD_TARGET },
    { ST(SQD), ST(SQD), TY(UC), 0,
      QHCA_QP_AV | QHCA_QP_ACCESS_FLAGS | QHCA_QP_PKEY_INDEX },
    { ST(SQD), ST(SQD), DATAGRAM, 0, QHCA_QP_PKEY_INDEX | QHCA_QP_QKEY },
};

bool vhca_qp_transition_ok(uint8_t type, uint8_t from, uint8_t to,
                           uint32_t mask)
{
    mask &= ~(uint32_t)QHCA_QP_STATE;
    for (unsigned i = 0; i < ARRAY_SIZE(transitions); i++) {
        if ((transitions[i].from & 1u << from) &&
            (transitions[i].to & 1u << to) &&
            (transitions[i].types & 1u << type)) {
            uint32_t required = transitions[i].required;

            return (mask & required) == required &&
                   !(mask & ~(required | transitions[i].optional));
        }
    }
    return false;
}

uint32_t vhca_qp_required(uint8_t type, uint8_t state)
{
    unsigned last = state == QHCA_QPS_ERR ? QHCA_QPS_RESET :
                    MIN_OF(state, (uint8_t)QHCA_QPS_RTS);
    uint32_t required = 0;

    for (unsigned from = QHCA_QPS_RESET; from < last; from++) {
        for (unsigned i = 0; i < ARRAY_SIZE(transitions); i++) {
            if ((transitions[i].from & 1u << from) &&
                (transitions[i].to & 1u << (from + 1)) &&
                (transitions[i].types & 1u << type)) {
                required |= transitions[i].required;
            }
        }
    }
    return required;
}
