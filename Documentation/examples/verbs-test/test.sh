#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The tests of this project, on the RDMA device of the machine they run in. TAP output ends up in
# the JUnit file, test by test; the exit status counts as well.

set -e
make
./write_test "$QHCA_DEV" "$QHCA_GID" | tee results.tap
! grep -q '^not ok\|^Bail out' results.tap
