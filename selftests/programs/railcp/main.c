// SPDX-License-Identifier: GPL-2.0
/*
 * railcp [OPTION…] [DEVICE=ADDRESS[=PEER]…]
 *
 * Send data over all these adapters, for --seconds, and look at it at the other end. Without PEERs
 * the machine sends to itself; with them --serve is for the end that receives. In a machine of
 * scripts/vm the adapters are found, and machine b of two receives.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "railcp.h"

struct options opts = { .port = 18700 };

static const struct option longs[] = {
	{ "seconds", required_argument, NULL, 's' },
	{ "port", required_argument, NULL, 'p' },
	{ "serve", no_argument, NULL, 'S' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "never-rebuild", no_argument, NULL, 256 + NEVER_REBUILD },
	{ "keep-qps", no_argument, NULL, 256 + KEEP_QPS },
	{ "completions-only", no_argument, NULL, 256 + COMPLETIONS_ONLY },
	{ "split-evenly", no_argument, NULL, 256 + SPLIT_EVENLY },
	{ "retry-forever", no_argument, NULL, 256 + RETRY_FOREVER },
	{ "lose-flight", no_argument, NULL, 256 + LOSE_FLIGHT },
	{ }
};

static const char help[] =
	"railcp [OPTION...] [DEVICE=ADDRESS[=PEER]...]\n"
	"  -s, --seconds N    how long to send (10, or as long as the scenario takes)\n"
	"  -p, --port N       of TCP, for handshakes (18700)\n"
	"  -S, --serve        receive from the other machine\n"
	"  -v, --verbose      say which rail works and which does not\n"
	"Mistakes:\n"
	"  --never-rebuild    what has failed once is not used again\n"
	"  --keep-qps         go on with the old QP when the port is back\n"
	"  --completions-only wait for completions, see no event and have no timer\n"
	"  --split-evenly     give all rails the same, however fast they are\n"
	"  --retry-forever    what a rail has begun stays with it, for ever\n"
	"  --lose-flight      forget what was on its way when a rail failed\n";

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void say(const char *format, ...)
{
	static double start;
	char line[200];
	va_list args;

	if (!opts.verbose)
		return;
	if (!start)
		start = now();
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "railcp: %6.2f %s\n", now() - start, line);
}

static uint64_t word(uint64_t number, uint64_t i)
{
	return number * 0x9e3779b97f4a7c15 ^ i * 0xbf58476d1ce4e5b9;
}

void fill(uint64_t *words, uint64_t type, uint64_t number)
{
	uint64_t i;

	words[0] = type;
	words[1] = number;
	for (i = 2; i < WORDS; i++)
		words[i] = word(number ^ type, i);
}

bool intact(const uint64_t *words)
{
	uint64_t i;

	for (i = 2; i < WORDS; i++)
		if (words[i] != word(words[1] ^ words[0], i))
			return false;
	return true;
}

/* The words of a variable of scripts/vm's. */
static int words_of(const char *name, const char **out)
{
	char *save = NULL, *text = getenv(name), *word;
	int count = 0;

	text = strdup(text ? text : "");
	for (word = strtok_r(text, " ", &save); word && count < MAX_RAILS;
	     word = strtok_r(NULL, " ", &save))
		out[count++] = word;
	return count;
}

/* Returns whether this end receives. */
static bool from_environment(void)
{
	const char *role = getenv("QHCA_ROLE"), *scenario = getenv("QHCA_SCENARIO_SECONDS");
	bool two = getenv("QHCA_HOSTS");
	int i;

	if (!opts.seconds)
		opts.seconds = scenario && atof(scenario) ? atof(scenario) : 0;
	opts.rails = words_of("QHCA_DEVS", opts.dev);
	if (words_of("QHCA_IPS", opts.ip) < opts.rails)
		opts.rails = 0;
	for (i = 0; i < opts.rails; i++)
		opts.peer[i] = opts.ip[i];
	if (two)
		words_of("QHCA_RAIL_PEERS", opts.peer);
	return two && role && *role != 'a';
}

static bool parse_rail(char *text)
{
	char *ip = strchr(text, '='), *peer = ip ? strchr(ip + 1, '=') : NULL;
	int i = opts.rails;

	if (!ip || i == MAX_RAILS)
		return false;
	*ip++ = 0;
	if (peer)
		*peer++ = 0;
	opts.dev[i] = text;
	opts.ip[i] = ip;
	opts.peer[i] = peer ? peer : ip;
	opts.rails++;
	return true;
}

static int listen_tcp(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(opts.port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 64)) {
		perror("railcp: listen");
		exit(2);
	}
	return fd;
}

/* Both ends, in two processes; what the first of them fails with. */
static int both(void)
{
	int listener = listen_tcp(), status = 0, rc;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		opts.wrong = 0;
		exit(receive_all(listener));
	}
	close(listener);
	rc = send_all();
	if (rc)
		kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return rc ? rc : !WIFEXITED(status) || WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	bool serve = false, usage = false;
	int c, i;

	while ((c = getopt_long(argc, argv, "s:p:Svh", longs, NULL)) != -1) {
		if (c > 256)
			opts.wrong |= c - 256;
		else if (c == 's')
			opts.seconds = atof(optarg);
		else if (c == 'p')
			opts.port = atoi(optarg);
		else if (c == 'S')
			serve = true;
		else if (c == 'v')
			opts.verbose = true;
		else
			usage = true;
	}
	for (i = optind; i < argc; i++)
		usage |= !parse_rail(argv[i]);
	if (!opts.rails && !usage)
		serve |= from_environment();
	if (usage || !opts.rails) {
		fputs(help, stderr);
		return 2;
	}
	if (!opts.seconds)
		opts.seconds = 10;
	signal(SIGPIPE, SIG_IGN);
	srandom(getpid());
	if (serve) {
		opts.wrong = 0;
		return receive_all(listen_tcp());
	}
	return strcmp(opts.ip[0], opts.peer[0]) ? send_all() : both();
}
