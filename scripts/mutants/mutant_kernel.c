// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * In the kernel the first module has two parameters: mutant is the number; when it is
 * written mutant_seen begins anew, which is a hexadecimal digit for four of them each.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "mutant.h"

#define SHOWN 12288			/* what fits in the page of a parameter */

static unsigned char seen[MUTANTS];

unsigned int mutant_now;
EXPORT_SYMBOL_GPL(mutant_now);
unsigned char *mutant_seen = seen;
EXPORT_SYMBOL_GPL(mutant_seen);

static int set_mutant(const char *val, const struct kernel_param *kp)
{
	memset(seen, 0, sizeof(seen));
	return param_set_uint(val, kp);
}

static int get_seen(char *buffer, const struct kernel_param *kp)
{
	int i, len = 0;

	for (i = 0; i < SHOWN; i += 4)
		buffer[len++] = hex_asc_lo(seen[i] | seen[i + 1] << 1 | seen[i + 2] << 2 |
					   seen[i + 3] << 3);
	buffer[len++] = '\n';
	return len;
}

static const struct kernel_param_ops mutant_ops = {
	.set = set_mutant, .get = param_get_uint,
};
static const struct kernel_param_ops seen_ops = { .get = get_seen };

module_param_cb(mutant, &mutant_ops, &mutant_now, 0600);
module_param_cb(mutant_seen, &seen_ops, NULL, 0400);
