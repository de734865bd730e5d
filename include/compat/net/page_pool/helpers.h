/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Before 6.6 the page pool had only the header net/page_pool.h. */
#include <net/page_pool.h>
