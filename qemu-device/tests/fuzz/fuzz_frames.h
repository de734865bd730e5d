/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a hostile network. Its input is a sequence of frames, each
 * with the fields to fix up before it is sent (ICRC, lengths, addresses, QP
 * number, PSN, keys), so that a mutation passes the checks in front of the code
 * it is aimed at.
 */
#ifndef QHCA_TESTS_FUZZ_FRAMES_H
#define QHCA_TESTS_FUZZ_FRAMES_H

#include "fuzz.h"
#include "inputs.h"

/*
 * The records: only kind FRAMES_FRAME has data; in others the length is the
 * amount to post. Aim: bits 3, 1:0 QP; 7:4 PSN ahead plus 4, or opcode.
 */
#define FRAMES_CFG_IPV6     0x01    /* the port's GID */
#define FRAMES_CFG_VLAN     0x02
#define FRAMES_CFG_SMALL    0x04    /* path MTU 256, port MTU 1500 */
#define FRAMES_CFG_PROMISC  0x08
#define FRAMES_CFG_RACE     0x10    /* memory changes after it is read */
#define FRAMES_CFG_RATES    0x20    /* marks are answered, and QPs paced */
#define FRAMES_CFG_ALL      0x3f

enum frames_kind {
    FRAMES_FRAME, FRAMES_RECV, FRAMES_SEND, FRAMES_TIME, FRAMES_KINDS
};

#define FRAMES_FIX_ICRC     0x01
#define FRAMES_FIX_LENGTH   0x02    /* lengths of IP and UDP, IPv4 checksum */
#define FRAMES_FIX_QP       0x04
#define FRAMES_FIX_PSN      0x08
#define FRAMES_FIX_KEY      0x10    /* remote address and key; Q_Key; SRQ */
#define FRAMES_FIX_ADDR     0x20    /* Ethernet and IP addresses */
#define FRAMES_FIX_ALL      0x3f

/* Plays the frames to a new device; returns how many passed the checks. */
uint64_t frames_session(const uint8_t *data, size_t size);

#endif /* QHCA_TESTS_FUZZ_FRAMES_H */
