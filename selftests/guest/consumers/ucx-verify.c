// SPDX-License-Identifier: GPL-2.0
/*
 * ucx-verify LARGEST PORT [SERVER]
 *
 * Two processes send each other messages of all kinds that UCP has, both at the same
 * time, and look at every byte: tagged, active, as a stream; PUT and GET; atomics.
 * They coordinate over TCP. UCX chooses the transport, see its UCX_TLS. Prints a
 * line per kind and size, and fails at the first wrong byte.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ucp/api/ucp.h>

#define AM_ID		7
#define MAX_SIZE	(5u << 20)
#define MAX_COUNT	8
#define WINDOW		(2 * MAX_SIZE)
#define ATOMICS		200

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static ucp_mem_h memh;
static ucp_rkey_h rkey;
static uint8_t *window;			/* the peer's RMA goes here */
static uint64_t peer_window;
static int sock, side;
static const char *doing = "starting";

static uint8_t *out[MAX_COUNT], *in[MAX_COUNT];

static void die(const char *why)
{
	fprintf(stderr, "side %d, %s: %s\n", side, doing, why);
	exit(1);
}

static void ok(ucs_status_t status)
{
	if (status != UCS_OK)
		die(ucs_status_string(status));
}

/* ---- TCP */

static void dial(int port, const char *server)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (server) {
		inet_pton(AF_INET, server, &a.sin_addr);
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
			die("connect");
		sock = fd;
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
		die("listen");
	sock = accept(fd, NULL, NULL);
	if (sock < 0)
		die("accept");
	close(fd);
}

static void get(void *p, size_t len)
{
	while (len) {
		struct pollfd pfd = { .fd = sock, .events = POLLIN };
		ssize_t n;

		/* The peer may need progress on this side. */
		if (worker)
			ucp_worker_progress(worker);
		if (!poll(&pfd, 1, worker ? 0 : -1))
			continue;
		n = read(sock, p, len);
		if (n <= 0)
			die("the peer has gone");
		p = (char *)p + n;
		len -= n;
	}
}

/* Gives @p to the peer; the answer is the peer's, to be freed. */
static void *swap(const void *p, uint32_t len)
{
	uint32_t theirs;
	void *got;

	if (write(sock, &len, sizeof(len)) != sizeof(len) ||
	    write(sock, p, len) != (ssize_t)len)
		die("write");
	get(&theirs, sizeof(theirs));
	got = malloc(theirs);
	get(got, theirs);
	return got;
}

static void barrier(void)
{
	free(swap("", 1));
}

/* ---- data */

static uint8_t byte(int who, unsigned int n, size_t size, size_t i)
{
	return (uint8_t)(((uint32_t)i + 977 * n + 31 * (uint32_t)size + 7 * who) * 2654435761u >> 13);
}

static void fill(uint8_t *p, unsigned int n, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = byte(side, n, size, i);
}

static void check(const uint8_t *p, unsigned int n, size_t size)
{
	char why[100];

	for (size_t i = 0; i < size; i++) {
		if (p[i] == byte(!side, n, size, i))
			continue;
		snprintf(why, sizeof(why), "message %u of %zu bytes: byte %zu is %#x, not %#x",
			 n, size, i, p[i], byte(!side, n, size, i));
		die(why);
	}
}

/* ---- UCP */

static void wait_for(void *request)
{
	ucs_status_t status;

	if (!request)
		return;
	if (UCS_PTR_IS_ERR(request))
		ok(UCS_PTR_STATUS(request));
	while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
		ucp_worker_progress(worker);
	ucp_request_free(request);
	ok(status);
}

static const ucp_request_param_t plain;

static void flush(void)
{
	wait_for(ucp_ep_flush_nbx(ep, &plain));
}

static void tagged(size_t size, unsigned int count)
{
	void *rx[MAX_COUNT], *tx[MAX_COUNT];
	unsigned int i;

	/* Half of them are expected, the others not. */
	for (i = 0; i < count / 2; i++)
		rx[i] = ucp_tag_recv_nbx(worker, in[i], size, i, -1ull, &plain);
	for (i = 0; i < count; i++)
		tx[i] = ucp_tag_send_nbx(ep, out[i], size, i, &plain);
	for (i = count / 2; i < count; i++)
		rx[i] = ucp_tag_recv_nbx(worker, in[i], size, i, -1ull, &plain);
	for (i = 0; i < count; i++) {
		wait_for(rx[i]);
		check(in[i], i, size);
	}
	for (i = 0; i < count; i++)
		wait_for(tx[i]);
}

static unsigned int am_done;

static void am_have_data(void *request, ucs_status_t status, size_t len, void *arg)
{
	ok(status);
	am_done++;
	ucp_request_free(request);
}

static ucs_status_t am_take(void *arg, const void *header, size_t header_len, void *data,
			    size_t len, const ucp_am_recv_param_t *param)
{
	ucp_request_param_t p = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
		.cb.recv_am = am_have_data,
	};
	uint32_t n = *(const uint32_t *)header;
	void *request;

	if (header_len != sizeof(n) || n >= MAX_COUNT || len > MAX_SIZE)
		die("not an active message of ours");
	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
		memcpy(in[n], data, len);
		am_done++;
		return UCS_OK;
	}
	request = ucp_am_recv_data_nbx(worker, data, in[n], len, &p);
	if (UCS_PTR_IS_ERR(request))
		ok(UCS_PTR_STATUS(request));
	if (!request)
		am_done++;
	return request ? UCS_INPROGRESS : UCS_OK;
}

static void active(size_t size, unsigned int count)
{
	uint32_t header[MAX_COUNT];
	void *tx[MAX_COUNT];
	unsigned int i;

	for (i = 0; i < count; i++) {
		header[i] = i;
		tx[i] = ucp_am_send_nbx(ep, AM_ID, &header[i], sizeof(header[i]), out[i], size,
					&plain);
	}
	while (am_done < count)
		ucp_worker_progress(worker);
	am_done -= count;
	for (i = 0; i < count; i++) {
		check(in[i], i, size);
		wait_for(tx[i]);
	}
}

static void stream(size_t size, unsigned int count)
{
	ucp_request_param_t all = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_STREAM_RECV_FLAG_WAITALL,
	};
	void *tx[MAX_COUNT], *rx;
	unsigned int i;
	size_t len;

	if (!size)
		return;
	for (i = 0; i < count; i++)
		tx[i] = ucp_stream_send_nbx(ep, out[i], size, &plain);
	for (i = 0; i < count; i++) {
		rx = ucp_stream_recv_nbx(ep, in[i], size, &len, &all);
		wait_for(rx);
		check(in[i], i, size);
	}
	for (i = 0; i < count; i++)
		wait_for(tx[i]);
}

static void put(size_t size, unsigned int count)
{
	void *tx[MAX_COUNT];
	unsigned int i;

	count = size * count > WINDOW ? WINDOW / size : count;
	memset(window, 0, size * count);
	barrier();
	for (i = 0; i < count; i++)
		tx[i] = ucp_put_nbx(ep, out[i], size, peer_window + i * size, rkey, &plain);
	for (i = 0; i < count; i++)
		wait_for(tx[i]);
	flush();
	barrier();
	for (i = 0; i < count; i++)
		check(window + i * size, i, size);
}

static void get_rma(size_t size, unsigned int count)
{
	void *rx[MAX_COUNT];
	unsigned int i;

	count = size * count > WINDOW ? WINDOW / size : count;
	for (i = 0; i < count; i++)
		fill(window + i * size, i, size);
	barrier();
	for (i = 0; i < count; i++)
		rx[i] = ucp_get_nbx(ep, in[i], size, peer_window + i * size, rkey, &plain);
	for (i = 0; i < count; i++) {
		wait_for(rx[i]);
		check(in[i], i, size);
	}
}

static uint64_t atomic(ucp_atomic_op_t op, uint64_t value, unsigned int size, uint64_t old)
{
	uint64_t reply = old;
	ucp_request_param_t p = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
		.datatype = ucp_dt_make_contig(size),
		.reply_buffer = &reply,
	};

	wait_for(ucp_atomic_op_nbx(ep, op, &value, 1, peer_window, rkey, &p));
	return size == 4 ? (uint32_t)reply : reply;
}

static void post_add(uint64_t value, unsigned int size)
{
	ucp_request_param_t p = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
		.datatype = ucp_dt_make_contig(size),
	};

	wait_for(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &value, 1, peer_window, rkey, &p));
}

static void expect(uint64_t got, uint64_t want)
{
	char why[100];

	if (got == want)
		return;
	snprintf(why, sizeof(why), "%#llx, not %#llx", (unsigned long long)got,
		 (unsigned long long)want);
	die(why);
}

/* A word that only the peer changes, so every answer is known. */
static void atomics(unsigned int size)
{
	uint64_t mask = size == 4 ? UINT32_MAX : UINT64_MAX, step = 0x0123456789abcdefull & mask;
	uint64_t now = 0;
	unsigned int i;

	barrier();
	memset(window, 0, 16);
	barrier();
	for (i = 0; i < ATOMICS; i++, now = (now + step) & mask)
		expect(atomic(UCP_ATOMIC_OP_ADD, step, size, 0), now);
	for (i = 0; i < ATOMICS; i++, now = (now + 3) & mask)
		post_add(3, size);
	flush();
	/* The reply buffer holds what to swap in if the word is as said. */
	expect(atomic(UCP_ATOMIC_OP_CSWAP, now ^ 1, size, 5), now);
	expect(atomic(UCP_ATOMIC_OP_CSWAP, now, size, 77), now);
	expect(atomic(UCP_ATOMIC_OP_SWAP, 99, size, 0), 77);
	barrier();
	now = 0;
	memcpy(&now, window, size);
	expect(now, 99);
	memcpy(&now, window + size, size);
	expect(now & mask, 0);
}

static void setup(void)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_STREAM | UCP_FEATURE_AM |
			    UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64,
	};
	ucp_mem_map_params_t map = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.length = WINDOW,
	};
	ucp_am_handler_param_t am = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
		.id = AM_ID,
		.cb = am_take,
	};
	ucp_ep_params_t to = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_worker_params_t wp = { 0 };
	ucp_worker_h w;
	ucp_address_t *address;
	size_t len;
	void *buf;

	ok(ucp_init(&params, NULL, &context));
	ok(ucp_worker_create(context, &wp, &w));
	ok(ucp_worker_set_am_recv_handler(w, &am));
	ok(ucp_worker_get_address(w, &address, &len));
	to.address = swap(address, len);
	ok(ucp_ep_create(w, &to, &ep));
	ucp_worker_release_address(w, address);
	worker = w;
	window = aligned_alloc(4096, WINDOW);
	map.address = window;
	ok(ucp_mem_map(context, &map, &memh));
	ok(ucp_rkey_pack(context, memh, &buf, &len));
	address = swap(buf, len);
	ok(ucp_ep_rkey_unpack(ep, address, &rkey));
	ucp_rkey_buffer_release(buf);
	buf = swap(&window, sizeof(window));
	peer_window = *(uint64_t *)buf;
	for (int i = 0; i < MAX_COUNT; i++) {
		in[i] = malloc(MAX_SIZE);
		out[i] = malloc(MAX_SIZE);
	}
}

static const size_t sizes[] = { 0, 1, 8, 100, 1023, 4097, 8192, 65536, 100001, 1 << 20, MAX_SIZE };

static const struct {
	const char *name;
	void (*run)(size_t size, unsigned int count);
} kinds[] = {
	{ "tagged", tagged }, { "active", active }, { "stream", stream },
	{ "put", put }, { "get", get_rma },
};

int main(int argc, char **argv)
{
	unsigned int i, n, k, count;

	if (argc < 3)
		return 2;
	side = argc > 3;
	dial(atoi(argv[2]), argv[3]);
	setup();
	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		doing = kinds[k].name;
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			if (sizes[i] > strtoul(argv[1], NULL, 0))
				break;
			count = sizes[i] > 100000 ? 2 : MAX_COUNT;
			for (n = 0; n < count; n++) {
				fill(out[n], n, sizes[i]);
				memset(in[n], 0, sizes[i]);
			}
			/* The peer's next messages must find these buffers ready. */
			barrier();
			kinds[k].run(sizes[i], count);
		}
		printf("%s: %u sizes up to %zu bytes\n", doing, i, sizes[i - 1]);
		fflush(stdout);
	}
	doing = "atomics";
	atomics(4);
	atomics(8);
	printf("atomics: of 4 and 8 bytes\n");
	doing = "ending";
	barrier();
	ucp_rkey_destroy(rkey);
	wait_for(ucp_ep_close_nbx(ep, &plain));
	barrier();
	ok(ucp_mem_unmap(context, memh));
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	return 0;
}
