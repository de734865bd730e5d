// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"

struct cgroup_shared *shared;

/* ---- the cgroup */

void cgroup_line(const char *file, const char *key, char *line, size_t len)
{
	bool found = false;
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), CGROUP "/%s", file);
	f = fopen(path, "r");
	REQUIRE(f);
	while (!found && fgets(line, len, f))
		found = !strncmp(line, key, strlen(key));
	fclose(f);
	if (!found)
		*line = '\0';
}

long cgroup_number(const char *file, const char *key)
{
	char line[200];

	cgroup_line(file, key, line, sizeof(line));
	REQUIRE(*line);
	return atol(line + strlen(key));
}

void cgroup_limit(const char *format, ...)
{
	char line[200];
	va_list args;
	int n;

	n = snprintf(line, sizeof(line), "%s ", dev_name());
	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - n, format, args);
	va_end(args);
	REQUIRE_OK(write_file(CGROUP "/rdma.max", line));
}

/*
 * Remove the limits first: otherwise the kernel would keep them until the device is removed, in a
 * list of the cgroup that no longer exists (rdmacg_css_offline(), since 4.11).
 */
void cgroup_remove(void)
{
	if (!access(CGROUP "/rdma.max", F_OK))
		cgroup_limit("hca_handle=max hca_object=max");
	CHECK(!rmdir(CGROUP));
}

/* Mounts cgroup2 in a mount namespace of our own, because the file system may be in use there. */
static void make(const char *controller)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", CGROUP_MOUNT, "cgroup2", 0, NULL))
		test_skip("no cgroup2");
	if (write_file(CGROUP_MOUNT "/cgroup.subtree_control", controller))
		test_skip("no cgroup controller %s", controller + 1);
	if (!access(CGROUP, F_OK))
		cgroup_remove();
	REQUIRE(!mkdir(CGROUP, 0755));
}

void cgroup_open(const char *controller)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	if (geteuid())
		test_skip("needs root, to become two users");
	dev_open_qhca();
	test_timeout(120);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	REQUIRE(shared != MAP_FAILED && !setrlimit(RLIMIT_MEMLOCK, &all));
	make(controller);
}

/* ---- the users */

/* Becomes another user, who has no more rights than to send and receive frames. */
static void become(uid_t uid)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = {
		{ .effective = 1u << CAP_NET_RAW, .permitted = 1u << CAP_NET_RAW },
	};

	REQUIRE(!prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	REQUIRE(!setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));
	REQUIRE(!syscall(SYS_capset, &head, caps));
}

pid_t user_start(void (*fn)(const void *arg), const void *arg, uid_t uid, bool limited)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid)
		return pid;
	if (limited)
		REQUIRE_OK(write_file(CGROUP "/cgroup.procs", "0"));
	become(uid);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fn(arg);
	fflush(stdout);
	_exit(0);
}

void user_ended(pid_t pid, const char *who, int want)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (status != want)
		FAIL("%s: status %#x", who, status);
}

void user_wait(pid_t pid, int done)
{
	while (atomic_load(&shared->done) < done && !waitpid(pid, NULL, WNOHANG))
		sleep_ms(10);
	REQUIRE(atomic_load(&shared->done) >= done);
}

void user_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	user_ended(pid, "the greedy user", SIGKILL);
}
