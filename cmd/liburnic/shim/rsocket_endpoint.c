/* The queue pair of an rsocket, its memory, and what the two sides tell each other of theirs. */
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rsocket.h"

static bool big_endian(void)
{
	return __BYTE_ORDER == __BIG_ENDIAN;
}

void rs_fill_hello(const struct rsocket *rs, struct rs_hello *hello)
{
	*hello = (struct rs_hello){
		.version = RS_VERSION,
		.flags = (uint8_t)(RS_FLAG_MAPPINGS | (big_endian() ? RS_FLAG_BIG_ENDIAN : 0)),
		.credits = htobe16((uint16_t)rs->set.rq),
		.mappings = rs_scale(rs->set.mappings),
		.targets = {htobe64((uintptr_t)rs->targets), htobe32(rs->open_mr->rkey), htobe32(RS_TARGETS)},
		.buffer = {htobe64((uintptr_t)rs->ring), htobe32(rs->ring_mr->rkey), htobe32(rs->set.rcvbuf / 2)},
	};
}

bool rs_good_hello(const struct rs_hello *hello, size_t len)
{
	return len >= sizeof(*hello) && hello->version == RS_VERSION && hello->credits && hello->targets.length &&
	       hello->buffer.length;
}

static struct rs_target from_network(const struct rs_target *t)
{
	return (struct rs_target){be64toh(t->addr), be32toh(t->key), be32toh(t->length)};
}

void rs_take_hello(struct rsocket *rs, const struct rs_hello *hello)
{
	rs->peer_targets = from_network(&hello->targets);
	rs->peer_next = 1 % rs->peer_targets.length;
	rs->peer_swaps = big_endian() != !!(hello->flags & RS_FLAG_BIG_ENDIAN);
	if (hello->flags & RS_FLAG_MAPPINGS) {
		rs->peer_mappings = rs->peer_targets.addr + sizeof(struct rs_target) * (uint64_t)rs->peer_targets.length;
		rs->peer_mappings_n = rs_unscale(hello->mappings);
	}
	rs->out = from_network(&hello->buffer);
	rs->next_target = 1;
	rs->out_limit = be16toh(hello->credits);
	/* Peers may have no receives for what is not counted, so some of the counted ones are left for it. */
	rs->out_reserve = rs->out_limit / 4 < 4 ? rs->out_limit / 4 : 4;
}

static size_t rounded(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

/* The memory, and who may do what to it: 0 or an errno. */
static int open_memory(struct rsocket *rs)
{
	size_t open = rounded(sizeof(struct rs_target) * RS_TARGETS + sizeof(struct rs_mapping) * rs->set.mappings);
	size_t ring = rounded(rs->set.rcvbuf);
	size_t messages = rounded(sizeof(uint32_t) * (rs->set.rq + RS_SPARE));
	uint8_t *m;

	rs->memory_size = open + ring + messages + rs->set.sndbuf;
	m = mmap(NULL, rs->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return errno;
	rs->memory = m;
	rs->targets = (struct rs_target *)m;
	rs->mappings = (struct rs_mapping *)(rs->targets + RS_TARGETS);
	rs->ring = m + open;
	rs->messages = (uint32_t *)(m + open + ring);
	rs->outbox = m + open + ring + messages;
	rs->open_mr = ibv_reg_mr(rs->pd, m, open, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!rs->open_mr)
		return errno;
	rs->ring_mr = ibv_reg_mr(rs->pd, rs->ring, ring, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!rs->ring_mr)
		return errno;
	rs->local_mr = ibv_reg_mr(rs->pd, rs->messages, messages + rs->set.sndbuf, IBV_ACCESS_LOCAL_WRITE);
	return rs->local_mr ? 0 : errno;
}

static int post_receives(struct rsocket *rs)
{
	struct ibv_recv_wr *bad;

	for (uint32_t i = 0; i < rs->set.rq + RS_SPARE; i++) {
		struct ibv_sge sge = {(uintptr_t)&rs->messages[i], sizeof(uint32_t), rs->local_mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = RS_WR_RECEIVE | i, .sg_list = &sge, .num_sge = 1};
		int err = ibv_post_recv(rs->id->qp, &wr, &bad);

		if (err)
			return err;
	}
	return 0;
}

static int make_queues(struct rsocket *rs)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = rs->set.sq + RS_SPARE, .max_recv_wr = rs->set.rq + RS_SPARE,
			.max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = sizeof(struct rs_mapping)},
		.qp_type = IBV_QPT_RC,
	};

	rs->pd = ibv_alloc_pd(rs->id->verbs);
	if (!rs->pd)
		return errno;
	rs->comp = ibv_create_comp_channel(rs->id->verbs);
	if (!rs->comp)
		return errno;
	if (fcntl(rs->comp->fd, F_SETFL, fcntl(rs->comp->fd, F_GETFL) | O_NONBLOCK))
		return errno;
	rs->cq = ibv_create_cq(rs->id->verbs, (int)(rs->set.sq + rs->set.rq + 2 * RS_SPARE), rs, rs->comp, 0);
	if (!rs->cq)
		return errno;
	attr.send_cq = attr.recv_cq = rs->cq;
	return rdma_create_qp(rs->id, rs->pd, &attr) ? errno : 0;
}

int rs_prepare(struct rsocket *rs)
{
	int err;

	err = make_queues(rs);
	if (!err)
		err = open_memory(rs);
	if (!err)
		err = post_receives(rs);
	rs->in_open = rs->set.rcvbuf / 2;
	rs->in_read = rs->set.rcvbuf / 2; /* the other half: the first grant opens it */
	rs->outbox_free = rs->set.sndbuf;
	rs->sq_free = rs->set.sq + RS_SPARE;
	return err;
}

static void dereg(struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	*mr = NULL;
}

/* The id's destruction rejects a connection that was not accepted. */
void rs_release(struct rsocket *rs)
{
	rs_drop_requests(rs);
	if (rs->id && rs->id->qp)
		rdma_destroy_qp(rs->id);
	rs_free_regions(rs);
	dereg(&rs->open_mr);
	dereg(&rs->ring_mr);
	dereg(&rs->local_mr);
	if (rs->cq)
		ibv_destroy_cq(rs->cq);
	if (rs->comp)
		ibv_destroy_comp_channel(rs->comp);
	if (rs->pd)
		ibv_dealloc_pd(rs->pd);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->events)
		rdma_destroy_event_channel(rs->events);
	if (rs->memory)
		munmap(rs->memory, rs->memory_size);
	rs->cq = NULL;
	rs->comp = NULL;
	rs->pd = NULL;
	rs->id = NULL;
	rs->events = NULL;
	rs->memory = NULL;
	rs->armed = false;
}
