// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* qhca provider: memory where the device looks for doorbells. */
#include "qhca.h"
#include "qhca-abi.h"

static size_t shadow_len(void)
{
	return offsetof(struct qhca_shadow, slot[QHCA_CTX_SLOTS]);
}

static int create_shadow(struct qhca_context *ctx, const struct qhca_mem *mem)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE,
			       QHCA_METHOD_CREATE_SHADOW, 1);
	struct qhca_create_shadow_req req = {
		.addr = (uintptr_t)mem->addr,
		.len = mem->len,
		.slots = QHCA_CTX_SLOTS,
	};

	fill_attr_in(cmd, QHCA_ATTR_CREATE_SHADOW_REQ, &req, sizeof(req));
	return execute_ioctl(&ctx->ibv_ctx.context, cmd);
}

/* Without this memory, because it cannot be pinned for instance, doorbells only cost more. */
void qhca_shadow_init(struct qhca_context *ctx, uint32_t max_slots)
{
	int err = errno;

	pthread_mutex_init(&ctx->slots_lock, NULL);
	if (max_slots < QHCA_CTX_SLOTS ||
	    qhca_mem_alloc(&ctx->shadow_mem, shadow_len(), NULL, QHCA_MEM_SHADOW))
		goto out;
	if (create_shadow(ctx, &ctx->shadow_mem))
		qhca_mem_free(&ctx->shadow_mem);
out:
	errno = err;
}

void qhca_shadow_free(struct qhca_context *ctx)
{
	qhca_mem_free(&ctx->shadow_mem);
	pthread_mutex_destroy(&ctx->slots_lock);
}

void qhca_slot_get(struct qhca_context *ctx, struct qhca_slot *slot)
{
	unsigned int i = 0;

	slot->shadow = NULL;
	if (!ctx->shadow_mem.addr)
		return;
	pthread_mutex_lock(&ctx->slots_lock);
	while (i < QHCA_CTX_SLOTS / 64 && !~ctx->slots[i])
		i++;
	if (i < QHCA_CTX_SLOTS / 64) {
		slot->shadow = ctx->shadow_mem.addr;
		slot->index = i * 64 + __builtin_ctzll(~ctx->slots[i]);
		ctx->slots[i] |= 1ull << slot->index % 64;
	}
	pthread_mutex_unlock(&ctx->slots_lock);
}

void qhca_slot_put(struct qhca_context *ctx, struct qhca_slot *slot)
{
	if (!slot->shadow)
		return;
	pthread_mutex_lock(&ctx->slots_lock);
	ctx->slots[slot->index / 64] &= ~(1ull << slot->index % 64);
	pthread_mutex_unlock(&ctx->slots_lock);
	slot->shadow = NULL;
}
