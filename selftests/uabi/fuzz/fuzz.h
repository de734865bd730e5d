/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that the files of uverbs_fuzz share. The threads of a process share its contexts and
 * objects without locks: losing a race is just one more mistake.
 */
#ifndef SELFTESTS_FUZZ_H
#define SELFTESTS_FUZZ_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/qhca-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <qhca/regs.h>

#include "lib/chance.h"
#include "lib/rdma.h"

#define PAGE		4096
#define CONTEXTS	2
#define SLOTS		384	/* for doorbells, in a page */
#define KINDS		(UVERBS_OBJECT_ASYNC_EVENT + 1)
#define OBJECTS		16	/* of each kind, in all contexts */
#define MAX_METHODS	96
#define MAX_ERRNO	1024

/* ---- shared by all processes ---- */

/* struct tally - results of one method */
struct tally {
	uint32_t ok, refused, right;	/* right: ok, and without a deliberate mistake */
	uint8_t err[MAX_ERRNO / 8];	/* bitmap of the errors seen */
};

struct shared {
	struct tally tallies[MAX_METHODS];
	uint32_t calls, maps, rings;	/* requests, mappings, doorbells */
};

/* struct fuzz - state of the process */
struct fuzz {
	char path[96];			/* path of the command file */
	struct ibv_device_attr attr;
	union ibv_gid gid;
	int gid_index;
	bool has_dm;			/* the device has device memory */
	bool has_shadow;		/* and looks for doorbells in memory */
	struct shared *shared;
	int fd[CONTEXTS];		/* the numbers stay, but the files may change */
	uint64_t db_key[CONTEXTS];
	uint8_t *db[CONTEXTS];		/* doorbell page */
	struct qhca_shadow *shadow[CONTEXTS];	/* doorbells in memory, SLOTS of them, or NULL */
	int dmabuf;			/* -1: none */
	int tmpfile;			/* for XRC domains */
};

extern struct fuzz fuzz;

/* Main function of a process: starts threads and fuzzes until it is killed. */
void worker(uint64_t seed);

/* ---- model.c: objects that exist or have existed ---- */

enum life { FREE, LIVE, STALE };

struct obj {
	enum life life;
	int ctx;
	uint32_t handle;	/* or fd */
	uint32_t num;		/* QPN, CQN, SRQN, lkey */
	uint32_t type;		/* for QPs and MWs; for MRs IBV_ACCESS_* */
	uint32_t state;		/* for QPs: last known state */
	uint64_t key;		/* for DMs: key for mmap() */
	uint64_t len;
	/* rings: [0] send, completion or shared, [1] receive */
	struct ring {
		uint8_t *mem;
		uint32_t log_size, log_stride, sge, pi;
	} ring[2];
};

extern struct obj objs[KINDS][OBJECTS];

/* Whether to make a mistake now: rarely, and never in a valid call. */
bool odd(void);
/* Begins a call that is valid or has a few mistakes; been_wrong(): it has had one. */
void be_wrong(bool may);
bool been_wrong(void);
/* Returns @good, or, if odd(), nonsense or a number around @max. */
uint64_t number(uint64_t good, uint64_t max);
/* Returns a live object or NULL. */
struct obj *live(int kind, int ctx);
/* Returns the handle of a live object; if odd(), a stale one, or of another context or kind. */
uint32_t handle(int kind, int ctx);
/* Returns a free slot or NULL. */
struct obj *place(int kind);
void born(int kind, const struct obj *what);
void forget(int ctx);
/* Returns the key of an MR or MW, or nonsense. */
uint32_t some_key(void);
/* Returns the number of a QP of this process, or any other number. */
uint32_t some_qpn(void);

/* ---- memory.c ---- */

/* Called once before the threads start, then once in each thread. */
void memory_init(void);
void memory_thread_init(uint32_t thread);
/* Returns the address for @ctx's doorbell page. */
void *doorbell_place(int ctx);
/* Returns this thread's answer buffer, large: the kernel zeroes as much as a request claims. */
void *answer_area(void);
/* Returns @len bytes of ordinary memory, page-aligned. */
uint8_t *own_pages(size_t len);
bool is_own(const uint8_t *p, size_t len);
/* Returns an unusual address: read-only, unmapped, a doorbell page, or of the kernel. */
uint64_t odd_address(size_t len);
/* Returns own_pages(), or odd_address() if odd(). */
uint64_t address(size_t len);
/* Unmaps pages that odd_address() hands out, and maps them again. */
void disturb(void);

/* ---- call.c ---- */

#define MAX_IN		256
#define MAX_ATTRS	20

/*
 * struct call - one request. A command has @in and @out, and behind each the driver's part; an
 * ioctl has attributes.
 */
struct call {
	const struct method *m;
	int ctx;
	struct obj *obj;		/* object of the request, if known */
	struct obj made;		/* object that it creates */
	uint32_t in_len, out_len, drv_len, drv_out_len;
	uint64_t in[MAX_IN / 8], drv[MAX_IN / 8];
	uint64_t *out;			/* answer_area() */
	uint32_t num_attrs, attr_out;
	struct ib_uverbs_attr attrs[MAX_ATTRS];
};

/* struct method - a row of the tables of methods */
struct method {
	const char *name;
	uint32_t weight;
	bool refused;			/* the device does not support it */
	uint8_t also[5];		/* errors of the core that only this method has */
	bool ioctl, ex;
	uint16_t cmd;			/* command, or method of the ioctl */
	uint16_t object;
	uint16_t makes;			/* creates an object of this kind; 0: none */
	uint16_t in_len, out_len, drv_len, drv_out_len;
	/* Fills in the request. Returns false if there is no object for one. */
	bool (*fill)(struct call *c);
	/* Called after success; c->made is the new object. */
	void (*done)(struct call *c);
};

#define COMMAND(cmd_, in_, out_)						\
	.name = #cmd_, .cmd = IB_USER_VERBS_CMD_##cmd_, .in_len = sizeof(in_),	\
	.out_len = sizeof(out_)
#define COMMAND_EX(cmd_, in_, out_)						\
	.name = "EX_" #cmd_, .ex = true, .cmd = IB_USER_VERBS_EX_CMD_##cmd_,	\
	.in_len = sizeof(in_), .out_len = sizeof(out_)
#define IOCTL(object_, method_)							\
	.name = "ioctl " #method_, .ioctl = true, .object = UVERBS_OBJECT_##object_,	\
	.cmd = UVERBS_METHOD_##method_
#define NOTHING		char[0]
/* The GID does not exist, or no host answers for the address. */
#define NO_ADDRESS	{ ENODATA, ETIMEDOUT, ENETUNREACH, EHOSTUNREACH, ENODEV }

/* The tables of the files below, combined. */
size_t num_methods(void);
const struct method *method(size_t i);
/* Sends one request to one of the contexts. */
void any_call(void);
/* Replaces the file of @ctx by one with a new context. Returns false if there are no more. */
bool reopen(int ctx);

/*
 * Add an attribute: input, a 64-bit number, output, a handle or descriptor. Input of more than 8
 * bytes is not copied, and has to be there until the call.
 */
void attr_in(struct call *c, uint16_t id, const void *data, uint16_t len);
void attr_number(struct call *c, uint16_t id, uint64_t number);
void *attr_out(struct call *c, uint16_t id, uint16_t len);
void attr_obj(struct call *c, uint16_t id, uint32_t handle);
/* Returns what the kernel has written to attribute @id. */
uint32_t attr_result(const struct call *c, uint16_t id);

struct table {
	const struct method *methods;
	size_t n;
};

extern const struct table basic_methods, queue_methods, memory_methods, change_methods,
			  ioctl_methods, raw_methods, refused_methods;

/* ---- mutate.c: mistakes in a complete request ---- */

void spoil_bytes(void *p, size_t len);
uint64_t nonsense(void);
/* Returns @good, or, if odd(), another address. */
uint64_t spoil_address(uint64_t good, size_t len);
/* Returns @len, or, if odd(), another multiple of @unit. */
uint32_t spoil_length(uint32_t len, uint32_t unit);

/* ---- queues.c: code for commands and ioctls; @o gets the rings ---- */

void cq_request(struct obj *o, struct qhca_create_cq_req *req, uint32_t *cqe);
void srq_request(struct obj *o, struct qhca_create_srq_req *req, uint32_t *wr, uint32_t *sge);
void qp_request(struct obj *o, struct qhca_create_qp_req *req, struct ib_uverbs_qp_cap *cap,
		bool has_rq);
uint32_t some_qp_type(void);

/* ---- maps.c and rings.c ---- */

void map_something(void);
void ring_something(void);
/* Reads, polls or closes a completion channel or an event file. */
void use_events(void);
/* Forks a child that continues fuzzing for a while with everything that it inherits. */
void fork_something(void);

static inline void count(uint32_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif /* SELFTESTS_FUZZ_H */
