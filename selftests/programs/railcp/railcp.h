/* SPDX-License-Identifier: GPL-2.0 */
/*
 * railcp: one machine sends data to another, or to itself, over several adapters (rails) together,
 * and goes on when one of them fails, comes back or gets slow. An example of how a program does
 * that, and of how not: with an option it makes a mistake that others have made. The scenarios of
 * Documentation/faults.rst tell them apart.
 *
 *	plan.c	which rail sends which chunk
 *	rail.c	a rail of the sender: connect, send, give up, connect again
 *	peer.c	the receiver, which looks at all data
 *	link.c	an adapter with a QP, and how two of them find each other
 */
#ifndef RAILCP_H
#define RAILCP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define MAX_RAILS	8
#define CHUNK		32768		/* bytes of a message */
#define WORDS		(CHUNK / 8)
#define WINDOW		8		/* messages in flight on a rail */
#define BATCH		64		/* chunks that have to arrive before the next ones start */
#define MOST		(1u << 20)	/* chunks of a run */

/* The mistakes. */
enum {
	NEVER_REBUILD	= 1 << 0,	/* what has failed once is not used again */
	KEEP_QPS	= 1 << 1,	/* goes on with its old QP when the port is back */
	COMPLETIONS_ONLY = 1 << 2,	/* waits for completions, sees no event and has no timer */
	SPLIT_EVENLY	= 1 << 3,	/* all rails get the same, however fast they are */
	RETRY_FOREVER	= 1 << 4,	/* what a rail has begun stays with it, for ever */
	LOSE_FLIGHT	= 1 << 5,	/* what was on its way when a rail failed is forgotten */
};

/**
 * struct options - what the user wants
 * @wrong: the mistakes to make
 * @seconds: how long to send
 * @verbose: say what happens
 * @rails: how many there are
 * @port: of TCP, for the handshakes
 * @dev: name of each adapter
 * @ip: its address
 * @peer: the address at its other end
 */
struct options {
	unsigned int wrong;
	double seconds;
	bool verbose;
	int rails, port;
	const char *dev[MAX_RAILS], *ip[MAX_RAILS], *peer[MAX_RAILS];
};

extern struct options opts;

/** now - seconds of a clock that does not jump */
double now(void);

/** say - a line of the log, if the user wants one */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The first word of a message, its type. */
enum { PROBE = 0x70726f6265, DATA = 0x64617461, END = 0x656e64 };

/** fill - write message @number of that @type, WORDS long */
void fill(uint64_t *words, uint64_t type, uint64_t number);

/** intact - whether message @words is as fill() has written it */
bool intact(const uint64_t *words);

/* ---- link.c */

/**
 * struct link - an adapter that is open, with one QP
 * @rail: number of the adapter
 * @sock: the TCP connection over the same rail, which ends when the peer gives up
 * @broken: a completion, an event or the socket has said that it does not work any more
 * @gone: the adapter itself has failed
 * @active: whether the port had carrier, as far as events have said
 * @ctx: the device, opened anew for each link
 * @pd: of the next three
 * @channel: wakes link_wait()
 * @cq: of both queues
 * @mr: of @words
 * @qp: the connection
 * @words: room for 2 * WINDOW messages
 */
struct link {
	int rail, sock;
	bool broken, gone, active;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint64_t *words;
};

/** link_place - where message number @place of the link is */
uint64_t *link_place(struct link *l, uint64_t place);

/** link_open - open the adapter, if it works; its port must have carrier. The link is closed, or
 *	new: { .sock = -1 }
 */
bool link_open(struct link *l, int rail);

/** link_greet - tell the peer at @sock of the QP, get to know its, and connect them */
bool link_greet(struct link *l, int sock, bool first);

/** link_send - post message @place */
bool link_send(struct link *l, uint64_t place);

/** link_recv - post place @place for a message */
bool link_recv(struct link *l, uint64_t place);

/** link_poll - up to @count completions */
int link_poll(struct link *l, struct ibv_wc *wc, int count);

/** link_wait - sleep until something happens, at most @ms; takes note of events */
void link_wait(struct link *l, int ms);

/** link_close - give everything back */
void link_close(struct link *l);

/* ---- plan.c */

/** plan_start - @opts.seconds begin */
void plan_start(void);

/** plan_take - a chunk that @rail sends next, or -1 */
int64_t plan_take(int rail);

/** plan_done - @rail has sent a chunk */
void plan_done(int rail, uint64_t number);

/** plan_late - chunks that @rail has had for @seconds are for any rail again; how many */
int plan_late(int rail, double seconds);

/** plan_flight - how many chunks @rail has, and the seconds that the oldest has taken */
int plan_flight(int rail, double *oldest);

/** plan_live - @rail works from now on, or does not: others send what it has begun */
void plan_live(int rail, bool live);

/** plan_over - whether all has been sent; then *@total is how many chunks that were */
bool plan_over(uint64_t *total);

/** plan_dark - for how many seconds no rail has worked */
double plan_dark(void);

/* ---- the two ends */

/** send_all - the sender; its exit status */
int send_all(void);

/** receive_all - the receiver at the listening socket; its exit status */
int receive_all(int listener);

#endif
