// SPDX-License-Identifier: GPL-2.0
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "faults.h"

#define DEBUGFS	"/sys/kernel/debug"

static char path[256];

/* Returns false if the operator allows no rules. */
static bool find_file(void)
{
	glob_t g;

	if (access(DEBUGFS "/qhca", F_OK))
		mount("none", DEBUGFS, "debugfs", 0, NULL);
	if (glob(DEBUGFS "/qhca/*/faults", 0, NULL, &g))
		return false;
	snprintf(path, sizeof(path), "%s", g.gl_pathv[0]);
	globfree(&g);
	return true;
}

struct dev *faults_open(void)
{
	struct dev *d = dev_open_qhca();

	if (!find_file())
		test_skip("needs -device qhca,guest-faults=on");
	return d;
}

int faults_set(const char *rules)
{
	return write_file(path, rules);
}

const char *faults_text(void)
{
	static char text[8192];
	FILE *f = fopen(path, "r");
	size_t len;

	REQUIRE(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	return text;
}

int faults_hits(void)
{
	const char *at = strstr(faults_text(), "# hits ");

	return at ? atoi(at + 7) : -1;
}

void faults_clear(void)
{
	if (find_file())
		faults_set("\n");
}
