/* An rsocket's peer by plain verbs: what the protocol looks like, and what happens to a peer that breaks it. */
#include <endian.h>

#include "rsocket_pair.h"

/* As the protocol's guide has them. */
struct target {
	uint64_t addr;
	uint32_t key, length;
};

struct hello {
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3], mappings;
	struct target targets, buffer;
};

enum { DATA = 0, GRANT = 4, MAPPED = 6, CTRL = 7 };

#define MESSAGE(kind, number) ((uint32_t)(kind) << 29 | (uint32_t)(number))
#define HALF 65536 /* of an rsocket's receive buffer, unless it is set */

struct peer {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct hello theirs;
	int socket;
	struct {
		struct target targets[2];
		uint32_t in[16], out;
		uint8_t buffer[4096];
	} memory;
};

/* Connects to an rsocket, with a target's key that is right or wrong. */
static void open_peer(struct peer *p, uint32_t wrong)
{
	struct ibv_qp_init_attr attr = {.cap = {16, 16, 1, 1, 64}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
	struct rdma_cm_event *event = NULL;
	struct sockaddr_in at;
	struct pollfd poll;
	struct hello mine = {.version = 1, .credits = htobe16(16)};
	struct rdma_conn_param param = {.private_data = &mine, .private_data_len = sizeof(mine),
					.responder_resources = 1, .initiator_depth = 1};
	int listener = rs_listener(&at);

	memset(p, 0, sizeof(*p));
	p->events = rdma_create_event_channel();
	OK(rdma_create_id(p->events, &p->id, NULL, RDMA_PS_TCP));
	OK(rdma_resolve_addr(p->id, NULL, (struct sockaddr *)&at, 5000));
	cm_take(p->events, RDMA_CM_EVENT_ADDR_RESOLVED);
	OK(rdma_resolve_route(p->id, 5000));
	cm_take(p->events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	OK(rdma_create_qp(p->id, NULL, &attr));
	p->mr = ibv_reg_mr(p->id->pd, &p->memory, sizeof(p->memory), ALL_ACCESS);
	CHECK(p->mr);
	for (uint32_t i = 0; i < COUNT(p->memory.in); i++)
		OK(rdma_post_recv(p->id, &p->memory.in[i], &p->memory.in[i], 4, p->mr));
	mine.targets = (struct target){htobe64((uintptr_t)p->memory.targets), htobe32(p->mr->rkey + wrong), htobe32(2)};
	mine.buffer = (struct target){htobe64((uintptr_t)p->memory.buffer), htobe32(p->mr->rkey),
				      htobe32(sizeof(p->memory.buffer))};
	OK(rdma_connect(p->id, &param));
	p->socket = raccept(listener, NULL, NULL);
	CHECK(p->socket >= 0);
	event = cm_event(p->events, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->param.conn.private_data_len >= sizeof(p->theirs));
	memcpy(&p->theirs, event->param.conn.private_data, sizeof(p->theirs));
	OK(rdma_ack_cm_event(event));
	poll = (struct pollfd){.fd = p->socket, .events = POLLOUT};
	EQ(rpoll(&poll, 1, PATIENCE_MS), 1);
	OK(rclose(listener));
}

static void close_peer(struct peer *p)
{
	if (p->socket >= 0)
		OK(rclose(p->socket));
	rdma_destroy_qp(p->id);
	ibv_dereg_mr(p->mr);
	OK(rdma_destroy_id(p->id));
	rdma_destroy_event_channel(p->events);
}

static void say(struct peer *p, uint32_t message, uint32_t length)
{
	struct ibv_wc wc;

	p->memory.out = message;
	OK(rdma_post_send(p->id, NULL, &p->memory.out, length, p->mr, 0));
	EQ(rdma_get_send_comp(p->id, &wc), 1);
}

static void place(struct peer *p, const char *octets, uint64_t at)
{
	struct ibv_wc wc;

	strcpy((char *)p->memory.buffer, octets);
	OK(rdma_post_write(p->id, NULL, p->memory.buffer, strlen(octets), p->mr, 0, at, be32toh(p->theirs.buffer.key)));
	EQ(rdma_get_send_comp(p->id, &wc), 1);
}

/* Waits for a message of the rsocket's. */
static uint32_t hear(struct peer *p)
{
	struct ibv_wc wc;

	EQ(rdma_get_recv_comp(p->id, &wc), 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	EQ(wc.byte_len, 4);
	return *(uint32_t *)(uintptr_t)wc.wr_id;
}

static void well_behaved(void)
{
	struct target half;
	struct peer p;
	char in[20];
	int big = __BYTE_ORDER == __BIG_ENDIAN;

	open_peer(&p, 0);
	EQ(p.theirs.version, 1);
	EQ(p.theirs.flags, 2 | big);
	EQ(p.theirs.mappings, 0);
	EQ(be16toh(p.theirs.credits), 384);
	EQ(be32toh(p.theirs.targets.length), 2);
	EQ(be32toh(p.theirs.buffer.length), HALF);

	/* The second half is opened at once, in the second target. */
	EQ(hear(&p), MESSAGE(GRANT, 384));
	half = p.memory.targets[1];
	EQ(half.addr, be64toh(p.theirs.buffer.addr) + HALF);
	EQ(half.key, be32toh(p.theirs.buffer.key));
	EQ(half.length, HALF);
	EQ(p.memory.targets[0].length, 0);

	place(&p, "seven o", be64toh(p.theirs.buffer.addr));
	say(&p, MESSAGE(DATA, 7), 4);
	EQ(rrecv(p.socket, in, sizeof(in), 0), 7);
	EQ(memcmp(in, "seven o", 7), 0);

	EQ(rsend(p.socket, "to you", 6, 0), 6);
	EQ(hear(&p), MESSAGE(DATA, 6));
	EQ(memcmp(p.memory.buffer, "to you", 6), 0);
	EQ(rsend(p.socket, "again", 5, 0), 5);
	EQ(hear(&p), MESSAGE(DATA, 5));
	EQ(memcmp(p.memory.buffer, "to youagain", 11), 0);

	say(&p, MESSAGE(CTRL, 1), 4); /* keep alive */
	say(&p, MESSAGE(CTRL, 2), 4); /* no more from here */
	EQ(rrecv(p.socket, in, sizeof(in), 0), 0);
	OK(rshutdown(p.socket, SHUT_WR));
	EQ(hear(&p), MESSAGE(CTRL, 0));
	close_peer(&p);
}

/* A peer that says these messages loses its connection, and the rsocket's owner learns of it. */
static void broken(uint32_t first, uint32_t second, uint32_t length)
{
	struct pollfd poll;
	struct ibv_wc wc;
	struct peer p;
	char in[20];

	open_peer(&p, 0);
	if (first)
		say(&p, first, 4);
	say(&p, second, length);
	/* Nothing is read before that, so what the peer may write does not change. */
	poll = (struct pollfd){.fd = p.socket};
	if (rpoll(&poll, 1, PATIENCE_MS) != 1)
		FAIL("0x%08x, 0x%08x: the connection continues", first, second);
	EQ(poll.revents, POLLERR | POLLHUP);
	errno = 0;
	ssize_t n = rrecv(p.socket, in, sizeof(in), 0);
	int error = errno;
	if (n != -1 || error != ECONNRESET)
		FAIL("0x%08x, 0x%08x: rrecv gives %zd with errno %d", first, second, n, error);
	FAILS((int)rsend(p.socket, in, 1, 0), ECONNRESET);
	do
		EQ(rdma_get_recv_comp(p.id, &wc), 1);
	while (wc.status == IBV_WC_SUCCESS);
	close_peer(&p);
}

/* One that writes where it may not, and one that has the rsocket write where it may not. */
static void out_of_bounds(void)
{
	struct peer p;
	char in;

	open_peer(&p, 0);
	place(&p, "beyond", be64toh(p.theirs.buffer.addr) + 2 * HALF - 3);
	FAILS((int)rrecv(p.socket, &in, 1, 0), ECONNRESET);
	close_peer(&p);

	open_peer(&p, 1);
	FAILS((int)rrecv(p.socket, &in, 1, 0), ECONNRESET);
	close_peer(&p);
}

int main(void)
{
	int a, b;

	well_behaved();
	rs_pair(&a, &b, &(struct rs_plan){0});
	for (uint32_t kind = 1; kind < 6; kind++)
		if (kind != GRANT)
			broken(0, MESSAGE(kind, 1), 4);
	broken(0, MESSAGE(DATA, 0), 4);
	broken(0, MESSAGE(DATA, 2 * HALF + 1), 4);
	broken(0, MESSAGE(DATA, 0x1fffffff), 4);
	broken(0, MESSAGE(CTRL, 3), 4);
	broken(0, MESSAGE(MAPPED, 0), 4);
	broken(0, MESSAGE(GRANT, 400), 3);
	broken(MESSAGE(CTRL, 2), MESSAGE(DATA, 1), 4);
	broken(MESSAGE(DATA, 2 * HALF), MESSAGE(DATA, HALF + 1), 4);
	out_of_bounds();
	rs_send_stream(a, 0, 1000, 100); /* nobody else has noticed */
	rs_want_stream(b, 0, 1000, 100);
	OK(rclose(a));
	OK(rclose(b));
	return 0;
}
