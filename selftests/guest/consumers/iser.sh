# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by consumers.sh: iSCSI over RDMA, LIO's target and open-iscsi's initiator
# in this machine, both on the device's own address.

. "$DIR/consumers/lio.sh"

IQN=iqn.2026-01.org.qhca:check
ISCSI=$TARGET/iscsi/$IQN

comp_irqs() { sed -n 's/^ *\([0-9]*\):.* qhca-comp.*/\1/p' /proc/interrupts; }

# The target sends its last login response (isert_put_login_tx()) before it sets the
# session's parameters (iscsi_post_login_handler()). A command that arrives in between
# finds bursts of length zero, and iscsit_build_pdu_and_seq_lists() counts them for
# ever. So the login thread gets the one CPU that handles completions to itself; it
# does not sleep between the two.
iser_login_first()
{
	local irq pid
	for irq in $(comp_irqs); do
		cat "/proc/irq/$irq/smp_affinity" >"/run/qhca/iser-irq-$irq"
		echo 1 >"/proc/irq/$irq/smp_affinity" || return 1
	done
	for pid in $(pgrep -x iscsi_np); do
		taskset -cp 0 "$pid" && chrt -f -p 50 "$pid" || return 1
	done
}

iser_irqs_back()
{
	local irq
	for irq in $(comp_irqs); do
		cat "/run/qhca/iser-irq-$irq" >"/proc/irq/$irq/smp_affinity"
		rm "/run/qhca/iser-irq-$irq"
	done
}

iser_target()
{
	local tpg=$ISCSI/tpgt_1 portal=$QHCA_IP:3260 item
	lio_start iscsi_target_mod ib_isert && mkdir -p "$tpg/np/$portal" &&
		echo 1 >"$tpg/np/$portal/iser" && iser_login_first && lio_luns "$tpg" || return 1
	for item in generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0 \
		authentication=0; do
		echo "${item#*=}" >"$tpg/attrib/${item%=*}" || return 1
	done
	echo 1 >"$tpg/enable"
}

iser_target_remove()
{
	iser_irqs_back
	echo 0 >"$ISCSI/tpgt_1/enable"
	lio_luns_remove "$ISCSI/tpgt_1"
	rmdir "$ISCSI/tpgt_1/np/$QHCA_IP:3260" "$ISCSI/tpgt_1" "$ISCSI" "${ISCSI%/*}" &&
		lio_stop ib_isert iscsi_target_mod
}

iser_node() { timeout 100 iscsiadm -m node -T $IQN -p "$QHCA_IP:3260" "$@"; }

# By name: without discovery, which iSCSI does over TCP.
iser_login()
{
	modprobe ib_iser || return 1
	[ -e /etc/iscsi/initiatorname.iscsi ] || return 1
	if ! pidof iscsid >/dev/null; then
		iscsid && until_true eval 'iscsiadm -m iface >/dev/null' || return 1
		iser_node -o new -I iser || return 1
	fi
	iser_node -l && wait_disks iscsi
}

# Over iSER, in the session and on the device: a QP at either end, and regions that it
# registered.
iser_used()
{
	iscsiadm -m session | grep "^iser: .*$IQN" &&
		rdma res show mr dev "$QHCA_DEV" | grep -m1 '\[ib_iser\]' &&
		[ "$(rdma res show qp link "$QHCA_DEV/1" | grep -c 'type RC state RTS')" = 2 ]
}

iser_logout() { iser_node -u && ! have_disks iscsi; }

iser_initiator_remove()
{
	iser_node -o delete && iscsiadm -k 0
	unload ib_iser
}

iser()
{
	local round
	expect consumers/iser/target iser_target
	if expect consumers/iser/login iser_login; then
		expect consumers/iser/used iser_used
		scsi_tests consumers/iser iscsi "device target"
		expect consumers/iser/logout iser_logout
		for round in 1 ${FULL:+2 3 4 5}; do
			expect "consumers/iser/again-$round" eval \
				"iser_login && scsi_fio_sizes \$(scsi_disks iscsi | sed 's/ .*//;q') 8 2m && iser_logout"
		done
	fi
	expect consumers/iser/initiator-remove iser_initiator_remove
	expect consumers/iser/remove iser_target_remove
}
