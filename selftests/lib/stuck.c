// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"
#include "stuck.h"

#define FILE_LEN	(64ul << 20)

static char place[32];
static pid_t server;

static void answer(int fd, uint64_t unique, int err, void *data, size_t len)
{
	struct fuse_out_header h = {
		.len = sizeof(h) + (err ? 0 : len), .error = -err, .unique = unique,
	};
	struct iovec v[2] = { { &h, sizeof(h) }, { data, len } };

	if (writev(fd, v, err || !len ? 1 : 2) < 0 && errno == ENODEV)
		_exit(0);
}

static struct fuse_attr attr_of(uint64_t ino)
{
	return (struct fuse_attr){
		.ino = ino, .size = ino == 1 ? 0 : FILE_LEN, .blocks = FILE_LEN / 512, .nlink = 1,
		.mode = ino == 1 ? S_IFDIR | 0755 : S_IFREG | 0644, .blksize = 4096,
	};
}

/* READ gets no answer. */
static void serve_one(int fd, const struct fuse_in_header *h)
{
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };
	struct fuse_entry_out entry = {
		.nodeid = 2, .entry_valid = 3600, .attr_valid = 3600, .attr = attr_of(2),
	};
	struct fuse_attr_out attr = { .attr_valid = 3600, .attr = attr_of(h->nodeid) };
	/* Else to open the file again waits for the pages that do not come. */
	struct fuse_open_out opened = { .fh = 1, .open_flags = FOPEN_KEEP_CACHE };

	switch (h->opcode) {
	case FUSE_INIT:
		answer(fd, h->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(fd, h->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(fd, h->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(fd, h->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(fd, h->unique, 0, NULL, 0);
		break;
	case FUSE_READ:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(fd, h->unique, EOPNOTSUPP, NULL, 0);
	}
}

static void serve(int fd)
{
	static char buf[1 << 17];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (read(fd, buf, sizeof(buf)) > 0)
			serve_one(fd, (void *)buf);
		else if (errno != EINTR && errno != ENOENT)
			_exit(0);
	}
}

void stuck_start(void)
{
	char opt[64];
	int fd;

	if (geteuid())
		test_skip("needs root");
	if (system("modprobe -q fuse"))
		test_skip("no FUSE");
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		test_skip("no /dev/fuse");
	snprintf(place, sizeof(place), "/tmp/stuck.XXXXXX");
	REQUIRE(mkdtemp(place));
	snprintf(opt, sizeof(opt), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	REQUIRE(!mount("stuck", place, "fuse", MS_NOSUID | MS_NODEV, opt));
	server = fork();
	REQUIRE(server >= 0);
	if (!server)
		serve(fd);
	close(fd);
}

uint8_t *stuck_map(size_t len)
{
	char path[64];
	void *mem;
	int fd;

	REQUIRE(len <= FILE_LEN);
	snprintf(path, sizeof(path), "%s/f", place);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	REQUIRE(fd >= 0);
	mem = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	REQUIRE(mem != MAP_FAILED);
	close(fd);
	return mem;
}

void stuck_end(void)
{
	if (server <= 0)
		return;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
	umount2(place, MNT_DETACH);
	rmdir(place);
}
