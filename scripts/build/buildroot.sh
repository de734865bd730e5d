#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# buildroot.sh [--kernel NAME] [GROUP…] [--root] -- COMMAND…
# buildroot.sh [--kernel NAME] [GROUP…] --path | --ready
#
# Run COMMAND in the build root, or print where it is; --ready: fail if it is not made yet.
# GROUP is --extra, --docs, --tshark, --gnuplot, --valgrind, --packaging, --oci, --autotools,
# --cluster, --qemu, --mutants, --arm64 or --s390x.
#
# A Debian root with everything needed to build the device, the modules, the provider
# and the selftests: the right compiler for the guest's kernel headers and the
# right C library for the guest, whatever the machine itself runs. Made once
# with mmdebstrap, cached by the package list.
#
# Inside, the repository is /qhca and the cache /qhca-cache; COMMAND starts in
# /qhca, as the calling user (--root: as root). --extra adds the packages that
# only lint, coverage and fuzzing need, on first use; --docs Sphinx; --tshark a
# dissector that knows nothing of us, to judge captured frames with; --gnuplot that, for
# bench.py; --valgrind what counts instructions; --packaging what makes and judges Debian
# packages; --oci what makes and runs container images without a daemon; --autotools what UCX
# is built with; --cluster what ns-3 is, with MPI; --qemu what a QEMU of ours is; --mutants what
# reads C to change it.
#
# --kernel: a smaller root for modules and provider, of the Debian release with this
# kernel (6.1, 7, or the name of a release): its headers, its compiler, its C library.

. "$(dirname "$(readlink -f "$0")")/../lib.sh"

PACKAGES=(
	# compilers and build systems
	gcc g++ libc6-dev make ninja-build meson cmake pkg-config flex bison bc
	dpkg-dev patch file rsync bzip2 xz-utils cpio kmod python3
	ca-certificates gdb
	# device and server, for what libvfio-user speaks, and its sandbox
	libglib2.0-dev libjson-c-dev libseccomp-dev
	# kernel modules and the RDMA user space
	linux-headers-amd64 libelf-dev libnl-3-dev libnl-route-3-dev libudev-dev
	libibverbs-dev librdmacm-dev
	# for the guest image: its initrd and its kernel
	busybox-static zstd
)
EXTRA=(
	pre-commit sparse coccinelle clang clang-format clang-tidy clang-tools shellcheck
	codespell perl python3-ply python3-git llvm lld patchelf reuse libclang-rt-dev
	flake8 gcc-mingw-w64-x86-64-win32
)
# Sphinx, the theme of QEMU's manual, Markdown pages, and what programs say to --help.
DOCS=(
	python3-sphinx python3-sphinx-rtd-theme python3-myst-parser
	python3-sphinxcontrib.programoutput
)
# Its firmware as packages, because Debian's source tarball carries none.
QEMU=(
	libfdt-dev libslirp-dev zlib1g-dev libpixman-1-dev python3-venv
	seabios qemu-system-data
)
PACKAGING=(
	build-essential debhelper dh-dkms lintian
)

KERNEL_PACKAGES=(
	linux-headers-amd64 libc6-dev make kmod busybox-static
	gcc libelf-dev file xz-utils zstd
	cmake ninja-build pkg-config python3-minimal dpkg-dev
	libnl-3-dev libnl-route-3-dev libudev-dev
)
KERNEL_EXTRA=(clang clang-tidy llvm lld sparse)
# The network simulator and what is built on it, see cluster.sh.
CLUSTER=(g++ mpich libmpich-dev meson)

# sources RELEASE: the lines for apt. Backports need what they are for.
sources()
{
	local release mirror
	mirror=$(debian_mirror)
	for release in "${1%-backports}" "$1"; do
		echo "deb $mirror $release main"
		echo "deb-src $mirror $release main"
	done | sort -u
}

make_root()
{
	local tmp=$QHCA_CACHE/tmp/buildroot-$key lines options=()
	have "$ROOT" && return
	"$QHCA_TOP/scripts/build/host-deps.sh"
	mapfile -t lines < <(sources "$suite")
	# Of backports, all that there is; and a mirror of an unreleased suite may stand still.
	[ "$suite" = "$QHCA_SUITE" ] || options=(--aptopt="APT::Default-Release \"$suite\""
		--aptopt='Acquire::Check-Valid-Until "false"')
	as_root rm -rf --one-file-system "$tmp"
	# In its own mount namespace, so that not even a killed run leaves the
	# root's /proc mounted.
	run_step "build root ($suite)" as_root unshare --mount --propagation private \
		mmdebstrap --mode=root --variant=minbase \
		--aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "3"' \
		--dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' "${options[@]}" \
		--include="$(IFS=,; echo "${PACKAGES[*]}")" \
		--customize-hook="mkdir -p \"\$1$QHCA_BR_TOP\" \"\$1$QHCA_BR_CACHE\"" \
		"${suite%-backports}" "$tmp" "${lines[@]}"
	as_root touch "$tmp/.complete"
	as_root mv -T "$tmp" "$ROOT"
}

# add NAME PACKAGE…
add()
{
	local stamp
	stamp=$ROOT/.$1-$(hash_text "${@:2}")
	[ -e "$stamp" ] || with_lock buildroot install_group "$stamp" "$@"
}

install_group()
{
	local stamp=$1 name=$2
	shift 2
	[ ! -e "$stamp" ] || return 0
	run_step "build root: packages for $name" enter root /bin/sh -c \
		"apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $*"
	as_root touch "$stamp"
}

# enter root|user COMMAND…: a private mount namespace goes away with its last
# process, so no bind mount can be left behind.
enter()
{
	local who=$1 ids
	shift
	ids=$(own_ids)
	[ "$who" = root ] && ids=0:0
	# shellcheck disable=SC2016 # expands in the inner shell
	as_root unshare --mount --propagation private /bin/sh -ec '
		root=$1 top=$2 cache=$3 ids=$4 br_top=$5 br_cache=$6
		shift 6
		mount --rbind /dev "$root/dev"
		mount --rbind /proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
		mount --bind "$top" "$root$br_top"
		mount --bind "$cache" "$root$br_cache"
		[ ! -e /etc/resolv.conf ] || { : >>"$root/etc/resolv.conf"
			mount --bind "$(readlink -f /etc/resolv.conf)" "$root/etc/resolv.conf"; }
		exec chroot --userspec="$ids" "$root" /usr/bin/env -i \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 \
			TERM="${TERM:-dumb}" ${http_proxy:+http_proxy="$http_proxy"} \
			${https_proxy:+https_proxy="$https_proxy"} \
			/bin/sh -c "cd $br_top && exec \"\$@\"" sh "$@"
	' sh "$ROOT" "$QHCA_TOP" "$QHCA_CACHE" "$ids" "$QHCA_BR_TOP" "$QHCA_BR_CACHE" "$@"
}

action='' who=user added='' suite=$QHCA_SUITE
while [ $# -gt 0 ]; do
	case $1 in
	--kernel) suite=$(kernel_suite "$2"); shift ;;
	--path) action=path ;;
	--ready) action=ready ;;
	--extra) added+=' extra' ;;
	--docs) added+=' docs' ;;
	--tshark) added+=' tshark' ;;
	--gnuplot) added+=' gnuplot' ;;
	--valgrind) added+=' valgrind' ;;
	--packaging) added+=' packaging' ;;
	--oci) added+=' oci' ;;
	--autotools) added+=' autotools' ;;
	--cluster) added+=' cluster' ;;
	--qemu) added+=' qemu' ;;
	--mutants) added+=' mutants' ;;
	--arm64|--s390x) added+=" ${1#--}" ;;
	--root) who=root ;;
	--) action=run; shift; break ;;
	-h|--help) usage; exit 0 ;;
	*) die "unknown option $1, see --help" ;;
	esac
	shift
done
[ -n "$action" ] || { usage >&2; exit 2; }

if [ "$suite" != "$QHCA_SUITE" ]; then
	PACKAGES=("${KERNEL_PACKAGES[@]}")
	EXTRA=("${KERNEL_EXTRA[@]}")
fi
key=$(hash_text "$suite" "${PACKAGES[@]}" v1)
ROOT=$QHCA_CACHE/buildroot-$key
have "$ROOT" || [ "$action" != ready ] || exit 1
have "$ROOT" || with_lock "buildroot-$suite" make_root
for group in $added; do
	case $group in
	extra) add extra "${EXTRA[@]}" ;;
	docs) add docs "${DOCS[@]}" ;;
	tshark) add tshark tshark ;;
	gnuplot) add gnuplot gnuplot-nox ;;
	valgrind) add valgrind valgrind ;;
	packaging) add packaging "${PACKAGING[@]}" ;;
	oci) add oci umoci crun golang-github-containers-common ;;
	autotools) add autotools autoconf automake libtool ;;
	cluster) add cluster "${CLUSTER[@]}" ;;
	qemu) add qemu "${QEMU[@]}" ;;
	mutants) add mutants python3-clang ;;
	arm64) add arm64 gcc-aarch64-linux-gnu ;;
	s390x) add s390x gcc-s390x-linux-gnu ;;
	esac
done
if [ "$action" != run ]; then
	echo "$ROOT"
else
	[ $# -gt 0 ] || die "no command after --"
	enter "$who" "$@"
fi
