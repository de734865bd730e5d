/* SPDX-License-Identifier: GPL-2.0 */
/* Memory whose pages do not come: a file of a FUSE server that does not answer READ. */
#ifndef SELFTESTS_STUCK_H
#define SELFTESTS_STUCK_H

#include <stddef.h>
#include <stdint.h>

/* Starts the server; its pages come neither now nor later. Skips the test if that cannot be. */
void stuck_start(void);
/* Maps @len bytes of its file, none of which is in memory. */
uint8_t *stuck_map(size_t len);
/* Ends the server: accesses that wait for a page get an error. */
void stuck_end(void);

#endif /* SELFTESTS_STUCK_H */
