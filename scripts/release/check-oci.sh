#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-oci.sh [DIR]
#
# Run the image that `make oci` makes, or has made in DIR, with crun and without a network,
# /dev/kvm or a daemon, as a user without capabilities and with the system calls that Podman
# leaves: its qhca-vm does the job of `make run`, and connects two machines. Prints
# TAP and totals.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
-h|--help) usage; exit 0 ;;
esac

# shellcheck disable=SC2034 # for result.sh
LOGS=$QHCA_CACHE/logs/check-oci
. "$QHCA_TOP/selftests/guest/result.sh"
WORK=$(mktemp -d "$QHCA_CACHE/tmp/oci.XXXXXX")
trap 'as_root rm -rf --one-file-system "$WORK"' EXIT

inside() { "$QHCA_TOP/scripts/build/buildroot.sh" --oci --root -- "$@"; }

unpack() { inside umoci unpack --image "$(br_path "$1/layout")" "$(br_path "$WORK/bundle")"; }

# run COMMAND…: what `podman run IMAGE COMMAND…` would start.
run()
{
	as_root "$QHCA_TOP/scripts/release/oci-config.py" "$WORK/bundle/config.json" \
		"$(buildroot_dir)/usr/share/containers/seccomp.json" "$@" || return
	# shellcheck disable=SC2016 # expands inside
	inside sh -ec '
		# It looks for cgroups there, and not every mixture of them suits it; and its root
		# has to be a mount.
		mount -t tmpfs none /sys/fs/cgroup
		mount --rbind / /mnt
		exec chroot /mnt crun --cgroup-manager=disabled --root /tmp/crun run --bundle "$1" "$2"
	' sh "$(br_path "$WORK/bundle")" "qhca-$$" </dev/null
}

oci=${1:-$("$QHCA_TOP/scripts/release/build-oci.sh")}
plan oci unpack help run mount pair served alone
export EXPECT_LINES=30
if expect oci/unpack unpack "$oci"; then
	expect oci/help run --help
	# A runtime mounts this at /src, and qhca-vm in the guest.
	printf '#!/bin/sh\n/opt/qhca/guest/demo.sh && uname -r >release\n' |
		as_root install -m 755 /dev/stdin "$WORK/bundle/rootfs/src/test.sh"
	if run run --rxe --timeout 900 --mount . -- ./test.sh; then
		result ok oci/run
	else
		result fail oci/run
	fi
	expect oci/mount grep amd64 "$WORK/bundle/rootfs/src/release"
	# shellcheck disable=SC2016 # expands in the guests
	expect oci/pair run pair --timeout 900 -- \
		'qhca-host sync up; ib_write_bw -d $QHCA_DEV -x $QHCA_GID -F' -- \
		'qhca-host sync up; sleep 3; ib_write_bw -d $QHCA_DEV -x $QHCA_GID -F $QHCA_PEER'
	# shellcheck disable=SC2016 # expands in the guest
	expect oci/served run run --server --timeout 600 -- 'ibv_devinfo -d $QHCA_DEV'
	# shellcheck disable=SC2016 # expands in the guest
	expect oci/alone run run --no-device --timeout 600 -- 'test -z "$(lspci -d 1af4:10f0)"'
fi
summary
