/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: its command line. */
#ifndef QHCA_SERVER_OPTIONS_H
#define QHCA_SERVER_OPTIONS_H

#include "hca.h"

/* struct options - the HCAs are not started yet, and the caller's to free */
struct options {
    struct hca *hca[NET_MAX_PORTS];
    unsigned num;
    const char *uplink, *control;
    bool aggregate;
};

/* Returns false after a message. --help and --version end the process. */
bool options_parse(struct options *o, int argc, char **argv);

#endif /* QHCA_SERVER_OPTIONS_H */
