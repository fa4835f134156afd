/*
 * The stream: messages and completions in, data and grants out. The peer is not trusted:
 * what it may say is checked here, and one that breaks the protocol loses its connection.
 */
#include <string.h>

#include "rsocket.h"


static uint64_t send_id(uint32_t octets, uint32_t places)
{
	return (uint64_t)places << 32 | octets;
}

void rs_end(struct rsocket *rs, int error)
{
	if (rs->dead)
		return;
	rs->dead = rs->out_over = true;
	rs->owed = -1;
	if (!rs->in_over)
		rs->error = error;
}

/* The peer has broken the protocol. */
static void broken(struct rsocket *rs, const char *how)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	urnic_engine()->log(2, how);
	ibv_modify_qp(rs->id->qp, &attr, IBV_QP_STATE);
	rs->in_ready = 0;
	rs->in_over = false; /* so that the program learns of it */
	rs_end(rs, ECONNRESET);
	rs->drained = true;
}

/*
 * Takes the next target, if the peer has filled it: it has an address then, and a length.
 * The peer fills it again only when the half has been used up.
 */
static void take_target(struct rsocket *rs)
{
	volatile struct rs_target *t = &rs->targets[rs->next_target];
	struct rs_target got;

	if (rs->out.length)
		return;
	got.length = t->length;
	got.key = t->key;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	got.addr = t->addr;
	if (!got.length || !got.addr)
		return;
	t->length = 0;
	if (rs->peer_swaps) {
		got.addr = __builtin_bswap64(got.addr);
		got.key = __builtin_bswap32(got.key);
		got.length = __builtin_bswap32(got.length);
	}
	rs->out = got;
	rs->next_target = (rs->next_target + 1) % RS_TARGETS;
}

static void take_data(struct rsocket *rs, uint32_t octets)
{
	if (rs->in_over)
		broken(rs, "rsocket: the peer has ended its stream, and sends data");
	else if (!octets || octets > rs->in_open)
		broken(rs, "rsocket: the peer says that it has written more than it may, or nothing");
	else {
		rs->in_open -= octets;
		rs->in_ready += octets;
	}
}

static void take_ctrl(struct rsocket *rs, uint32_t what)
{
	switch (what) {
	case RS_DISCONNECT:
		rs->out_over = true;
		/* fallthrough */
	case RS_SHUTDOWN:
		rs->in_over = true;
		rs->error = 0; /* should a request of ours have failed because the peer has gone */
		break;
	case RS_KEEPALIVE:
		break;
	default:
		broken(rs, "rsocket: the peer sends a control message that is not of the protocol");
	}
}

static void take_message(struct rsocket *rs, uint32_t message)
{
	rs->heard++;
	switch (rs_kind(message)) {
	case RS_DATA:
		rs->in_count++;
		take_data(rs, rs_number(message));
		break;
	case RS_GRANT:
		rs->out_limit = (uint16_t)rs_number(message);
		take_target(rs);
		break;
	case RS_MAPPED:
		rs->in_count++;
		if (rs_number(message) >= rs->set.mappings)
			broken(rs, "rsocket: the peer maps memory that it was not asked for");
		break;
	case RS_CTRL:
		take_ctrl(rs, rs_number(message));
		break;
	default:
		broken(rs, "rsocket: the peer sends a message of a kind that is not of the protocol");
	}
}

/* A receive that has completed: its message, and whether it is to be posted again. */
static bool take_receive(struct rsocket *rs, const struct ibv_wc *wc)
{
	uint32_t message;

	if (wc->status != IBV_WC_SUCCESS) {
		rs_end(rs, ECONNRESET);
		rs->drained = true; /* what has come, came before */
		return false;
	}
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		message = ntohl(wc->imm_data);
	} else {
		if (wc->byte_len != sizeof(message)) {
			broken(rs, "rsocket: the peer sends a message that is not four bytes long");
			return false;
		}
		message = rs->messages[(uint32_t)wc->wr_id];
		if (rs->peer_swaps)
			message = __builtin_bswap32(message);
	}
	take_message(rs, message);
	return !rs->dead;
}

static void take_send(struct rsocket *rs, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		rs_end(rs, ECONNRESET);
		return;
	}
	rs->outbox_free += (uint32_t)wc->wr_id;
	rs->sq_free += (uint32_t)(wc->wr_id >> 32);
}

/* Takes completions and posts the receives again. Returns how many there were. */
static int take_completions(struct rsocket *rs)
{
	struct ibv_recv_wr receives[32], *bad;
	struct ibv_sge sges[32];
	struct ibv_wc wcs[32];
	int n = ibv_poll_cq(rs->cq, 32, wcs), again = 0;

	for (int i = 0; i < n && !rs->drained; i++) {
		if (!(wcs[i].wr_id & RS_WR_RECEIVE)) {
			take_send(rs, &wcs[i]);
		} else if (take_receive(rs, &wcs[i])) {
			uint32_t at = (uint32_t)wcs[i].wr_id;

			sges[again] = (struct ibv_sge){(uintptr_t)&rs->messages[at], sizeof(uint32_t), rs->local_mr->lkey};
			receives[again] = (struct ibv_recv_wr){
				.wr_id = wcs[i].wr_id, .sg_list = &sges[again], .num_sge = 1};
			if (again)
				receives[again - 1].next = &receives[again];
			again++;
		}
	}
	if (again && !rs->dead && ibv_post_recv(rs->id->qp, receives, &bad))
		rs_end(rs, ECONNRESET);
	return n;
}

void rs_process(struct rsocket *rs)
{
	if (rs->closed)
		return;
	if (rs->state != RS_CONNECTED && rs->state != RS_NEW && rs->state != RS_FAILED)
		rs_process_events(rs);
	if (rs->state != RS_CONNECTED)
		return;
	/* A peer may send without end: no call looks at more than the queues hold. */
	rs->behind = false;
	for (uint32_t seen = 0; !rs->drained && !rs->behind;) {
		int n = take_completions(rs);

		if (n <= 0)
			break;
		seen += (uint32_t)n;
		rs->behind = seen > rs->set.sq + rs->set.rq + 2 * RS_SPARE;
	}
	rs_pay(rs);
}

/* Posts a Write, if there is a place for one, and behind it a message, if it is to tell. */
static void post(struct rsocket *rs, struct ibv_sge *sge, unsigned int flags, uint64_t addr, uint32_t key,
		 const uint32_t *message, uint32_t octets)
{
	uint32_t places = (sge ? 1 : 0) + (message ? 1 : 0);
	uint64_t id = send_id(octets, places);
	struct ibv_sge tell = {(uintptr_t)message, sizeof(*message), 0};
	struct ibv_send_wr send = {
		.wr_id = id, .sg_list = &tell, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
	struct ibv_send_wr write = {
		.wr_id = id, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.next = message ? &send : NULL, .send_flags = flags | (message ? 0 : IBV_SEND_SIGNALED),
		.wr.rdma = {.remote_addr = addr, .rkey = key}};
	struct ibv_send_wr *bad;

	rs->sq_free -= places;
	if (ibv_post_send(rs->id->qp, sge ? &write : &send, &bad))
		rs_end(rs, ECONNRESET);
}

uint32_t rs_room(const struct rsocket *rs)
{
	uint32_t room = rs->set.sndbuf - rs->outbox_at;

	if (!rs_may_count(rs))
		return 0;
	if (room > rs->outbox_free)
		room = rs->outbox_free;
	if (room > rs->out.length)
		room = rs->out.length;
	return room > RS_MOST_WRITE ? RS_MOST_WRITE : room;
}

/* Takes bytes of the outbox. */
static struct ibv_sge from_outbox(struct rsocket *rs, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)rs->outbox + rs->outbox_at, length, rs->local_mr->lkey};

	rs->outbox_at += length;
	if (rs->outbox_at == rs->set.sndbuf)
		rs->outbox_at = 0;
	rs->outbox_free -= length;
	return sge;
}

void rs_send_data(struct rsocket *rs, uint32_t length)
{
	struct ibv_sge sge = from_outbox(rs, length);
	uint32_t message = rs_message(RS_DATA, length);
	struct rs_target to = rs->out;

	rs->out_count++;
	rs->out.addr += length;
	rs->out.length -= length;
	take_target(rs);
	post(rs, &sge, 0, to.addr, to.key, &message, length);
}

void rs_send_mapped(struct rsocket *rs, uint64_t addr, uint32_t key, uint32_t length)
{
	struct ibv_sge sge = from_outbox(rs, length);

	post(rs, &sge, 0, addr, key, NULL, length);
}

bool rs_may_count(const struct rsocket *rs)
{
	return rs->state == RS_CONNECTED && !rs->out_over && rs->sq_free >= RS_SPARE + 2 &&
	       (uint16_t)(rs->out_limit - rs->out_count) > rs->out_reserve;
}

void rs_send_mapping(struct rsocket *rs, int index, const struct rs_mapping *mapping)
{
	struct ibv_sge sge = {(uintptr_t)mapping, sizeof(*mapping), 0};
	uint32_t message = rs_message(RS_MAPPED, (uint32_t)index);
	struct rs_mapping swapped;

	if (rs->peer_swaps) {
		swapped = (struct rs_mapping){
			__builtin_bswap64(mapping->offset),
			{__builtin_bswap64(mapping->at.addr), __builtin_bswap32(mapping->at.key),
			 __builtin_bswap32(mapping->at.length)}};
		sge.addr = (uintptr_t)&swapped;
	}
	rs->out_count++;
	post(rs, &sge, IBV_SEND_INLINE, rs->peer_mappings + sizeof(*mapping) * (uint32_t)index, rs->peer_targets.key,
	     &message, 0);
}

/* Opens the half that has been read, and grants messages. */
static void grant(struct rsocket *rs)
{
	uint32_t half = rs->set.rcvbuf / 2, message = rs_message(RS_GRANT, (uint16_t)(rs->in_count + rs->set.rq));
	/* What is read lies behind what is open: it begins where that ends. */
	uint32_t at = (rs->in_at + rs->in_ready + rs->in_open) % rs->set.rcvbuf;
	struct rs_target t = {(uintptr_t)rs->ring + at, rs->ring_mr->rkey, half};
	struct ibv_sge sge = {(uintptr_t)&t, sizeof(t), 0};
	bool opens = rs->in_read >= half;

	rs->in_told = rs->in_count;
	if (opens) {
		rs->in_read -= half;
		rs->in_open += half;
	}
	if (rs->peer_swaps)
		t = (struct rs_target){__builtin_bswap64(t.addr), __builtin_bswap32(t.key), __builtin_bswap32(t.length)};
	post(rs, opens ? &sge : NULL, IBV_SEND_INLINE, rs->peer_targets.addr + sizeof(t) * rs->peer_next,
	     rs->peer_targets.key, &message, 0);
	if (opens)
		rs->peer_next = (rs->peer_next + 1) % rs->peer_targets.length;
}

void rs_pay(struct rsocket *rs)
{
	if (rs->state != RS_CONNECTED || rs->dead)
		return;
	rs_tell_regions(rs);
	if (!rs->in_over && !rs->said_disconnect && rs->sq_free >= 2 &&
	    (rs->in_read >= rs->set.rcvbuf / 2 || (uint16_t)(rs->in_count - rs->in_told) >= rs->set.rq / 2))
		grant(rs);
	if (rs->owed >= 0 && !rs->dead && rs->sq_free >= 1) {
		uint32_t message = rs_message(RS_CTRL, (uint32_t)rs->owed);

		rs->said_disconnect = rs->owed == RS_DISCONNECT;
		rs->owed = -1;
		post(rs, NULL, 0, 0, 0, &message, 0);
	}
}

uint32_t rs_read(struct rsocket *rs, void *to, uint32_t length, uint32_t skip)
{
	uint32_t left = rs->in_ready - skip, at = (rs->in_at + skip) % rs->set.rcvbuf, first;

	if (length > left)
		length = left;
	first = rs->set.rcvbuf - at;
	if (first > length)
		first = length;
	memcpy(to, rs->ring + at, first);
	memcpy((uint8_t *)to + first, rs->ring, length - first);
	return length;
}

void rs_consume(struct rsocket *rs, uint32_t length)
{
	rs->in_at = (rs->in_at + length) % rs->set.rcvbuf;
	rs->in_ready -= length;
	rs->in_read += length;
	rs_pay(rs);
}
