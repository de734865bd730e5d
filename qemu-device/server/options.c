/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: its command line. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "trace.h"

static const char help[] =
    "usage: qhca-server --socket PATH[,NAME=VALUE…] [--socket …] [options]\n"
    "\n"
    "An RDMA adapter for each socket, for a machine of QEMU with\n"
    "  -object memory-backend-memfd,id=mem,size=…,share=on\n"
    "  -machine …,memory-backend=mem\n"
    "  -device '{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\","
    "\"path\":\"PATH\"}}'\n"
    "\n"
    "  --socket PATH[,NAME=VALUE…]  listen there; properties: id, mac, faults, spoofchk,\n"
    "                               and those of the device in QEMU; in a value\n"
    "                               ,, is a comma\n"
    "  --uplink stream:PATH         connect the ports' switch to this -netdev stream,\n"
    "  --uplink dgram:HERE:THERE    -netdev dgram,\n"
    "  --uplink tap:NAME            or interface\n"
    "  --aggregate                  let frames leave and come by it several at once\n"
    "  --control PATH               listen for QMP commands: qom-get, qom-set, set_link\n"
    "  --verbose                    print what guests do wrong\n"
    "  --trace PATTERN              print these trace events; help: all there are\n"
    "  --help, --version\n";

enum kind { BOOL, UINT32, SIZE, UINT64, STRING };

/* struct prop - a property, by name, and where it is in struct qhca_props */
static const struct prop {
    const char *name;
    enum kind kind;
    size_t at;
    uint64_t initial;
} props[] = {
#define QHCA_PROP(type, text, member, ...) \
    { text, type, offsetof(struct qhca_props, member), __VA_ARGS__ + 0 }
#include "../common/props.def"
};

/* Digits, with 0x or not, and a unit; nothing before them, and not too many. */
static bool parse_number(const char *text, enum kind kind, uint64_t *value)
{
    static const char units[] = "KMG";
    uint64_t most = kind == UINT32 ? UINT32_MAX : UINT64_MAX;
    const char *unit = NULL;
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 0);
    if (kind == SIZE && *end) {
        unit = strchr(units, g_ascii_toupper(*end));
    }
    if (unit) {
        most >>= 10 * (unit - units + 1);
        end++;
    }
    if (!g_ascii_isdigit(*text) || *end || errno || *value > most) {
        return false;
    }
    *value <<= unit ? 10 * (unit - units + 1) : 0;
    return true;
}

static bool parse_bool(const char *text, uint64_t *value)
{
    *value = !strcmp(text, "on");
    return *value || !strcmp(text, "off");
}

static void store(struct qhca_props *all, const struct prop *prop,
                  uint64_t value, const char *text)
{
    char *at = (char *)all + prop->at;

    switch (prop->kind) {
    case BOOL:
        *(bool *)at = value;
        break;
    case UINT32:
        *(uint32_t *)(void *)at = (uint32_t)value;
        break;
    case STRING:
        g_free(*(char **)(void *)at);
        *(char **)(void *)at = g_strdup(text);
        break;
    default:
        *(uint64_t *)(void *)at = value;
    }
}

static bool set_prop(struct hca *hca, const char *name, const char *text)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(props); i++) {
        if (strcmp(props[i].name, name)) {
            continue;
        }
        if (props[i].kind == BOOL ? !parse_bool(text, &value) :
            props[i].kind != STRING &&
            !parse_number(text, props[i].kind, &value)) {
            return false;
        }
        store(&hca->props, &props[i], value, text);
        return true;
    }
    return false;
}

static bool set_mac(struct hca *hca, const char *text)
{
    unsigned b[6], any = 0;
    int n = 0;

    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3],
               &b[4], &b[5], &n) != 6 ||
        text[n] || text[strspn(text, "0123456789abcdefABCDEF:")]) {
        return false;
    }
    for (unsigned i = 0; i < 6; i++) {
        hca->mac[i] = (uint8_t)b[i];
        any |= b[i];
    }
    return any;
}

static bool set_spoofchk(struct hca *hca, const char *text)
{
    uint64_t value;
    bool ok = parse_bool(text, &value);

    hca->port.spoofchk = ok && value;
    return ok;
}

static bool set(struct hca *hca, const char *name, const char *value)
{
    char **text = !strcmp(name, "id") ? &hca->name :
                  !strcmp(name, "faults") ? &hca->faults : NULL;

    if (text) {
        g_free(*text);
        *text = g_strdup(value);
        return text != &hca->name || *value;
    }
    return !strcmp(name, "mac") ? set_mac(hca, value) :
           !strcmp(name, "spoofchk") ? set_spoofchk(hca, value) :
                                       set_prop(hca, name, value);
}

/* Take the text up to a comma out of *@at; two of them are one of the text. */
static char *take_item(const char **at)
{
    GString *item = g_string_new(NULL);

    for (; **at; (*at)++) {
        if (**at == ',' && *++*at != ',') {
            break;
        }
        g_string_append_c(item, **at);
    }
    return g_string_free(item, FALSE);
}

static struct hca *new_hca(unsigned number)
{
    struct hca *hca = g_new0(struct hca, 1);
    const uint8_t mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34,
                             (uint8_t)(0x56 + number) };

    for (unsigned i = 0; i < G_N_ELEMENTS(props); i++) {
        if (props[i].kind != STRING) {
            store(&hca->props, &props[i], props[i].initial, NULL);
        }
    }
    /* Here a doorbell in BAR 2 is a message to another process. */
    hca->props.shadow_doorbells = true;
    memcpy(hca->mac, mac, sizeof(mac));
    hca->name = g_strdup_printf("qhca%u", number);
    hca->dm_fd = hca->capture.fd = -1;
    return hca;
}

static bool add_socket(struct options *o, const char *text)
{
    struct hca *hca;
    char *value;

    if (o->num == NET_MAX_PORTS) {
        fprintf(stderr, "qhca-server: at most %d sockets\n", NET_MAX_PORTS);
        return false;
    }
    hca = o->hca[o->num] = new_hca(o->num);
    o->num++;
    hca->socket = take_item(&text);
    if (!*hca->socket) {
        fputs("qhca-server: --socket needs a path\n", stderr);
        return false;
    }
    while (*text) {
        g_autofree char *item = take_item(&text);

        value = strchr(item, '=');
        if (value) {
            *value++ = '\0';
        }
        if (!value || !set(hca, item, value)) {
            fprintf(stderr, "qhca-server: %s: bad property '%s'\n",
                    hca->socket, item);
            return false;
        }
    }
    return true;
}

static bool add_trace(const char *pattern)
{
    if (!strcmp(pattern, "help")) {
        trace_list();
        exit(0);
    }
    if (!trace_enable(pattern)) {
        fprintf(stderr, "qhca-server: there is no trace event '%s'\n", pattern);
        return false;
    }
    return true;
}

/* Set an option that may be given only once. */
static bool set_once(const char **where, const char *name, const char *value)
{
    if (*where || !*value) {
        fprintf(stderr, "qhca-server: --%s %s\n", name,
                *where ? "is there twice" : "needs a value");
        return false;
    }
    *where = value;
    return true;
}

/* Users tell adapters apart by name, the switch by address. */
static bool are_distinct(const struct options *o)
{
    for (unsigned i = 1; i < o->num; i++) {
        for (unsigned j = 0; j < i; j++) {
            bool id = !strcmp(o->hca[i]->name, o->hca[j]->name);

            if (id || !memcmp(o->hca[i]->mac, o->hca[j]->mac, 6)) {
                fprintf(stderr, "qhca-server: %s and %s have the same '%s'\n",
                        o->hca[j]->socket, o->hca[i]->socket,
                        id ? "id" : "mac");
                return false;
            }
        }
    }
    return true;
}

static bool is_complete(const struct options *o)
{
    if (!o->num) {
        fputs(help, stderr);
        return false;
    }
    if (o->aggregate && !o->uplink) {
        fputs("qhca-server: --aggregate needs --uplink\n", stderr);
        return false;
    }
    return are_distinct(o);
}

bool options_parse(struct options *o, int argc, char **argv)
{
    static const struct option words[] = {
        { "socket", required_argument, NULL, 's' },
        { "uplink", required_argument, NULL, 'u' },
        { "aggregate", no_argument, NULL, 'a' },
        { "control", required_argument, NULL, 'c' },
        { "verbose", no_argument, NULL, 'b' },
        { "trace", required_argument, NULL, 't' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { 0 },
    };
    int c;

    *o = (struct options) { 0 };
    while ((c = getopt_long(argc, argv, "", words, NULL)) >= 0) {
        switch (c) {
        case 's':
            if (!add_socket(o, optarg)) {
                return false;
            }
            break;
        case 'u':
            if (!set_once(&o->uplink, "uplink", optarg)) {
                return false;
            }
            break;
        case 'a':
            o->aggregate = true;
            break;
        case 'c':
            if (!set_once(&o->control, "control", optarg)) {
                return false;
            }
            break;
        case 'b':
            hca_verbose = true;
            break;
        case 't':
            if (!add_trace(optarg)) {
                return false;
            }
            break;
        case 'h':
            fputs(help, stdout);
            exit(0);
        case 'v':
            puts("qhca-server " QHCA_SERVER_VERSION);
            exit(0);
        default:
            return false;
        }
    }
    if (optind < argc) {
        fputs(help, stderr);
        return false;
    }
    return is_complete(o);
}
