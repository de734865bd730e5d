# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: the example programs of librdmacm, by the table in examples.list.

EXAMPLES_LIMIT=$((FULL ? 300 : 60))	# seconds for one of them, on a busy machine

# example_words TEXT: with what the placeholders stand for.
example_words()
{
	local word link
	read -ra words <<<"$1"
	link=fe80::$(ip -6 -br addr show dev "$QHCA_IF" scope link | sed -n 's/.*fe80::\([^/]*\).*/\1/p')%$QHCA_IF
	for word in "${!words[@]}"; do
		case ${words[word]} in
		@) words[word]=$QHCA_IP ;;
		^) words[word]=$example_port ;;
		LL) words[word]=$link ;;
		esac
	done
}

# example_both SERVER CLIENT
example_both()
{
	local server rc=0 words
	example_words "$1"
	timeout "$EXAMPLES_LIMIT" stdbuf -oL "${words[@]}" >"$LOGS/example.server" 2>&1 &
	server=$!
	cm_listening $server || rc=1
	example_words "$2"
	[ $rc != 0 ] || timeout "$EXAMPLES_LIMIT" "${words[@]}" >"$LOGS/example.client" 2>&1 || rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server || rc="$rc, server $?"
	[ "$rc" = 0 ] || { echo "client $rc" >>"$LOGS/example.client"; return 1; }
}

# example NAME SERVER CLIENT RESULT
example()
{
	local name=consumers/examples/$1 rc=0
	truncate -s 0 "$LOGS/example.server" "$LOGS/example.client"
	example_both "$2" "$3" || rc=$?
	if [ -z "$4" ] && [ $rc = 0 ]; then
		result ok "$name"
	elif [ -n "$4" ] && [ $rc != 0 ] &&
		cat "$LOGS/example.server" "$LOGS/example.client" | grep -qF -- "${4#fails }"; then
		result ok "$name"
	else
		tail -n 4 "$LOGS/example.server" "$LOGS/example.client" | sed 's/^/    /'
		result fail "$name" "${4:+it should fail; }status $rc"
	fi
}

# A file there, by RDMA.
example_rcopy()
{
	local server rc=0 file=$LOGS/rcopied
	head -c 3000000 /dev/urandom >"$file.from"
	timeout "$EXAMPLES_LIMIT" rcopy -p 7480 >"$LOGS/example.server" 2>&1 &
	server=$!
	cm_listening $server &&
		timeout "$EXAMPLES_LIMIT" rcopy "$file.from" "$QHCA_IP:$file.to" -p 7480 || rc=$?
	kill $server
	wait $server
	[ $rc = 0 ] && cmp "$file.from" "$file.to"
}

# An event of the device arrives: the port goes down and comes back.
example_asyncwatch()
{
	local log=$LOGS/asyncwatch watch
	stdbuf -oL ibv_asyncwatch -d "$QHCA_DEV" >"$log" 2>&1 &
	watch=$!
	until_true grep -q 'async event FD' "$log" || return
	ip link set "$QHCA_IF" down
	PATIENCE=20 until_true grep -q 'port error\|PORT_ERR' "$log"
	ip link set "$QHCA_IF" up
	PATIENCE=20 until_true grep -q 'port active\|PORT_ACTIVE' "$log"
	kill $watch
	cat "$log"
	grep -q 'port error\|PORT_ERR' "$log" && grep -q 'port active\|PORT_ACTIVE' "$log"
}

examples()
{
	local when name server client want example_port=7500
	while IFS='|' read -r when name server client want; do
		when=${when//[$' \t']/} name=${name//[$' \t']/}
		read -r want <<<"$want"
		[[ $when == check || -n $FULL ]] || continue
		example_port=$((example_port + 1))
		example "$name" "$server" "$client" "$want" </dev/null
	done < <(grep -v '^#' "$DIR/consumers/examples.list")
	expect consumers/examples/rcopy example_rcopy
	cm_mckey consumers/examples/mckey-all '-c 2 -p 0x0111' -o
	[ -z "$FULL" ] || expect consumers/examples/ibv_asyncwatch example_asyncwatch
}
