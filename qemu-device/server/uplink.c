/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: the switch's connection to other hosts. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../common/vnet.h"
#include "at_path.h"
#include "hca.h"
#include "uplink.h"

#define TUN "/dev/net/tun"

/* Of Linux 6.16, and most file descriptors of a message. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS   83
#endif
#define MOST_FDS        253

static bool fail(const char *text, const char *where, const char *why)
{
    fprintf(stderr, "qhca-server: uplink %s: %s%s\n", text, where, why);
    return false;
}

/* stream:PATH connects to a "-netdev stream,server=on,addr.type=unix". */
static bool open_stream(struct uplink *up, char **words)
{
    up->stream = true;
    up->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return up->fd >= 0 && words[1] && at_path(up->fd, words[1], connect);
}

/* dgram:LOCAL:REMOTE is "-netdev dgram,local.type=unix,remote.type=unix". */
static bool open_dgram(struct uplink *up, char **words)
{
    bool bound;
    int lock;

    up->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (up->fd < 0 || !words[1] || !words[2]) {
        return false;
    }
    lock = at_path_clear(words[1]);
    bound = at_path(up->fd, words[1], bind);
    at_path_done(lock);
    return bound && at_path(up->fd, words[2], connect);
}

/*
 * tap:NAME is an interface that exists and is the user's to open: the kernel
 * would make one for root. The kernel has to make checksums and cut long frames
 * again, even if the last user has let it leave these out.
 */
static bool open_tap(struct uplink *up, char **words)
{
    struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
    int len = sizeof(struct qhca_vnet);

    up->vnet = true;
    up->fd = open(TUN, O_RDWR | O_CLOEXEC);
    if (up->fd < 0 || !words[1] || !if_nametoindex(words[1])) {
        return false;
    }
    g_strlcpy(req.ifr_name, words[1], sizeof(req.ifr_name));
    return !ioctl(up->fd, TUNSETIFF, &req) &&
           !ioctl(up->fd, TUNSETOFFLOAD, 0) &&
           !ioctl(up->fd, TUNSETVNETHDRSZ, &len);
}

/*
 * @where: what cannot be opened if there is no descriptor
 * @jumbo: takes frames of any length, and so aggregates
 */
static const struct {
    const char *name, *where;
    bool (*open)(struct uplink *up, char **words);
    bool jumbo;
} kinds[] = {
    { "stream", "", open_stream, true },
    { "dgram", "", open_dgram, true },
    { "tap", TUN ": ", open_tap, false },
};

/* No peer needs to send file descriptors; an old kernel cannot refuse them. */
static void refuse_fds(int fd)
{
    int off = 0;

    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

bool net_uplink(struct net *net, const char *text, bool aggregate)
{
    g_auto(GStrv) words = g_strsplit(text, ":", 3);
    struct uplink *up = &net->uplink;

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_strcmp0(words[0], kinds[i].name)) {
            continue;
        }
        if (aggregate && !kinds[i].jumbo) {
            return fail(text, "", "it takes no aggregates");
        }
        errno = EINVAL;
        if (!kinds[i].open(up, words) ||
            fcntl(up->fd, F_SETFL, fcntl(up->fd, F_GETFL) | O_NONBLOCK) < 0) {
            return fail(text, up->fd < 0 ? kinds[i].where : "",
                        g_strerror(errno));
        }
        refuse_fds(up->fd);
        up->wanted = true;
        up->in = g_byte_array_new();
        up->out = g_byte_array_new();
        up->collected = aggregate ? g_new0(struct vhca_aggregate, 1) : NULL;
        return true;
    }
    return fail(text, "",
                "stream:PATH, dgram:LOCAL:REMOTE and tap:NAME are known");
}

static gpointer close_one(gpointer fd)
{
    close(GPOINTER_TO_INT(fd));
    return NULL;
}

/*
 * Unread data can be file descriptors, whose close() waits. Without a thread
 * for that the connection, which has been shut down, stays open.
 */
void uplink_close(struct uplink *up)
{
    GThread *thread;

    if (up->fd >= 0) {
        shutdown(up->fd, SHUT_RDWR);
        thread = g_thread_try_new("close", close_one, GINT_TO_POINTER(up->fd),
                                  NULL);
        g_clear_pointer(&thread, g_thread_unref);
        up->fd = -1;
    }
    g_clear_pointer(&up->in, g_byte_array_unref);
    g_clear_pointer(&up->out, g_byte_array_unref);
    g_clear_pointer(&up->collected, g_free);
}

bool uplink_is_full(const struct uplink *up)
{
    return up->out && up->out->len >= (up->stream ? UPLINK_FULL : 1);
}

/*
 * Count a frame as sent, or as lost with @error. Log the first loss and the
 * first success after it.
 */
static void count(struct uplink *up, int error)
{
    if (error) {
        up->dropped++;
    } else {
        up->sent++;
    }
    if (error && error != up->error) {
        fprintf(stderr, "qhca-server: the uplink takes no frames: %s\n",
                g_strerror(error));
    } else if (!error && up->error) {
        fprintf(stderr, "qhca-server: the uplink takes frames again\n");
    }
    up->error = error;
}

/*
 * Datagrams and taps take whole frames. Returns why not: a frame that is not
 * taken now waits. @hdr: in front of it, if there is one
 */
static int put_whole(struct uplink *up, const struct qhca_vnet *hdr,
                     const uint8_t *frame, size_t len)
{
    struct iovec iov[] = {
        { (void *)hdr, hdr ? sizeof(*hdr) : 0 }, { (void *)frame, len },
    };

    if (writev(up->fd, iov, G_N_ELEMENTS(iov)) >= 0) {
        return 0;
    }
    if (errno != EAGAIN) {
        return errno;
    }
    g_byte_array_append(up->out, iov[0].iov_base, (guint)iov[0].iov_len);
    g_byte_array_append(up->out, frame, (guint)len);
    return EAGAIN;
}

static void put(struct uplink *up, const uint8_t *frame, size_t len)
{
    static const struct qhca_vnet complete;
    uint32_t head = GUINT32_TO_BE((uint32_t)len);
    int error;

    if (up->stream) {
        up->sent++;
        g_byte_array_append(up->out, (uint8_t *)&head, sizeof(head));
        g_byte_array_append(up->out, frame, (guint)len);
    } else if (up->out->len) {
        up->dropped++;
    } else {
        error = put_whole(up, up->vnet ? &complete : NULL, frame, len);
        if (error != EAGAIN) {
            count(up, error);
        }
    }
}

/* In a stream there was room for what has been collected, so there still is. */
static void push(struct uplink *up)
{
    const uint8_t *frame;
    size_t len;

    if (!up->collected || (!up->stream && uplink_is_full(up))) {
        return;
    }
    frame = vhca_aggregate_take(up->collected, &len);
    if (frame) {
        put(up, frame, len);
    }
}

void net_uplink_push(struct net *net)
{
    push(&net->uplink);
}

static bool collect(struct uplink *up, const uint8_t *frame, size_t len)
{
    return up->collected && vhca_aggregate_add(up->collected, frame, len);
}

void uplink_send(struct uplink *up, const uint8_t *frame, size_t len)
{
    if (up->fd < 0 || uplink_is_full(up)) {
        up->dropped++;
        return;
    }
    if (collect(up, frame, len)) {
        return;
    }
    push(up);
    if (!collect(up, frame, len)) {
        put(up, frame, len);
    }
}

/*
 * If the tap refuses the frame, for whatever reason, its pieces will show that.
 */
bool uplink_send_long(struct uplink *up, const uint8_t *frame, size_t len,
                      const struct qhca_long_frame *how)
{
    const struct qhca_vnet hdr = qhca_vnet_long(how);
    int error;

    if (up->fd < 0 || !up->vnet || uplink_is_full(up)) {
        return false;
    }
    error = put_whole(up, &hdr, frame, len);
    if (!error) {
        count(up, 0);
    }
    return !error || error == EAGAIN;
}

static void lost(struct net *net)
{
    fprintf(stderr, "qhca-server: the uplink is gone\n");
    uplink_close(&net->uplink);
    net_clear(net, &net->uplink.jam, true, 0);
}

/* A frame that waits but is then refused is lost, as on any network. */
static void flush(struct net *net)
{
    struct uplink *up = &net->uplink;
    ssize_t num = write(up->fd, up->out->data, up->out->len);

    if (num < 0 && errno == EAGAIN) {
        return;
    }
    if (up->stream && num < 0) {
        lost(net);
    } else if (up->stream) {
        g_byte_array_remove_range(up->out, 0, (guint)num);
    } else {
        count(up, num < 0 ? errno : 0);
        g_byte_array_set_size(up->out, 0);
    }
}

/* One that takes a few bytes now and then is as good as one that takes none. */
static bool has_room(const struct uplink *up)
{
    return !up->out ||
           up->out->len < (up->stream ? UPLINK_FULL / 2 : 1);
}

uint64_t net_uplink_watch(struct net *net, uint64_t now)
{
    struct uplink *up = &net->uplink;

    /* Perhaps it is this process that has not had a CPU. */
    if (up->jam.waiting && now >= up->jam.until && !has_room(up)) {
        flush(net);
    }
    return net_clear(net, &up->jam, has_room(up), now);
}

static void receive_one(struct net *net, const uint8_t *frame, size_t len)
{
    size_t at = 0, part;
    const uint8_t *next;

    net->uplink.received++;
    if (!net->uplink.collected || !vhca_aggregate_is(frame, len)) {
        net_receive(net, frame, len);
        return;
    }
    while ((next = vhca_aggregate_next(frame, len, &at, &part))) {
        net_receive(net, next, part);
    }
}

/* Take out the frames that are complete. Returns false if one is too long. */
static bool take_frames(struct net *net)
{
    GByteArray *in = net->uplink.in;
    uint32_t len;
    guint at = 0;

    while (in->len - at >= sizeof(len)) {
        memcpy(&len, in->data + at, sizeof(len));
        len = GUINT32_FROM_BE(len);
        if (len > UPLINK_MAX) {
            return false;
        }
        if (in->len - at - sizeof(len) < len) {
            break;
        }
        receive_one(net, in->data + at + sizeof(len), len);
        at += (guint)sizeof(len) + len;
    }
    g_byte_array_remove_range(in, 0, at);
    return true;
}

static void receive_vnet(struct net *net, const uint8_t *buf, size_t len)
{
    uint8_t room[VHCA_MAX_FRAME];
    const uint8_t *frame = qhca_vnet_frame(buf, &len, room);

    if (frame) {
        receive_one(net, frame, len);
    }
}

/*
 * read(), which would close() the file descriptors that come by a socket, and
 * wait for that. With them the uplink ends, so they may stay open.
 */
static ssize_t take(const struct uplink *up, uint8_t *buf, size_t len)
{
    union {
        char buf[CMSG_SPACE(MOST_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = { buf, len };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control.buf, .msg_controllen = sizeof(control.buf),
    };
    ssize_t num;

    if (up->vnet) {
        return read(up->fd, buf, len);
    }
    num = recvmsg(up->fd, &msg, MSG_CMSG_CLOEXEC);
    if (num >= 0 && msg.msg_controllen) {
        fprintf(stderr, "qhca-server: file descriptors come by the uplink\n");
        errno = EBADMSG;
        return -1;
    }
    return num;
}

static void receive(struct net *net)
{
    struct uplink *up = &net->uplink;
    static uint8_t buf[UPLINK_MAX];
    ssize_t num = take(up, buf, sizeof(buf));

    if (num < 0 && (errno == EAGAIN || errno == ECONNREFUSED)) {
        return;
    }
    if (num <= 0 && (num < 0 || up->stream)) {
        lost(net);
    } else if (up->vnet) {
        receive_vnet(net, buf, (size_t)num);
    } else if (!up->stream) {
        receive_one(net, buf, (size_t)num);
    } else {
        g_byte_array_append(up->in, buf, (guint)num);
        if (!take_frames(net)) {
            lost(net);
        }
    }
}

int net_uplink_fd(const struct net *net, short *events)
{
    const struct uplink *up = &net->uplink;

    *events = POLLIN;
    if (up->out && up->out->len) {
        *events |= POLLOUT;
    }
    return up->fd;
}

void net_uplink_input(struct net *net, short events)
{
    if (net->uplink.fd >= 0 && events & POLLOUT) {
        flush(net);
    }
    if (net->uplink.fd >= 0 && events & (POLLIN | POLLHUP | POLLERR)) {
        receive(net);
    }
}
