/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users, one of them in a cgroup whose rdma or memory controller counts what he takes. A
 * failure without an error to return ends the test.
 */
#ifndef SELFTESTS_CGROUP_H
#define SELFTESTS_CGROUP_H

#include <stdatomic.h>
#include <sys/types.h>

#include "rdma.h"

#define CGROUP_MOUNT	"/sys/fs/cgroup"
#define CGROUP		CGROUP_MOUNT "/qhca-selftest"

/* struct cgroup_shared - what test and users tell each other; users say how far they are */
struct cgroup_shared {
	atomic_int done, go;
	int error;
};

extern struct cgroup_shared *shared;

/*
 * Opens the device and makes the cgroup, for "+rdma" or "+memory"; skips the test without
 * such a controller, or if we are not root, who can be others.
 */
void cgroup_open(const char *controller);
/* Takes its limits back; nobody is in it any more. */
void cgroup_remove(void);
/* The line for our device in rdma.max, after its name. */
__attribute__((format(printf, 1, 2)))
void cgroup_limit(const char *format, ...);
/* The line of its @file that begins with @key; "" if there is none. */
void cgroup_line(const char *file, const char *key, char *line, size_t len);
/* The number behind @key in @file; @key is "" if there is nothing else. */
long cgroup_number(const char *file, const char *key);

/* A process of user @uid, in the cgroup if he is @limited, that does @fn with @arg. */
pid_t user_start(void (*fn)(const void *arg), const void *arg, uid_t uid, bool limited);
/* Until the user has got as far as @done. */
void user_wait(pid_t pid, int done);
/* He has to end with @status. */
void user_ended(pid_t pid, const char *who, int status);
/* Ends who does not end by himself. */
void user_stop(pid_t pid);

#endif /* SELFTESTS_CGROUP_H */
