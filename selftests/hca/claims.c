// SPDX-License-Identifier: GPL-2.0
/*
 * Verbs tell the truth about the device: each field of each answer is in a table here, which has
 * its value and the tests that use it. The bits are in claims_bits.c, limits that no other test
 * uses in claims_limits.c; guest/claims.py does so for netlink, ethtool, devlink and sysfs.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/claims.h"
#include "lib/rdma.h"

/* ---- the device ---- */

#define D(member, value, proof)	CLAIM(struct ibv_device_attr_ex, member, value, proof)
#define D_ANY(member, proof)	CLAIM_ANY(struct ibv_device_attr_ex, member, proof)
#define D_GAP(member, bytes)	CLAIM_GAP(struct ibv_device_attr_ex, member, bytes)
#define A(member, value, proof)	D(orig_attr.member, value, proof)
#define A_ANY(member, proof)	D_ANY(orig_attr.member, proof)

#define NO_VERB		"(no verb uses it)"
#define PACED		(1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD | \
			 1 << IBV_QPT_RAW_PACKET | 1 << IBV_QPT_XRC_SEND | 1 << IBV_QPT_XRC_RECV)
#define HASHED		(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | \
			 IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 | \
			 IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | \
			 IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

static const struct claim device_claims[] = {
	A_ANY(fw_ver, "port: guid"),
	A_ANY(node_guid, "port: guid"),
	A_ANY(sys_image_guid, "port: guid"),
	A_ANY(max_mr_size, "claims_limits: mr_size"),
	A(page_size_cap, 0xfffff000, "mr: huge, mr: shape"),
	A(vendor_id, 0x1af4, "device: minimum"),
	A(vendor_part_id, 0x10f0, "device: minimum"),
	A_ANY(hw_ver, "port: guid"),
	A_ANY(max_qp, "limits: objects"),
	A_ANY(max_qp_wr, "limits: work_requests, device: qp_caps"),
	A_ANY(device_cap_flags, "claims_bits: device_bit, caps: flags"),
	A_ANY(max_sge, "rc_queue: sges, device: qp_caps"),
	A_ANY(max_sge_rd, "rc_queue: sges, device: qp_caps"),
	A_ANY(max_cq, "limits: objects"),
	A_ANY(max_cqe, "limits: entries, device: cq_size"),
	A_ANY(max_mr, "limits: objects"),
	A_ANY(max_pd, "limits: objects"),
	A_ANY(max_qp_rd_atom, "caps: depths, qp_effects: depths"),
	A(max_ee_rd_atom, 0, "caps: type"),
	A_ANY(max_res_rd_atom, "claims: products"),
	A_ANY(max_qp_init_rd_atom, "caps: depths, qp_effects: depths"),
	A(max_ee_init_rd_atom, 0, "caps: type"),
	A(atomic_cap, IBV_ATOMIC_HCA, "(F-020, of the engine's tests)"),
	A(max_ee, 0, "caps: type"),
	A(max_rdd, 0, "caps: type"),
	A_ANY(max_mw, "limits: objects"),
	A(max_raw_ipv6_qp, 0, "caps: type"),
	A(max_raw_ethy_qp, 0, "caps: type"),
	A_ANY(max_mcast_grp, "mcast: limit"),
	A_ANY(max_mcast_qp_attach, "limits: members"),
	A_ANY(max_total_mcast_qp_attach, "claims: products"),
	A_ANY(max_ah, "ud: many_ahs"),
	A(max_fmr, 0, NO_VERB),
	A(max_map_per_fmr, 0, NO_VERB),
	A_ANY(max_srq, "limits: objects"),
	A_ANY(max_srq_wr, "srq: full_size, srq: create"),
	A_ANY(max_srq_sge, "srq: full_size, srq: create"),
	A(max_pkeys, 1, "device: pkey"),
	A_ANY(local_ca_ack_delay, "port: ack_delay"),
	A(phys_port_cnt, 1, "device: port"),
	D_GAP(orig_attr.phys_port_cnt, 4),
	D(comp_mask, 0, "(no bit is defined)"),
	D_GAP(comp_mask, 4),
	D_ANY(odp_caps.general_caps, "claims_bits: odp_bit"),
	D_ANY(odp_caps.per_transport_caps.rc_odp_caps, "claims_bits: odp_bit"),
	D_ANY(odp_caps.per_transport_caps.uc_odp_caps, "claims_bits: odp_bit"),
	D_ANY(odp_caps.per_transport_caps.ud_odp_caps, "claims_bits: odp_bit"),
	D_GAP(odp_caps.per_transport_caps.ud_odp_caps, 4),
	D(completion_timestamp_mask, -1ull, "cq_stamps: timestamps"),
	D(hca_core_clock, 1000000, "cq_stamps: raw_clock"),
	D_ANY(device_cap_flags_ex, "claims_bits: device_bit, caps: flags"),
	D(tso_caps.max_tso, 0, "claims_limits: no_tso"),
	D(tso_caps.supported_qpts, 0, "claims_limits: no_tso"),
	D(rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET, "claims_limits: rss_types, rwq: hash"),
	D_ANY(rss_caps.max_rwq_indirection_tables, "claims_limits: tables"),
	D_ANY(rss_caps.max_rwq_indirection_table_size, "claims_limits: tables"),
	D_GAP(rss_caps.max_rwq_indirection_table_size, 4),
	D(rss_caps.rx_hash_fields_mask, HASHED, "rwq: offer, rwq: hash"),
	D(rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ, "claims_limits: hash_functions"),
	D_GAP(rss_caps.rx_hash_function, 7),
	D_ANY(max_wq_type_rq, "claims_limits: queues"),
	D(packet_pacing_caps.qp_rate_limit_min, 1, "claims_limits: rates"),
	D(packet_pacing_caps.qp_rate_limit_max, UINT32_MAX, "claims_limits: rates, rate: limit"),
	D(packet_pacing_caps.supported_qpts, PACED, "claims_limits: rates"),
	D(raw_packet_caps, IBV_RAW_PACKET_CAP_IP_CSUM, "claims_bits: raw_bit"),
	D(tm_caps.max_rndv_hdr_size, 0, "srq: basic_ex"),
	D(tm_caps.max_num_tags, 0, "srq: basic_ex"),
	D(tm_caps.flags, 0, "srq: basic_ex"),
	D(tm_caps.max_ops, 0, "srq: basic_ex"),
	D(tm_caps.max_sge, 0, "srq: basic_ex"),
	D_ANY(cq_mod_caps.max_cq_count, "cq_time: mod_caps"),
	D_ANY(cq_mod_caps.max_cq_period, "cq_time: mod_caps"),
	D_GAP(cq_mod_caps.max_cq_period, 4),
	D_ANY(max_dm_size, "dm: whole, dm: refused"),
	D(pci_atomic_caps.fetch_add, 0, NO_VERB),
	D(pci_atomic_caps.swap, 0, NO_VERB),
	D(pci_atomic_caps.compare_swap, 0, NO_VERB),
	D_GAP(pci_atomic_caps.compare_swap, 2),
	D_ANY(xrc_odp_caps, "claims_bits: odp_bit"),
	D(phys_port_cnt_ex, 1, "device: port"),
};

TEST(device, "J-034 J-001 J-004 J-035 J-036 each field of query_device_ex is true, and tested")
{
	struct dev *d = dev_open_qhca();
	struct ibv_device_attr_ex attr = {};

	REQUIRE_OK(ibv_query_device_ex(d->ctx, NULL, &attr));
	check_claims(&attr, sizeof(attr), device_claims, ARRAY_SIZE(device_claims));
	/* query_device has the same fields. */
	CHECK(!memcmp(&attr.orig_attr, &d->attr, sizeof(d->attr)));
	CHECK_EQ(attr.orig_attr.sys_image_guid, attr.orig_attr.node_guid);
	CHECK_EQ((uint32_t)attr.device_cap_flags_ex, attr.orig_attr.device_cap_flags);
	CHECK_EQ(attr.xrc_odp_caps, attr.odp_caps.per_transport_caps.rc_odp_caps);
}

TEST(products, "J-034 J-001 J-003 totals are what each can have, times how many there are")
{
	struct dev *d = dev_open_qhca();
	const struct ibv_device_attr *a = &d->attr;

	CHECK_EQ(a->max_res_rd_atom, a->max_qp * a->max_qp_rd_atom);
	CHECK_EQ(a->max_total_mcast_qp_attach, a->max_mcast_grp * a->max_mcast_qp_attach);
}

/* ---- the port ---- */

#define P(member, value, proof)	CLAIM(struct ibv_port_attr, member, value, proof)
#define P_ANY(member, proof)	CLAIM_ANY(struct ibv_port_attr, member, proof)
#define NO_SUBNET		"(there is no subnet management)"

/* Where active_speed_ex is, in the headers that have it. */
#define SPEED_EX	(offsetof(struct ibv_port_attr, port_cap_flags2) + 4)

/* Counters, and active_speed_ex, are checked and set to 0 before. */
static const struct claim port_claims[] = {
	P(state, IBV_PORT_ACTIVE, "port: updown"),
	P(max_mtu, IBV_MTU_4096, "port: mtu, mtu: refused"),
	P_ANY(active_mtu, "port: mtu, mtu: refused"),
	P_ANY(gid_tbl_len, "claims: gids, claims_limits: gid_table"),
	P(port_cap_flags, IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS, "claims_bits: port_bit"),
	P(max_msg_sz, 1u << 31, "claims_limits: message"),
	P(bad_pkey_cntr, 0, "(a count, of the frames that guest/frames.py makes)"),
	P(qkey_viol_cntr, 0, "ud: qkey"),
	P(pkey_tbl_len, 1, "device: pkey"),
	P(lid, 0, NO_SUBNET),
	P(sm_lid, 0, NO_SUBNET),
	P(lmc, 0, NO_SUBNET),
	P(max_vl_num, 1, "device: port"),
	P(sm_sl, 0, NO_SUBNET),
	P(subnet_timeout, 0, NO_SUBNET),
	P(init_type_reply, 0, NO_SUBNET),
	P_ANY(active_width, "port: speed"),
	P_ANY(active_speed, "port: speed"),
	P(phys_state, 5 /* LinkUp */, "port: updown"),
	P(link_layer, IBV_LINK_LAYER_ETHERNET, "ud: bad_ah, claims: gids"),
	P(flags, IBV_QPF_GRH_REQUIRED, "ud: bad_ah"),
	P(port_cap_flags2, 0, NO_SUBNET),
	CLAIM_GAP(struct ibv_port_attr, port_cap_flags2, 2),
	{ "active_speed_ex", SPEED_EX, sizeof(struct ibv_port_attr) - SPEED_EX, "port: speed" },
};

TEST(port, "J-034 J-008 each field of query_port is true, and tested")
{
	struct dev *d = dev_open_qhca();
	struct ibv_port_attr attr = {};
	uint32_t speed;

	CHECK(sizeof(attr) == SPEED_EX || sizeof(attr) == SPEED_EX + sizeof(speed));
	REQUIRE_OK(ibv_query_port(d->ctx, PORT, &attr));
	if (SPEED_EX + sizeof(speed) <= sizeof(attr)) {
		memcpy(&speed, (uint8_t *)&attr + SPEED_EX, sizeof(speed));
		CHECK(!speed || speed == attr.active_speed);
		memset((uint8_t *)&attr + SPEED_EX, 0, sizeof(speed));
	}
	/* Errors of the port are from all tests before this one. */
	CHECK(attr.bad_pkey_cntr <= 0xffff && attr.qkey_viol_cntr <= 0xffff);
	attr.bad_pkey_cntr = 0;
	attr.qkey_viol_cntr = 0;
	check_claims(&attr, sizeof(attr), port_claims, ARRAY_SIZE(port_claims));
}

/* ---- the GID table ---- */

/* Reads a file of the port in sysfs; returns false if it says that there is no such entry. */
static bool port_file(const char *dir, uint32_t index, char *text, int len)
{
	char path[256];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/%s/%u", dev_name(), PORT,
		 dir, index);
	f = fopen(path, "r");
	REQUIRE(f);
	ok = fgets(text, len, f);
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	return ok;
}

static void check_gid(struct dev *d, const struct ibv_gid_entry *e, uint32_t index)
{
	char text[64], want[64], name[IF_NAMESIZE];
	const uint8_t *g = e->gid.raw;
	union ibv_gid gid;
	int i, n = 0;

	CHECK_EQ(e->gid_index, index);
	CHECK_EQ(e->port_num, PORT);
	CHECK_EQ(e->gid_type, IBV_GID_TYPE_ROCE_V2);
	REQUIRE(port_file("gid_attrs/ndevs", index, text, sizeof(text)));
	CHECK(if_indextoname(e->ndev_ifindex, name) && !strcmp(name, text));
	REQUIRE(port_file("gid_attrs/types", index, text, sizeof(text)));
	CHECK(!strcmp(text, "RoCE v2"));
	for (i = 0; i < 16; i += 2)
		n += snprintf(want + n, sizeof(want) - n, "%s%02x%02x", i ? ":" : "", g[i],
			      g[i + 1]);
	REQUIRE(port_file("gids", index, text, sizeof(text)));
	CHECK(!strcmp(text, want));
	REQUIRE_OK(ibv_query_gid(d->ctx, PORT, index, &gid));
	CHECK(!memcmp(&gid, &e->gid, sizeof(gid)));
}

TEST(gids, "J-034 J-013 J-014 each GID, by every way to ask; one more does not exist")
{
	struct dev *d = dev_open_qhca();
	struct ibv_gid_entry e;
	int i, n = 0, err;
	char text[64];

	/* A new field would be in here. */
	CHECK_EQ(sizeof(e), sizeof(union ibv_gid) + 4 * sizeof(uint32_t));
	for (i = 0; i < d->port.gid_tbl_len; i++) {
		err = ibv_query_gid_ex(d->ctx, PORT, i, &e, 0);
		if (!err) {
			check_gid(d, &e, i);
			n++;
			continue;
		}
		CHECK_ERR(err, ENODATA);
		CHECK(!port_file("gid_attrs/types", i, text, sizeof(text)));
		CHECK(!port_file("gid_attrs/ndevs", i, text, sizeof(text)));
	}
	CHECK(n > 0);
	CHECK_ERR(ibv_query_gid_ex(d->ctx, PORT, d->port.gid_tbl_len, &e, 0), EINVAL);
	CHECK_ERR(ibv_query_gid_ex(d->ctx, PORT + 1, 0, &e, 0), EINVAL);
	CHECK_ERR(ibv_query_gid_ex(d->ctx, PORT, 0, &e, 1), EINVAL);
}
