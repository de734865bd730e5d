// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-verify [LARGEST [two-sided]]
 *
 * An MPI program that checks every byte: windows of messages in both directions at
 * the same time, from eager ones to LARGEST bytes (4 MiB); collectives; one-sided
 * operations unless told otherwise. Any MPI, two ranks or more. Fails at the first
 * wrong byte.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH	32

static int rank, ranks;
static const char *doing;

static void die(size_t size, size_t i, long long got, long long want)
{
	fprintf(stderr, "rank %d: %s of %zu: element %zu is %lld, not %lld\n", rank, doing, size,
		i, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *memory(size_t size)
{
	void *p = malloc(size + 1);

	if (!p)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return p;
}

static uint8_t byte(int from, unsigned int n, size_t size, size_t i)
{
	return (uint8_t)(((uint32_t)i + 977 * n + 31 * (uint32_t)size + 7 * from) * 2654435761u >> 13);
}

static void fill(uint8_t *p, unsigned int n, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = byte(rank, n, size, i);
}

static void check(const uint8_t *p, int from, unsigned int n, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != byte(from, n, size, i))
			die(size, i, p[i], byte(from, n, size, i));
}

static void report(size_t size, double start)
{
	if (!rank)
		printf("%s of %zu bytes: %.3f s\n", doing, size, MPI_Wtime() - start);
	fflush(stdout);
}

/* All with their neighbours in the ring, many messages at a time each way. */
static void windows(size_t size)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	uint8_t *in[DEPTH], *out[DEPTH];
	MPI_Request req[2 * DEPTH];
	double start;
	int i, depth = size > 1 << 20 ? DEPTH / 4 : DEPTH;

	doing = "window";
	for (i = 0; i < depth; i++) {
		in[i] = memory(size);
		out[i] = memory(size);
		fill(out[i], i, size);
	}
	start = MPI_Wtime();
	for (i = 0; i < depth; i++)
		MPI_Irecv(in[i], size, MPI_BYTE, from, i, MPI_COMM_WORLD, &req[i]);
	for (i = 0; i < depth; i++)
		MPI_Isend(out[i], size, MPI_BYTE, to, i, MPI_COMM_WORLD, &req[depth + i]);
	MPI_Waitall(2 * depth, req, MPI_STATUSES_IGNORE);
	report(size, start);
	for (i = 0; i < depth; i++) {
		check(in[i], from, i, size);
		free(in[i]);
		free(out[i]);
	}
}

static void collect(size_t size)
{
	uint8_t *mine = memory(size * ranks), *all = memory(size * ranks);
	double start = MPI_Wtime();
	int i;

	doing = "bcast";
	for (i = 0; i < ranks; i++) {
		fill(mine, i, size);
		MPI_Bcast(mine, size, MPI_BYTE, i, MPI_COMM_WORLD);
		check(mine, i, i, size);
	}
	doing = "allgather";
	fill(mine, 3, size);
	MPI_Allgather(mine, size, MPI_BYTE, all, size, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < ranks; i++)
		check(all + i * size, i, 3, size);
	doing = "alltoall";
	for (i = 0; i < ranks; i++)
		fill(mine + i * size, i, size);
	MPI_Alltoall(mine, size, MPI_BYTE, all, size, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < ranks; i++)
		check(all + i * size, i, rank, size);
	doing = "bcast, allgather, alltoall";
	report(size, start);
	free(mine);
	free(all);
}

/* The sum over all ranks of (rank + 1) * (i + 1). */
static int64_t sum(size_t i)
{
	return (int64_t)(i + 1) * ranks * (ranks + 1) / 2;
}

static void reduce(size_t n)
{
	int64_t *mine = memory(n * 8), *all = memory(n * 8);
	double start = MPI_Wtime();
	size_t i;

	doing = "allreduce";
	for (i = 0; i < n; i++)
		mine[i] = (int64_t)(i + 1) * (rank + 1);
	MPI_Allreduce(mine, all, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		if (all[i] != sum(i))
			die(n, i, all[i], sum(i));
	report(n * 8, start);
	free(mine);
	free(all);
}

/* PUT, GET, accumulate and fetch-and-add at the neighbour's, or all at rank 0's. */
static void one_sided(size_t size)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	uint8_t *buf = memory(size), *win;
	int64_t one = 1, old, sums;
	double start;
	MPI_Win w;
	int i;

	doing = "one-sided";
	MPI_Win_allocate(size + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win, &w);
	memset(win, 0, size + 8);
	start = MPI_Wtime();
	MPI_Win_fence(0, w);
	fill(buf, 1, size);
	MPI_Put(buf, size, MPI_BYTE, to, 8, size, MPI_BYTE, w);
	MPI_Win_fence(0, w);
	check(win + 8, from, 1, size);
	MPI_Win_fence(0, w);
	MPI_Get(buf, size, MPI_BYTE, to, 8, size, MPI_BYTE, w);
	MPI_Win_fence(0, w);
	check(buf, rank, 1, size);
	for (i = 0; i < 100; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w);
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, w);
		MPI_Win_unlock(0, w);
		if (old < i || old >= 100 * ranks)
			die(8, i, old, i);
	}
	MPI_Win_fence(0, w);
	memcpy(&sums, win, 8);
	if (!rank && sums != 100 * ranks)
		die(8, 0, sums, 100 * ranks);
	report(size, start);
	MPI_Win_free(&w);
	free(buf);
}

int main(int argc, char **argv)
{
	size_t size, largest = 4 << 20;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 1)
		largest = strtoul(argv[1], NULL, 0);
	for (size = 0; size <= largest; size = size ? size * 4 : 1) {
		windows(size);
		collect(size);
		reduce(size / 8 + 1);
	}
	if (argc <= 2) {
		one_sided(100);
		one_sided(largest);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("%d ranks, all data is right\n", ranks);
	MPI_Finalize();
	return 0;
}
