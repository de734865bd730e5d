#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-oci.sh [DIR]
#
# Run the image that `make oci` makes, or has made in DIR, with crun and without a network,
# /dev/kvm or a daemon: its qhca-vm does the job of `make run`. Prints TAP and totals.

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
	as_root python3 - "$WORK/bundle/config.json" "$@" <<-'EOF' || return
	import json
	import sys
	path, *words = sys.argv[1:]
	with open(path, encoding='utf-8') as file:
	    config = json.load(file)
	process = config['process']
	process['args'] = process['args'][:1] + words
	process['terminal'] = False
	process['user'] = {'uid': 1000, 'gid': 1000}
	# There may be nobody here to manage cgroups.
	config['mounts'] = [m for m in config['mounts'] if m['type'] != 'cgroup']
	config['linux'].pop('resources', None)
	with open(path, 'w', encoding='utf-8') as file:
	    json.dump(config, file)
	EOF
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
plan oci unpack help run mount
export EXPECT_LINES=30
if expect oci/unpack unpack "$oci"; then
	expect oci/help run --help
	# What a runtime mounts at /src, and qhca-vm in the guest.
	printf '#!/bin/sh\n/opt/qhca/guest/demo.sh && uname -r >release\n' |
		as_root install -m 755 /dev/stdin "$WORK/bundle/rootfs/src/test.sh"
	if run run --rxe --timeout 900 --mount . -- ./test.sh; then
		result ok oci/run
	else
		result fail oci/run
	fi
	expect oci/mount grep amd64 "$WORK/bundle/rootfs/src/release"
fi
summary
