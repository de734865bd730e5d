# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Helpers shared by every script here. Source it, do not run it:
#	. "$(dirname "$(readlink -f "$0")")/lib.sh"
#
# Conventions: progress and logs go to stderr; a build script prints exactly
# one line on stdout, the directory that holds its result.

set -euo pipefail
umask 022
PATH=$PATH:/usr/sbin:/sbin

QHCA_TOP=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
QHCA_CACHE=${QHCA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qhca}
QHCA_SUITE=${QHCA_SUITE:-trixie}
export QHCA_TOP QHCA_CACHE QHCA_SUITE
# Where the build root sees the repository and the cache.
# shellcheck disable=SC2034 # used by the scripts that source this file
QHCA_BR_TOP=/qhca QHCA_BR_CACHE=/qhca-cache

mkdir -p "$QHCA_CACHE/locks" "$QHCA_CACHE/logs" "$QHCA_CACHE/tmp"

# Of the outermost script, so that the seconds of all lines have one beginning.
export QHCA_STARTED=${QHCA_STARTED:-$EPOCHSECONDS}

log()  { printf '[%4ds] %s: %s\n' "$((EPOCHSECONDS - QHCA_STARTED))" "$(basename "$0" .sh)" "$*" >&2; }
warn() { log "warning: $*"; }
die()  { log "error: $*"; exit 1; }

# Print the leading comment block of the calling script as its --help.
usage()
{
	awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"
}

# Build root and image are Debian systems, with the owners that they have there. A user who is not
# root makes them in a user namespace, where the files of its root are the caller's and the others
# have his subordinate ids; where that is not allowed, with sudo.
NAMESPACE=(unshare --user --map-root-user --map-auto --)

# How root is to be had: one of root, namespace, sudo, none.
root_kind()
{
	if [ "$(id -u)" = 0 ]; then
		echo root
	elif "${NAMESPACE[@]}" true 2>/dev/null; then
		echo namespace
	elif command -v sudo >/dev/null; then
		echo sudo
	else
		echo none
	fi
}

QHCA_ROOT=${QHCA_ROOT:-$(root_kind)}
export QHCA_ROOT

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif [ "$QHCA_ROOT" = namespace ]; then
		"${NAMESPACE[@]}" "$@"
	else
		as_admin "$@"
	fi
}

# Root of the machine itself.
as_admin()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -E "$@"
	else
		die "needs root, or sudo, for: $*"
	fi
}

# The caller's identity for as_root.
own_ids()
{
	[ "$QHCA_ROOT" = namespace ] && echo 0:0 || echo "$(id -u):$(id -g)"
}

# ask_sudo REASON: asks for the password now, because steps run in the background.
ask_sudo()
{
	[ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null || return 0
	[ -z "${QHCA_BACKGROUND:-}" ] || die "sudo wants a password: sudo -v, and once more"
	log "sudo $1"
	sudo -v || die "no sudo"
}

# ask_root: for as_root to succeed from now on.
ask_root()
{
	case $QHCA_ROOT in
	sudo) ask_sudo "makes the build root and the image, which hold files of root; without \
it: package uidmap, and a line for $(id -un) in /etc/subuid and /etc/subgid" ;;
	none) die "needs sudo, or user namespaces: package uidmap, and a line for $(id -un) in \
/etc/subuid and /etc/subgid" ;;
	esac
}

# run_step LABEL COMMAND…: run COMMAND with its output in a log file, report every QHCA_EVERY
# (60) seconds that it is still running, show the end of the log if it fails. The command
# gets its own process group, so that Ctrl-C takes all of it down. STEP_LOG is the
# log; STEP_TAG keeps apart the logs of different variants.
run_step()
{
	local label=$1 start=$SECONDS every=${QHCA_EVERY:-60} next pid rc=0 file
	shift
	[ "$QHCA_ROOT" != sudo ] || ask_root
	file=$QHCA_CACHE/logs/$(basename "$0" .sh)${STEP_TAG:+-$STEP_TAG}
	file+=-$(tr -cs 'A-Za-z0-9\n' - <<<"$label").log
	# shellcheck disable=SC2034 # for the caller
	STEP_LOG=$file
	next=$every
	[ "$every" = 1 ] || log "$label"
	set -m
	"$@" >"$file" 2>&1 </dev/null &
	pid=$!
	set +m
	# shellcheck disable=SC2064 # pid and file are meant to be fixed now
	trap "kill -TERM -- -$pid 2>/dev/null; wait $pid; exit 130" INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		[ $((SECONDS - start)) -lt "$next" ] && continue
		log "$label: $((SECONDS - start)) s so far: $(last_line "$file")"
		next=$((next + every))
	done
	wait "$pid" || rc=$?
	trap - INT TERM
	if [ $rc != 0 ]; then
		tail -n "${QHCA_LOG_LINES:-40}" "$file" >&2
		log "$label: failed with status $rc, whole log in $file"
		return $rc
	fi
	[ $((SECONDS - start)) -lt 2 ] || log "$label: done in $((SECONDS - start)) s"
}

last_line()
{
	tail -c 400 "$1" | tr '\r' '\n' | tail -n 1 | cut -c 1-100
}

# hash_text ARG…: a short key of the arguments themselves.
hash_text()
{
	printf '%s\n' "$@" | sha256sum | cut -c 1-16
}

# hash_tree PATH…: a short key of file names, modes and contents below PATHs.
# Relative names only, so that two checkouts of one state share a cache entry.
hash_tree()
{
	local path
	for path; do
		if [ -d "$path" ]; then
			( cd "$path" && find . -type f -printf '%m %p\n' | LC_ALL=C sort
			  find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum )
		elif [ -e "$path" ]; then
			sha256sum <"$path"
		else
			echo absent
		fi
	done | sha256sum | cut -c 1-16
}

# with_lock NAME COMMAND…: one run at a time per NAME; says what it waits for. Not in
# a subshell: a signal to this script must reach the holder of the lock.
with_lock()
{
	local name=$1 fd
	shift
	exec {fd}>"$QHCA_CACHE/locks/$name"
	flock -n "$fd" || { log "waiting for another run ($name)"; flock "$fd"; }
	"$@"
	exec {fd}>&-
}

# publish TMPDIR FINAL: a result appears under its name complete or not at all.
publish()
{
	touch "$1/.complete"
	sync -f "$1" 2>/dev/null || :
	mv -T "$1" "$2"
}

# wrap DIR PROGRAM OPTIONS [own | LOADER]: DIR/PROGRAM runs DIR/PROGRAM.bin with the loader and
# the C library in DIR/lib, unless it knows its own. OPTIONS, and those in LOADER for the
# loader, are shell text and may use $d, DIR.
wrap()
{
	local loader=''
	[ "${4:-}" = own ] || loader="set -- \"\$d/lib/ld-linux-x86-64.so.2\" \\
	--library-path \"\$d/lib\" ${4:-} --argv0 $2 \"\$@\""
	cat >"$1/$2" <<-WRAPPER
	#!/bin/sh
	# Generated: run $2 with the C library it was built for.
	d=\$(dirname "\$(readlink -f "\$0")")
	set -- "\$d/$2.bin" $3 "\$@"
	$loader
	exec "\$@"
	WRAPPER
	chmod +x "$1/$2"
}

# device_sources TREE: copy the device's to TREE/src, changed files only; meson builds them in
# TREE/build, and a TREE in which it never got that far begins anew.
device_sources()
{
	[ -e "$1/build/build.ninja" ] || rm -rf "$1"
	mkdir -p "$1/src"
	rsync -rc --delete --exclude=/qemu-device/tests/ --exclude=/qemu-device/qtest/ \
		"$QHCA_TOP/qemu-device" "$QHCA_TOP/include" "$1/src/"
}

# own_loader DIR FINAL PROGRAM: through its loader a program is, to itself, the loader, and
# sanitizers find no symbols. Point PROGRAM at its loader for good, at the price that FINAL,
# where DIR will be, must not move.
own_loader()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --extra -- patchelf \
		--set-interpreter "$2/lib/ld-linux-x86-64.so.2" \
		--set-rpath "$2/lib" "$(br_path "$1")/$3.bin"
}

have() { [ -e "$1/.complete" ] && touch -c "$1/.complete" 2>/dev/null; }

# below_disk IMAGE: whether a disk that is based on it still exists, see vmlib/disk.py.
below_disk()
{
	local disk
	[ -e "$1/kept" ] || return 1
	while read -r disk; do [ ! -e "$disk" ] || return 0; done <"$1/kept"
	return 1
}

# cache_trim PREFIX KEEP: drop all but the KEEP results used last, sparing
# anything used within the hour: it may be in use right now.
cache_trim()
{
	local dir
	find "$QHCA_CACHE" -maxdepth 2 -path "$QHCA_CACHE/$1-*/.complete" \
		-printf '%T@ %h\n' | sort -rn | tail -n +"$(($2 + 1))" |
	while read -r _ dir; do
		[ -n "$(find "$dir/.complete" -mmin +60)" ] || continue
		! below_disk "$dir" || continue
		as_root rm -rf --one-file-system "$dir"
	done
}

# The Debian mirror this machine already uses. Nothing is written into the tree.
debian_mirror()
{
	local uri
	if [ -n "${QHCA_MIRROR:-}" ]; then
		echo "$QHCA_MIRROR"
		return
	fi
	# shellcheck disable=SC2016 # apt expands these
	uri=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' \
		"Created-By: Packages" 2>/dev/null |
		awk -F'|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
	[ -n "$uri" ] || die "no Debian mirror in the apt configuration: run apt-get update, or set QHCA_MIRROR"
	echo "${uri%/}"
}

# kernel_suite NAME: the Debian release with this kernel: one of these, or named itself.
kernel_suite()
{
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	7) echo trixie-backports ;;
	[0-9]*) die "which Debian release has kernel $1? By number only 6.1, 6.12, 7" ;;
	*) echo "$1" ;;
	esac
}

buildroot_dir() { "$QHCA_TOP/scripts/build/buildroot.sh" --path; }

# in_buildroot COMMAND…: run it there, see buildroot.sh for what is mounted.
in_buildroot() { "$QHCA_TOP/scripts/build/buildroot.sh" -- "$@"; }

# Translate a path below the cache into the build root's view of it.
br_path() { echo "$QHCA_BR_CACHE${1#"$QHCA_CACHE"}"; }
