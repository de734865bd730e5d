/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca server: properties of an HCA that runs, as in ../qhca-stats.c. */
#ifndef QHCA_SERVER_PROPERTY_H
#define QHCA_SERVER_PROPERTY_H

#include <json-c/json.h>

#include "hca.h"

/* Return the value of a property, or NULL with the reason in *@why. */
struct json_object *property_get(struct hca *hca, const char *name,
                                 char **why);
/* Returns false with the reason in *@why, which the caller frees. */
bool property_set(struct hca *hca, const char *name, struct json_object *value,
                  char **why);

#endif /* QHCA_SERVER_PROPERTY_H */
