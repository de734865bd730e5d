// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca.ko: definition of the tracepoints. */
#include "qhca.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
