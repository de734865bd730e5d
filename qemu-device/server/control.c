/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: connections of the control socket, and its commands. */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "at_path.h"
#include "control.h"
#include "property.h"

#define LONGEST_COMMAND (1u << 16)
/* One that cannot be accepted, as there are too many files, is still there. */
#define RETRY_NS        10000000u

/* struct client - a connection: @pending bytes of a command have come so far */
struct client {
    int fd;                     /* or -1 */
    struct json_tokener *parser;
    size_t pending;
};

/* @retry: when to accept a connection again, after one that failed; or 0 */
struct control {
    int listener;
    uint64_t retry;
    struct client client[CONTROL_CLIENTS];
    struct hca **hca;
    unsigned num;
};

static void hang_up(struct client *client)
{
    close(client->fd);
    client->fd = -1;
    client->pending = 0;
    json_tokener_reset(client->parser);
}

/* A client that does not read its answers is of no use. */
static void answer(struct client *client, struct json_object *message)
{
    g_autofree char *text = g_strdup_printf("%s\r\n",
        json_object_to_json_string_ext(message, JSON_C_TO_STRING_PLAIN));
    size_t len = strlen(text);

    json_object_put(message);
    if (send(client->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)len) {
        hang_up(client);
    }
}

static struct json_object *wrap(const char *name, struct json_object *value)
{
    struct json_object *message = json_object_new_object();

    json_object_object_add(message, name, value);
    return message;
}

static struct json_object *failure(const char *what)
{
    struct json_object *error = json_object_new_object();

    json_object_object_add(error, "class",
                           json_object_new_string("GenericError"));
    json_object_object_add(error, "desc", json_object_new_string(what));
    return wrap("error", error);
}

static void greet(struct client *client)
{
    struct json_object *qmp = json_object_new_object();

    json_object_object_add(qmp, "version", wrap("package",
                           json_object_new_string(QHCA_SERVER_VERSION)));
    json_object_object_add(qmp, "capabilities", json_object_new_array());
    answer(client, wrap("QMP", qmp));
}

static const char *text_of(struct json_object *args, const char *name)
{
    struct json_object *value;

    return json_object_object_get_ex(args, name, &value) &&
           json_object_is_type(value, json_type_string) ?
           json_object_get_string(value) : "";
}

/* Find an HCA by its name, or its name after /machine/peripheral/. */
static struct hca *find(struct control *c, const char *name)
{
    const char *dir = "/machine/peripheral/";

    if (g_str_has_prefix(name, dir)) {
        name += strlen(dir);
    }
    for (unsigned i = 0; i < c->num; i++) {
        if (!strcmp(c->hca[i]->name, name)) {
            return c->hca[i];
        }
    }
    return NULL;
}

static struct json_object *do_get(struct hca *hca, struct json_object *args,
                                  char **why)
{
    return property_get(hca, text_of(args, "property"), why);
}

static struct json_object *do_set(struct hca *hca, struct json_object *args,
                                  char **why)
{
    struct json_object *value = NULL;

    json_object_object_get_ex(args, "value", &value);
    return property_set(hca, text_of(args, "property"), value, why) ?
           json_object_new_object() : NULL;
}

static struct json_object *do_set_link(struct hca *hca,
                                       struct json_object *args, char **why)
{
    struct json_object *up;

    if (!json_object_object_get_ex(args, "up", &up) ||
        !json_object_is_type(up, json_type_boolean)) {
        *why = g_strdup("'up' must be true or false");
        return NULL;
    }
    hca->host.up = json_object_get_boolean(up);
    hca->host.todo |= QHCA_TODO_LINK;
    return json_object_new_object();
}

static const struct {
    const char *name, *object;  /* the argument that names the HCA */
    struct json_object *(*execute)(struct hca *hca, struct json_object *args,
                                   char **why);
} commands[] = {
    { "qom-get", "path", do_get },
    { "qom-set", "path", do_set },
    { "set_link", "name", do_set_link },
};

static struct json_object *execute(struct control *c, const char *name,
                                   struct json_object *args)
{
    g_autofree char *why = NULL;
    struct json_object *result;
    struct hca *hca;

    if (!strcmp(name, "qmp_capabilities")) {
        return wrap("return", json_object_new_object());
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(commands[i].name, name)) {
            continue;
        }
        hca = find(c, text_of(args, commands[i].object));
        if (!hca) {
            return failure("there is no such device");
        }
        result = commands[i].execute(hca, args, &why);
        return why ? failure(why) : wrap("return", result);
    }
    return failure("the command is not known");
}

static void command(struct control *c, struct client *client,
                    struct json_object *asked)
{
    struct json_object *args = NULL, *message, *id;

    if (!json_object_is_type(asked, json_type_object)) {
        answer(client, failure("this is no command"));
        return;
    }
    json_object_object_get_ex(asked, "arguments", &args);
    message = execute(c, text_of(asked, "execute"), args);
    if (json_object_object_get_ex(asked, "id", &id)) {
        json_object_object_add(message, "id", json_object_get(id));
    }
    answer(client, message);
}

/* Commands are JSON, with or without space between them. */
static void parse(struct control *c, struct client *client, const char *text,
                  size_t len)
{
    struct json_object *asked;
    size_t used;

    while (len && client->fd >= 0) {
        asked = json_tokener_parse_ex(client->parser, text, (int)len);
        if (json_tokener_get_error(client->parser) == json_tokener_continue) {
            client->pending += len;
            return;
        }
        if (json_tokener_get_error(client->parser) != json_tokener_success) {
            answer(client, failure("this is no JSON"));
            if (client->fd >= 0) {
                hang_up(client);
            }
            return;
        }
        used = json_tokener_get_parse_end(client->parser);
        text += used;
        len -= used;
        client->pending = 0;
        command(c, client, asked);
        json_object_put(asked);
    }
}

static void receive(struct control *c, struct client *client)
{
    char buf[4096];
    ssize_t num = recv(client->fd, buf, sizeof(buf), MSG_DONTWAIT);

    if (num <= 0 || client->pending > LONGEST_COMMAND) {
        hang_up(client);
    } else {
        parse(c, client, buf, (size_t)num);
    }
}

static void meet(struct control *c)
{
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);

    for (unsigned i = 0; fd >= 0 && i < CONTROL_CLIENTS; i++) {
        if (c->client[i].fd < 0) {
            c->client[i].fd = fd;
            greet(&c->client[i]);
            return;
        }
    }
    if (fd >= 0) {
        close(fd);
    } else {
        c->retry = hca_now() + RETRY_NS;
    }
}

uint64_t control_watch(struct control *c, uint64_t now)
{
    if (now >= c->retry) {
        c->retry = 0;
    }
    return c->retry ? c->retry : UINT64_MAX;
}

unsigned control_poll(const struct control *c, struct pollfd *fds)
{
    fds[0] = (struct pollfd) { c->retry ? -1 : c->listener, POLLIN, 0 };
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        fds[1 + i] = (struct pollfd) { c->client[i].fd, POLLIN, 0 };
    }
    return CONTROL_FDS;
}

void control_input(struct control *c, const struct pollfd *fds)
{
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        if (fds[1 + i].revents && c->client[i].fd >= 0) {
            receive(c, &c->client[i]);
        }
    }
    if (fds[0].revents) {
        meet(c);
    }
}

static bool listen_at(struct control *c, const char *path)
{
    int lock = at_path_clear(path);
    bool listens;

    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         0);
    listens = c->listener >= 0 && at_path(c->listener, path, bind) &&
              !listen(c->listener, CONTROL_CLIENTS);
    at_path_done(lock);
    return listens;
}

struct control *control_new(const char *path, struct hca **hca, unsigned num)
{
    struct control *c = g_new0(struct control, 1);

    c->listener = -1;
    c->hca = hca;
    c->num = num;
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        c->client[i].fd = -1;
        c->client[i].parser = json_tokener_new();
    }
    if (path && !listen_at(c, path)) {
        fprintf(stderr, "qhca-server: %s: %s\n", path, g_strerror(errno));
        control_free(c);
        return NULL;
    }
    return c;
}

void control_free(struct control *c)
{
    if (!c) {
        return;
    }
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        if (c->client[i].fd >= 0) {
            close(c->client[i].fd);
        }
        json_tokener_free(c->client[i].parser);
    }
    if (c->listener >= 0) {
        close(c->listener);
    }
    g_free(c);
}
