#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# export.sh [--out DIR] PROJECT
# export.sh --check PROJECT…
#
# Write what is meant for PROJECT (linux, qemu, rdma-core) as a series of patches with a
# cover letter, for `git am` and `git send-email`; print the directory, build/export-PROJECT
# here unless --out names another.
#
# The base is the newest release that the sources are written for and Debian has: Linux of
# kernel_suite 7 in lib.sh, the QEMU of build/qemu.sh, the rdma-core of sid. Code for older ones
# (include/compat/, compat.cmake, compat.h) stays behind.
#
#   --check  apply the series to the unpacked release, in which nothing else is
#            changed, and build what it brings; the results in TAP
#
# Documentation/upstream/PROJECT/ has one file for each patch: the paths that go into it, an
# empty line, the commit message. Its author is git's user here; sign off with `git am -s`.

# Scripts of sed and sh; lists that are taken by name.
# shellcheck disable=SC2016,SC2034

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

LINUX=7 RDMA_CORE=sid

check='' out='' projects=()
while [ $# -gt 0 ]; do
	case $1 in
	--check) check=1 ;;
	--out) out=$2; shift ;;
	-h|--help) usage; exit 0 ;;
	linux|qemu|rdma-core) projects+=("$1") ;;
	*) die "unknown argument $1, see --help" ;;
	esac
	shift
done
[ ${#projects[@]} != 0 ] || { usage >&2; exit 2; }
[ -n "$check" ] || [ ${#projects[@]} = 1 ] || die "one project at a time"
command -v git >/dev/null || die "needs git"

# ---- the releases

# unpack_PROJECT DIR: what was released, and nothing else, into DIR/src. key_PROJECT
# tells one release from another.

kernel_version()
{
	find "$("$QHCA_TOP/scripts/build/buildroot.sh" --kernel $LINUX --path)/usr/src" -maxdepth 1 \
		-name 'linux-headers-*-amd64' | sed 's/.*headers-\([0-9]*\.[0-9]*\).*/\1/' |
		sort -V | tail -n 1
}

key_linux() { kernel_version; }
key_qemu() { hash_text "$QHCA_SUITE" "$(grep '^VERSION=' "$QHCA_TOP/scripts/build/qemu.sh")"; }
key_rdma-core() { echo "$RDMA_CORE"; }

unpack_linux()
{
	with_lock buildroot-apt run_step "Debian's package lists" \
		"$QHCA_TOP/scripts/build/buildroot.sh" --kernel $LINUX --root -- apt-get -q update
	run_step "kernel source" "$QHCA_TOP/scripts/build/buildroot.sh" --kernel $LINUX -- sh -ec '
		cd "$1"
		apt-get -q download "linux-source-$2"
		mkdir src
		dpkg-deb --fsys-tarfile linux-source-*.deb |
			tar -xO --wildcards "./usr/src/linux-source-*.tar.xz" |
			tar -xJ -C src --strip-components=1
		rm -f ./*.deb
	' sh "$(br_path "$1")" "$(kernel_version)"
}

unpack_qemu()
{
	"$QHCA_TOP/scripts/build/qemu.sh" --unpack "$1"
	mv "$1/qemu" "$1/src"
}

unpack_rdma-core() { "$QHCA_TOP/scripts/build/provider.sh" --release $RDMA_CORE --unpack "$1"; }

# ---- what is put into them, and where

# The files that are changed; all others are new. LICENSES/ is what checkpatch looks at.
CHANGED_linux='LICENSES MAINTAINERS include/uapi/rdma/ib_user_ioctl_verbs.h
	drivers/infiniband/core/mad.c
	drivers/net/ethernet/Kconfig drivers/net/ethernet/Makefile
	drivers/infiniband/Kconfig drivers/infiniband/hw/Makefile
	Documentation/networking/device_drivers/ethernet/index.rst
	tools/testing/selftests/Makefile'
CHANGED_qemu='MAINTAINERS meson.build hw/net/meson.build hw/net/Kconfig
	docs/specs/index.rst docs/system/device-emulation.rst'
CHANGED_rdma_core='MAINTAINERS README.md CMakeLists.txt kernel-headers/CMakeLists.txt
	kernel-headers/rdma/ib_user_ioctl_verbs.h kernel-boot/rdma-description.rules
	debian/control debian/copyright redhat/rdma-core.spec libibverbs/verbs.h'

# Where the kselftests go.
TESTS_LINUX=drivers/infiniband/qhca

# edit FILE SCRIPT: sed that has to change something.
edit()
{
	sed -i.before -E "$2" "$1"
	! cmp -s "$1" "$1.before" || die "$1: no place for: $2"
	rm "$1.before"
}

# maintainers FILE HEADING ENTRY: in front of the section with that heading.
maintainers()
{
	local entry
	entry=$(sed "s/ADDRESS/$EMAIL/" "$QHCA_TOP/Documentation/upstream/$3")
	edit "$1" "0,/^$2/s|^$2|${entry//$'\n'/\\n}\n\n&|"
}

# sources FROM TO [EXCLUDE…]: a directory, without what is not in the repository.
sources()
{
	local from=$1 to=$2
	shift 2
	mkdir -p "$to"
	(cd "$QHCA_TOP/$from" && git ls-files -z --cached --others --exclude-standard) |
		rsync -r --files-from=- --from0 --ignore-missing-args "${@/#/--exclude=}" \
			"$QHCA_TOP/$from/" "$to/"
}

# The driver asks what its kernel has; the one that it goes into has all of it.
without_probes()
{
	in_buildroot sh -ec '
		cd "$1"
		gcc -w -o /tmp/unifdef scripts/unifdef.c
		for file in $(grep -rl QHCA_HAVE_ drivers/net/ethernet/qhca drivers/infiniband/hw/qhca); do
			# Status 1: something has changed.
			/tmp/unifdef $(grep -o "QHCA_HAVE_[A-Z_]*" "$file" | sed "s/^/-D/") "$file" \
				>/tmp/unifdef.out || [ $? = 1 ]
			cat /tmp/unifdef.out >"$file"
		done
	' sh "$(br_path "$PWD")"
}

place_linux()
{
	local hw=drivers/infiniband/hw net=drivers/net/ethernet docs
	local tests=tools/testing/selftests
	sources include/qhca include/qhca
	sources include/net/qhca include/net/qhca
	sources $net/qhca $net/qhca
	sources $hw/qhca $hw/qhca
	cp "$QHCA_TOP/include/uapi/rdma/qhca-abi.h" include/uapi/rdma/
	edit $hw/qhca/main.c '/^#include <qhca_ib_ops.h>/d'
	edit $net/qhca/ethtool.c '/^#include <qhca_eth_ops.h>/d'
	edit $net/qhca/netdev.c '/^#include <qhca_netdev_ops.h>/d'
	without_probes
	mend_mad
	edit $net/Kconfig 's|^source ".*/qlogic/Kconfig"|source "'$net'/qhca/Kconfig"\n&|'
	edit $net/Makefile 's|^obj-.*QLOGIC.*|obj-$(CONFIG_QHCA) += qhca/\n&|'
	edit drivers/infiniband/Kconfig 's|^source ".*/usnic/Kconfig"|source "'$hw'/qhca/Kconfig"\n&|'
	edit $hw/Makefile '$a obj-$(CONFIG_INFINIBAND_QHCA)\t\t+= qhca/'
	maintainers MAINTAINERS 'QLOGIC QL41xxx FCOE' MAINTAINERS.linux
	docs=Documentation/networking/device_drivers/ethernet
	mkdir -p $docs/qemu
	cp "$QHCA_TOP/Documentation/upstream/linux.rst" $docs/qemu/qhca.rst
	# Without the test module, which knows structures of the network driver.
	sources selftests $tests/$TESTS_LINUX 'guest/**' 'kmod/**' README run_tests.sh
	driver_id include/uapi/rdma/ib_user_ioctl_verbs.h include/uapi/rdma/qhca-abi.h \
		$hw/qhca/main.c $tests/$TESTS_LINUX/{lib/uverbs,uabi/abi_wq,uabi/fuzz/call}.c
	edit $tests/Makefile '0,/^TARGETS \+= drivers\/net$/s|^TARGETS \+= drivers/net$|TARGETS += '$TESTS_LINUX'\n&|'
	edit $docs/index.rst 's|^   qualcomm/.*|   qemu/qhca\n&|'
}

# Of the core: what drivers/infiniband/hw/qhca/qp.c works around elsewhere.
mend_mad()
{
	edit drivers/infiniband/core/mad.c '/^static int ib_mad_port_close/,/^}/s|^\tdestroy_workqueue\(port_priv->wq\);|\t/* Completions are ignored from now on, but one may be in its handler. */\n\tflush_work(\&port_priv->cq->work);\n&|'
}

# driver_id HEADER ABI SOURCE…: a number of its own, in place of the one in the ABI.
driver_id()
{
	local source
	edit "$1" '/^enum rdma_driver_id/,/^}/s/^}/\tRDMA_DRIVER_QHCA,\n&/'
	edit "$2" '/^\/\*$/{N;/By this number/{N;N;N;d}}'
	for source in "${@:3}"; do
		edit "$source" 's/(\(enum rdma_driver_id\))?QHCA_RDMA_DRIVER_ID/RDMA_DRIVER_QHCA/'
	done
}

place_qemu()
{
	"$QHCA_TOP/scripts/build/qemu.sh" --into .
	cp "$QHCA_TOP/qemu-device/docs/qhca.rst" docs/system/devices/
	edit docs/system/devices/qhca.rst 's|``Documentation/hardware.rst`` of the qhca repository|``docs/specs/qhca.rst``|'
	edit docs/system/device-emulation.rst 's|^   devices/igb.rst|&\n   devices/qhca.rst|'
	cp "$QHCA_TOP/Documentation/hardware.rst" docs/specs/qhca.rst
	"$QHCA_TOP/scripts/docs/layout.py" >docs/specs/qhca-layout.rst
	edit docs/specs/qhca.rst 's|^Hardware specification$|QHCA virtual RDMA adapter|
		s|:doc:`layout`|:doc:`qhca-layout`|
		s#:doc:`(architecture|faults)`#:doc:`/system/devices/qhca`#'
	edit docs/specs/qhca.rst 's/^={22}$/=========================/'
	edit docs/specs/qhca-layout.rst 's|:doc:`hardware`|:doc:`qhca`|
		s|^(Structures and constants)$|\1 of the QHCA adapter|; s/^={24}$/============================================/
		s|\(``(qemu-device/[^`]*)`` is one\)|(\1 of the qhca repository is one)|'
	edit docs/specs/index.rst 's|^   edu|&\n   qhca\n   qhca-layout|'
	maintainers MAINTAINERS 'Rocker$' MAINTAINERS.qemu
}

place_rdma-core()
{
	local dir=providers/qhca headers=kernel-headers
	"$QHCA_TOP/scripts/build/provider.sh" --into .
	mv $dir/include/uapi/rdma/qhca-abi.h $headers/rdma/
	rm -r $dir/include/uapi $dir/compat.cmake $dir/compat.h
	edit $dir/qhca.h '/^#include "compat.h"/d'
	edit $dir/qhca.c 's/QHCA_OP_[0-9]*\((.*)\)$/\1,/'
	edit $dir/wr.c 's/qhca_set_wr_flush\((\w+), (\w+)\)/\1->wr_flush = \2/'
	edit $dir/CMakeLists.txt '/^# Lives/,/^# change there/d; /^#$/d
		s|^include\(compat.cmake\)|include_directories("${CMAKE_CURRENT_SOURCE_DIR}/include")|'
	driver_id $headers/rdma/ib_user_ioctl_verbs.h $headers/rdma/qhca-abi.h $dir/qhca.c
	edit $headers/CMakeLists.txt 's|^  rdma/qedr-abi.h|&\n  rdma/qhca-abi.h|'
	edit libibverbs/verbs.h 's|^(extern .* verbs_provider_)qedr;|&\n\1qhca;|'
	edit kernel-boot/rdma-description.rules 's|^DRIVERS=="qede".*|&\nDRIVERS=="qhca", ENV{ID_RDMA_ROCE}="1"|'
	edit README.md 's|^ - qedr.ko|&\n - qhca_ib.ko|'
	edit debian/control 's|^  - qedr: .*|&\n  - qhca: QEMU virtual RDMA host channel adapter|'
	edit debian/copyright 's|^Files: providers/qedr/|Files: providers/qhca/*\nCopyright: 2026, the qhca authors\nLicense: BSD-MIT or GPL-2\n\n&|'
	edit redhat/rdma-core.spec 's|^- libqedr: .*|&\n- libqhca: QEMU virtual RDMA host channel adapter|'
	maintainers MAINTAINERS 'RXE SOFT' MAINTAINERS.rdma-core
}

# ---- the series

# The base: a repository in the unpacked release that knows only the files that are changed,
# so that to go from one commit to another takes and brings just those that are ours.
make_base()
{
	local project=$1 tree=$2 tmp=$2.tmp list=CHANGED_${1/-/_}
	have "$tree" && return
	rm -rf "$tmp" "$tree"
	mkdir -p "$tmp"
	"unpack_$project" "$tmp"
	find "$tmp" -maxdepth 1 -type f -delete
	(
		cd "$tmp/src"
		# Else its rules keep files of ours out.
		find . -name .gitignore -delete
		git init -q -b base
		# shellcheck disable=SC2086 # a list
		git add ${!list}
		commit -m "As released"
	)
	publish "$tmp" "$tree"
}

commit()
{
	git commit -q \
		--author "$NAME <$EMAIL>" "$@"
}

# ours PATH…: what is not as in the release, below them.
ours()
{
	git diff --name-only -- "$@"
	git ls-files --others -- "$@" | grep -E '(^|/)qhca(/|-abi\.h$|[^/]*\.rst$)' || :
}

# Back to the release. A run that was killed may have left something, and builds do.
clean()
{
	git checkout -q -f -B "$1" base
	git clean -q -f -d -x -- ':(glob)**/qhca/**' ':(glob)**/qhca*.rst' ':(glob)**/qhca-abi.h'
}

# One commit for each file of Documentation/upstream/PROJECT/; together they have it all.
commits()
{
	local project=$1 file paths left
	clean series
	"place_$project"
	for file in "$QHCA_TOP/Documentation/upstream/$project"/[0-9]*; do
		mapfile -t paths < <(sed '/^$/,$d' "$file" | tr -s ' ' '\n')
		ours "${paths[@]}" | git add -f --pathspec-from-file=-
		sed '1,/^$/d' "$file" | commit -F - || die "$file: nothing to commit"
	done
	left=$(ours .)
	[ -z "$left" ] || die "in no patch: $left"
}

# write PROJECT DIR
write()
{
	local cover=$QHCA_TOP/Documentation/upstream/$1/cover
	commits "$1"
	git config branch.series.description "$(cat "$cover")"
	rm -f "$2"/*.patch
	git format-patch -q -o "$2" --cover-letter --cover-from-description=subject \
		--zero-commit --no-signature --subject-prefix=PATCH base..series
}

. "$QHCA_TOP/scripts/release/export-check.sh"

# ---- now

NAME=$(git -C "$QHCA_TOP" config user.name || git -C "$QHCA_TOP" log -1 --format=%an)
EMAIL=$(git -C "$QHCA_TOP" config user.email || git -C "$QHCA_TOP" log -1 --format=%ae)
export GIT_COMMITTER_NAME=$NAME GIT_COMMITTER_EMAIL=$EMAIL
GIT_AUTHOR_DATE=$(git -C "$QHCA_TOP" log -1 --format=%cd)
export GIT_AUTHOR_DATE GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE

in_tree()
{
	local project=$1 list tree
	shift
	list=CHANGED_${project/-/_}
	tree=$QHCA_CACHE/export-$project-$(hash_text "$("key_$project")" "${!list}")
	STEP_TAG=$project
	make_base "$project" "$tree"
	cd "$tree/src"
	# Ignore the user's settings of git.
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
	"$@"
	cache_trim "export-$project" 1
}

if [ -z "$check" ]; then
	out=$(realpath -m "${out:-$QHCA_TOP/build/export-${projects[0]}}")
	with_lock "export-${projects[0]}" in_tree "${projects[0]}" write "${projects[0]}" "$out"
	echo "$out"
elif [ ${#projects[@]} = 1 ]; then
	with_lock "export-${projects[0]}" in_tree "${projects[0]}" verify "${projects[0]}"
else
	rc=0
	for project in "${projects[@]}"; do "$0" --check "$project" || rc=1; done
	exit $rc
fi
