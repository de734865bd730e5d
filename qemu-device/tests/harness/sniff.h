/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a sniffer. It reads every packet that an engine sends, by
 * rules of its own, from IBTA volume 1 chapter 9, annexes A17 and A19, and
 * Documentation/conformance.md (tables.h), without any table of the engine's.
 */
#ifndef QHCA_TESTS_SNIFF_H
#define QHCA_TESTS_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sniff_service { SNIFF_RC = 0, SNIFF_UC = 1, SNIFF_UD = 3, SNIFF_XRC = 5 };

/* struct sniffed - a packet, as the sniffer reads it */
struct sniffed {
    uint8_t kind;               /* E2_*, of tables.h */
    unsigned service;           /* enum sniff_service */
    uint8_t opcode;
    bool first, last;           /* of its message */
    bool se, ackreq, response;
    uint32_t dest_qp, psn;
    uint64_t va;                /* RETH */
    uint32_t dma_len;
    uint8_t syndrome;           /* AETH */
    bool has_aeth;
    uint32_t msn;
    const uint8_t *bth;
    size_t header_len;          /* from the BTH to the payload */
    const uint8_t *payload;
    size_t payload_len;
};

/*
 * Read a frame. Returns NULL, or which rule it breaks. @crosses: it is one that
 * has no addresses, because it only stands for a packet inside a port.
 */
const char *sniff_read(struct sniffed *s, const uint8_t *frame, size_t len,
                       bool crosses);

/* The packets that a machine has sent, as far as the sniffer knows them. */
struct sniffer;

struct sniffer *sniffer_new(void);
void sniffer_free(struct sniffer *s);
/* struct sniff_qp - what its driver has told a QP; @mtu: in bytes */
struct sniff_qp {
    uint32_t qpn, mtu, sq_psn;
    uint8_t state;
};
/*
 * Compare a packet that the QP sends with its state, and with those that it has
 * sent before. Returns NULL, or which rule it breaks.
 */
const char *sniff_next(struct sniffer *s, const struct sniff_qp *qp,
                       const struct sniffed *p);
/* The QP has left state @from for @to. */
void sniff_state(struct sniffer *s, uint32_t qpn, unsigned from, unsigned to);
/* The test itself has changed the PSNs of the QP. @s may be NULL. */
void sniff_moved(struct sniffer *s, uint32_t qpn);

#endif /* QHCA_TESTS_SNIFF_H */
