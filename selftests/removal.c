// SPDX-License-Identifier: GPL-2.0
/*
 * The driver goes while programs use it: events, errors, nothing hangs, nothing
 * stays behind. Needs root; the driver is back afterwards.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rdma.h"

#define DRIVER	"/sys/bus/auxiliary/drivers/qhca_ib.rdma"

static char function[64];	/* the auxiliary device the driver is bound to */

static void find_function(void)
{
	struct dirent *e;
	DIR *dir;

	if (geteuid())
		test_skip("needs root");
	dir = opendir(DRIVER);
	if (!dir)
		test_skip("no %s", DRIVER);
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, "qhca.", 5))
			snprintf(function, sizeof(function), "%s", e->d_name);
	closedir(dir);
	if (!*function)
		test_skip("the driver has no device");
}

static void tell_driver(const char *what)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), DRIVER "/%s", what);
	fd = open(path, O_WRONLY);
	REQUIRE(fd >= 0);
	if (write(fd, function, strlen(function)) < 0)
		FAIL("%s %s: %s", what, function, strerror(errno));
	close(fd);
}

static bool usable(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;
	int i;

	for (i = 0; list && list[i]; i++)
		found = found || !strcmp(ibv_get_device_name(list[i]), dev_name());
	if (list)
		ibv_free_device_list(list);
	return found;
}

/* Bound again, with its GIDs: the next test finds what this one found. */
static void bring_back(int gid_index)
{
	int64_t end = time_ms() + WAIT_MS;
	char path[128];

	tell_driver("bind");
	while (!usable() && time_ms() < end)
		sleep_ms(20);
	CHECK(usable());
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d",
		 dev_name(), gid_index);
	for (; time_ms() < end; sleep_ms(20)) {
		FILE *f = fopen(path, "r");
		int c = f ? fgetc(f) : EOF;

		if (f)
			fclose(f);
		if (c != EOF)
			return;
	}
	FAIL("the GID is not back");
}

TEST(unbind_idle, "J-019 H-015 DEVICE_FATAL, then every verb fails")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	struct buf b = buf_new(d->pd, 4096, REMOTE);
	struct ibv_port_attr port;

	find_function();
	ping_pong(&p);
	tell_driver("unbind");
	async_expect(d->ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK(ibv_query_port(d->ctx, PORT, &port));
	CHECK(!ibv_alloc_pd(d->ctx));
	CHECK(!ibv_reg_mr(d->pd, b.addr, 4096, REMOTE));
	CHECK(set_state(p.a.qp, IBV_QPS_ERR));
	CHECK(!usable());
	/* Taking everything down works; the kernel has done it already. */
	ibv_destroy_qp(p.a.qp);
	ibv_destroy_qp(p.b.qp);
	ibv_dereg_mr(b.mr);
	bring_back(d->gid_index);
}

/* Posts and polls until the verbs say that it is over. */
static void *traffic(void *arg)
{
	struct pair *p = arg;
	struct buf b = buf_new(p->dev->pd, 4096, REMOTE);
	struct ibv_sge sge = buf_sge(&b, 0, 4096);
	struct ibv_send_wr wr = wr_rdma(1, IBV_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)b.addr, b.mr->rkey);
	struct ibv_async_event ev;
	struct ibv_wc wc[16];
	long posted = 0;

	for (;;) {
		if (!post_send(&p->a, &wr))
			posted++;
		ibv_poll_cq(p->a.send_cq, ARRAY_SIZE(wc), wc);
		if (async_wait(p->dev->ctx, &ev, 0) &&
		    ev.event_type == IBV_EVENT_DEVICE_FATAL)
			return (void *)posted;
	}
}

TEST(unbind_busy, "J-019 J-021 doorbells rung while the driver goes")
{
	struct dev *d = dev_open_qhca();
	struct pair p = pair_new(d, &QP_OPTS, &CONN);
	pthread_t thread;
	void *posted;

	find_function();
	test_timeout(90);
	REQUIRE_OK(pthread_create(&thread, NULL, traffic, &p));
	sleep_ms(200);
	tell_driver("unbind");
	REQUIRE_OK(pthread_join(thread, &posted));
	CHECK((long)posted > 0);
	bring_back(d->gid_index);
}

TEST(again, "J-019 A-105 the device works after each return of its driver")
{
	struct dev *d;
	int i, index;

	test_timeout(90);
	find_function();
	for (i = 0; i < 3; i++) {
		d = dev_open_qhca();
		index = d->gid_index;
		tell_driver("unbind");
		bring_back(index);
		d = dev_open_qhca();
		{
			struct pair p = pair_new(d, &QP_OPTS, &CONN);

			ping_pong(&p);
		}
	}
}
