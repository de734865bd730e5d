#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# clean-cache.sh clean-buildroot|distclean
#
# Remove the build root (it is made anew, with the mirror's current packages,
# when next needed) or the whole cache.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

case ${1:-} in
clean-buildroot) set -- "$QHCA_CACHE"/buildroot-* ;;
distclean) set -- "$QHCA_CACHE" ;;
*) usage; exit 2 ;;
esac
for dir; do
	[ -d "$dir" ] || continue
	# Something is mounted there only while a build runs; never delete
	# through such a mount.
	as_root rm -rf --one-file-system "$dir"
	log "removed $dir"
done
