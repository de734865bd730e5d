// SPDX-License-Identifier: GPL-2.0
/*
 * What "rdma resource show" says of objects that come and go meanwhile.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rdma.h"

static const struct kind {
	const char *name;
	const char *cmd;
} kinds[] = {
	{ "QPs", "rdma -dd resource show qp >/dev/null" },
	{ "CQs", "rdma -dd resource show cq >/dev/null" },
	{ "SRQs", "rdma -dd resource show srq >/dev/null" },
};

/* Makes and destroys one of each kind until it is killed. */
static void come_and_go(void)
{
	struct dev *d = dev_open();

	for (;;) {
		struct qp_opts o = QP_OPTS;
		struct end e;

		o.srq = srq_new(d, 4, 1);
		e = end_new(d, &o);
		REQUIRE_OK(ibv_destroy_qp(e.qp));
		REQUIRE_OK(ibv_destroy_srq(o.srq));
		REQUIRE_OK(ibv_destroy_cq(e.send_cq));
		REQUIRE_OK(ibv_destroy_cq(e.recv_cq));
	}
}

/* As somebody without rights; true if the command succeeds. */
static bool nobody_can(const char *cmd)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '%s'", cmd);
	return system(text) == 0;
}

TEST(psns, "D-086 PSNs are for administrators")
{
	struct qp_opts o = QP_OPTS;
	struct end e = end_new(dev_open_qhca(), &o);

	REQUIRE(e.qp);
	if (system("rdma -dd resource show qp >/dev/null"))
		test_skip("rdma does not show them");
	CHECK(nobody_can("rdma -dd resource show qp | grep -q sq_pi"));
	CHECK(!nobody_can("rdma -dd resource show qp | grep -qi drv.*psn"));
	CHECK(!system("rdma -r resource show qp | grep -q qhca"));
	CHECK(!nobody_can("rdma -r resource show qp | grep -q qhca"));
}

TEST_ROWS(shown, "J-021 shown while others are made and destroyed", kinds)
{
	int64_t end;
	pid_t pid;

	dev_open_qhca();
	if (system(row->cmd))
		test_skip("rdma does not show them");
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid)
		come_and_go();
	for (end = time_ms() + 3000; time_ms() < end;)
		if (system(row->cmd)) {
			FAIL("%s", row->cmd);
			break;
		}
	kill(pid, SIGKILL);
}
