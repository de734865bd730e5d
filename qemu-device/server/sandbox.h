/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: give up what it does not need once all is open.
 *
 * A machine that takes over the process must find nothing there but the memory
 * of the machines, their connections and the uplink.
 */
#ifndef QHCA_SERVER_SANDBOX_H
#define QHCA_SERVER_SANDBOX_H

#include <stdbool.h>

/*
 * Drop all capabilities, and all system calls but some, for this thread and
 * those that it starts. There is no way back. A call that is not allowed fails
 * with EPERM; one that starts a program ends the process. In a build with a
 * sanitizer, which calls what it likes, only the capabilities go.
 *
 * Returns false after a message.
 */
bool sandbox_enter(void);

#endif /* QHCA_SERVER_SANDBOX_H */
