/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: properties of an HCA that runs. */
#include <string.h>

#include "property.h"
#include "uplink.h"

static struct json_object *get_counters(struct hca *hca)
{
    struct json_object *all = json_object_new_object();

    for (int i = 0; i < QHCA_CNT_MAX; i++) {
        json_object_object_add(all, qhca_counter_name(i),
            json_object_new_uint64(qhca_engine_counter(hca->host.engine, i)));
    }
    return all;
}

static struct json_object *get_objects(struct hca *hca)
{
    return json_object_new_uint64(qhca_engine_num_objects(hca->host.engine));
}

static struct json_object *get_memory(struct hca *hca)
{
    uint64_t max;

    return json_object_new_uint64(qhca_engine_memory(hca->host.engine, &max));
}

static struct json_object *get_max_memory(struct hca *hca)
{
    uint64_t max;

    qhca_engine_memory(hca->host.engine, &max);
    return json_object_new_uint64(max);
}

static struct json_object *get_faults(struct hca *hca)
{
    char text[VHCA_RULES_TEXT];

    qhca_engine_get_faults(hca->host.engine, text, sizeof(text));
    return json_object_new_string(text);
}

static struct json_object *get_inject_fatal(struct hca *hca)
{
    (void)hca;
    return json_object_new_boolean(false);
}

/* Counters that an adapter's port and the uplink have. */
static struct json_object *traffic(bool connected, uint64_t sent,
                                   uint64_t received, uint64_t dropped)
{
    struct json_object *all = json_object_new_object();

    json_object_object_add(all, "connected",
                           json_object_new_boolean(connected));
    json_object_object_add(all, "sent", json_object_new_uint64(sent));
    json_object_object_add(all, "received", json_object_new_uint64(received));
    json_object_object_add(all, "dropped", json_object_new_uint64(dropped));
    return all;
}

static struct json_object *get_port(struct hca *hca)
{
    const struct port *p = &hca->port;
    struct json_object *all = traffic(hca->attached, p->sent, p->received,
                                      p->dropped);

    json_object_object_add(all, "spoofed", json_object_new_uint64(p->spoofed));
    return all;
}

/* All adapters of a switch have the same uplink. */
static struct json_object *get_uplink(struct hca *hca)
{
    const struct uplink *up = &hca->port.net->uplink;

    return up->wanted ? traffic(up->fd >= 0, up->sent, up->received,
                                up->dropped) : NULL;
}

/* Text that ends where it ends: no byte of it is 0. */
static bool is_text(struct json_object *value)
{
    return json_object_is_type(value, json_type_string) &&
           strlen(json_object_get_string(value)) ==
           (size_t)json_object_get_string_len(value);
}

static bool set_faults(struct hca *hca, struct json_object *value, char **why)
{
    const char *wrong = is_text(value) ?
        qhca_host_set_faults(&hca->host, hca_now(),
                             json_object_get_string(value)) :
        "'faults' is text";

    *why = g_strdup(wrong);
    return !wrong;
}

static struct json_object *get_bandwidth(struct hca *hca)
{
    return json_object_new_int64(hca->props.bandwidth);
}

static bool set_bandwidth(struct hca *hca, struct json_object *value,
                          char **why)
{
    int64_t mbit = json_object_get_int64(value);
    const char *wrong = qhca_props_bandwidth_wrong((uint64_t)mbit);

    if (!json_object_is_type(value, json_type_int) || wrong) {
        *why = g_strdup(wrong ?: "'bandwidth' is a number");
        return false;
    }
    hca->props.bandwidth = (uint32_t)mbit;
    qhca_engine_set_bandwidth(hca->host.engine, hca_now(), (unsigned)mbit);
    return true;
}

static bool is_boolean(struct json_object *value, const char *name, char **why)
{
    if (json_object_is_type(value, json_type_boolean)) {
        return true;
    }
    *why = g_strdup_printf("'%s' is true or false", name);
    return false;
}

static struct json_object *get_spoofchk(struct hca *hca)
{
    return json_object_new_boolean(hca->port.spoofchk);
}

static bool set_spoofchk(struct hca *hca, struct json_object *value, char **why)
{
    if (!is_boolean(value, "spoofchk", why)) {
        return false;
    }
    net_check(hca, json_object_get_boolean(value));
    return true;
}

static bool set_inject_fatal(struct hca *hca, struct json_object *value,
                             char **why)
{
    if (!is_boolean(value, "inject-fatal", why)) {
        return false;
    }
    if (json_object_get_boolean(value)) {
        hca->host.todo |= QHCA_TODO_FATAL;
    }
    return true;
}

static const struct property {
    const char *name;
    struct json_object *(*get)(struct hca *hca);
    bool (*set)(struct hca *hca, struct json_object *value, char **why);
} properties[] = {
    { "counters", get_counters, NULL },
    { "objects", get_objects, NULL },
    { "memory", get_memory, NULL },
    { "max-memory", get_max_memory, NULL },
    { "port", get_port, NULL },
    { "uplink", get_uplink, NULL },
    { "faults", get_faults, set_faults },
    { "bandwidth", get_bandwidth, set_bandwidth },
    { "spoofchk", get_spoofchk, set_spoofchk },
    { "inject-fatal", get_inject_fatal, set_inject_fatal },
};

static const struct property *find(const char *name, char **why)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(properties); i++) {
        if (!strcmp(properties[i].name, name)) {
            return &properties[i];
        }
    }
    *why = g_strdup_printf("there is no property '%s'", name);
    return NULL;
}

struct json_object *property_get(struct hca *hca, const char *name, char **why)
{
    const struct property *property = find(name, why);

    return property ? property->get(hca) : NULL;
}

bool property_set(struct hca *hca, const char *name, struct json_object *value,
                  char **why)
{
    const struct property *property = find(name, why);

    if (property && !property->set) {
        *why = g_strdup_printf("property '%s' cannot be set", name);
        return false;
    }
    return property && property->set(hca, value, why);
}
