/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca engine tests: a simulator of queue pairs on a bad network.
 *
 * A seed decides everything: how many machines and queue pairs, their work
 * requests, what the network does and when the program posts.
 *
 *   sim                         a bounded run of every kind, as TAP
 *   sim --count N --jobs J      N schedules of all kinds, by J processes (as
 *                               many as there are processors)
 *   sim --seed S --kind K       one schedule of one kind; --story tells it
 *   sim --seed date             other schedules each day
 *   sim --fault RULES           all devices misbehave as well, in ways that a
 *                               bad network may: Documentation/faults.rst
 *   sim --save-load N           each schedule twice: in the second run another
 *                               engine loads the state after every Nth call and
 *                               takes over; both runs must look the same
 *   sim --both                  each schedule twice, on one machine or two in
 *                               one place: once with frames, once with packets
 *                               that cross; both runs must look the same
 *
 * The output of a failing schedule ends with the command that replays it,
 * reduced as far as possible: fewer pairs, fewer WRs, a better network.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/debug.h"
#include "harness/digest.h"
#include "harness/seed.h"
#include "harness/snapshot.h"
#include "harness/story.h"
#include "sim.h"

#define DEFAULT_COUNT   1700u
#define MAX_JOBS        64u
/*
 * CPU time of a schedule after which it hangs; normally it takes milliseconds.
 */
#define HANG_SECONDS    120

/* So many schedules of a kind must meet all its events. */
#define MANY            100u

/* Memory shared by the processes. */
static struct shared {
    uint64_t playing[MAX_JOBS];         /* seed */
    uint64_t counter[QHCA_CNT_MAX];
    uint64_t snapshots;
    unsigned saw[SIM_KINDS][SIM_EVENTS];
    sim_pairs met;
} *shared;

#define ALL_KINDS       SIM_KINDS

static struct {
    unsigned seed, count, jobs, kind, save_load, both;
} opt = { .seed = 1, .count = DEFAULT_COUNT, .kind = ALL_KINDS };

static struct sim sim;

/* ---- in the process that runs schedules ---- */

static struct {
    uint64_t seed;
    enum sim_kind kind;
} now_playing;

static void play(void)
{
    CHECK(sim_run(&sim, now_playing.seed, now_playing.kind));
}

static void keep(void)
{
}

/* Creates new machines, because earlier schedules must not affect a digest. */
static void start_anew(void)
{
    harness_cleanup();
    memset(&sim, 0, sizeof(sim));
    memset(sim_machine, 0, sizeof(sim_machine));
    sim.net = net_new(1);
}

static const struct test test = { "", play };

static bool play_quietly(void)
{
    return tap_quiet(&test, keep);
}

/* Plays with frames and without; the guest must see the same. */
static bool play_both(void)
{
    const enum sim_kind kind = now_playing.kind;
    static struct seen seen[2];
    bool at_once = false;
    char name[60];

    for (unsigned i = 0; i < ARRAY_SIZE(seen); i++) {
        start_anew();
        sim.seen = &seen[i];
        sim.frames = i == 0;
        seen_clear(sim.seen);
        if (!play_quietly()) {
            return false;
        }
        at_once = at_once || sim.at_once;
    }
    /*
     * When the receiver sends an RNR NAK, the order of turns decides which WRs
     * have begun and must be drained, and how many packets a rule has seen.
     */
    if ((sim_drains(kind) || sim.ruled) &&
        seen_count(&seen[0], QHCA_CNT_RX_RNR_NAK)) {
        return true;
    }
    /*
     * A refused request ends both QPs. If both are sending, the order of turns
     * decides which WRs of the QP that refuses it are complete by then.
     */
    if (at_once && (sim_errs(kind) || kind == SIM_UNBIND)) {
        return true;
    }
    snprintf(name, sizeof(name), "seed %llu kind %d",
             (unsigned long long)now_playing.seed, (int)kind);
    return seen_same(name, &seen[0], &seen[1]);
}

/* Plays on new machines and returns the digest; @save_load: see --save-load. */
static bool play_from_start(unsigned save_load, uint64_t *digest)
{
    bool ok;

    start_anew();
    digest_start();
    snapshot_every(save_load);
    ok = play_quietly();
    snapshot_every(0);
    *digest = digest_value();
    return ok;
}

static bool play_twice(void)
{
    uint64_t before = snapshot_count(), one, two;

    if (!play_from_start(0, &one) || !play_from_start(opt.save_load, &two)) {
        return false;
    }
    shared->snapshots += snapshot_count() - before;
    if (one != two) {
        printf("# seed %llu kind %d: differs after a state was loaded\n",
               (unsigned long long)now_playing.seed, (int)now_playing.kind);
    }
    return one == two;
}

static bool play_one(uint64_t seed, enum sim_kind kind)
{
    const struct itimerval hang = { .it_value.tv_sec = HANG_SECONDS };
    bool ok;

    now_playing.seed = seed;
    now_playing.kind = kind;
    REQUIRE(!setitimer(ITIMER_PROF, &hang, NULL));
    if (opt.save_load) {
        return play_twice();
    }
    if (opt.both) {
        return play_both();
    }
    if (digest_wanted()) {
        start_anew();
        digest_begin();
    }
    if (!sim.net) {
        sim.net = net_new(1);
    }
    ok = play_quietly();
    digest_end("sim %d %llu", (int)kind, (unsigned long long)seed);
    return ok;
}

/* Every opt.jobs-th of @n schedules. Stops at the first that fails. */
static bool play_share(enum sim_kind kind, unsigned job, unsigned n)
{
    bool ok = true;

    for (unsigned i = job; ok && i < n; i += opt.jobs) {
        shared->playing[job] = opt.seed + i;
        ok = play_one(opt.seed + i, kind);
        sim_features_count(&sim, shared->met);
        for (unsigned e = 0; e < SIM_EVENTS; e++) {
            __atomic_fetch_add(&shared->saw[kind][e], sim.saw[e],
                               __ATOMIC_RELAXED);
        }
        memset(sim.saw, 0, sizeof(sim.saw));
    }
    for (unsigned i = 0; i < SIM_MAX_NODES; i++) {
        for (unsigned c = 0; sim_machine[i] && c < QHCA_CNT_MAX; c++) {
            __atomic_fetch_add(&shared->counter[c],
                               counter(sim_machine[i], (enum qhca_counter)c),
                               __ATOMIC_RELAXED);
        }
    }
    harness_cleanup();
    return ok;
}

/* ---- reducing a failure ---- */

/* Whether the schedule fails, in any way, in a process of its own. */
static bool fails(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout) ||
            !freopen("/dev/null", "w", stderr)) {
            _exit(0);
        }
        _exit(play_one(now_playing.seed, now_playing.kind) ? 0 : 1);
    }
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status != 0;
}

static void report(uint64_t seed, enum sim_kind kind)
{
    now_playing.seed = seed;
    now_playing.kind = kind;
    if (!fails()) {
        printf("# seed %llu fails only after others\n",
               (unsigned long long)seed);
        return;
    }
    sim_shrink(fails);
    sim_print_replay(seed, kind, opt.both, opt.save_load);
}

/* ---- all of one kind ---- */

/* LeakSanitizer's own check runs only at the end of main(). */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static bool leaks(void)
{
    return __lsan_do_recoverable_leak_check &&
           __lsan_do_recoverable_leak_check();
}

static bool run_kind(enum sim_kind kind, unsigned n)
{
    struct sim_limits limits = sim_limits;
    bool prompt = sim_moves || opt.both || *sim_faults;
    unsigned must = sim_must_see[kind] & ~((unsigned)prompt << SIM_SAW_LATE);
    pid_t pid[MAX_JOBS];
    bool ok = true;
    int status;

    fflush(stdout);
    for (unsigned j = 0; j < opt.jobs; j++) {
        pid[j] = fork();
        REQUIRE(pid[j] >= 0);
        if (pid[j] == 0) {
            ok = play_share(kind, j, n) && !leaks();
            fflush(stdout);
            _exit(ok ? 0 : 1);
        }
    }
    for (unsigned j = 0; j < opt.jobs; j++) {
        REQUIRE(waitpid(pid[j], &status, 0) == pid[j]);
        if (status != 0 && ok) {
            ok = false;
            report(shared->playing[j], kind);
            sim_limits = limits;
        }
    }
    if (opt.both) {
        /* No frames are sent, no CQs are armed, and all is sent in time. */
        must &= ~(SAW(REFUSED) | SAW(COMP) | SAW(GATE));
    }
    if (opt.both || *sim_faults) {
        /* These need a network of their own. */
        must &= ~(SAW(CHANGE) | SAW(GAP));
    }
    for (unsigned i = 0; i < SIM_EVENTS; i++) {
        if (n >= MANY && (must >> i & 1) && !shared->saw[kind][i]) {
            printf("# %s: in none of %u schedules\n", sim_event_name[i], n);
            ok = false;
        }
    }
    return ok;
}

/* Prints what the schedules met; false: some kind has missed an event. */
static bool saw_trouble(unsigned n)
{
    static const enum qhca_counter which[] = {
        QHCA_CNT_TX_PKTS, QHCA_CNT_RETRANSMIT, QHCA_CNT_TIMEOUT,
        QHCA_CNT_RX_DUPLICATE, QHCA_CNT_RX_OUT_OF_SEQ, QHCA_CNT_RX_NAK_SEQ,
        QHCA_CNT_RX_RNR_NAK, QHCA_CNT_RX_ICRC, QHCA_CNT_RETRY_EXC,
        QHCA_CNT_RX_REFUSED,
    };
    /* With these options each schedule has machines of its own. */
    bool judge = n >= MANY && !digest_wanted() && !opt.save_load && !opt.both;
    bool ok = true;

    for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
        printf("# %s %llu\n", qhca_counter_name(which[i]),
               (unsigned long long)shared->counter[which[i]]);
        ok = ok && (!judge || shared->counter[which[i]]);
    }
    return ok;
}

static bool run_all(void)
{
    unsigned n = MAX_OF(opt.count / SIM_KINDS, 1u), bad = 0;
    struct timespec t0, t1;
    double seconds;
    bool ok;

    printf("# replay: sim --seed %u --count %u --fault '%s'\n", opt.seed,
           opt.count, sim_faults);
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (unsigned k = 0; k < SIM_KINDS; k++) {
        ok = run_kind((enum sim_kind)k, n);
        bad += !ok;
        printf("%s %u - %s\n", ok ? "ok" : "not ok", k + 1, sim_kind_name[k]);
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    seconds = (double)(t1.tv_sec - t0.tv_sec) +
              (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;
    printf("# %u schedules, %.0f per second\n", n * SIM_KINDS,
           n * SIM_KINDS / seconds);
    ok = saw_trouble(n);
    if (opt.save_load) {
        printf("# saved and loaded %llu times\n",
               (unsigned long long)shared->snapshots);
        ok = ok && shared->snapshots;
    }
    printf("%s %u - every kind of trouble has been met\n",
           ok ? "ok" : "not ok", SIM_KINDS + 1u);
    bad += !ok;
    ok = sim_features_report(shared->met, n >= MANY && !opt.both);
    printf("%s %u - every pair of features has been drawn\n1..%u\n",
           ok ? "ok" : "not ok", SIM_KINDS + 2u, SIM_KINDS + 2u);
    return ok && !bad;
}

/* ---- main ---- */

static unsigned story;

/* Options that take a number, and those that do not. */
static const struct {
    const char *name;
    unsigned *value;
    bool is_flag;
} options[] = {
    { "--seed", &opt.seed, false },
    { "--count", &opt.count, false },
    { "--jobs", &opt.jobs, false },
    { "--kind", &opt.kind, false },
    { "--save-load", &opt.save_load, false },
    { "--both", &opt.both, true },
    { "--pairs", &sim_limits.pairs, false },
    { "--wr", &sim_limits.wr, false },
    { "--without", &sim_limits.without, false },
    { "--no-loss", &sim_limits.no_loss, true },
    { "--no-dup", &sim_limits.no_dup, true },
    { "--no-reorder", &sim_limits.no_reorder, true },
    { "--no-corrupt", &sim_limits.no_corrupt, true },
    { "--story", &story, true },
};

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        unsigned o = 0;

        if (!strcmp(argv[i], "--fault") && i + 1 < argc) {
            sim_faults = argv[++i];
            continue;
        }
        while (o < ARRAY_SIZE(options) && strcmp(argv[i], options[o].name)) {
            o++;
        }
        if (o == ARRAY_SIZE(options) ||
            (!options[o].is_flag && ++i == argc)) {
            return false;
        }
        *options[o].value = options[o].is_flag ?
                            1 : (unsigned)seed_parse(argv[i]);
    }
    if (opt.jobs == 0) {
        opt.jobs = MIN_OF((unsigned)sysconf(_SC_NPROCESSORS_ONLN), MAX_JOBS);
    }
    sim_moves = opt.save_load;
    return opt.kind <= ALL_KINDS && opt.jobs <= MAX_JOBS;
}

static void usage(void)
{
    fprintf(stderr, "usage: sim");
    for (unsigned o = 0; o < ARRAY_SIZE(options); o++) {
        fprintf(stderr, " [%s%s]", options[o].name,
                options[o].is_flag ? "" : " N");
    }
    fprintf(stderr, " [--fault RULES]\nkinds:\n");
    for (unsigned k = 0; k < SIM_KINDS; k++) {
        fprintf(stderr, "  %2u  %s\n", k, sim_kind_name[k]);
    }
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        usage();
        return 2;
    }
    harness_verify(VERIFY_SOMETIMES);
    setvbuf(stdout, NULL, _IOLBF, 0);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("sim");
        return 2;
    }
    story_want(story || story_wanted());
    if (opt.kind != ALL_KINDS) {
        bool ok = play_one(opt.seed, (enum sim_kind)opt.kind);

        printf("%s 1 - seed %u, %s\n1..1\n", ok ? "ok" : "not ok", opt.seed,
               sim_kind_name[opt.kind]);
        harness_cleanup();
        return ok ? 0 : 1;
    }
    return run_all() ? 0 : 1;
}
