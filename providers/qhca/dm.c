// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory: RAM on the adapter, mapped into the process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <util/mmio.h>

#include "qhca.h"
#include "qhca-abi.h"

struct qhca_dm {
	struct verbs_dm vdm;
	void *addr;
	size_t mmap_len;
	uint64_t mmap_key;
	size_t length;
};

static struct qhca_dm *to_qdm(struct ibv_dm *ibdm)
{
	return container_of(ibdm, struct qhca_dm, vdm.dm);
}

/*
 * Allow whole words only: this memory could take any size, but other adapters' cannot, and a
 * program that runs here should run there.
 */
static int check_range(const struct qhca_dm *dm, uint64_t off, size_t len)
{
	return (off | len) % 4 || off > dm->length || len > dm->length - off ?
	       EFAULT : 0;
}

static int memcpy_to_dm(struct ibv_dm *ibdm, uint64_t off, const void *from,
			size_t len)
{
	struct qhca_dm *dm = to_qdm(ibdm);
	int err;

	err = check_range(dm, off, len);
	if (err)
		return qhca_ret(err);
	memcpy((uint8_t *)dm->addr + off, from, len);
	/* The memory is write-combining: flush the write before any doorbell. */
	mmio_flush_writes();
	return 0;
}

static int memcpy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t off,
			  size_t len)
{
	const struct qhca_dm *dm = to_qdm(ibdm);
	int err;

	err = check_range(dm, off, len);
	if (err)
		return qhca_ret(err);
	memcpy(to, (const uint8_t *)dm->addr + off, len);
	return 0;
}

static int map_dm(struct ibv_context *ibctx, struct qhca_dm *dm, size_t length,
		  const struct qhca_alloc_dm_resp *resp)
{
	void *addr = mmap(NULL, resp->mmap_len, PROT_READ | PROT_WRITE,
			  MAP_SHARED, ibctx->cmd_fd, resp->mmap_key);

	if (addr == MAP_FAILED)
		return errno;
	dm->addr = addr;
	dm->mmap_len = resp->mmap_len;
	dm->mmap_key = resp->mmap_key;
	dm->length = length;
	dm->vdm.dm.context = ibctx;
	dm->vdm.dm.memcpy_to_dm = memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = memcpy_from_dm;
	return 0;
}

struct ibv_dm *qhca_alloc_dm(struct ibv_context *ibctx,
			     struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 1);
	struct qhca_alloc_dm_resp resp = {};
	struct qhca_dm *dm;
	int err;

	if (!check_comp_mask(attr->comp_mask, 0)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	fill_attr_out_ptr(cmd, QHCA_ATTR_ALLOC_DM_RESP, &resp);
	err = ibv_cmd_alloc_dm(ibctx, attr, &dm->vdm, cmd);
	if (err == EPROTONOSUPPORT)	/* the kernel does not offer the method */
		err = EOPNOTSUPP;
	if (err)
		goto err_dm;
	err = map_dm(ibctx, dm, attr->length, &resp);
	if (err)
		goto err_cmd;
	return &dm->vdm.dm;

err_cmd:
	ibv_cmd_free_dm(&dm->vdm);
err_dm:
	free(dm);
	errno = err;
	return NULL;
}

struct ibv_dm *qhca_import_dm(struct ibv_context *ibctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, QHCA_METHOD_DM_QUERY, 2);
	struct qhca_query_dm_resp resp = {};
	struct qhca_dm *dm;
	int err;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	fill_attr_in_obj(cmd, QHCA_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, QHCA_ATTR_DM_QUERY_RESP, &resp);
	err = execute_ioctl(ibctx, cmd);
	if (!err)
		err = map_dm(ibctx, dm, resp.length, &resp.alloc);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	return &dm->vdm.dm;
}

void qhca_unimport_dm(struct ibv_dm *ibdm)
{
	struct qhca_dm *dm = to_qdm(ibdm);

	munmap(dm->addr, dm->mmap_len);
	free(dm);
}

int qhca_free_dm(struct ibv_dm *ibdm)
{
	int err;

	err = ibv_cmd_free_dm(&to_qdm(ibdm)->vdm);
	if (err)
		return qhca_ret(err);
	qhca_unimport_dm(ibdm);
	return 0;
}

int qhca_dm_export_dmabuf_fd(struct ibv_dm *ibdm)
{
	int fd = ibv_cmd_export_dmabuf_fd(ibdm->context, to_qdm(ibdm)->mmap_key);

	if (fd < 0 && errno == EPROTONOSUPPORT)	/* as in qhca_alloc_dm() */
		errno = EOPNOTSUPP;
	return fd;
}

struct ibv_mr *qhca_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length,
			      unsigned int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dm_mr(ibpd, &to_qdm(ibdm)->vdm, offset, length, access,
				vmr, NULL);
	return qhca_mr_made(ibpd, vmr, err);
}
