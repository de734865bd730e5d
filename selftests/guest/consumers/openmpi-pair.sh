# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh in two machines: one MPI rank in each. The first machine
# launches through a remote shell of our own; the second only serves it.

# shellcheck source=selftests/guest/consumers/openmpi.sh
. "$DIR/consumers/openmpi.sh"

RSH=$DIR/consumers/rsh.py

# A launcher takes two machines of the same name for one.
mpi_pair_names()
{
	hostname "qhca-$QHCA_ROLE" || return 1
	sed -i '/ qhca-[ab]$/d' /etc/hosts
	printf '%s qhca-%s\n' "$QHCA_IP" "$QHCA_ROLE" "$QHCA_PEER" \
		"$([ "$QHCA_ROLE" = a ] && echo b || echo a)" >>/etc/hosts
}

MPI_TWO=(--prtemca plm_ssh_agent "$RSH" --host "$QHCA_IP:1,$QHCA_PEER:1")

# UCX gets no settings here.
pair_over_ucx()
{
	open_mpi "${MPI_TWO[@]}" --mca pml ucx --mca osc ucx -x UCX_LOG_LEVEL -x UCX_VFS_ENABLE "$@" &&
		grep "inter-node.*$QHCA_DEV" "$LOGS/mpi"
}

pair_mpich()
{
	mpi_run mpiexec.mpich -launcher rsh -launcher-exec "$RSH" \
		-hosts "$QHCA_IP,$QHCA_PEER" -n 2 $MPI_DIR/mpich $MPI_LARGEST &&
		mpi_right && grep "inter-node.*$QHCA_DEV" "$LOGS/mpi"
}

openmpi-pair()
{
	local server mpi
	for mpi in openmpi mpich; do
		expect "consumers/openmpi-pair/build-$mpi" mpi_build $mpi
	done
	expect consumers/openmpi-pair/names mpi_pair_names
	python3 "$RSH" --serve >"$LOGS/rsh" 2>&1 &
	server=$!
	until_true listening 7700
	qhca-host sync mpi-begin >/dev/null
	if [ "$QHCA_ROLE" = a ]; then
		expect consumers/openmpi-pair/ucx pair_over_ucx
		[ "$FULL" != 1 ] || MPI_LARGEST=16777216 MPI_LIMIT=400
		[ "$FULL" != 1 ] || expect consumers/openmpi-pair/ucx-ud_v pair_over_ucx -x UCX_TLS=ud_v,self
		expect consumers/openmpi-pair/libfabric-cm over_libfabric "${MPI_TWO[@]}"
		expect consumers/openmpi-pair/mpich-ucx pair_mpich
	fi
	qhca-host sync mpi-end >/dev/null
	kill $server
	hostname qhca
}
