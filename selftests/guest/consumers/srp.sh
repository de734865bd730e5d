# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: SCSI over RDMA, ib_srpt's target and ib_srp's initiator in
# this machine, both on the device's own address. They connect by the RDMA CM: RoCE has
# no subnet administrator for the other way.

. "$DIR/consumers/lio.sh"

SRP_PORT=5555
SRPT=$TARGET/srpt

# The target's port is named by its GUID and identifies initiators by their address. It
# accepts only those it knows.
srp_tpg() { echo "$SRPT/$(cat "/sys/class/infiniband/$QHCA_DEV/node_guid")/tpgt_1"; }

srp_acl()
{
	local acl=$1/acls/$QHCA_IP lun
	mkdir "$acl" || return 1
	for lun in lun_0 lun_1; do
		mkdir "$acl/$lun" && ln -s "$1/lun/$lun" "$acl/$lun/$lun" || return 1
	done
}

srp_acl_remove()
{
	local acl=$1/acls/$QHCA_IP
	rm "$acl"/lun_0/lun_0 "$acl"/lun_1/lun_1 && rmdir "$acl"/lun_[01] "$acl"
}

srp_target()
{
	local tpg
	tpg=$(srp_tpg)
	lio_start ib_srpt && mkdir -p "$tpg" && lio_luns "$tpg" && srp_acl "$tpg" || return 1
	echo $SRP_PORT >"$SRPT"/discovery_auth/rdma_cm_port && echo 1 >"$tpg/enable"
}

srp_target_remove()
{
	local tpg
	tpg=$(srp_tpg)
	echo 0 >"$tpg/enable"
	srp_acl_remove "$tpg"
	lio_luns_remove "$tpg"
	rmdir "$tpg" "${tpg%/*}" "$SRPT" && lio_stop ib_srpt
}

srp_connect()
{
	local guid
	guid=$(printf %016x "$(cat /sys/module/ib_srpt/parameters/srpt_service_guid)")
	echo "id_ext=$guid,ioc_guid=$guid,dest=$QHCA_IP:$SRP_PORT$1" \
		>"/sys/class/infiniband_srp/srp-$QHCA_DEV-1/add_target"
}

# srp_login [,OPTION…]: a connection just deleted is known for another moment and
# blocks the next one.
srp_login()
{
	modprobe ib_srp && until_true srp_connect "$1" && wait_disks srp
}

srp_used()
{
	rdma res show mr dev "$QHCA_DEV" | grep -m1 '\[ib_srp\]' &&
		[ "$(rdma res show qp link "$QHCA_DEV/1" | grep -c 'type RC state RTS')" -ge 2 ]
}

# The disks go first; the connection is known until its host is gone.
no_host() { [ -z "$(ls /sys/class/srp_host)" ]; }

srp_logout()
{
	local port
	for port in /sys/class/srp_remote_ports/port-*; do
		echo 1 >"$port/delete" || return 1
	done
	until_true no_host
}

# Each login with another way to describe memory.
SRP_LOGINS='cmd_sg_entries=1
cmd_sg_entries=255,allow_ext_sg=1,sg_tablesize=2048
queue_size=8
max_sect=64'

srp_again()
{
	srp_login ",$1" && scsi_fio_sizes "$(scsi_disks srp | sed 's/ .*//;q')" 8 4m && srp_logout
}

srp()
{
	local options
	if expect consumers/srp/target srp_target && expect consumers/srp/login srp_login; then
		expect consumers/srp/used srp_used
		scsi_tests consumers/srp srp "device host"
		expect consumers/srp/logout srp_logout
		for options in ${FULL:+$SRP_LOGINS}; do
			expect "consumers/srp/$options" srp_again "$options"
		done
	fi
	expect consumers/srp/initiator-remove unload ib_srp
	expect consumers/srp/remove srp_target_remove
}
