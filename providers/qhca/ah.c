// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles. The kernel finds the route to the destination; the address vector is
 * copied into every WQE.
 */
#include <stdlib.h>
#include <string.h>

#include "qhca.h"
#include "qhca-abi.h"

static void fill_av(struct qhca_av *av, const struct ibv_ah_attr *attr,
		    const struct qhca_create_ah_resp *resp, uint32_t pdn)
{
	memcpy(av->dgid, attr->grh.dgid.raw, sizeof(av->dgid));
	memcpy(av->dmac, resp->dmac, sizeof(av->dmac));
	av->sgid_index = attr->grh.sgid_index;
	av->hop_limit = resp->hop_limit;
	av->flow_label = htole32(attr->grh.flow_label & 0xfffff);
	av->pdn = htole32(pdn);
	av->tclass = attr->grh.traffic_class;
	av->sl = attr->sl;
	av->port = attr->port_num;
	av->static_rate = attr->static_rate;
}

struct ibv_ah *qhca_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	struct uqhca_create_ah_resp resp = {};
	struct qhca_pd *pd = to_qpd(ibpd);
	struct qhca_ah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	err = ibv_cmd_create_ah(ibpd, &ah->ibv_ah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	fill_av(&ah->av, attr, &resp.drv_payload, pd->pdn);
	qhca_pd_get(pd);
	return &ah->ibv_ah;
}

int qhca_destroy_ah(struct ibv_ah *ibah)
{
	struct qhca_pd *pd = to_qpd(ibah->pd);
	int err;

	err = ibv_cmd_destroy_ah(ibah);
	if (err)
		return qhca_ret(err);
	free(to_qah(ibah));
	qhca_pd_put(pd);
	return 0;
}
