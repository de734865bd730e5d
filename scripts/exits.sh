#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# exits.sh [--update] [device] [server]
#
# Print how often a vCPU leaves the guest under KVM, and how often the device interrupts it, for each
# message, command and second: for the device in QEMU and for the server, or only one of them. KVM
# tells that root only, whose machine is used; others, or without /dev/kvm, get the emulated machine
# of `vm nested`, where the numbers are the same. --update: these are the new limits in
# selftests/guest/exits.txt.

. "$(dirname "$(readlink -f "$0")")/lib.sh"

update='' forms=()
for word; do
	case $word in
	-h|--help) usage; exit 0 ;;
	--update) update=1 ;;
	device|server) forms+=("$word") ;;
	*) die "unknown word $word, see --help" ;;
	esac
done
[ ${#forms[@]} -gt 0 ] || forms=(device server)

LIMITS=$QHCA_TOP/selftests/guest/exits.txt
steps=()
for form in "${forms[@]}"; do
	option=''
	[ "$form" = device ] || option=--server
	steps+=("$QHCA_TOP/scripts/vm run $option -- /opt/qhca/guest/check.sh exits;")
done
if [ -w /dev/kvm ] && [ -d /sys/kernel/debug/kvm ]; then
	around=(env QHCA_ACCEL=kvm bash -c)
else
	around=("$QHCA_TOP/scripts/vm" nested -- bash -c)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${around[@]}" "${steps[*]}" | tee "$log" | grep -E '^# exits |not ok' || true
measured=$(sed -n 's/^# exits //p' "$log")
[ -n "$measured" ] || die "nothing measured: $(tail -n 3 "$log")"
if [ -z "$update" ]; then
	grep -q '^not ok' "$log" && exit 1
	exit 0
fi
{
	grep -m 1 SPDX "$0"
	echo "# form, what for: exits to QEMU, interrupts; exits.sh --update writes them"
	{
		awk -v have=" ${forms[*]} " '!/^#/ && index(have, " " $1 " ") == 0' "$LIMITS" 2>/dev/null
		echo "$measured"
	} | sort -s -k 1,1 | awk '{
		if ($1 == "server" && $2 ~ /^(write|read|send)/ && $3 > 0.1 && $3 < 1)
			$3 = "1.00"
		printf "%-7s %-14s %6s %6s\n", $1, $2, $3, $4
	}'
} >"$log.new"
mv "$log.new" "$LIMITS"
