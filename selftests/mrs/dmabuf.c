// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of dma-bufs: memory of another driver, here of udmabuf, which makes dma-bufs of
 * anonymous files.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/rdma.h"

#define PAGE	4096
#define LEN	(4 * PAGE)

/* struct shared - an anonymous file, and a dma-buf of its pages in reverse order */
struct shared {
	uint8_t *mem;
	int fd;
};

static struct shared shared_new(void)
{
	struct udmabuf_create_list *list;
	struct shared s;
	int dev, file, i;

	list = calloc(1, sizeof(*list) + 4 * sizeof(list->list[0]));
	dev = open("/dev/udmabuf", O_RDWR);
	if (dev < 0)
		test_skip("no udmabuf: %s", strerror(errno));
	file = memfd_create("dmabuf", MFD_ALLOW_SEALING);
	REQUIRE(list && file >= 0);
	REQUIRE_OK(ftruncate(file, LEN));
	REQUIRE_OK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK));
	list->count = 4;
	for (i = 0; i < 4; i++) {
		list->list[i].memfd = file;
		list->list[i].offset = (3 - i) * PAGE;
		list->list[i].size = PAGE;
	}
	s.fd = ioctl(dev, UDMABUF_CREATE_LIST, list);
	REQUIRE(s.fd >= 0);
	s.mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	REQUIRE(s.mem != MAP_FAILED);
	close(file);
	close(dev);
	free(list);
	return s;
}

/* Returns the byte of the file that is at offset @off of the dma-buf. */
static uint8_t *at(const struct shared *s, size_t off)
{
	return s->mem + (3 - off / PAGE) * PAGE + off % PAGE;
}

static struct ibv_mr *reg(struct dev *d, const struct shared *s, uint64_t off, size_t len,
			  uint64_t iova, int access)
{
	errno = 0;
	return ibv_reg_dmabuf_mr(d->pd, off, len, iova, s->fd, access);
}

TEST(traffic, "dma-buf: WRITE and READ reach exactly its pages")
{
	struct shared s = shared_new();
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, LEN, REMOTE);
	struct ibv_mr *mr = reg(p.dev, &s, 100, LEN - 200, 1 << 20 | 100, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, LEN - 200);
	struct ibv_send_wr wr;
	size_t i, bad = 0;

	REQUIRE(mr);
	/* The region's own reference keeps the dma-buf alive. */
	close(s.fd);
	fill(b.addr, LEN, 1);
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, 1 << 20 | 100, mr->rkey);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	for (i = 0; i < LEN; i++)
		bad += *at(&s, i) != (i < 100 || i >= LEN - 100 ? 0 : b.addr[i - 100]);
	CHECK_EQ(bad, 0);

	*at(&s, 8192) ^= 0xff;
	wr = wr_rdma(2, IBV_WR_RDMA_READ, &sge, 1, 1 << 20 | 100, mr->rkey);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 2);
	CHECK_EQ(b.addr[8092], *at(&s, 8192));
}

static const struct edge {
	const char *name;
	uint64_t at;
	uint32_t len;
} edges[] = {
	{ "the byte before the start", 99, 1 },
	{ "the byte behind the end", LEN - 100, 1 },
	{ "across the end", LEN - 101, 2 },
};

TEST_ROWS(range, "F-004 dma-buf: the edges of a region", edges)
{
	struct shared s = shared_new();
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, REMOTE);
	struct ibv_mr *mr = reg(p.dev, &s, 100, LEN - 200, 100, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, row->len);
	struct ibv_send_wr wr;

	REQUIRE(mr);
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, row->at, mr->rkey);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_expect(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK(!s.mem[0] && !memcmp(s.mem, s.mem + 1, LEN - 1));
}

static const struct bad {
	const char *name;
	uint64_t off;
	size_t len;
	uint64_t iova;
	int access;
	int fd;			/* file descriptor; 0: the dma-buf */
} bads[] = {
	{ "beyond its end", PAGE, LEN, PAGE, REMOTE },
	{ "an offset that wraps", UINT64_MAX - PAGE + 1, PAGE, 0, REMOTE },
	{ "nothing", 0, 0, 0, REMOTE },
	{ "another offset in the page", 0, PAGE, 8, REMOTE },
	{ "remote writes without local ones", 0, PAGE, 0, IBV_ACCESS_REMOTE_WRITE },
	{ "a right that dma-bufs cannot have", 0, PAGE, 0, LOCAL | IBV_ACCESS_MW_BIND },
	{ "no file", 0, PAGE, 0, REMOTE, -1 },
	{ "another kind of file", 0, PAGE, 0, REMOTE, 1 },
};

TEST_ROWS(refused, "dma-buf: regions that are refused", bads)
{
	struct shared s = shared_new();
	struct dev *d = dev_open();

	if (row->fd)
		s.fd = row->fd;
	CHECK(!reg(d, &s, row->off, row->len, row->iova, row->access));
	CHECK(errno && errno != EPROTONOSUPPORT);
	test_note("%s", strerror(errno));
}

TEST(rereg, "F-013 dma-buf: its regions cannot be re-registered")
{
	struct shared s = shared_new();
	struct pair p = pair_default();
	struct buf b = buf_new(p.dev->pd, PAGE, REMOTE);
	struct ibv_mr *mr = reg(p.dev, &s, 0, LEN, 0, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 64);
	struct ibv_send_wr wr;

	REQUIRE(mr);
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LOCAL),
		 IBV_REREG_MR_ERR_INPUT);
	CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.addr, PAGE, 0),
		 IBV_REREG_MR_ERR_INPUT);
	fill(b.addr, PAGE, 1);
	wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1, LEN - 64, mr->rkey);
	REQUIRE_OK(post_send(&p.a, &wr));
	poll_ok(p.a.send_cq, 1);
	check_fill(at(&s, LEN - 64), 64, 1, "the dma-buf");
	CHECK_ERR(ibv_dereg_mr(mr), 0);
}
