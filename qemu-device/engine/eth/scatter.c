/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca engine: received frames are written to the buffers of the guest. */
#include "eth.h"
#include "../wire/wire.h"

/* Where the addresses of a frame end, and its tag begins. */
#define TAG_AT  12u

bool vhca_eth_scatter(struct qhca_engine *e, const struct qhca_eth_wqe *wqe,
                      const uint8_t *frame, size_t len, size_t tag)
{
    uint32_t used = 0;

    for (size_t n, at = 0; at < len; at += n) {
        size_t end = tag && at < TAG_AT ? TAG_AT : len;

        while (used == le32toh(wqe->length)) {
            wqe++;
            used = 0;
        }
        n = MIN_OF(end - at, le32toh(wqe->length) - used);
        if (!vhca_dma_write(e, le64toh(wqe->addr) + used, frame + at, n)) {
            return false;
        }
        used += (uint32_t)n;
        if (tag && at + n == TAG_AT) {
            at += tag;
        }
    }
    return true;
}
