# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: every perftest program with every transport service it has,
# plain and with each of its options. The figures do not matter, only that data flows.
# MATRIX_JOBS run at a time, because they mostly wait.
#
# Of these rows it runs as few as have every pair of a service, a program and their
# options together in at least one; with FULL=1 all of them. MATRIX_FULL=1 runs all with
# more iterations, and perftest's own figures. MATRIX_ONLY, a regular expression, picks
# some of all by name, for instance 'read.*-all'.

shopt -s extglob
MATRIX_JOBS=${MATRIX_JOBS:-2}
MATRIX_LIMIT=180	# seconds for one of them, on a busy machine
MATRIX_LOGS=/run/qhca/matrix

MATRIX_TOOLS='
RC ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw ib_atomic_lat
XRC ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw ib_atomic_lat
UC ib_send_bw ib_send_lat ib_write_bw ib_write_lat
UD ib_send_bw ib_send_lat
'

# name, patterns of services and programs, options. Other combinations perftest itself
# refuses: sizes with atomics; -b, -q and -l with *_lat; -e with WRITE, with -D; --use-srq
# without SEND; -D with -a; -R with UC and XRC. UC has no SRQ, XRC always one.
#
# The rows with -STOCK, which perftest does not see, run it as it is installed; all others
# with perftest-quick.c, and those with -R with perftest-cm.c.
#
# N and ALL are iterations, and MANY QPs with 32 MiB each. N stays below the receive
# queue's size: where messages are lost for want of a receive request, perftest
# waits for them for ever.
MATRIX_VARIANTS='
plain			*		*			-s 2048 -n N
stock			*		*			-STOCK -s 2048 -n N
all			*		!(ib_atomic*)		-a -n ALL
bidirectional		*		*_bw			-b -s 2048 -n N
bidirectional-all	*		!(ib_atomic*)_bw	-b -a -n ALL
bidirectional-seconds	*		*_bw			-b -D 3 -f 0 -s 2048
events			*		!(ib_write*)		-e -s 2048 -n N
events-all		*		ib_@(send|read)*	-e -a -n ALL
events-bidirectional	*		!(ib_write*)_bw		-e -b -s 2048 -n N
qps			*		*_bw			-q 8 -s 2048 -n N
qps-all			*		!(ib_atomic*)_bw	-q MANY -a -n ALL
qps-bidirectional	*		*_bw			-q 8 -b -s 2048 -n N
list			*		*_bw			-l 8 -Q 8 -m 256 -s 256 -n N
list-recv		*		ib_send_bw		-l 8 --recv_post_list 8 -s 2048 -n N
seconds			*		*			-D 3 -f 0 -s 2048
inline			*		ib_@(send|write)*	-I 200 -s 200 -n N
imm			*		ib_write*		--write_with_imm -s 2048 -n N
imm-all			*		ib_write*		--write_with_imm -a -n ALL
srq			@(RC|UD)	ib_send*		--use-srq -s 2048 -n N
srq-all			@(RC|UD)	ib_send*		--use-srq -a -n ALL
srq-bidirectional	@(RC|UD)	ib_send_bw		--use-srq -b -s 2048 -n N
srq-events		@(RC|UD)	ib_send*		--use-srq -e -s 2048 -n N
srq-qps			@(RC|UD)	ib_send_bw		--use-srq -q 8 -s 2048 -n N
srq-qps-all		@(RC|UD)	ib_send_bw		--use-srq -q MANY -a -n ALL
srq-seconds		@(RC|UD)	ib_send*		--use-srq -D 3 -f 0 -s 2048
cm			@(RC|UD)	*			-R -s 2048 -n N
cm-all			@(RC|UD)	!(ib_atomic*)		-R -a -n ALL
'

# The options of a row, with numbers instead of words. A UD QP drops messages without
# a receive request; with an SRQ, perftest posts 100 for all QPs or one per iteration,
# and as many again for each size.
matrix_options()
{
	local service=$1 tool=$2 options=$3 n=200 all=5 many=2
	[ -n "$MATRIX_ALL" ] || options=${options/-D 3/-D 1}
	[ -z "$MATRIX_FULL" ] || { n=480 all=20 many=8; }
	options=${options/MANY/$many}
	[ "$service" != UD ] || all=$n
	[[ $service != UD || ! $options =~ --use-srq\ -q\ ([0-9]+) ]] ||
		{ n=$((100 / BASH_REMATCH[1])) all=$n; }
	[[ $tool != ib_atomic* ]] || options=${options/-s +([0-9])/}
	options=${options/-n N/-n $n}
	echo "${options/-n ALL/-n $all}"
}

# Why the device does not have it.
not_offered()
{
	local service=$1 tool=$2 options=" $3 "
	case $service in
	UD) grep -q 'max_ah:[[:space:]]*0$' $MATRIX_LOGS/device && echo "no UD QPs" ;;
	esac
	case $options in
	*' --use-srq '*) grep -q 'max_srq:[[:space:]]*0$' $MATRIX_LOGS/device && echo "no SRQ" ;;
	*' -R '*) have_cm || echo "no GSI QP, so no RDMA CM" ;;
	esac
	case $tool in
	ib_atomic*) grep -qE 'atomic_cap:.*(HCA|GLOB)' $MATRIX_LOGS/device || echo "no atomics" ;;
	esac
}

# Does the client's table have a line, with -a one for the largest size?
matrix_measured()
{
	local log=$1 service=$2 size='[0-9]+'
	if [[ " $3 " == *' -a '* ]]; then
		size=8388608
		[ "$service" != UD ] || size=$(sed -n 's/.*active_mtu: *\([0-9]*\).*/\1/p' \
			$MATRIX_LOGS/device)
	fi
	grep -qE "^ *$size +[1-9][0-9]* " "$log"
}

# matrix_job NAME PORT SERVICE TOOL OPTION…
matrix_job()
{
	local name=$1 port=$2 service=$3 tool=$4 log=$MATRIX_LOGS/$1 begin=${EPOCHREALTIME/./}
	local run=(both "$MATRIX_LIMIT") verdict=fail
	shift 4
	[[ " $* " == *" -R "* ]] && run=(both_cm "$MATRIX_LIMIT")
	if [ "$1" = -STOCK ]; then
		shift
	elif [ -z "$MATRIX_FULL" ]; then
		export LD_PRELOAD=$QUICK
	fi
	if "${run[@]}" "$log.server" "$log.client" "$port" "$tool" -c "$service" \
		-d "$QHCA_DEV" -x "$QHCA_GID" -p "$port" -F "$@" &&
		matrix_measured "$log.client" "$service" "$*"; then
		verdict=ok
	fi
	echo $verdict >"$log"
	echo "$((${EPOCHREALTIME/./} - begin)) $name" >>$MATRIX_LOGS/times
}

# matrix_rows: NAME SERVICE TOOL OPTION… of all that are asked for.
matrix_rows()
{
	local service tools tool variant services programs options name
	while read -r service tools; do
		for tool in $tools; do
			while read -r variant services programs options; do
				name=$tool-$service-$variant
				# shellcheck disable=SC2053 # patterns
				[[ -n $variant && $service == $services && $tool == $programs &&
					$name =~ ${MATRIX_ONLY:-.} ]] || continue
				echo "$name $service $tool $(matrix_options "$service" "$tool" "$options")"
			done <<<"$MATRIX_VARIANTS"
		done
	done <<<"$MATRIX_TOOLS"
}

# Selects rows of standard input that cover all pairs of values: at each step the row
# with most new pairs, until none is new. A size is a value like an option, numbers are
# not.
matrix_pairs()
{
	awk '
	function value(word) { return word == "-s" ? "size" : word }
	{
		row[NR] = $0; n = 0; sizes = $0 ~ / -[aD]( |$)/
		for (i = 2; i <= NF; i++)
			if (i <= 3 || ($i ~ /^-/ && $i !~ /^-[nf]$/ && !(sizes && $i == "-s")))
				v[++n] = value($i)
		for (i = 1; i < n; i++)
			for (j = i + 1; j <= n; j++)
				pair[NR, ++pairs[NR]] = v[i] < v[j] ? v[i] " " v[j] : v[j] " " v[i]
	}
	function news(r,   k, sum) {
		for (k = 1; k <= pairs[r]; k++) sum += !(pair[r, k] in seen)
		return sum
	}
	END {
		do {
			most = best = 0
			for (r = 1; r <= NR; r++)
				if (!(r in chosen) && (sum = news(r)) > most) { most = sum; best = r }
			if (best) chosen[best]
			for (k = 1; k <= pairs[best]; k++) seen[pair[best, k]]
		} while (best)
		for (r = 1; r <= NR; r++) if (r in chosen) print row[r]
	}'
}

matrix_wanted()
{
	if [ -n "$MATRIX_ALL" ]; then
		matrix_rows
	else
		matrix_rows | matrix_pairs
	fi
}

matrix_report()
{
	local name why
	while read -r name why; do
		if [ -n "$why" ]; then
			result skip "perftest/$name" "$why"
		elif [ "$(cat "$MATRIX_LOGS/$name")" = ok ]; then
			result ok "perftest/$name"
		else
			tail -n 3 "$MATRIX_LOGS/$name.server" "$MATRIX_LOGS/$name.client" |
				sed 's/^/    /'
			result fail "perftest/$name"
		fi
	done <$MATRIX_LOGS/report
}

# Run what there is, then report it in order.
matrix()
{
	local name service tool options why port=19000 begin=$SECONDS
	local MATRIX_ALL=$FULL$MATRIX_ONLY$MATRIX_FULL
	mkdir -p $MATRIX_LOGS
	matrix_wanted >$MATRIX_LOGS/rows
	# shellcheck disable=SC2046 # words
	plan perftest $(cut -d ' ' -f 1 $MATRIX_LOGS/rows)
	ibv_devinfo -v -d "$QHCA_DEV" >$MATRIX_LOGS/device
	: >$MATRIX_LOGS/report
	quick_perftest || { result fail matrix "perftest-quick.c"; return; }
	while read -r name service tool options; do
		why=$(not_offered "$service" "$tool" "$options")
		echo "$name ${why%%$'\n'*}" >>$MATRIX_LOGS/report
		[ -z "$why" ] || continue
		port=$((port + 1))
		while [ "$(jobs -rp | wc -l)" -ge "$MATRIX_JOBS" ]; do
			wait -n
		done
		# shellcheck disable=SC2086 # a list
		matrix_job "$name" $port "$service" "$tool" $options </dev/null &
	done <$MATRIX_LOGS/rows
	wait
	matrix_report
	echo "# matrix: $((SECONDS - begin)) s; the slowest took, in µs:"
	sort -rn $MATRIX_LOGS/times | head -n 5 | sed 's/^/#   /'
	expect perftest/raw_ethernet_bw raw_ethernet raw_ethernet_bw
	expect perftest/raw_ethernet_lat raw_ethernet raw_ethernet_lat
	expect perftest/raw_ethernet_fs_rate timeout 100 raw_ethernet_fs_rate --server -d "$QHCA_DEV" \
		-E 02:11:22:33:44:55 -B 02:66:77:88:99:aa -n 100
	result skip perftest/raw_ethernet_burst_lat "perftest refuses its own limit of the rate"
}

# raw_ethernet PROGRAM: from one process to another, which has a rule for its address, and room for
# all the frames.
raw_ethernet()
{
	local args=("$1" -d "$QHCA_DEV" -n 500 -s 1024) rc=0
	timeout 60 "${args[@]}" --server -E 02:11:22:33:44:55 -B 02:66:77:88:99:aa \
		>"$MATRIX_LOGS/raw.server" 2>&1 &
	sleep 2
	timeout 60 "${args[@]}" --client -E 02:66:77:88:99:aa -B 02:11:22:33:44:55 || rc=$?
	wait "$!" || rc=$?
	cat "$MATRIX_LOGS/raw.server"
	return $rc
}
