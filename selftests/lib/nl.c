// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "nl.h"
#include "rdma.h"

static uint8_t answer[16384];

int nl_open(int protocol)
{
	struct timeval patience = { .tv_sec = WAIT_MS / 1000 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	REQUIRE(fd >= 0);
	REQUIRE(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	return fd;
}

void nl_start(struct nl_msg *m, uint16_t type, const void *header, size_t len)
{
	memset(m, 0, sizeof(*m));
	memcpy(m->data + NLMSG_HDRLEN, header, len);
	m->head.nlmsg_len = NLMSG_HDRLEN + NLMSG_ALIGN(len);
	m->head.nlmsg_type = type;
	m->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
}

void nl_start_generic(struct nl_msg *m, uint16_t family, uint8_t cmd)
{
	struct genlmsghdr header = { .cmd = cmd, .version = 1 };

	nl_start(m, family, &header, sizeof(header));
}

void nl_put(struct nl_msg *m, uint16_t type, const void *data, size_t len)
{
	struct nlattr attr = { .nla_len = NLA_HDRLEN + len, .nla_type = type };
	uint8_t *at = m->data + m->head.nlmsg_len;

	REQUIRE(m->head.nlmsg_len + NLA_ALIGN(attr.nla_len) <= sizeof(m->data));
	memcpy(at, &attr, sizeof(attr));
	if (len)
		memcpy(at + NLA_HDRLEN, data, len);
	m->head.nlmsg_len += NLA_ALIGN(attr.nla_len);
}

void nl_put_u32(struct nl_msg *m, uint16_t type, uint32_t value)
{
	nl_put(m, type, &value, sizeof(value));
}

void nl_put_text(struct nl_msg *m, uint16_t type, const char *text)
{
	nl_put(m, type, text, strlen(text) + 1);
}

size_t nl_nest(struct nl_msg *m, uint16_t type)
{
	size_t nest = m->head.nlmsg_len;

	nl_put(m, type | NLA_F_NESTED, NULL, 0);
	return nest;
}

void nl_nest_end(struct nl_msg *m, size_t nest)
{
	((struct nlattr *)(m->data + nest))->nla_len = m->head.nlmsg_len - nest;
}

/* Waits for the answer with this number; returns its length, or -1 and errno. */
static ssize_t receive(int fd, uint32_t seq)
{
	const struct nlmsghdr *head = (void *)answer;
	ssize_t len;

	do
		len = recv(fd, answer, sizeof(answer), 0);
	while (len >= (ssize_t)sizeof(*head) && head->nlmsg_seq != seq);
	return len;
}

/* Returns 0, with the answer in place, or an errno value. */
static int ask(int fd, struct nl_msg *m)
{
	static uint32_t seq;

	/* Drop answers to earlier requests. */
	while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		;
	m->head.nlmsg_seq = ++seq;
	if (send(fd, m, m->head.nlmsg_len, 0) < 0)
		return errno;
	return receive(fd, seq) < 0 ? errno : 0;
}

int nl_talk(int fd, struct nl_msg *m)
{
	const struct nlmsghdr *head = (void *)answer;
	int err = ask(fd, m);

	/* Commands that have more to say do so first. */
	while (!err && head->nlmsg_type != NLMSG_ERROR)
		err = receive(fd, m->head.nlmsg_seq) < 0 ? errno : 0;
	return err ?: -*(int *)NLMSG_DATA(answer);
}

uint16_t nl_family(int fd, const char *name)
{
	const struct nlmsghdr *head = (void *)answer;
	const struct nlattr *attr;
	struct nl_msg m;
	size_t at;

	nl_start_generic(&m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	nl_put_text(&m, CTRL_ATTR_FAMILY_NAME, name);
	REQUIRE_OK(ask(fd, &m));
	for (at = NLMSG_HDRLEN + GENL_HDRLEN; head->nlmsg_type == GENL_ID_CTRL &&
	     at + NLA_HDRLEN <= head->nlmsg_len; at += NLA_ALIGN(attr->nla_len)) {
		attr = (void *)(answer + at);
		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(answer + at + NLA_HDRLEN);
	}
	return 0;
}
