/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: give up what it does not need once all is open.
 *
 * An overlooked call fails, as calls can, and ends one operation of one
 * machine. If it ended the process, a machine that finds such a call could end
 * the devices of all others. Only a process that starts a program is not the
 * server any more, whatever else it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox.h"

static bool fail(const char *what, int error)
{
    fprintf(stderr, "qhca-server: sandbox: %s: %s\n", what, strerror(error));
    return false;
}

/* Root without them is a user whom many files belong to: see the filter. */
static bool drop_capabilities(void)
{
    struct __user_cap_header_struct head = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
    int cap = 0;

    /* Up to the last one there is. A user may not, and never has any. */
    while (!prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)) {
        cap++;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return !syscall(SYS_capset, &head, none) || fail("capabilities", errno);
}

#ifdef QHCA_SECCOMP

#include <seccomp.h>

/* struct rule - a call, with the bits @mask of argument @arg like @value */
struct rule {
    int call;
    unsigned arg;
    uint64_t mask, value;
};

#define ALLOW(name)             { SCMP_SYS(name), 0, 0, 0 }
#define ONLY(name, arg, value)  { SCMP_SYS(name), arg, UINT32_MAX, value }
#define BITS(name, arg, mask, value) { SCMP_SYS(name), arg, mask, value }

static const struct rule rules[] = {
    /* Machines, which connect and hand over memory and eventfds. */
    ALLOW(accept), ALLOW(accept4), ALLOW(recvfrom), ALLOW(recvmsg),
    ALLOW(sendmsg), ALLOW(shutdown), ALLOW(fstat), ALLOW(close),
    ONLY(setsockopt, 2, SO_SNDTIMEO), ONLY(setsockopt, 2, SO_OOBINLINE),
    /* Without an address: a datagram could go to any socket. */
    BITS(sendto, 4, UINT64_MAX, 0),
    ONLY(ioctl, 1, FIONREAD), ONLY(ioctl, 1, SIOCOUTQ),
    ONLY(fcntl, 1, F_GETFL), ONLY(fcntl, 1, F_SETFL),
    /* The uplink, messages, eventfds of the server's own. */
    ALLOW(read), ALLOW(write), ALLOW(writev),
    /* Interrupts. */
    ALLOW(io_submit), ALLOW(io_getevents),
    /* Memory of the device for the next machine. */
    ALLOW(memfd_create), ALLOW(ftruncate), ALLOW(dup3),
    ONLY(fcntl, 1, F_ADD_SEALS), ONLY(fcntl, 1, F_GET_SEALS),
    /* Memory; none of it becomes code. */
    BITS(mmap, 2, PROT_EXEC, 0), BITS(mprotect, 2, PROT_EXEC, 0),
    ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(brk),
    /* Waiting, time and chance. */
    ALLOW(poll), ALLOW(ppoll), ALLOW(clock_gettime), ALLOW(getrandom),
    ALLOW(restart_syscall),
    /* Threads, but no processes; see the error of clone3() below. */
    BITS(clone, 0, CLONE_THREAD, CLONE_THREAD), ALLOW(futex),
    ALLOW(set_robust_list), ALLOW(rseq), ALLOW(gettid), ALLOW(getpid),
    ONLY(prctl, 0, PR_SET_NAME), ALLOW(exit), ALLOW(exit_group),
    /* Signals: memory that is not there any more, and the server's end. */
    ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn),
};

static int add_rules(scmp_filter_ctx filter)
{
    int ret = 0;

    for (size_t i = 0; !ret && i < sizeof(rules) / sizeof(rules[0]); i++) {
        const struct rule *rule = &rules[i];

        ret = seccomp_rule_add(filter, SCMP_ACT_ALLOW, rule->call,
                               rule->mask ? 1 : 0,
                               SCMP_CMP(rule->arg, SCMP_CMP_MASKED_EQ,
                                        rule->mask, rule->value));
    }
    return ret;
}

static int add_exceptions(scmp_filter_ctx filter)
{
    /* Its flags are in memory, out of sight; the C library falls back. */
    int ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS),
                               SCMP_SYS(clone3), 0);

    ret = ret ? ret : seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS,
                                       SCMP_SYS(execve), 0);
    ret = ret ? ret : seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS,
                                       SCMP_SYS(execveat), 0);
    /* An assertion that fails ends the process by a signal to itself. */
    return ret ? ret : seccomp_rule_add(filter, SCMP_ACT_ALLOW,
                                        SCMP_SYS(tgkill), 1,
                                        SCMP_A0(SCMP_CMP_EQ,
                                                (scmp_datum_t)getpid()));
}

static bool filter_calls(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int ret = filter ? add_rules(filter) : -ENOMEM;

    ret = ret ? ret : add_exceptions(filter);
    /* Threads that have been started already come along. */
    ret = ret ? ret : seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    ret = ret ? ret : seccomp_load(filter);
    seccomp_release(filter);
    return !ret || fail("seccomp", -ret);
}

#else

static bool filter_calls(void)
{
    return true;
}

#endif

bool sandbox_enter(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        return fail("no_new_privs", errno);
    }
    return drop_capabilities() && filter_calls();
}
