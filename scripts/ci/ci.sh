#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ci.sh [OPTION of `vm run`…] [-- COMMAND…]
# ci.sh --key
#
# The tests of another project: run COMMAND in a virtual machine with the device. It starts
# in the directory that this is called in, which the machine has, to read and to write.
# The exit status is the command's; 124 timeout, 125 the machine died, 123 the kernel
# complained. With --scenario NAME something happens to the two adapters of the machine, and the
# status is the verdict's, 0 or 1. CI systems give their settings as variables:
#
#   QHCA_RUN       the command, as shell text
#   QHCA_PACKAGES  packages of Debian's that it needs, besides compilers and rdma-core
#   QHCA_JUNIT     file for the results: exit status, and each line of TAP
#   QHCA_OPTIONS   other options for `vm run`, as words
#   QHCA_CI_CACHE  a directory that the CI system keeps from run to run: in it is, in one
#                  file, what a run needs, so that the next one does not build it
#
# --key prints what that depends on, to keep it under.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

# Results that a run needs, besides the build root; with them it needs none of the trees that
# they were built in. Used results are touched.
KEPT=(image beside stock-qemu qhca-so qemu-source modules provider selftests guest-kernel)

# Debian's mirrors have a package for some weeks only: nothing is kept longer than a month.
key()
{
	hash_text "$QHCA_SUITE" "$(date +%Y-%m)" "${QHCA_PACKAGES:-}" "${QHCA_OPTIONS:-}" \
		"$(hash_tree "$QHCA_TOP"/{drivers,include,providers,qemu-device,scripts,selftests,Kbuild})"
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
--key) key; exit 0 ;;
esac

archive=${QHCA_CI_CACHE:+$QHCA_CI_CACHE/qhca.tar}

unpack()
{
	[ -n "$archive" ] && [ -e "$archive" ] || return 0
	run_step "what an earlier run has built" as_root tar -C "$QHCA_CACHE" -xf "$archive"
}

# shellcheck disable=SC2317 # by name
archive() { as_root tar -C "$QHCA_CACHE" --one-file-system -cS "$@" >"$archive"; }

# With the owners that files have there, and holes in images as holes.
pack()
{
	local list
	[ -n "$archive" ] && [ "$(cat "$archive.key" 2>/dev/null)" != "$(key)" ] || return 0
	mapfile -t list < <(cd "$QHCA_CACHE" && for kind in "${KEPT[@]}"; do
		find . -maxdepth 2 -path "./$kind-*/.complete" -newer "$start" -printf '%h\n'; done)
	[ ${#list[@]} != 0 ] || return 0
	list+=("$(basename "$(buildroot_dir)")")
	mkdir -p "$QHCA_CI_CACHE"
	rm -f "$archive" "$archive.key"
	run_step "keep what was built" archive "${list[@]}"
	key >"$archive.key"
}

# Hosted runners have it, but for a group that the job is not in.
allow_kvm()
{
	[ -e /dev/kvm ] && [ ! -w /dev/kvm ] || return 0
	sudo -n chmod a+rw /dev/kvm 2>/dev/null || :
}

options=()
for package in ${QHCA_PACKAGES:-}; do options+=(--package "$package"); done
[ -z "${QHCA_JUNIT:-}" ] || options+=(--junit "$QHCA_JUNIT")
# shellcheck disable=SC2206 # words
options+=(${QHCA_OPTIONS:-})
[[ " $* " == *" -- "* ]] || set -- "$@" -- "${QHCA_RUN:?is the command, or what stands behind --}"

allow_kvm
"$QHCA_TOP/scripts/build/host-deps.sh"
unpack
start=$(mktemp "$QHCA_CACHE/tmp/ci.XXXXXX")
trap 'rm -f "$start"' EXIT
rc=0
"$QHCA_TOP/scripts/vm" run --mount . "${options[@]}" "$@" || rc=$?
pack
exit $rc
