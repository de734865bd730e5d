/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users, one of them in a cgroup whose rdma or memory controller charges it. A function without an
 * error to return ends the test when it fails.
 */
#ifndef SELFTESTS_CGROUP_H
#define SELFTESTS_CGROUP_H

#include <stdatomic.h>
#include <sys/types.h>

#include "rdma.h"

#define CGROUP_MOUNT	"/sys/fs/cgroup"
#define CGROUP		CGROUP_MOUNT "/qhca-selftest"

/* struct cgroup_shared - shared by the test and its users; users report their progress */
struct cgroup_shared {
	atomic_int done, go;
	int error;
};

extern struct cgroup_shared *shared;

/*
 * Opens the device and makes the cgroup, for "+rdma" or "+memory". Skips the test without such a
 * controller, or without root, which can become other users.
 */
void cgroup_open(const char *controller);
/* Removes the limits of the cgroup and the cgroup, which must be empty. */
void cgroup_remove(void);
/* Sets the line for our device in rdma.max, without its name. */
__attribute__((format(printf, 1, 2)))
void cgroup_limit(const char *format, ...);
/* Reads the line of the cgroup's @file that begins with @key; "" if there is none. */
void cgroup_line(const char *file, const char *key, char *line, size_t len);
/* Returns the number behind @key in @file; @key is "" if the file holds only a number. */
long cgroup_number(const char *file, const char *key);

/*
 * Starts a process of user @uid, in the cgroup if @limited, that calls @fn with @arg. It keeps
 * CAP_NET_RAW, which QPs of type RAW_PACKET need.
 */
pid_t user_start(void (*fn)(const void *arg), const void *arg, uid_t uid, bool limited);
/* Waits until the user has reported @done. */
void user_wait(pid_t pid, int done);
/* Waits until the user ends, which must be with @status. */
void user_ended(pid_t pid, const char *who, int status);
/* Kills a user that does not end by itself. */
void user_stop(pid_t pid);

#endif /* SELFTESTS_CGROUP_H */
