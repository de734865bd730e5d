#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# host-deps.sh [--tests] [--check | --ask]
#
# Install what the scripts need on a fresh Debian 12 or 13, and only what is
# missing. Everything else (compilers, QEMU, kernel headers) lives in the build
# root, so this list stays short. --tests: also what runs the tests. --check: only say what is
# missing. --ask: also ask for a password now, if anything that builds will take one, because it
# will run in the background then.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

# command (or file) that shows the package is there, package
DEPS='
mmdebstrap mmdebstrap
mke2fs e2fsprogs
python3 python3
cpio cpio
rsync rsync
flock util-linux
make make
/usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring
'

for option; do
	case $option in
	-h|--help) usage; exit 0 ;;
	--tests) DEPS+='pytest-3 python3-pytest' ;;
	--ask) ask_root ;;
	esac
done

find_missing()
{
	local probe package
	missing=()
	while read -r probe package; do
		case $probe in
		'') continue ;;
		/*) [ -e "$probe" ] || missing+=("$package") ;;
		*) command -v "$probe" >/dev/null || missing+=("$package") ;;
		esac
	done <<<"$DEPS"
	[ ${#missing[@]} != 0 ]
}

# Unless another run has done it since.
install_missing()
{
	find_missing || return 0
	ask_sudo "installs ${missing[*]}"
	run_step "apt-get update" as_admin apt-get -q update
	run_step "apt-get install ${missing[*]}" as_admin env DEBIAN_FRONTEND=noninteractive \
		apt-get -q install -y --no-install-recommends "${missing[@]}"
}

find_missing || exit 0
log "missing: ${missing[*]}"
[[ " $* " != *' --check '* ]] || exit 1
command -v apt-get >/dev/null || die "install these packages by hand: ${missing[*]}"
with_lock apt install_missing
