# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: the options of perftest's programs, by the table in perftest.options:
# many together; with FULL=1 also each by itself, once, by the programs in turn, with OPTIONS_ALL=1
# each with each program. OPTIONS_ONLY, a regular expression, picks some of these by name.

OPTIONS_FILE=$DIR/consumers/perftest.options
OPTIONS_LOGS=$LOGS/perftest
OPTIONS_TOOLS='ib_send_bw ib_write_lat ib_read_bw ib_atomic_lat ib_write_bw ib_send_lat ib_read_lat
	ib_atomic_bw raw_ethernet_bw raw_ethernet_lat raw_ethernet_burst_lat raw_ethernet_fs_rate'
OPTIONS_FILES=/run/qhca/perftest
OPTIONS_LIMIT=${OPTIONS_LIMIT:-90}	# seconds for one of them, on a busy machine
OPTIONS_JOBS=3		# they mostly wait

# The long names in --help. raw_ethernet_burst_lat never runs: it refuses its own limit of the rate.
options_of()
{
	[ "$1" != raw_ethernet_burst_lat ] || { echo size; return; }
	"$1" --help 2>&1 | sed -nE 's/^[[:space:]]+(-[A-Za-z], )?--([A-Za-z0-9_-]+).*/\2/p' | sort -u
}

# The table, read once: options_table[OPTION] has its rows.
options_read()
{
	local name row
	declare -gA options_table=()
	while IFS='|' read -r name row; do
		options_table[${name//[$' \t']/}]+=$row$'\n'
	done < <(grep -v '^#' "$OPTIONS_FILE")
}

# options_row OPTION TOOL: the fields of its row in option_service, option_args, option_result.
options_row()
{
	local tools
	while IFS='|' read -r tools option_service option_args option_result; do
		tools=${tools//[$' \t']/} option_service=${option_service//[$' \t']/}
		# shellcheck disable=SC2053 # a pattern
		[[ $2 == $tools ]] || continue
		read -r option_args <<<"$option_args"
		read -r option_result <<<"$option_result"
		return
	done <<<"${options_table[$1]:-}"
	return 1
}

# Files that options want.
options_files()
{
	mkdir -p "$OPTIONS_LOGS" $OPTIONS_FILES
	truncate -s 8M $OPTIONS_FILES/mmap
	echo '0x01020304,0x05060708' >$OPTIONS_FILES/payload
	sysctl -qw vm.nr_hugepages=32
}

# raw_receives PID: the server, which timeout runs, has a QP that receives, or has gone.
raw_receives()
{
	gone "$1" || rdma res show qp link "$QHCA_DEV" pid "$(pgrep -P "$1")" 2>/dev/null | grep -q 'state RT[RS]'
}

# options_raw LOG PORT TOOL OPTION…: server and client of raw_ethernet_*, which do not talk to each
# other but in frames, of addresses made of the port. The one that receives must be there first.
# Words after -SERVER are not for the client.
options_raw()
{
	local log=$1 tool=$3 server rc=0 from to iters=100 first=--server second=--client words=" ${*:4} "
	local -a args=("$tool" -d "$QHCA_DEV" -F) only=()
	# shellcheck disable=SC2206 # words
	args+=(${words%% -SERVER *})
	# shellcheck disable=SC2206 # words
	[[ $words != *' -SERVER '* ]] || only=(${words#* -SERVER })
	printf -v from '02:00:01:00:%02x:%02x' $(($2 >> 8)) $(($2 & 255))
	to=${from/02:00:01/02:00:02}
	[ "$tool" != raw_ethernet_fs_rate ] || iters=50	# rules, of 192 for all jobs
	[[ $words != *' --reversed '* ]] || first=--client second=--server
	[[ $words == *' -'@(n|D)' '* || $words == *' --'@(iters|duration)' '* ]] || args+=(-n "$iters")
	[[ $words == *' -s '* || $words == *' --size '* ]] || args+=(-s 1024)
	if [ "$tool" = raw_ethernet_fs_rate ]; then
		timeout "$OPTIONS_LIMIT" "${args[@]}" --server -E "$to" -B "$from" >"$log.server" 2>&1
		return
	fi
	timeout "$OPTIONS_LIMIT" "${args[@]}" "${only[@]}" $first -E "$to" -B "$from" >"$log.server" 2>&1 &
	server=$!
	until_true raw_receives $server
	sleep 1	# for its receive requests
	timeout "$OPTIONS_LIMIT" "${args[@]}" $second -E "$from" -B "$to" >"$log.client" 2>&1 || rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server || rc=$?
	return $rc
}

# options_both LOG PORT TOOL SERVICE OPTION…
options_both()
{
	local log=$1 port=$2 tool=$3 service=$4 given=" ${*:5} "
	shift 4
	local run=(both "$OPTIONS_LIMIT" "$log.server" "$log.client" "$port") sizes='' iters=' -n 100'
	local gid=" -x $QHCA_GID"
	[[ $given != *' -R '* && $given != *' --comm_rdma_cm '* ]] ||
		run=(both_cm "$OPTIONS_LIMIT" "$log.server" "$log.client" "$port")
	[[ $given == *' -'@(s|a)' '* || $given == *' --'@(size|all)' '* || $tool == ib_atomic* ]] ||
		sizes=' -s 1024'
	[[ $given != *' -'@(n|D)' '* && $given != *' --'@(iters|duration)' '* ]] || iters=''
	[[ $given != *' -x '* ]] || gid=''
	# shellcheck disable=SC2034 # for both
	[[ $given != *' --ipv6-addr '* ]] || local BOTH_HOST=::1
	# shellcheck disable=SC2086 # words
	"${run[@]}" "$tool" -c "$service" -d "$QHCA_DEV" -p "$port" -F $gid $sizes $iters "$@"
}

# options_run LOG PORT TOOL SERVICE OPTION…: -STOCK, which perftest does not see, is perftest as it
# is installed, where figures matter.
options_run()
{
	local log=$1 port=$2 tool=$3 service=$4
	shift 4
	if [ "${1:-}" = -STOCK ]; then
		shift
	else
		local -x LD_PRELOAD=$QUICK
	fi
	case "$tool $*" in
	*' --version'|*' --help') "$tool" "$@" >"$log.client" 2>&1 ;;
	raw_*) options_raw "$log" "$port" "$tool" "$@" ;;
	*) options_both "$log" "$port" "$tool" "$service" "$@" ;;
	esac
}

# options_verdict RC LOG RESULT: says what is wrong, if anything is.
options_verdict()
{
	local want=${3#refuses }
	if [ -z "$want" ]; then
		[ "$1" = 0 ] || echo "status $1"
	elif [ "$1" = 0 ]; then
		echo "it works, which its row does not expect"
	elif ! cat "$2.server" "$2.client" | tr '\n' ' ' | grep -qF -- "$want"; then
		echo "status $1, but not by: $want"
	fi
}

# options_job NAME PORT TOOL SERVICE RESULT OPTION…: reports in one piece, because others run beside
# it.
options_job()
{
	local name=$1 want=$5 log=$OPTIONS_LOGS/${1//\//-} rc=0 begin=${EPOCHREALTIME/./} why
	truncate -s 0 "$log.server" "$log.client"
	options_run "$log" "$2" "$3" "$4" "${@:6}" || rc=$?
	echo "$((${EPOCHREALTIME/./} - begin)) $name" >>"$OPTIONS_LOGS/times"
	why=$(options_verdict $rc "$log" "$want")
	if [ -z "$why" ]; then
		result ok "consumers/perftest/$name"
		rm "$log.server" "$log.client"
	else
		why=$(result fail "consumers/perftest/$name" "$why")
		echo "$(tail -n 8 "$log.server" "$log.client" | sed 's/^/    /')"$'\n'"$why"
	fi
}

# Each option of each program has a row.
options_known()
{
	local name tool option rc=0 option_service option_args option_result
	while read -r name tool option; do
		options_row "$option" "$tool" || { echo "no row in perftest.options: $name"; rc=1; }
	done <"$OPTIONS_LOGS/all"
	[ -s "$OPTIONS_LOGS/all" ] && return $rc
}

# NAME TOOL OPTION of all that there are.
options_all()
{
	local tool option
	for tool in $OPTIONS_TOOLS; do
		for option in $(options_of "$tool"); do
			echo "$tool/$option $tool $option"
		done
	done
}

# NAME TOOL OPTION of those that are run.
options_wanted()
{
	awk -F '|' '/^[+]/ { gsub(/[ \t]/, ""); print $2 "/" $1, $2, $1 }' "$OPTIONS_FILE"
	if [ -n "$OPTIONS_ALL" ]; then
		cat "$OPTIONS_LOGS/all"
	elif [ -n "$FULL" ]; then
		options_in_turn
	fi
}

# The programs of each option take turns; those for frames have what only they have.
options_in_turn()
{
	awk '{ raw = $2 ~ /^raw/; tools[raw, $3] = tools[raw, $3] " " $1 " " $2 }
		!($3 in seen) { seen[$3]; names[++count] = $3 }
		END { for (i = 0; i < count; i++) {
			o = names[i + 1]
			n = split(((0, o) in tools) ? tools[0, o] : tools[1, o], t, " ") / 2
			k = 2 * (i % n)
			print t[k + 1], t[k + 2], o } }' "$OPTIONS_LOGS/all"
}

perftest()
{
	local name tool option port=19500 option_service option_args option_result args
	options_files
	options_read
	quick_perftest || { result fail consumers/perftest "perftest-quick.c"; return; }
	options_all >"$OPTIONS_LOGS/all"
	options_wanted | grep -E -- "${OPTIONS_ONLY:-.}" >"$OPTIONS_LOGS/wanted"
	: >"$OPTIONS_LOGS/times"
	expect consumers/perftest/known options_known
	while read -r name tool option; do
		options_row "$option" "$tool" || continue
		[[ $option_result != none* ]] || { echo "# $name: not run: ${option_result#none }"; continue; }
		port=$((port + 1))
		[[ $option != @(promiscuous|sniffer) ]] || wait	# gets the frames of others
		while [ "$(jobs -rp | wc -l)" -ge $OPTIONS_JOBS ]; do wait -n; done
		args=${option_args/PATH/$OPTIONS_FILES/mmap}
		args=${args/PAYLOAD/$OPTIONS_FILES/payload}
		args=${args/JSON/$OPTIONS_FILES/${name//\//-}.json}
		# shellcheck disable=SC2086 # a list
		options_job "$name" $port "$tool" "$option_service" "$option_result" $args </dev/null &
		[[ $option != @(promiscuous|sniffer) ]] || wait
	done <"$OPTIONS_LOGS/wanted"
	wait
	echo "# perftest: $(wc -l <"$OPTIONS_LOGS/times") runs; the slowest took, in µs:"
	sort -rn "$OPTIONS_LOGS/times" | head -n 8 | sed 's/^/#   /'
	sysctl -qw vm.nr_hugepages=0
}
