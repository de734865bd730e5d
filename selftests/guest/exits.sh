# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Part of check.sh: how often a vCPU leaves the guest, and how often the device interrupts it, for
# each message, command and second, against the limits in exits.txt; performance.rst explains them.

EXITS=/opt/qhca/guest/exits.txt

# The limit of that row, of that column; nothing if it has none.
exits_limit()
{
	awk -v row="$1 $2" -v column="$3" '$1 " " $2 == row { print $column }' $EXITS
}

# One column: 5 % more than the limit, and a stray one, are not told from it.
exits_within()
{
	awk -v is="$1" -v limit="$2" 'BEGIN { exit !(limit != "" && is <= limit * 1.05 + 0.02) }'
}

exits()
{
	local form=device rows=0 name vcpu irq out=$LOGS/exits rc=0
	[[ " $QHCA_VARIANT " != *server* ]] || form=server
	( cd /opt/qhca/selftests && RDMA_DEVICE=$QHCA_DEV RDMA_GID=$QHCA_GID ./exits ) >"$out" 2>&1 ||
		rc=$?
	[ $rc = 0 ] || result fail exits/program "$(grep -m 1 '^# ' "$out")"
	while read -r _ _ name vcpu irq; do
		echo "# exits $form $name $vcpu $irq"
		if exits_within "$vcpu" "$(exits_limit $form "$name" 3)" &&
			exits_within "$irq" "$(exits_limit $form "$name" 4)"; then
			result ok "exits/$form $name"
		else
			result fail "exits/$form $name" "$vcpu exits, $irq interrupts, not \
$(exits_limit $form "$name" 3), $(exits_limit $form "$name" 4)"
		fi
		rows=$((rows + 1))
	done < <(grep '^# exits ' "$out")
	[ $rows -gt 0 ] || result fail exits "nothing measured"
}
