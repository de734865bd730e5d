# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: what the kernel's tools say of the device is true, by the table in the file
# claims. The device is as it was made: sections that change it come later.

# A process that has an object of each kind, to be listed.
claims_user() { exec ibv_srq_pingpong -d "$QHCA_DEV" -g "$QHCA_GID" -p 18599 >/dev/null; }

has_objects() { rdma resource show "$QHCA_DEV" | grep -q "srq [1-9]"; }

claims()
{
	local log=$LOGS/claims.log user rc=0
	device_find
	claims_user &
	user=$!
	until_true has_objects || result fail claims "nobody has objects"
	python3 /opt/qhca/guest/claims.py "$QHCA_DEV" "$QHCA_IF" "$QHCA_FUNCTION" >"$log" 2>&1 || rc=$?
	kill $user
	wait $user
	tap claims "$log" $rc
	# The function has been reset.
	until_true gid_is_back || result fail claims "the GID does not come back"
}
