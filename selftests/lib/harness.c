// SPDX-License-Identifier: GPL-2.0
/* The harness: see harness.h. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define MAX_TESTS	512
#define MAX_PATTERNS	16
#define TIMEOUT		60	/* seconds, for emulated machines under load */

struct test {
	int line;
	int index;
	const char *function;
	const char *title;
	const char *row_name;
	void (*fn)(const void *row);
	const void *row;
};

/* struct report - data that the process of a test passes to the harness before it ends */
struct report {
	unsigned int failures;
	unsigned int timeout;
	char skip[256];
};

static struct test tests[MAX_TESTS];
static int num_tests;
static struct report *report;
static bool verbose;

void test_add(int line, const char *function, const char *title, const char *row_name,
	      void (*fn)(const void *row), const void *row)
{
	if (num_tests == MAX_TESTS) {
		fprintf(stderr, "MAX_TESTS is too small\n");
		abort();
	}
	tests[num_tests] = (struct test){
		line, num_tests, function, title, row_name, fn, row
	};
	num_tests++;
}

/* Sorts tests in the order of the source, whatever the order of constructors. */
static int by_line(const void *a, const void *b)
{
	const struct test *x = a, *y = b;

	return x->line != y->line ? x->line - y->line : x->index - y->index;
}

static void comment(const char *fmt, va_list ap)
{
	printf("# ");
	vprintf(fmt, ap);
	printf("\n");
	fflush(stdout);
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	report->failures++;
	if (report->failures == 25)
		test_note("further failures are not shown");
	if (report->failures >= 25)
		return;
	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

void test_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	comment(fmt, ap);
	va_end(ap);
}

void test_die(void)
{
	fflush(stdout);
	_exit(KSFT_FAIL);
}

void test_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(report->skip, sizeof(report->skip), fmt, ap);
	va_end(ap);
	fflush(stdout);
	_exit(report->failures ? KSFT_FAIL : KSFT_SKIP);
}

unsigned int test_patience(void)
{
	static unsigned int times;
	const char *text;

	if (!times) {
		text = getenv("KSELFTEST_PATIENCE");
		times = text ? strtoul(text, NULL, 0) : 0;
		times = times ? times : 1;
	}
	return times;
}

void test_timeout(unsigned int seconds)
{
	report->timeout = seconds;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Waits for @pid until its timeout, which the test may still change. Returns whether it ended. */
static bool wait_for(pid_t pid, int *status)
{
	const struct timespec tick = { .tv_nsec = 100 * 1000 * 1000 };
	int64_t start = now_ms();
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		if (now_ms() - start > report->timeout * test_patience() * 1000LL)
			return false;
		sigtimedwait(&chld, NULL, &tick);
	}
}

static int run(const struct test *t)
{
	int status = 0;
	pid_t pid;

	memset(report, 0, sizeof(*report));
	report->timeout = TIMEOUT;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return KSFT_FAIL;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		t->fn(t->row);
		fflush(stdout);
		_exit(report->failures ? KSFT_FAIL : KSFT_PASS);
	}
	if (!wait_for(pid, &status)) {
		printf("# no end after %u s\n", report->timeout * test_patience());
		kill(pid, SIGKILL);
		report->timeout = 20;
		if (!wait_for(pid, &status))
			printf("# and process %d cannot be killed\n", pid);
		return KSFT_FAIL;
	}
	if (WIFSIGNALED(status)) {
		printf("# died of signal %d (%s)\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
		return KSFT_FAIL;
	}
	if (WEXITSTATUS(status) == KSFT_SKIP && !report->failures)
		return KSFT_SKIP;
	return WEXITSTATUS(status) || report->failures ? KSFT_FAIL : KSFT_PASS;
}

static void print_name(const struct test *t)
{
	printf("%s%s%s", t->title, t->row_name ? ": " : "",
	       t->row_name ? t->row_name : "");
}

static bool selected(const struct test *t, char *const *patterns, int n)
{
	char name[512];
	int i;

	snprintf(name, sizeof(name), "%s%s%s", t->title, t->row_name ? ": " : "",
		 t->row_name ? t->row_name : "");
	for (i = 0; i < n; i++)
		if (strcasestr(name, patterns[i]))
			return true;
	return !n;
}

static int select_tests(char *const *patterns, int n)
{
	int i, kept = 0;

	qsort(tests, num_tests, sizeof(tests[0]), by_line);
	for (i = 0; i < num_tests; i++)
		if (selected(&tests[i], patterns, n))
			tests[kept++] = tests[i];
	return kept;
}

static int run_all(void)
{
	int count[KSFT_SKIP + 1] = { 0 };
	int i, result;
	int64_t start;

	printf("TAP version 13\n1..%d\n", num_tests);
	for (i = 0; i < num_tests; i++) {
		start = now_ms();
		result = run(&tests[i]);
		count[result]++;
		printf("%s %d ", result == KSFT_FAIL ? "not ok" : "ok", i + 1);
		print_name(&tests[i]);
		if (result == KSFT_SKIP)
			printf(" # SKIP %s", report->skip);
		else if (verbose)
			printf(" # %lld ms", (long long)(now_ms() - start));
		printf("\n");
	}
	printf("# Totals: pass:%d fail:%d xfail:0 xpass:0 skip:%d error:0\n",
	       count[KSFT_PASS], count[KSFT_FAIL], count[KSFT_SKIP]);
	fflush(stdout);
	if (count[KSFT_FAIL])
		return KSFT_FAIL;
	return count[KSFT_PASS] ? KSFT_PASS : KSFT_SKIP;
}

int main(int argc, char **argv)
{
	char *patterns[MAX_PATTERNS];
	int opt, i, n = 0;
	bool list = false;
	sigset_t chld;

	while ((opt = getopt(argc, argv, "lvt:")) != -1) {
		if (opt == 'l') {
			list = true;
		} else if (opt == 'v') {
			verbose = true;
		} else if (opt == 't' && n < MAX_PATTERNS) {
			patterns[n++] = optarg;
		} else {
			fprintf(stderr, "usage: %s [-l] [-v] [-t TEXT]...\n",
				argv[0]);
			return 2;
		}
	}
	num_tests = select_tests(patterns, n);
	if (list) {
		for (i = 0; i < num_tests; i++) {
			printf("%s: ", tests[i].function);
			print_name(&tests[i]);
			printf("\n");
		}
		return 0;
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED) {
		perror("mmap");
		return KSFT_FAIL;
	}
	return run_all();
}
