# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: MPI in one machine, two ranks that do not use its shared
# memory; and the parts that openmpi-pair.sh shares. Open MPI over UCX and over
# libfabric, MPICH over UCX.

. "$DIR/consumers/ucx.sh"	# the ways that UCX can be made to take

MPI_DIR=/run/qhca/mpi
MPI_LARGEST=65536
export EXPECT_LINES=120	# counters and two stacks, if it does not end

# mpi_build openmpi|mpich
mpi_build() { mkdir -p $MPI_DIR && "mpicc.$1" -O2 -o "$MPI_DIR/$1" "$DIR/consumers/mpi-verify.c"; }

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export UCX_LOG_LEVEL=info UCX_VFS_ENABLE=n

# mpi_run COMMAND…: which ends in time. If not, the ranks show where they are (MPI and UCX
# print a stack at SIGSEGV), and the device what it has left to do.
mpi_run()
{
	local pid
	: >"$LOGS/mpi"
	"$@" >>"$LOGS/mpi" 2>&1 &
	pid=$!
	PATIENCE=${MPI_LIMIT:-120} until_true gone $pid || {
		rdma statistic show link "$QHCA_DEV/1"
		pkill -SEGV -x 'openmpi|mpich'
		PATIENCE=20 until_true gone $pid || kill $pid
	} >>"$LOGS/mpi" 2>&1
	wait $pid || { cat "$LOGS/mpi"; return 1; }
}

mpi_right() { grep 'ranks, all data is right' "$LOGS/mpi"; }

# open_mpi OPTION…: of mpirun
# shellcheck disable=SC2086 # MPI_ONLY is a word or none
open_mpi()
{
	mpi_run mpirun.openmpi --map-by :OVERSUBSCRIBE --bind-to none -n 2 \
		"$@" $MPI_DIR/openmpi $MPI_LARGEST $MPI_ONLY && mpi_right
}

over_ucx()
{
	open_mpi --mca pml ucx --mca osc ucx -x UCX_TLS="$1,self" -x UCX_NET_DEVICES="$QHCA_DEV:1" &&
		grep -q "cfg.*${1/_v/_verbs}/$QHCA_DEV" "$LOGS/mpi"
}

# All connections between the ranks use the device: they are told that they are on
# different machines.
mpich_over_ucx()
{
	UCX_TLS="$1,self" UCX_NET_DEVICES="$QHCA_DEV:1" MPIR_CVAR_NOLOCAL=1 \
		mpi_run mpiexec.mpich -n 2 $MPI_DIR/mpich $MPI_LARGEST && mpi_right &&
		grep -q "cfg.*${1/_v/_verbs}/$QHCA_DEV" "$LOGS/mpi"
}

# The matching transport layer ofi over reliable datagrams. Open MPI has nothing for
# one-sided operations there but shared memory, as its btl ofi does not take this provider.
over_libfabric()
{
	local MPI_ONLY=two-sided
	open_mpi --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' "$@"
}

# mpi_by WAY NAME COMMAND…: over UCX, made to copy all messages, or to write large ones.
mpi_by() { expect "consumers/openmpi/$2-$1" ucx_by "$1" "$LOGS/mpi" "${@:3}"; }

openmpi()
{
	expect consumers/openmpi/build mpi_build openmpi || return
	expect consumers/openmpi/ucx-rc_v over_ucx rc_v
	expect consumers/openmpi/libfabric-cm over_libfabric
	[ "$FULL" = 1 ] || return 0
	MPI_LARGEST=16777216 MPI_LIMIT=400
	expect consumers/openmpi/build-mpich mpi_build mpich || return
	expect consumers/openmpi/mpich-ucx-ud_v mpich_over_ucx ud_v
	expect consumers/openmpi/ucx-ud_v over_ucx ud_v
	expect consumers/openmpi/ucx-rc_v-16MiB over_ucx rc_v
	expect consumers/openmpi/libfabric-cm-16MiB over_libfabric
	expect consumers/openmpi/mpich-ucx-rc_v mpich_over_ucx rc_v
	mpi_by eager-copy ucx-rc_v over_ucx rc_v
	mpi_by rndv-put ucx-rc_v over_ucx rc_v
	# Made to write, UCX 1.18 ends a rank of MPICH's one-sided operations at address 0.
	mpi_by eager-copy mpich-ucx-rc_v mpich_over_ucx rc_v
}
