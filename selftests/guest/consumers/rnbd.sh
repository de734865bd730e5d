# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: RNBD, a block device over the transport RTRS, server and client in this
# machine. Debian's kernel has neither; the modules are built of its source (build/ulps.sh).
# The client writes with RDMA WRITE with immediate data into memory that the server registers anew
# for each request; the server answers in the same way, and invalidates with SEND.

. "$DIR/consumers/lio.sh"

RNBD_MODULES=/opt/qhca/rnbd
RNBD_CTL=/sys/devices/virtual/rnbd-client/ctl

# rnbd_start [always_invalidate=n]
rnbd_start()
{
	modprobe brd rd_nr=1 rd_size=131072 && modprobe -a ib_uverbs rdma_cm || return 1
	insmod $RNBD_MODULES/rtrs-core.ko && insmod $RNBD_MODULES/rtrs-server.ko "$@" &&
		insmod $RNBD_MODULES/rnbd-server.ko && insmod $RNBD_MODULES/rtrs-client.ko &&
		insmod $RNBD_MODULES/rnbd-client.ko
}

# Two paths, to two addresses: when one breaks its requests take the other.
rnbd_map()
{
	local other=${QHCA_IP%.*}.201
	ip address add "$other/24" dev "$QHCA_IF" &&
		echo "sessname=check path=ip:$QHCA_IP path=ip:$other device_path=dev/ram0" \
			>$RNBD_CTL/map_device && until_true test -b /dev/rnbd0 &&
		[ "$(cat /sys/class/rtrs-client/check/paths/*/state)" = $'connected\nconnected' ]
}

rnbd_used()
{
	rdma res show mr dev "$QHCA_DEV" | grep -m1 '\[rtrs_core\]' &&
		[ "$(rdma res show qp link "$QHCA_DEV/1" | grep -c 'type RC state RTS')" -ge 8 ]
}

# Each path's connections are made again under a writer.
rnbd_reconnect()
{
	local writer rc=0 path
	scsi_fio_sizes /dev/rnbd0 8 8m &
	writer=$!
	for path in /sys/class/rtrs-client/check/paths/*; do
		sleep 1
		echo 1 >"$path/reconnect" && until_true grep -qx connected "$path/state" || rc=1
	done
	wait $writer && return $rc
}

rnbd_no_session() { [ -z "$(ls /sys/class/rtrs-client)" ]; }

# The session closes after its last device has gone, and then its owner lets go of it.
rnbd_unmap()
{
	echo normal >/sys/block/rnbd0/rnbd/unmap_device && until_true test ! -e /sys/block/rnbd0 &&
		until_true rnbd_no_session && sleep 1 &&
		ip address del "${QHCA_IP%.*}.201/24" dev "$QHCA_IF"
}

# Each removes what is left of the one before: sessions end in work queues.
rnbd_stop()
{
	local module
	for module in rnbd_client rtrs_client rnbd_server rtrs_server rtrs_core brd; do
		until_true rmmod $module || return 1
	done
}

# rnbd_tests NAME SIZE [PARAMETER]
rnbd_tests()
{
	local name=consumers/rnbd$1
	if expect "$name/modules" rnbd_start "${@:3}" && expect "$name/map" rnbd_map; then
		expect "$name/used" rnbd_used
		expect "$name/fio-depth-1" scsi_fio_sizes /dev/rnbd0 1 4m
		expect "$name/fio-depth-64" scsi_fio_sizes /dev/rnbd0 64 "$2"
		expect "$name/flush" blockdev --flushbufs /dev/rnbd0
		expect "$name/mkfs" scsi_mkfs /dev/rnbd0
		expect "$name/reconnect" rnbd_reconnect
		expect "$name/unmap" rnbd_unmap
	fi
	expect "$name/remove" rnbd_stop
}

rnbd()
{
	rnbd_tests '' "${FULL:+4}8m"
	[ -z "$FULL" ] || rnbd_tests /trusting 48m always_invalidate=n
}
