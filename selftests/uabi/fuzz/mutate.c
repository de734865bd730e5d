// SPDX-License-Identifier: GPL-2.0
/* Mistakes that do not depend on the meaning of a request. */
#include "fuzz.h"

void spoil_bytes(void *p, size_t len)
{
	static const size_t sizes[] = { 1, 2, 4, 8 };
	size_t size = sizes[below(ARRAY_SIZE(sizes))];
	uint64_t n;
	uint8_t *at;

	if (len < size || !odd())
		return;
	at = (uint8_t *)p + below(len / size) * size;
	memcpy(&n, at, size);
	switch (below(3)) {
	case 0:
		n ^= 1ull << below(8 * size);
		break;
	case 1:
		n += one_in(2) ? 1 : -1;
		break;
	default:
		n = nonsense();
	}
	memcpy(at, &n, size);
}

uint64_t spoil_address(uint64_t good, size_t len)
{
	return odd() ? odd_address(len) : good;
}

uint32_t spoil_length(uint32_t len, uint32_t unit)
{
	if (!odd())
		return len;
	switch (len ? below(4) : 2 + below(2)) {
	case 0:
		return 0;
	case 1:
		return below(len / unit + 1) * unit;
	case 2:
		return len + unit * (1 + below(8));
	default:
		return 65536 - unit * below(3);
	}
}
