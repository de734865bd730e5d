# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: every perftest program with every transport service it
# has, plain and with each of its options. The figures do not matter, the data
# must flow. Two run at a time: much of the time they wait for each other.

shopt -s extglob
MATRIX_JOBS=2
MATRIX_LIMIT=180	# seconds for one of them, on a busy machine
MATRIX_LOGS=/run/qhca/matrix

MATRIX_TOOLS='
RC ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw ib_atomic_lat
UC ib_send_bw ib_send_lat ib_write_bw ib_write_lat
UD ib_send_bw ib_send_lat
'

# The iterations stay below the receive queue's size: where messages are lost
# for want of a receive request, perftest waits for them for ever.
MATRIX_VARIANTS='
plain -s 2048 -n 200
all -a -n 5
bidirectional -b -s 2048 -n 200
events -e -s 2048 -n 200
qps -q 8 -s 2048 -n 200
list -l 8 -Q 8 -m 256 -s 256 -n 200
seconds -D 1 -f 0 -s 2048
srq --use-srq -s 2048 -n 200
cm -R -s 2048 -n 200
'

# Why that does not exist, or is not run; nothing if it is.
not_applicable()
{
	case $2-$3 in
	ib_atomic*-all) echo "an atomic has one size" ;;
	*_lat-bidirectional | *_lat-qps | *_lat-list) echo "for bandwidth only" ;;
	*_lat-all | *_lat-seconds | ib_read*-all) echo "takes long; as ib_send_bw" ;;
	ib_write*-events) echo "nothing to wait for with WRITE" ;;
	ib_[wra]*-srq) echo "no receive requests" ;;
	esac
	case $1-$3 in
	UC-srq) echo "UC has no SRQ" ;;
	UC-cm) echo "librdmacm has no UC" ;;
	UC-all) [ "$2" = ib_send_bw ] || echo "takes long; as ib_send_bw" ;;
	esac
}

# Why the device does not have it.
not_offered()
{
	case $1 in
	UD) grep -q 'max_ah:[[:space:]]*0$' $MATRIX_LOGS/device && echo "no UD QPs" ;;
	esac
	case $2-$3 in
	*-srq) grep -q 'max_srq:[[:space:]]*0$' $MATRIX_LOGS/device && echo "no SRQ" ;;
	*-cm) have_cm || echo "no GSI QP, so no RDMA CM" ;;
	ib_atomic*) grep -qE 'atomic_cap:.*(HCA|GLOB)' $MATRIX_LOGS/device || echo "no atomics" ;;
	esac
}

# Is a server of the RDMA CM there? It is in no table of sockets.
matrix_listening() { rdma res show cm_id | grep -q "LISTEN.*:$1 "; }

# matrix_cm SERVER_LOG CLIENT_LOG PORT COMMAND…: as both() of perf.sh, but the
# RDMA CM makes the connection.
matrix_cm()
{
	local slog=$1 clog=$2 port=$3 server rc=0
	shift 3
	timeout $MATRIX_LIMIT "$@" >"$slog" 2>&1 &
	server=$!
	until matrix_listening "$port"; do
		kill -0 $server || break
		sleep 0.1
	done
	timeout $MATRIX_LIMIT "$@" "$QHCA_IP" >"$clog" 2>&1 || { rc=$?; kill $server; }
	wait $server && return $rc
}

# matrix_job NAME PORT SERVICE TOOL OPTION…
matrix_job()
{
	local name=$1 port=$2 service=$3 tool=$4 log=$MATRIX_LOGS/$1
	local run=(both "$MATRIX_LIMIT")
	shift 4
	[[ " $* " == *" -R "* ]] && run=(matrix_cm)
	if "${run[@]}" "$log.server" "$log.client" "$port" "$tool" -c "$service" \
		-d "$QHCA_DEV" -x "$QHCA_GID" -p "$port" -F "$@" &&
		grep -qE '^ *[0-9]+ +[0-9]+ .*[0-9]\.[0-9]' "$log.client"; then
		echo ok >"$log"
	else
		echo fail >"$log"
	fi
}

# Run what there is, then report all in order.
matrix()
{
	local service tools tool variant options name why port=19000 report=''
	mkdir -p $MATRIX_LOGS
	ibv_devinfo -v -d "$QHCA_DEV" >$MATRIX_LOGS/device
	while read -r service tools; do
		for tool in $tools; do
			while read -r variant options; do
				[ -n "$variant" ] || continue
				name=$tool-$service-$variant
				why=$(not_applicable "$service" "$tool" "$variant"
					not_offered "$service" "$tool" "$variant")
				report+="$name ${why%%$'\n'*}"$'\n'
				[ -z "$why" ] || continue
				port=$((port + 1))
				[[ $tool != ib_atomic* ]] || options=${options/-s +([0-9])/}
				while [ "$(jobs -rp | wc -l)" -ge $MATRIX_JOBS ]; do
					wait -n
				done
				# shellcheck disable=SC2086 # a list
				matrix_job "$name" $port "$service" "$tool" $options &
			done <<<"$MATRIX_VARIANTS"
		done
	done <<<"$MATRIX_TOOLS"
	wait
	while read -r name why; do
		if [ -z "$name" ]; then
			continue
		elif [ -n "$why" ]; then
			result skip "perftest/$name" "$why"
		elif [ "$(cat "$MATRIX_LOGS/$name")" = ok ]; then
			result ok "perftest/$name"
		else
			tail -n 3 "$MATRIX_LOGS/$name.server" "$MATRIX_LOGS/$name.client" |
				sed 's/^/    /'
			result fail "perftest/$name"
		fi
	done <<<"$report"
	for tool in raw_ethernet_bw raw_ethernet_lat raw_ethernet_burst_lat raw_ethernet_fs_rate; do
		result skip "perftest/$tool" "no raw packet QPs"
	done
}
