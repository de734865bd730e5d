# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by export.sh: what --check does with a series, in the tree of the release.

# Scripts of sh; lists that are taken by name.
# shellcheck disable=SC2016,SC2034,SC2086,SC2154

# tap NAME COMMAND…: not as part of a condition, in which `set -e` would mean nothing.
tap()
{
	local name=$1 status
	shift
	set +e
	run_step "$name" strict "$@"
	status=$?
	set -e
	[ $status = 0 ] && echo "ok export/$name" && return
	echo "not ok export/$name"
	FAILED=1
}

strict()
{
	set -e
	"$@"
}

# apply DIR: all of the files, and with the same result.
apply()
{
	clean applied
	git am -q "$1"/*.patch
	git diff --exit-code --stat series applied
}

# The configuration that a driver needs.
CONFIG='MODULES=y 64BIT=y SMP=y PCI=y PCI_MSI=y NET=y INET=y IPV6=y NETDEVICES=y ETHERNET=y
	DEBUG_FS=y INFINIBAND=m INFINIBAND_USER_ACCESS=m INFINIBAND_ADDR_TRANS=y WERROR=y
	FTRACE=y TRACING=y QHCA=m INFINIBAND_QHCA=m'

build_linux()
{
	# shellcheck disable=SC2086 # a list
	printf 'CONFIG_%s\n' $CONFIG >qhca.config
	in_buildroot sh -ec '
		cd "$1"
		make -s tinyconfig
		scripts/kconfig/merge_config.sh -m .config qhca.config
		make -s olddefconfig
		grep -x CONFIG_QHCA=m .config
		grep -x CONFIG_INFINIBAND_QHCA=m .config
		make -s -j "$(nproc)" W=1 drivers/net/ethernet/qhca/ drivers/infiniband/hw/qhca/
		make -s drivers/infiniband/core/mad.o
		[ -e drivers/net/ethernet/qhca/main.o ]
		[ -e drivers/infiniband/hw/qhca/main.o ]
	' sh "$(br_path "$PWD")"
}

# As a target of kselftest's: all programs are built and installed, its runner has just those
# that our own runs, and it runs one. There is no device here, so that is a skip.
selftests_linux()
{
	local list
	list=$(make -s -C "$QHCA_TOP/selftests" -f Makefile -f - list <<<$'list:\n\t@echo $(TEST_GEN_PROGS)')
	in_buildroot sh -ec '
		cd "$1"
		make -s headers
		rm -rf kselftest
		make -s -j "$(nproc)" -C tools/testing/selftests TARGETS="$2" \
			KSFT_INSTALL_PATH="$1/kselftest" FORCE_TARGETS=1 install
		cd kselftest
		./run_kselftest.sh --list | sed "s|^$2:||" >listed
		printf "%s\n" $3 | diff - listed
		test -x "$2/pair_cm"
		./run_kselftest.sh --test "$2:ten_steps" | tee told
		grep "^ok 1 selftests: $2: ten_steps # SKIP" told
		cd ..
		make -s -C tools/testing/selftests TARGETS="$2" clean
		rm -rf kselftest
	' sh "$(br_path "$PWD")" $TESTS_LINUX "$list"
	[ -z "$(git ls-files --others -- "tools/testing/selftests/$TESTS_LINUX")" ]
}

# The types that lint.sh leaves out, for the reasons that it gives.
checkpatch_linux()
{
	local ignored=FILE_PATH_CHANGES,PREFER_KERNEL_TYPES,BIT_MACRO,CAMELCASE,LINE_SPACING
	ignored+=,MACRO_ARG_REUSE,MACRO_ARG_UNUSED,COMPLEX_MACRO,PREFER_DEFINED_ATTRIBUTE_MACRO
	"$QHCA_TOP/scripts/build/buildroot.sh" --extra -- sh -c 'cd "$1"
		exec perl scripts/checkpatch.pl --strict --no-signoff --terse --show-types \
			--max-line-length=100 --ignore "$2" "$3"/*.patch' \
		sh "$(br_path "$PWD")" $ignored "$(br_path "$1")"
}

build_qemu()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --qemu -- sh -ec '
		mkdir -p "$1/build"
		cd "$1/build"
		[ -e build.ninja ] || ../configure --target-list=x86_64-softmmu \
			--without-default-features --enable-system --enable-tcg --enable-fdt=system \
			--enable-trace-backends=log --enable-werror --disable-install-blobs
		ninja build.ninja
		objects=$(ninja -t targets all | grep -o "^[^ ]*hw_net_qhca[^ ]*\.o")
		echo "$objects" | grep qhca-dma
		echo "$objects" | xargs ninja
	' sh "$(br_path "$PWD")"
}

build_rdma-core()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --kernel $RDMA_CORE -- sh -ec '
		mkdir -p "$1/build"
		cd "$1/build"
		cmake -GNinja -DNO_MAN_PAGES=1 -DNO_PYVERBS=1 -DCMAKE_BUILD_TYPE=RelWithDebInfo ..
		ninja $(ninja -t targets all | grep -o "^lib/libqhca-rdmav[0-9]*.so")
	' sh "$(br_path "$PWD")"
}

# The pages of a series, by themselves: without a warning, and without the rest of a manual.
PAGES_linux='Documentation networking/device_drivers/ethernet/qemu/qhca'
PAGES_qemu='docs specs/qhca specs/qhca-layout system/devices/qhca'

# render TOP PAGE…
render()
{
	local top=$1 dir page
	shift
	dir=$(mktemp -d "$QHCA_CACHE/tmp/export.XXXXXX")
	printf '%s\n' 'Pages' '=====' '' '.. toctree::' '' "${@/#/   }" >"$dir/index.rst"
	for page; do install -D -m 644 "$top/$page.rst" "$dir/$page.rst"; done
	"$QHCA_TOP/scripts/build/buildroot.sh" --docs -- sphinx-build -q -n -W --keep-going -C -b html \
		"$(br_path "$dir")" "$(br_path "$dir")/.out"
	rm -rf "$dir"
}

verify()
{
	local project=$1 dir pages=PAGES_${1/-/_}
	dir=$(mktemp -d "$QHCA_CACHE/tmp/export.XXXXXX")
	tap "$project-series" write "$project" "$dir"
	rm -f "$dir"/0000-*
	tap "$project-applies" apply "$dir"
	tap "$project-builds" "build_$project"
	# shellcheck disable=SC2086 # a list
	[ -z "${!pages:-}" ] || tap "$project-renders" render ${!pages}
	if [ "$project" = linux ]; then
		tap linux-selftests selftests_linux
		tap linux-checkpatch checkpatch_linux "$dir"
	fi
	rm -rf "$dir"
	[ -z "${FAILED:-}" ]
}
