// SPDX-License-Identifier: GPL-2.0
/* Makes a system call for a method and records the result. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

static const struct table *const tables[] = {
	&basic_methods, &queue_methods, &memory_methods, &change_methods, &ioctl_methods,
	&raw_methods, &refused_methods,
};

/* The request to send, with room for the longest tail. */
static _Thread_local uint64_t wire[(65536 + 8192) / 8];

size_t num_methods(void)
{
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		n += tables[i]->n;
	return n;
}

const struct method *method(size_t i)
{
	const struct table *const *t = tables;

	while (i >= (*t)->n)
		i -= (*t++)->n;
	return &(*t)->methods[i];
}

/* ---- attributes ---- */

static struct ib_uverbs_attr *attr_add(struct call *c, uint16_t id, uint16_t len)
{
	struct ib_uverbs_attr *a = &c->attrs[c->num_attrs++];

	if (c->num_attrs > MAX_ATTRS)
		abort();
	*a = (struct ib_uverbs_attr){ .attr_id = id, .len = len,
				      .flags = UVERBS_ATTR_F_MANDATORY };
	return a;
}

/* Short data is inline. */
void attr_in(struct call *c, uint16_t id, const void *data, uint16_t len)
{
	struct ib_uverbs_attr *a = attr_add(c, id, len);

	if (len <= sizeof(a->data))
		memcpy(&a->data, data, len);
	else
		a->data = spoil_address((uintptr_t)data, len);
}

void attr_number(struct call *c, uint16_t id, uint64_t number)
{
	attr_in(c, id, &number, sizeof(number));
}

void *attr_out(struct call *c, uint16_t id, uint16_t len)
{
	struct ib_uverbs_attr *a = attr_add(c, id, spoil_length(len, 1));
	uint8_t *p = (uint8_t *)c->out + c->attr_out;

	c->attr_out += (len + 7) & ~7;
	a->data = spoil_address((uintptr_t)p, len);
	return p;
}

void attr_obj(struct call *c, uint16_t id, uint32_t handle)
{
	attr_add(c, id, 0)->data = handle;
}

uint32_t attr_result(const struct call *c, uint16_t id)
{
	uint32_t i;

	for (i = 0; i < c->num_attrs; i++)
		if (c->attrs[i].attr_id == id)
			return c->attrs[i].data;
	return 0;
}

/* ---- sending ---- */

/* Returns the address of the request, or a bad address. */
static const void *sent_from(size_t len)
{
	uint64_t addr;

	if (!odd())
		return wire;
	addr = odd_address(len);
	return (const void *)(uintptr_t)addr;
}

/*
 * A bug of the core, see testing.rst: a WQ that was to go to an unknown state cannot be destroyed.
 * So this request has states that exist, and is not read from memory that others write to.
 */
static bool is_modify_wq(uint32_t cmd)
{
	return (cmd & IB_USER_VERBS_CMD_FLAG_EXTENDED) &&
	       (cmd & IB_USER_VERBS_CMD_COMMAND_MASK) == IB_USER_VERBS_EX_CMD_MODIFY_WQ;
}

static void spare_wq(struct ib_uverbs_ex_modify_wq *req)
{
	if (req->wq_state > IBV_WQS_ERR)
		req->wq_state = IBV_WQS_ERR;
	if (req->curr_wq_state > IBV_WQS_ERR)
		req->curr_wq_state = IBV_WQS_ERR;
}

/* Appends the driver's part; if that is too long, its tail may be zero or not. */
static uint32_t put_drv(struct call *c, uint8_t *at, uint32_t unit)
{
	uint32_t len = spoil_length(spoil_length(c->drv_len, unit), unit), i;

	spoil_bytes(c->drv, c->drv_len);
	memset(at, 0, len);
	memcpy(at, c->drv, len < c->drv_len ? len : c->drv_len);
	if (len > c->drv_len && one_in(2))
		for (i = 1 + below(3); i; i--)
			at[c->drv_len + below(len - c->drv_len)] = chance();
	return len;
}

static int send_command(struct call *c)
{
	uint32_t unit = c->m->ex ? 8 : 4;
	struct ib_uverbs_cmd_hdr hdr = { .command = c->m->cmd };
	struct ib_uverbs_ex_cmd_hdr ex = { 0 };
	uint8_t *p = (uint8_t *)wire, *in;
	uint32_t in_len = spoil_length(c->in_len, unit), drv_len;
	uint32_t out = spoil_length(c->out_len, unit);
	uint32_t drv_out = spoil_length(c->drv_out_len, unit);
	uint64_t answer = spoil_address((uintptr_t)c->out, c->out_len + c->drv_out_len);
	const void *from;
	size_t len;

	in = p + sizeof(hdr) + (c->m->ex ? sizeof(ex) : 0);
	if (in_len > MAX_IN)
		in_len = MAX_IN;
	if (c->out_len && !c->m->ex)
		c->in[0] = answer;
	memcpy(in, c->in, in_len);
	drv_len = put_drv(c, in + in_len, unit);
	len = in + in_len + drv_len - p;
	if (c->m->ex) {
		hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		hdr.in_words = in_len / 8;
		hdr.out_words = out / 8;
		ex.response = c->out_len ? answer : 0;
		ex.provider_in_words = drv_len / 8;
		ex.provider_out_words = drv_out / 8;
		spoil_bytes(&ex, sizeof(ex));
		memcpy(p + sizeof(hdr), &ex, sizeof(ex));
	} else {
		hdr.in_words = len / 4;
		hdr.out_words = (out + drv_out) / 4;
	}
	spoil_bytes(&hdr, sizeof(hdr));
	if (is_modify_wq(hdr.command))
		spare_wq((void *)(p + sizeof(hdr) + sizeof(ex)));
	memcpy(p, &hdr, sizeof(hdr));
	len = spoil_length(len, 1);
	if (len > sizeof(wire))
		len = sizeof(wire);
	from = is_modify_wq(hdr.command) ? wire : sent_from(len);
	return write(fuzz.fd[c->ctx], from, len) == (ssize_t)len ? 0 : errno;
}

static void spoil_attrs(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_attr *a = hdr->attrs;
	uint32_t n = hdr->num_attrs;

	if (n && odd()) {				/* leave one out */
		n--;
		a[below(n + 1)] = a[n];
	}
	if (n && odd()) {				/* put one in twice */
		a[n] = a[below(n)];
		n++;
	}
	if (n && odd())
		a[below(n)].attr_id = one_in(2) ? below(16) : 0x1000 + below(4);
	if (n && odd())
		a[below(n)].len = nonsense();
	if (n)
		spoil_bytes(&a[below(n)], sizeof(*a));
	hdr->num_attrs = n;
}

static int send_ioctl(struct call *c, uint16_t object, uint16_t cmd)
{
	struct ib_uverbs_ioctl_hdr *hdr = (struct ib_uverbs_ioctl_hdr *)wire;
	uint32_t n = c->num_attrs;
	const void *at;
	int err = 0;

	memset(hdr, 0, sizeof(*hdr));
	hdr->object_id = object;
	hdr->method_id = cmd;
	hdr->num_attrs = n;
	hdr->driver_id = QHCA_RDMA_DRIVER_ID;	/* else the core looks no further */
	memcpy(hdr->attrs, c->attrs, n * sizeof(hdr->attrs[0]));
	spoil_attrs(hdr);
	hdr->length = sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]);
	spoil_bytes(hdr, sizeof(*hdr));
	at = sent_from(hdr->length);
	if (ioctl(fuzz.fd[c->ctx], RDMA_VERBS_IOCTL, at))
		err = errno;
	memcpy(c->attrs, hdr->attrs, n * sizeof(hdr->attrs[0]));
	return err;
}

/* Sends a command inside an ioctl, as rdma-core does. */
static int send_invoke(struct call *c)
{
	uint64_t cmd = c->m->cmd | (c->m->ex ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
	static _Thread_local uint8_t drv[65536 + 64];
	uint32_t drv_len = put_drv(c, drv, 4);

	if (c->out_len && !c->m->ex)
		c->in[0] = (uintptr_t)c->out;
	attr_number(c, UVERBS_ATTR_WRITE_CMD, cmd);
	if (is_modify_wq(cmd)) {
		spare_wq((void *)c->in);
		attr_add(c, UVERBS_ATTR_CORE_IN, c->in_len)->data = (uintptr_t)c->in;
	} else {
		attr_in(c, UVERBS_ATTR_CORE_IN, c->in, spoil_length(c->in_len, 4));
	}
	if (c->out_len)
		attr_out(c, UVERBS_ATTR_CORE_OUT, c->out_len);
	if (drv_len)
		attr_in(c, UVERBS_ATTR_UHW_IN, drv, drv_len > 65535 ? 65535 : drv_len);
	if (c->drv_out_len)
		attr_out(c, UVERBS_ATTR_UHW_OUT, c->drv_out_len);
	return send_ioctl(c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
}

static void record(size_t index, int err)
{
	struct tally *s = &fuzz.shared->tallies[index];

	count(&fuzz.shared->calls);
	count(err ? &s->refused : &s->ok);
	if (!err && !been_wrong())
		count(&s->right);
	if (err < MAX_ERRNO)
		__atomic_fetch_or(&s->err[err / 8], 1 << err % 8, __ATOMIC_RELAXED);
}

static void call(size_t index, int ctx)
{
	const struct method *m = method(index);
	struct call c = {
		.m = m, .ctx = ctx, .made.ctx = ctx, .out = answer_area(),
		.in_len = m->in_len, .out_len = m->out_len,
		.drv_len = m->drv_len, .drv_out_len = m->drv_out_len,
	};
	int err;

	/* If there is no slot for a new object, create one only rarely. */
	if (m->makes && !place(m->makes) && !one_in(100))
		return;
	memset(c.out, 0, 1024);
	if (m->fill && !m->fill(&c))
		return;
	spoil_bytes(c.in, c.in_len);
	if (m->ioctl)
		err = send_ioctl(&c, m->object, m->cmd);
	else
		err = one_in(3) ? send_invoke(&c) : send_command(&c);
	record(index, err);
	if (err)
		return;
	if (m->done)
		m->done(&c);
	if (m->makes)
		born(m->makes, &c.made);
}

void any_call(void)
{
	static uint32_t sum;
	uint32_t i, n, total = __atomic_load_n(&sum, __ATOMIC_RELAXED);

	if (!total) {
		for (i = 0; i < num_methods(); i++)
			total += method(i)->weight;
		__atomic_store_n(&sum, total, __ATOMIC_RELAXED);
	}
	n = below(total);
	for (i = 0; n >= method(i)->weight; i++)
		n -= method(i)->weight;
	be_wrong(one_in(3));
	call(i, below(CONTEXTS));
	be_wrong(false);
}

/* ---- contexts ---- */

/* @room: bytes for the driver's part of the response. */
static bool get_context(int fd, struct qhca_alloc_ucontext_resp *drv, size_t room)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context req;
	} in = { { IB_USER_VERBS_CMD_GET_CONTEXT } };
	struct {
		struct ib_uverbs_get_context_resp core;
		struct qhca_alloc_ucontext_resp drv;
	} out = { 0 };

	in.req.response = (uintptr_t)&out;
	in.hdr.in_words = sizeof(in) / 4;
	in.hdr.out_words = (sizeof(out.core) + room) / 4;
	if (write(fd, &in, sizeof(in)) != sizeof(in))
		return false;
	fcntl(out.core.async_fd, F_SETFL, O_NONBLOCK);
	born(UVERBS_OBJECT_ASYNC_EVENT,
	     &(struct obj){ .ctx = CONTEXTS, .handle = out.core.async_fd });
	*drv = out.drv;
	return true;
}

/* The kernel cuts off a response with too little room, and writes nothing behind that. */
static void get_part_of_context(void)
{
	struct qhca_alloc_ucontext_resp drv;
	size_t room = below(sizeof(drv) / 4) * 4, i;
	int fd = open(fuzz.path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (get_context(fd, &drv, room))
		for (i = room; i < sizeof(drv); i++)
			if (((uint8_t *)&drv)[i])
				abort();
	close(fd);
}

/* The new doorbell page replaces the old one at the same address: other threads write to it. */
bool reopen(int ctx)
{
	struct qhca_alloc_ucontext_resp drv;
	int fd = open(fuzz.path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (one_in(4))
		get_part_of_context();
	if (!get_context(fd, &drv, sizeof(drv)) ||
	    mmap(fuzz.db[ctx], PAGE, PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 drv.db_mmap_key) == MAP_FAILED) {
		close(fd);
		return false;
	}
	forget(ctx);
	fuzz.shadow[ctx] = NULL;
	fuzz.db_key[ctx] = drv.db_mmap_key;
	dup2(fd, fuzz.fd[ctx]);
	close(fd);
	return true;
}
