/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca cluster: one machine with an HCA: the engine, and around it the driver and
 * the program that the engine's tests play. C, for the C++ that the network is.
 *
 * All machines of a process share one clock; all functions are to be called with
 * the time, in ns, and none from a callback.
 */
#ifndef QHCA_SIM_ADAPTER_H
#define QHCA_SIM_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct adapter;

/* Headers, and as much of the payload as shows where it is from. */
#define ADAPTER_SAMPLE  128u

/**
 * struct adapter_ops - what an adapter asks of the network
 * @send: take a frame; false: not now, adapter_ready() follows
 */
struct adapter_ops {
    bool (*send)(void *opaque, const uint8_t *frame, size_t len);
};

/**
 * struct adapter_config - what is the same for all adapters of a run
 * @seed: of the numbers of their objects
 * @mbit: speed of their links, for congestion control
 * @mtu: path MTU, as in verbs (1: 256 to 5: 4096)
 * @dcqcn: congestion control is on
 * @congestion: its parameters, by their names in devlink: NAME=VALUE,…, of which
 *              adapter_wrong() says that they are good
 * @timeout: local ACK timeout, 4.096 us * 2^@timeout
 * @retries: how often it may run out
 * @message: bytes of the longest message, at most 32 MiB
 * @window: messages of a flow under way at most
 * @hollow: only the first bytes of a packet's payload are moved: frames may be
 *          cut off, and filled up with zeroes, behind ADAPTER_SAMPLE bytes
 */
struct adapter_config {
    uint64_t seed;
    unsigned mbit, mtu;
    bool dcqcn;
    const char *congestion;
    unsigned timeout, retries;
    uint32_t message;
    unsigned window;
    bool hollow;
};

/**
 * struct adapter_end - what the other end of a flow has to know of this one
 * @qpn: its QP
 * @rkey: its region
 * @addr: where that begins
 */
struct adapter_end {
    uint32_t qpn, rkey;
    uint64_t addr;
};

/**
 * struct adapter_done - something that is complete
 * @flow: index of the flow's end here
 * @received: a message has come in; else one that was posted is acknowledged
 * @status: enum qhca_wc_status, 0 is success
 */
struct adapter_done {
    unsigned flow;
    bool received;
    unsigned status;
};

/* Return where in such a text something is wrong, or NULL. */
const char *adapter_wrong(const char *congestion);
/**
 * adapter_new - a machine that runs, with its port up
 * @cfg: stays there as long as the machine
 * @host: its number, from 0 on; the address of the first is 10.0.0.1
 * @flows: ends of flows that it will have, at most
 * @ops: the caller keeps them as well
 * @opaque: for @ops
 *
 * Does not return if there is no memory.
 */
struct adapter *adapter_new(const struct adapter_config *cfg, unsigned host,
                            unsigned flows, const struct adapter_ops *ops,
                            void *opaque);
void adapter_free(struct adapter *a);

/**
 * adapter_open - create the QP of one end of a flow
 * @a: the machine
 * @end: what to tell the other one
 *
 * Returns its index; the first has 0, the next 1.
 */
unsigned adapter_open(struct adapter *a, struct adapter_end *end);
/**
 * adapter_connect - connect an end with the other one
 * @a: the machine
 * @flow: index of the end
 * @host: number of the other machine
 * @other: what adapter_open() has said there
 * @sends: this is the end that sends
 */
void adapter_connect(struct adapter *a, unsigned flow, unsigned host,
                     const struct adapter_end *other, bool sends);

/**
 * adapter_write - post a message, an RDMA WRITE with immediate data
 * @a: the machine
 * @now: ns
 * @flow: index of an end that sends
 * @bytes: from 1 to what the configuration has
 *
 * The window must have room for it.
 */
void adapter_write(struct adapter *a, uint64_t now, unsigned flow,
                   uint32_t bytes);
/* Hand over a frame that has arrived. */
void adapter_receive(struct adapter *a, uint64_t now, const uint8_t *frame,
                     size_t len);
/* The network takes frames again. */
void adapter_ready(struct adapter *a, uint64_t now);
/* Return when adapter_tick() has to be called, or UINT64_MAX. */
uint64_t adapter_deadline(const struct adapter *a);
void adapter_tick(struct adapter *a, uint64_t now);
/*
 * Take the next completion, if there is one. To be called after each of the
 * functions above until it returns false. Receive WQEs are posted again.
 */
bool adapter_poll(struct adapter *a, uint64_t now, struct adapter_done *done);

/* Whether the memory that messages go to has the @bytes that they carry. */
bool adapter_intact(const struct adapter *a, uint32_t bytes);
/* A counter by the name that the driver shows, or UINT64_MAX. */
uint64_t adapter_counter(const struct adapter *a, const char *name);
/* Set the CE mark in an untagged frame with IPv4, as a switch does. */
void adapter_mark(uint8_t *frame);
/* Checks of the driver's that have failed, in all adapters. */
unsigned adapter_failures(void);

#ifdef __cplusplus
}
#endif

#endif /* QHCA_SIM_ADAPTER_H */
