/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In user space the environment says it: MUTANT is the number, MUTANT_SEEN a file with a
 * byte for each one, which is mapped, so that it is right whatever ends the program.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mutant.h"

static unsigned char unseen[MUTANTS];

unsigned int mutant_now;
unsigned char *mutant_seen = unseen;

__attribute__((constructor(101))) static void mutant_begin(void)
{
	const char *now = getenv("MUTANT"), *seen = getenv("MUTANT_SEEN");
	void *map;
	int fd;

	if (now)
		mutant_now = (unsigned int)strtoul(now, NULL, 0);
	fd = seen ? open(seen, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	map = mmap(NULL, MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		mutant_seen = map;
	close(fd);
}
