# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: the parts of the tests, and how each is run. A part prints
# results in TAP and at least one sum; results.py reads both.

# name | kind | runs it is in | its group | command
#
# JOBS parts run at once, in this order as far as they fit: pairs first, then the long ones.
# kind: `one` machine or none; `pair`: two machines or more, which must answer each other in
# time, so only one of these runs at once, with priority over the others when CPU is short;
# `idle`: no time limits, takes the CPU that the others leave; `all`: runs alone.
# shellcheck disable=SC2034 # check.sh reads it
PARTS='
rxe            | pair | check full       | rxe      | machines 2 --nic-b virtio -- pair-rdma.sh
pair-rdma      | pair | check full       | pair     | machines 2 -- pair-rdma.sh perf ipv6 place cm cnp odp
pair           | pair | check full       | pair     | machines 2 -- pair.sh
aggregate      | pair | full             | pair     | machines 2 --device-arg aggregate=on -- pair-rdma.sh perf place
pair-loss      | pair | check full       | pair     | machines 2 --loss 1 -- pair-rdma.sh loss
consumers-pair | pair | check full       |          | consumers_together
wire           | pair | check full       | pair     | wire --link dgram
rxe-wire       | pair | check full       | rxe      | wire --nic-b virtio --link udp
rxe-loss       | pair | check full       | rxe      | machines 2 --nic-b virtio --loss 1 -- pair-rdma.sh loss
rxe-odp        | pair | full             | rxe      | machines 2 --kernel 7 --nic-b virtio -- pair-rdma.sh odp
mcast          | pair | check full       | pair     | mcast
taps           | pair | full             | pair     | taps
incast         | pair | full             | pair     | incast
life           | one  | check full       |          | life
kselftest      | one  | check full       | guest    | one_guest 2400 --device-arg guest-faults=on -- kselftest
engine         | one  | check full       |          | engine check V=1
server         | one  | check full       | server   | server
consumers      | one  | check full       |          | consumers_alone
hostile        | one  | check full       | variants | hostile
kernel         | one  | check full       | guest    | one_guest 1200 -- claims eth kverbs soak
rails          | one  | check full       |          | rails 1200 --hcas 2
disorder       | one  | full             | variants | disorder
rails-8        | one  | full             | variants | rails 1800 --hcas 8 --smp 4 --mem 4G
rails-server   | one  | full             | server   | rails 1200 --server --hcas 2
scenarios      | one  | check full       |          | scenarios
unplug         | one  | full             | variants | unplug
vm             | one  | full             | launcher | check_vm options
lab            | pair | full             | launcher | check_vm lab
tour           | one  | full             |          | tour
snapshot       | one  | full             | variants | one_guest 1200 -- snapshot
pyverbs        | one  | check full       | guest    | one_guest 1200 -- tools speeds cm pyverbs
matrix         | one  | check full       | guest    | one_guest 2400 -- matrix
server-guest   | one  | full             | server   | server_guest
server-pair    | pair | full             | server   | machines 2 --mortal-server -- pair-rdma.sh perf ipv6 place cm killed
server-fuzz    | one  | full             | server   | server_fuzz
tsan-server    | one  | full             | server   | tsan_server
qtest          | one  | quick check full |          | qtest
beside         | one  | check full       |          | beside
instructions   | one  | check full       |          | instructions
cluster        | one  | check full       |          | cluster
cluster-captures | one | check full       |          | cluster_captures
cluster-dcqcn  | one  | check full       |          | cluster_dcqcn
lint           | idle | full             |          | lint
engine-quick   | one  | quick            |          | engine_quick
core           | one  | quick            |          | one_guest 1200 -- core
ucx-gtest      | one  | full             |          | ucx_gtest
pyverbs-sid    | one  | full             | variants | one_guest 1200 --rdma-core sid -- pyverbs
pyverbs-new    | one  | full             | variants | one_guest 1200 --kernel 7 --rdma-core sid -- pyverbs
iommu          | one  | full             | variants | one_guest 2400 --iommu --device-arg guest-faults=on -- kselftest
no-dm          | one  | full             | variants | one_guest 1200 --device-arg dm-size=0 --device-arg eth-queues=1 -- eth kselftest dm device caps ten_steps
db-stride      | one  | full             | variants | one_guest 1200 --device-arg db-stride=64K -- kselftest doorbell abi ten_steps import tenants kill uverbs_fuzz
slow           | one  | check full       | variants | one_guest 600 --device-arg cpu-share=1 --device-arg cmd-timeout-ms=250 --env SLOW_MS=250 -- kselftest slow
bounce         | one  | full             | variants | one_guest 1200 --kernel-arg swiotlb=force -- kverbs
frames         | one  | full             | variants | one_guest 2400 --device-arg frames=on --device-arg guest-faults=on -- kselftest
kernel-6.1     | one  | full             | kernels  | other_kernel 6.1
kernel-7       | one  | full             | kernels  | other_kernel 7
arm64          | one  | full             | kernels  | one_guest 3600 --arch arm64 --device-arg guest-faults=on -- kselftest uars doorbell ten_steps
arm64-server   | one  | full             | kernels  | one_guest 3600 --arch arm64 --server --device-arg guest-faults=on -- kselftest uars doorbell ten_steps
s390x          | one  | full             | kernels  | other_order
s390x-pair     | pair | full             | kernels  | machines 2 --arch b:s390x -- pair-rdma.sh perf ipv6
net-tests      | one  | full             | kernels  | net_tests
eth-alone      | one  | full             | variants | one_guest 1200 --setup eth -- eth-alone
life-debug     | one  | full             | debug    | debugged --debug-kernel --env LIFE_CYCLES=3 --env PATIENCE=300 -- life kselftest nomem nopages kill
nomem-eth      | one  | full             | debug    | debugged --debug-kernel --kernel-arg dma_debug=off --env KSELFTEST_TIMEOUT=7000 -- kselftest nomem_eth nomem_restart
debug          | one  | full             | debug    | debugged --debug-kernel --device-arg guest-faults=on -- kverbs kselftest
kcsan          | one  | full             | debug    | kcsan
rt             | one  | full             | debug    | debugged --rt-kernel --device-arg guest-faults=on -- kverbs eth kselftest rc_data stress events cq notify srq mcast kill recovery removal cm nomem nopages
asan-qemu      | one  | full             | variants | one_guest 3600 --debug-qemu --device-arg guest-faults=on -- kselftest
asan-qtest     | one  | full             | variants | asan_qtest
tsan-qemu      | one  | full             | variants | tsan_qemu
msan           | one  | full             |          | msan
nightly        | one  | full             |          | engine nightly V=1
uverbs-fuzz    | one  | full             |          | uverbs_fuzz
churn          | one  | full             | debug    | churn --debug-kernel
churn-kcsan    | one  | full             | debug    | churn --kcsan
fuzz           | one  | full             |          | fuzz
soak-guest     | one  | full             |          | soak_guest
export         | one  | full             |          | series
packages       | one  | full             |          | packages
oci            | one  | full             |          | oci
example        | one  | full             |          | example
conformance    | all  | check full       |          | conformance
cluster-random | all  | full             |          | cluster_random
cluster-captures-drawn | one | full      |          | cluster_captures --drawn 60
cluster-numbers | all | full             |          | cluster --numbers
cluster-dcqcn-numbers | one | full       |          | cluster_dcqcn --numbers
soak           | one  |                  |          | soak
guest          | one  |                  |          | sections
'
# On a copy, so that no objects end up in the source tree.
engine()
{
	local tree=$QHCA_CACHE/engine-tree
	mkdir -p "$tree"
	with_lock engine-tree engine_make "$tree" "$@"
}

engine_make()
{
	local tree=$1
	shift
	rsync -rpc --delete --exclude='*.o' --exclude='*.d' --exclude=/qemu-device/tests/build \
		"$QHCA_TOP/qemu-device" "$QHCA_TOP/include" "$QHCA_TOP/Documentation" "$tree/"
	in_buildroot make -s -j "$(nproc)" -C "$(br_path "$tree/qemu-device/tests")" "$@"
}

engine_quick() { engine check V=1 TESTS='--suite unit' && counted sim/schedules engine soak COUNT=500; }
soak() { counted sim/schedules engine soak COUNT="${COUNT:-}" SEED="${SEED:-}"; }

# Each kind of input for half a minute; clang is not in every build root.
fuzz()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --extra -- true || return
	counted fuzz/libFuzzer engine fuzz FUZZ_TIME=30
}

# All tests of the engine; the same compiler.
msan()
{
	"$QHCA_TOP/scripts/build/buildroot.sh" --extra -- true || return
	engine msan V=1
}

# The patches for other projects apply to their releases, and what they bring builds there.
series() { counted export "$QHCA_TOP/scripts/release/export.sh" --check linux qemu rdma-core; }

# The example project, as CI systems run it.
example() { counted example "$QHCA_TOP/scripts/ci/example.sh"; }

ENGINE_LIMITS='qemu-device/tests/bench/instructions.txt'

# What a message costs the engine, and posting and polling the provider: not more than
# before, however busy this machine is; with UPDATE they are what counts from now on.
instructions()
{
	local rc=0
	"$QHCA_TOP/scripts/build/buildroot.sh" --valgrind -- true || return
	counted instructions engine instructions UPDATE="${UPDATE:-}" || rc=$?
	[ -z "${UPDATE:-}" ] || cp "$QHCA_CACHE/engine-tree/$ENGINE_LIMITS" "$QHCA_TOP/$ENGINE_LIMITS"
	counted provider-instructions provider_instructions || rc=$?
	return $rc
}

provider_instructions()
{
	local tree build rc=0
	"$QHCA_TOP/scripts/build/provider.sh" >/dev/null || return
	tree=$("$QHCA_TOP/scripts/build/provider.sh" --tree) || return
	build=$(mktemp -d "$QHCA_CACHE/tmp/provider-bench.XXXXXX")
	in_buildroot make -s -C "$QHCA_BR_TOP/providers/bench" instructions UPDATE="${UPDATE:-}" \
		RDMA_CORE="$(br_path "$tree")" BUILD="$(br_path "$build")" || rc=$?
	rm -rf "$build"
	return $rc
}

# counted NAME COMMAND…: adds the name and the totals that it does not print.
counted()
{
	local rc=0 out
	echo "# $1"
	shift
	out=$(mktemp "$QHCA_CACHE/tmp/counted.XXXXXX")
	"$@" | tee "$out" || rc=$?
	echo "$(grep -c '^ok ' "$out") passed, $(grep -c '^not ok ' "$out") failed, 0 skipped"
	rm -f "$out"
	return $rc
}

# shellcheck disable=SC2086 # a list of options
check_vm() { "$QHCA_TOP/scripts/check/check-vm.py" "$@" $VMFLAGS; }

cluster() { counted cluster "$QHCA_TOP/scripts/cluster/test_cluster.py" "$@"; }
cluster_captures()
{
	counted cluster-captures "$QHCA_TOP/scripts/cluster/test_captures.py" "$@"
}
cluster_dcqcn() { counted cluster-dcqcn "$QHCA_TOP/scripts/cluster/test_dcqcn.py" "$@"; }
cluster_random() { counted cluster-random "$QHCA_TOP/scripts/cluster/fuzz.py" --count 40; }
tour() { "$QHCA_TOP/scripts/docs/tour.py" --check; }
packages() { "$QHCA_TOP/scripts/release/check-packages.sh"; }
beside() { "$QHCA_TOP/scripts/check/check-beside.sh" ${FULL:+--full}; }
oci() { "$QHCA_TOP/scripts/release/check-oci.sh"; }

lint() { "$QHCA_TOP/scripts/lint.sh" ${FULL:+--all}; }

# qtest [SCRIPT OPTION…]: with the QEMU that this makes, or build/beside.sh.
qtest()
{
	local qemu
	qemu=$("$QHCA_TOP/scripts/build/${1:-beside.sh}" "${@:2}") || return
	python3 "$QHCA_TOP/qemu-device/qtest/run.py" --qemu "$qemu/qemu-qtest"
}

# seeds_of_today COUNT: FIRST-LAST; others tomorrow.
seeds_of_today()
{
	local first
	first=$(($(date +%-j) * $1))
	echo "$first-$((first + $1 - 1))"
}

# server_qtest KIND [NAME…]: a server that build/server.sh makes with this option, or none.
server_qtest()
{
	local qemu program
	qemu=$("$QHCA_TOP/scripts/build/beside.sh") || return
	# shellcheck disable=SC2086 # or none
	program=$("$QHCA_TOP/scripts/build/server.sh" $1) || return
	shift
	python3 "$QHCA_TOP/qemu-device/qtest/run.py" --qemu "$qemu/qemu-qtest" \
		--server "$program/qhca-server" "$@"
}

# Other seeds every day.
server_fuzz() { QHCA_FUZZ_SEEDS=$(seeds_of_today 100) server_qtest --asan server_fuzz; }

# Threads that accept connections and close file descriptors, beside the one that does the rest.
tsan_server() { server_qtest --tsan server rc. dm.; }

# The device as a process of its own: alone under AddressSanitizer, and in its sandbox; then
# with a machine of Debian's QEMU, also when the process is killed.
server()
{
	local kind rc=0
	for kind in --asan ''; do server_qtest "$kind" || rc=$?; done
	one_guest 1200 --mortal-server --device-arg guest-faults=on --env LIFE_WAYS=server -- \
		core kverbs life kselftest device rc_data events cq notify mw srq mcast faults \
		removal abi abi_resp doorbell forged || rc=$?
	return $rc
}

# All that runs on the device in QEMU.
server_guest()
{
	local rc=0
	one_guest 1800 --server -- eth tools cm pyverbs || rc=$?
	one_guest 2400 --server --device-arg guest-faults=on -- kverbs kselftest || rc=$?
	return $rc
}

asan_qtest() { QHCA_FUZZ_SEEDS=$(seeds_of_today 10) qtest qemu.sh --debug; }

# split_options OPTION… -- REST…: into the arrays options and rest of the caller.
split_options()
{
	options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	rest=("${@:2}")
}

# one_guest SECONDS [OPTION…] -- SECTION…: guest/check.sh in one machine.
one_guest()
{
	local limit=$1 options rest
	shift
	split_options "$@"
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" run --strict --timeout "$limit" "${options[@]}" $VMFLAGS -- \
		/opt/qhca/guest/check.sh "${rest[@]}"
}

# rails LIMIT OPTION…: a machine with several adapters, to which rails.sh lets things happen.
rails() { one_guest "$@" --faults "$QHCA_TOP/selftests/guest/rails.faults" -- rails; }

# What happens to two adapters, and whether the verdict on a program is right.
scenarios() { "$QHCA_TOP/scripts/check/scenarios.sh" ${FULL:+--full}; }

# Consumers that rely on nothing but what the specification grants, as faults.rst says.
disorder()
{
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" run --strict --timeout 1600 --fault 'port order=adversarial' $VMFLAGS -- \
		/opt/qhca/guest/consumers.sh nvme nfs iser srp p9 libfabric qperf rsockets
}

# other_kernel NAME: what the driver and a kernel have to do with each other.
other_kernel()
{
	local rc=0
	one_guest 3600 --kernel "$1" --device-arg guest-faults=on -- kverbs eth tools kselftest || rc=$?
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" run --strict --kernel "$1" --timeout 1200 $VMFLAGS -- \
		/opt/qhca/guest/consumers.sh nvme || rc=$?
	return $rc
}

# What knows the layout of something, or moves data; without what the machine has not, which is huge
# pages, device memory, udmabuf, and an IOMMU that maps as much as a user may have.
other_order()
{
	one_guest 3600 --arch s390x --device-arg guest-faults=on -- kselftest abi abi_core abi_resp \
		abi_srq abi_wq answers caps cm cm_xrc counters cq cq_stamps device domain doorbell \
		errno events extended faults flow_counters flush forged given import inval mr_reg mw \
		notify null_mr odp raw rc_atomic rc_data rc_errors rwq srq ten_steps uc ud xrc
}

# The kernel's own tests of network drivers, those of the newest kernel, in a machine that has both
# ends of the cable. Some want five channels, so there are six CPUs, and two vectors for each.
net_tests()
{
	local built
	built=$("$QHCA_TOP/scripts/build/net-tests.sh" --kernel 7) || return
	# shellcheck disable=SC2086 # a list of options
	"$QHCA_TOP/scripts/vm" run --strict --timeout 1800 --kernel 7 --both-ends --smp 6 \
		--device-arg vectors=13 --package socat --package python3-yaml --package jq \
		--put "$built:net-tests" $VMFLAGS -- /opt/qhca/guest/net-tests.sh
}

# The sections that check.sh was asked for.
# shellcheck disable=SC2086 # a list
sections() { one_guest 1800 -- $WORDS; }

soak_guest()
{
	local seconds=$((${MINUTES:-10} * 60))
	one_guest $((seconds ? seconds + 600 : 1 << 30)) --env SOAK_SECONDS=$seconds -- soak
}

# The device goes and comes back: once in each way, with a look at everything now and then, which
# is what takes long; or often, with a look after each, and a disk beside.
life()
{
	if [ -z "$FULL" ]; then
		one_guest 1500 --env LIFE_CYCLES=1 --env LIFE_TOGETHER=6 -- life
	else
		one_guest 7200 --env LIFE_CYCLES="${LIFE_CYCLES:-20}" --env LIFE_NVME=1 \
			--env KILL_CYCLES="${LIFE_CYCLES:-20}" -- life kselftest kill
	fi
}

# Linux minds the slot, not ACPI, and lets programs map BARs.
unplug()
{
	one_guest 1800 --smp 4 --kernel-arg iomem=relaxed --qemu-arg=-global \
		--qemu-arg=ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
		--env LIFE_WAYS='plug off' -- life
}

# machines COUNT [OPTION…] -- SCRIPT [ARGUMENT…]: all of them run the script, and all
# results count.
machines()
{
	local count=$1 options rest
	shift
	split_options "$@"
	# shellcheck disable=SC2086 # a list of options
	"${WHERE[@]}" "$QHCA_TOP/scripts/vm" net -n "$count" --strict --timeout 1200 "${options[@]}" $VMFLAGS -- \
		/opt/qhca/guest/"${rest[0]}" "${rest[@]:1}"
}

# In a network namespace of its own, where there is a bridge.
BRIDGED=(unshare --map-root-user --net sh -ec '
	ip link add br0 type bridge
	ip link set br0 up
	exec "$@"' sh)
WHERE=()

# Three machines at a bridge of the host's, or at the launcher's hub.
mcast()
{
	local link=hub WHERE=()
	if "${BRIDGED[@]}" ip tuntap add dev probe mode tap 2>/dev/null; then
		link=bridge:br0 WHERE=("${BRIDGED[@]}")
	fi
	machines 3 --link $link -- net-mcast.sh
}

# Two machines whose network cards leave segments of TCP to the host's kernel.
taps()
{
	local rc=0 WHERE=("${BRIDGED[@]}")
	machines 2 --link bridge:br0 -- pair.sh || rc=$?
	machines 2 --link bridge:br0 -- pair-rdma.sh perf || rc=$?
	return $rc
}

# Two send to one through a hub that has no room for it, with and without pauses.
incast()
{
	local rc=0 hub=(--rate 100 --queue 300)
	machines 3 "${hub[@]}" --pause 60:30 -- net-incast.sh paused || rc=$?
	# What is on its way when the hub asks has room, however late the hub itself is.
	machines 3 --rate 100 --queue 4000 --pfc 60:30 -- net-incast.sh asked || rc=$?
	machines 3 "${hub[@]}" -- net-incast.sh losing || rc=$?
	return $rc
}

# wire [OPTION…]: two machines, and capture.py on the frames between them.
wire()
{
	local file rc=0
	file=$(mktemp "$QHCA_CACHE/tmp/capture.XXXXXX")
	machines 2 --pcap "$file" "$@" -- pair-wire.sh || rc=$?
	python3 "$QHCA_TOP/scripts/check/capture.py" --wire "$file" || rc=$?
	rm -f "$file"
	return $rc
}

# Which statements the parts that have ended have tested.
conformance() { "$QHCA_TOP/scripts/docs/conformance.py" --results "$RUN"; }

. "$QHCA_TOP/scripts/check/consumers.sh"
. "$QHCA_TOP/scripts/check/debug.sh"
