// SPDX-License-Identifier: GPL-2.0
/* Statements of the device about itself: see claims.h. */
#include <endian.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "claims.h"

/* The value of a field of up to 8 bytes; of a longer one whether any byte of it is set. */
static uint64_t value(const uint8_t *answer, const struct claim *c)
{
	uint64_t v = 0;
	size_t i;

	if (c->size <= sizeof(v)) {
		memcpy((uint8_t *)&v + (htole16(1) == 1 ? 0 : sizeof(v) - c->size), answer + c->at,
		       c->size);
		return v;
	}
	for (i = 0; i < c->size; i++)
		v |= answer[c->at + i];
	return v;
}

static void check_claim(const uint8_t *answer, const struct claim *c)
{
	uint64_t v = value(answer, c);

	if (c->any && !v)
		FAIL("%s is 0", c->name);
	if (!c->any && v != c->want)
		FAIL("%s is %#llx, not %#llx", c->name, (unsigned long long)v,
		     (unsigned long long)c->want);
	check_proof(c->name, c->proof);
}

void check_claims(const void *answer, size_t len, const struct claim *claims, size_t n)
{
	const uint8_t *bytes = answer;
	uint8_t *known = calloc(1, len);
	size_t i, j;

	REQUIRE(known);
	for (i = 0; i < n; i++) {
		for (j = claims[i].at; j < claims[i].at + claims[i].size; j++) {
			REQUIRE(j < len);
			if (known[j]++)
				FAIL("%s is in the table twice", claims[i].name);
		}
		check_claim(bytes, &claims[i]);
	}
	for (i = 0; i < len; i++)
		if (!known[i])
			FAIL("byte %zu of %zu, %#x, is of no field in the table", i, len, bytes[i]);
	free(known);
}

/* The test programs are beside this one. */
static bool test_exists(const char *program, const char *function)
{
	char self[512], cmd[640], line[512], want[64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	bool found = false;
	FILE *f;

	REQUIRE(len > 0);
	self[len] = '\0';
	snprintf(cmd, sizeof(cmd), "%s/%s -l 2>&1", dirname(self), program);
	snprintf(want, sizeof(want), "%s: ", function);
	f = popen(cmd, "r");
	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		found |= !strncmp(line, want, strlen(want));
	return !pclose(f) && found;
}

void check_proof(const char *name, const char *proof)
{
	char program[32], function[32];
	int used;

	if (!proof || !*proof)
		FAIL("%s has no proof", name);
	while (proof && *proof && *proof != '(') {
		if (sscanf(proof, "%31[a-z0-9_]: %31[a-z0-9_]%n", program, function, &used) != 2) {
			FAIL("%s: \"%s\" is no proof", name, proof);
			return;
		}
		if (!test_exists(program, function))
			FAIL("%s: there is no test %s in %s", name, function, program);
		proof += used;
		proof += strspn(proof, ", ");
	}
}
