/* SPDX-License-Identifier: GPL-2.0 */
/* Requests over netlink, whose only answer is success or an error. */
#ifndef SELFTESTS_NL_H
#define SELFTESTS_NL_H

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* struct nl_msg - a request; begins with its struct nlmsghdr */
struct nl_msg {
	union {
		struct nlmsghdr head;
		uint8_t data[512];
	};
};

/* Opens a socket. Fails the test if it cannot. */
int nl_open(int protocol);
/* Returns the number of a generic family, or 0. */
uint16_t nl_family(int fd, const char *name);
/* Begins a request with @len bytes of a header that the family knows. */
void nl_start(struct nl_msg *m, uint16_t type, const void *header, size_t len);
/* Begins command @cmd of a generic family. */
void nl_start_generic(struct nl_msg *m, uint16_t family, uint8_t cmd);
void nl_put(struct nl_msg *m, uint16_t type, const void *data, size_t len);
void nl_put_u32(struct nl_msg *m, uint16_t type, uint32_t value);
void nl_put_text(struct nl_msg *m, uint16_t type, const char *text);
/* Attributes that follow are in a nest until nl_nest_end() gets what this returns. */
size_t nl_nest(struct nl_msg *m, uint16_t type);
void nl_nest_end(struct nl_msg *m, size_t nest);
/* Returns 0 or an errno value; ENOBUFS: the kernel had no memory for the answer. */
int nl_talk(int fd, struct nl_msg *m);

#endif /* SELFTESTS_NL_H */
