// SPDX-License-Identifier: GPL-2.0
/*
 * A device that network namespaces share has the GIDs of all of them; a process may use its own
 * namespace's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qhca/queues.h>

#include "lib/rdma.h"

#define ADDRESS		"192.168.99.1"
#define GID_TEXT	"0000:0000:0000:0000:0000:ffff:c0a8:6301"
#define NOBODY		65534

static const union ibv_gid other_gid = {
	.raw = { [10] = 0xff, [11] = 0xff, 192, 168, 99, 1 },
};

/* GID index of other_gid. */
static int other_index;

/* The other namespace has no name, so it disappears with the process in any case. */
static int other_ns;

/* Reads the first line of a file of the port in sysfs. Returns false if there is none. */
static bool port_file(char *text, size_t len, const char *dir, int index)
{
	char path[200];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/%s/%d", dev_name(), PORT,
		 dir, index);
	f = fopen(path, "r");
	if (!f)
		return false;
	ok = fgets(text, len, f);
	fclose(f);
	text[ok ? strcspn(text, "\n") : 0] = '\0';
	return ok;
}

static int find_other(void)
{
	char text[64];
	int i;

	for (i = 0; port_file(text, sizeof(text), "gids", i); i++)
		if (!strcmp(text, GID_TEXT))
			return i;
	return -1;
}

/* Waits until the GID of the other namespace exists, or does not. */
static int wait_other(bool there)
{
	int64_t end = time_ms() + WAIT_MS;
	int i;

	do {
		i = find_other();
		if (there ? i >= 0 : i < 0)
			break;
		sleep_ms(50);
	} while (time_ms() < end);
	return i;
}

static void enter(int ns)
{
	REQUIRE(!setns(ns, CLONE_NEWNET));
}

/* Runs @command in the other namespace. */
static void run_there(const char *command)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	enter(other_ns);
	if (system(command))
		FAIL("%s", command);
	enter(here);
	close(here);
}

static void ns_make(void)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (unshare(CLONE_NEWNET))
		test_skip("no network namespaces");
	/* Programs that this one starts can refer to it by the number of this descriptor. */
	other_ns = open("/proc/self/ns/net", O_RDONLY);
	REQUIRE(other_ns >= 0);
	enter(here);
	close(here);
}

/* Makes a macvlan on the device's interface, in a new namespace. */
static void other_make(struct dev *d)
{
	char netdev[32], command[200];

	if (geteuid())
		test_skip("not root");
	ns_make();
	REQUIRE(port_file(netdev, sizeof(netdev), "gid_attrs/ndevs", d->gid_index));
	snprintf(command, sizeof(command),
		 "ip link add link %s name qhca_mv netns /proc/self/fd/%d type macvlan mode bridge",
		 netdev, other_ns);
	if (system(command))
		test_skip("no macvlan");
	run_there("ip addr add " ADDRESS "/24 dev qhca_mv");
	run_there("ip link set lo up && ip link set qhca_mv up");
	other_index = wait_other(true);
	REQUIRE(other_index >= 0);
}

/* Runs @fn as user nobody, in the other namespace or this one. */
static void as_nobody(void (*fn)(struct dev *d), bool other)
{
	pid_t pid = fork();
	int status;

	REQUIRE(pid >= 0);
	if (!pid) {
		if (other)
			enter(other_ns);
		REQUIRE(!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
			!setresuid(NOBODY, NOBODY, NOBODY));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(dev_open_qhca());
		fflush(stdout);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (status)
		FAIL("%s: status %#x", other ? "in the other namespace" : "here", status);
}

/* Returns the status of a datagram from GID @index, which the kernel has not checked. */
static enum ibv_wc_status datagram_from(struct dev *d, int index)
{
	struct ibv_ah *ah = own_ah(d, d->pd);
	struct qhca_av *av = (struct qhca_av *)(ah + 1);
	struct ibv_send_wr wr = wr_send(1, NULL, 0);
	struct qp_opts o = QP_OPTS;
	struct end e;

	o.type = IBV_QPT_UD;
	e = end_in(d, &o, IBV_QPS_RTS);
	REQUIRE(av->sgid_index == d->gid_index);
	REQUIRE(!memcmp(av->dgid, &d->gid, sizeof(av->dgid)));
	av->sgid_index = index;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = e.qp->qp_num;
	wr.wr.ud.remote_qkey = CONN.qkey;
	REQUIRE_OK(post_send(&e, &wr));
	return poll_get(e.send_cq).status;
}

static int connect_from(struct dev *d, int index)
{
	struct end e = end_in(d, &QP_OPTS, IBV_QPS_INIT);
	struct conn c = CONN;
	struct ibv_qp_attr a;
	int mask;

	c.dest_qpn = e.qp->qp_num;
	mask = attr_rtr(&a, d, &c);
	a.ah_attr.grh.sgid_index = index;
	a.ah_attr.grh.dgid = index == other_index ? other_gid : d->gid;
	return ibv_modify_qp(e.qp, &a, mask);
}

static int ah_from(struct dev *d, int index)
{
	struct ibv_ah_attr attr = own_address(d);

	attr.grh.sgid_index = index;
	attr.grh.dgid = index == other_index ? other_gid : d->gid;
	return ibv_create_ah(d->pd, &attr) ? 0 : errno;
}

static void here(struct dev *d)
{
	CHECK_ERR(ah_from(d, other_index), EPERM);
	CHECK_ERR(connect_from(d, other_index), EPERM);
	CHECK_EQ(datagram_from(d, other_index), IBV_WC_LOC_QP_OP_ERR);
	CHECK_ERR(ah_from(d, d->gid_index), 0);
	CHECK_ERR(connect_from(d, d->gid_index), 0);
	CHECK_EQ(datagram_from(d, d->gid_index), IBV_WC_SUCCESS);
}

static void there(struct dev *d)
{
	int mine = d->gid_index;
	struct pair p;

	CHECK_ERR(ah_from(d, mine), EPERM);
	CHECK_ERR(connect_from(d, mine), EPERM);
	d->gid_index = other_index;
	d->gid = other_gid;
	CHECK_EQ(datagram_from(d, mine), IBV_WC_LOC_QP_OP_ERR);
	CHECK_EQ(datagram_from(d, other_index), IBV_WC_SUCCESS);
	p = pair_new(d, &QP_OPTS, &CONN);
	ping_pong(&p);
}

/* A process with CAP_NET_RAW could send from there anyway, by a raw socket. */
static void by_root(struct dev *d)
{
	CHECK_ERR(ah_from(d, other_index), 0);
	CHECK_ERR(connect_from(d, other_index), 0);
}

TEST(gids, "D-087 GIDs of another network namespace")
{
	struct dev *d = dev_open_qhca();

	if (system("rdma system show | grep -q 'netns shared'"))
		test_skip("namespaces do not share devices");
	other_make(d);
	as_nobody(here, false);
	as_nobody(there, true);
	by_root(d);
	close(other_ns);
	CHECK_EQ(wait_other(false), -1);
}
