// SPDX-License-Identifier: GPL-2.0
/* Imported contexts, PDs and MRs: order of destruction, and bad handles. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/import.h"

#define NOBODY	0x7ffffffeu	/* unused handle */

static struct dev *own;
static struct buf buf;		/* registered in @own */

static void setup(void)
{
	own = dev_open_qhca();
	buf = buf_new(own->pd, 8192, REMOTE);
}

TEST(close_original, "import: the context lives until its last user has closed it")
{
	struct buf theirs;
	struct pair p;
	struct dev *d;

	setup();
	d = dev_import(own);
	theirs = buf_import(d, &buf);
	p = pair_across(d, d, IBV_QPT_RC);
	REQUIRE_OK(ibv_close_device(own->ctx));
	write_half(&p.a, &theirs, 4);
	ping_pong(&p);
	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	/* No other object needs them, so they can be destroyed. */
	CHECK_ERR(ibv_dereg_mr(theirs.mr), 0);
	CHECK_ERR(ibv_dealloc_pd(d->pd), 0);
	CHECK_ERR(ibv_close_device(d->ctx), 0);
}

TEST(close_imported, "import: closing it does not affect the original")
{
	struct pair p;
	struct dev *d;
	int i;

	setup();
	p = pair_across(own, own, IBV_QPT_RC);
	for (i = 0; i < 20; i++) {
		d = dev_import(own);
		ibv_unimport_mr(buf_import(d, &buf).mr);
		ibv_unimport_pd(d->pd);
		REQUIRE_OK(ibv_close_device(d->ctx));
		write_half(&p.a, &buf, i);
	}
	ping_pong(&p);
}

TEST(unimport_first, "import: a PD is unimported before the objects made from it")
{
	struct ibv_parent_domain_init_attr around = { 0 };
	struct ibv_pd *parent;
	struct buf theirs;
	struct ibv_mw *mw;
	struct pair p;
	struct dev *d;

	setup();
	d = dev_import(own);
	theirs = buf_import(d, &buf);
	p = pair_across(d, d, IBV_QPT_RC);
	mw = ibv_alloc_mw(d->pd, IBV_MW_TYPE_2);
	around.pd = d->pd;
	parent = ibv_alloc_parent_domain(d->ctx, &around);
	REQUIRE(mw && parent);
	CHECK_ERR(ibv_dealloc_pd(d->pd), EBUSY);
	ibv_unimport_pd(d->pd);
	write_half(&p.a, &theirs, 5);
	CHECK_ERR(ibv_dealloc_pd(own->pd), EBUSY);
	CHECK_ERR(ibv_dealloc_pd(parent), 0);
	CHECK_ERR(ibv_dealloc_mw(mw), 0);
	CHECK_ERR(ibv_destroy_qp(p.a.qp), 0);
	CHECK_ERR(ibv_destroy_qp(p.b.qp), 0);
	ibv_unimport_mr(theirs.mr);
	CHECK_ERR(ibv_close_device(d->ctx), 0);
	CHECK_ERR(ibv_dereg_mr(buf.mr), 0);
	CHECK_ERR(ibv_dealloc_pd(own->pd), 0);
}

TEST(destroyed, "import: an object that the original has destroyed can only be unimported")
{
	struct buf theirs;
	struct dev *d;

	setup();
	d = dev_import(own);
	theirs = buf_import(d, &buf);
	CHECK_ERR(ibv_dealloc_pd(own->pd), EBUSY);	/* the MR uses it */
	REQUIRE_OK(ibv_dereg_mr(buf.mr));
	CHECK_ERR(ibv_dereg_mr(theirs.mr), ENOENT);
	ibv_unimport_mr(theirs.mr);
	REQUIRE_OK(ibv_dealloc_pd(own->pd));
	CHECK(!ibv_reg_mr(d->pd, buf.addr, buf.len, LOCAL));
	CHECK_ERR(ibv_dealloc_pd(d->pd), ENOENT);
	ibv_unimport_pd(d->pd);
	CHECK_ERR(ibv_close_device(d->ctx), 0);
}

/* Bad handles */

TEST(wrong_handle, "import: handles that are unused, or of another kind of object")
{
	struct ibv_context *other;
	struct dev *d;

	setup();
	d = dev_import(own);
	errno = 0;
	CHECK(!ibv_import_pd(d->ctx, NOBODY));
	CHECK_EQ(errno, ENOENT);
	errno = 0;
	CHECK(!ibv_import_mr(d->pd, NOBODY));
	CHECK_EQ(errno, ENOENT);
	errno = 0;
	CHECK(!ibv_import_dm(d->ctx, NOBODY));
	CHECK_EQ(errno, ENOENT);
	errno = 0;
	CHECK(!ibv_import_pd(d->ctx, buf.mr->handle));
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK(!ibv_import_mr(d->pd, own->pd->handle));
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK(!ibv_import_dm(d->ctx, own->pd->handle));
	CHECK_EQ(errno, EINVAL);
	/* Handles are valid only in their own context. */
	other = ibv_open_device(own->ctx->device);
	REQUIRE(other);
	CHECK(!ibv_import_pd(other, own->pd->handle));
	CHECK_EQ(errno, ENOENT);
	ibv_close_device(other);
}

static int open_file(void)
{
	return memfd_create("no device", 0);
}

static int open_null(void)
{
	return open("/dev/null", O_RDWR);
}

/* Opens the right device, but creates no context. */
static int open_bare(void)
{
	char path[256];

	snprintf(path, sizeof(path), "/dev/infiniband/%s",
		 own->ctx->device->dev_name);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int open_none(void)
{
	return -1;
}

static const struct {
	const char *name;
	int (*open)(void);
	int err;
} files[] = {
	{ "none", open_none, EINVAL },
	{ "a file", open_file, EINVAL },
	{ "another device", open_null, ENODEV },
	{ "no context yet", open_bare, EINVAL },
};

TEST_ROWS(wrong_fd, "import: from a file without a context", files)
{
	int fd;

	setup();
	fd = row->open();
	REQUIRE(fd >= 0 || row->open == open_none);
	errno = 0;
	CHECK(!ibv_import_device(fd));
	CHECK_EQ(errno, row->err);
}
