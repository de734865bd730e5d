/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Checks of the attributes of a new object. */
#ifndef QHCA_GIVEN_H
#define QHCA_GIVEN_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An object that a caller gives in the attributes of a new one, if it sets @bit of their
 * comp_mask. libibverbs reads the handle of each without a look at the pointer.
 */
struct qhca_given {
	uint32_t bit;
	const void *object;
};

#define QHCA_GIVEN_ALWAYS	0	/* in place of a bit */

/* Return EINVAL if an object is missing that the attributes are said to have. */
static inline int qhca_check_given(uint32_t comp_mask,
				   const struct qhca_given *given, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!given[i].object &&
		    (given[i].bit == QHCA_GIVEN_ALWAYS || comp_mask & given[i].bit))
			return EINVAL;
	return 0;
}

#endif /* QHCA_GIVEN_H */
