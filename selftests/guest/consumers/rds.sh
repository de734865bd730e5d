# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: RDS, reliable datagrams, between two machines. Both run the
# same, and each sends to the other.

RDS_TOOL=$DIR/consumers/rds.py

# rds_test NAME COUNT SIZE…: COUNT datagrams of each size
rds_test()
{
	local name=$1
	shift
	qhca-host sync "rds-$name" >/dev/null
	expect "consumers/rds/$name" timeout 120 python3 "$RDS_TOOL" exchange "$QHCA_IP" "$QHCA_PEER" \
		4000 "$@"
}

# There is a connection over RDMA, with a GID at either end, and its QP.
rds_used()
{
	python3 "$RDS_TOOL" info "$QHCA_IP" >"$LOGS/rds"
	cat "$LOGS/rds"
	rdma res show qp link "$QHCA_DEV/1"
	grep "$QHCA_IP $QHCA_PEER up up" "$LOGS/rds" &&
		rdma res show qp link "$QHCA_DEV/1" | grep 'type RC state RTS' && [ ! -d /sys/module/rds_tcp ]
}

rds()
{
	expect consumers/rds/setup modprobe rds_rdma
	# Neither has rds_tcp, and each has its listener over RDMA.
	qhca-host sync rds-up >/dev/null
	rds_test small 200 0 1 100 4095
	expect consumers/rds/used rds_used
	rds_test pages 50 4096 4097 65536 12345
	rds_test large 5 1048576 1000001
	if [ -n "$FULL" ]; then
		rds_test many 5000 64 300
		rds_test mixed 100 1 1048576 77 300000 4096 65537
	fi
	qhca-host sync rds-down >/dev/null
	expect consumers/rds/remove unload rds_rdma rds
}
