/* Checks and waits of the test programs: see test.h. */
#include "test.h"

#include <poll.h>
#include <stdarg.h>
#include <time.h>

void fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	fflush(NULL);
	_exit(1); /* not exit: what was not freed is no leak now */
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

void wait_readable_at(const char *file, int line, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, PATIENCE_MS) != 1 || !(p.revents & POLLIN))
		fail(file, line, "descriptor %d does not get readable", fd);
}

struct ibv_context *open_device(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	int n;

	CHECK(list = ibv_get_device_list(&n));
	CHECK(n >= 1);
	CHECK(context = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	return context;
}

struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sin;
}

struct rdma_cm_event *cm_event_at(const char *file, int line, struct rdma_event_channel *channel,
				  enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	wait_readable_at(file, line, channel->fd);
	if (rdma_get_cm_event(channel, &event) != 0)
		fail(file, line, "rdma_get_cm_event: %s", strerror(errno));
	if (event->event != type)
		fail(file, line, "event %s (status %d), not %s", rdma_event_str(event->event), event->status,
		     rdma_event_str(type));
	if (event->status != 0 && type != RDMA_CM_EVENT_REJECTED && type != RDMA_CM_EVENT_UNREACHABLE &&
	    type != RDMA_CM_EVENT_CONNECT_ERROR && type != RDMA_CM_EVENT_ADDR_ERROR &&
	    type != RDMA_CM_EVENT_ROUTE_ERROR)
		fail(file, line, "%s has the status %d", rdma_event_str(type), event->status);
	return event;
}

struct ibv_wc wait_wc_at(const char *file, int line, struct ibv_cq *cq)
{
	int64_t end = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	memset(&wc, 0xee, sizeof(wc));
	for (unsigned int round = 0;; round++) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n == 1)
			return wc;
		if (n < 0)
			fail(file, line, "ibv_poll_cq: %d", n);
		if (now_ms() > end)
			fail(file, line, "no completion comes");
		if (round > 100)
			poll(NULL, 0, 1); /* others need the processor */
	}
}

struct ibv_wc want_wc_at(const char *file, int line, struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
			 enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = wait_wc_at(file, line, cq);

	if (wc.wr_id != wr_id || wc.status != status)
		fail(file, line, "completion of request %" PRIu64 ": %s (vendor_err %#x), not of %" PRIu64 ": %s",
		     wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err, wr_id, ibv_wc_status_str(status));
	if (status == IBV_WC_SUCCESS && wc.opcode != opcode)
		fail(file, line, "completion has the opcode %d, not %d", wc.opcode, opcode);
	return wc;
}

struct ibv_async_event want_event_at(const char *file, int line, struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	wait_readable_at(file, line, context->async_fd);
	if (ibv_get_async_event(context, &event) != 0)
		fail(file, line, "ibv_get_async_event: %s", strerror(errno));
	if (event.event_type != type)
		fail(file, line, "asynchronous event: %s, not %s", ibv_event_type_str(event.event_type),
		     ibv_event_type_str(type));
	return event;
}

struct ibv_sge sge(const struct end *e, size_t offset, uint32_t length)
{
	return (struct ibv_sge){.addr = to(e, offset), .length = length, .lkey = e->mr->lkey};
}

void recv_at(struct end *e, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge s = sge(e, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &s, .num_sge = 1}, *bad;

	if (e->srq)
		OK(ibv_post_srq_recv(e->srq, &wr, &bad));
	else
		OK(ibv_post_recv(e->qp, &wr, &bad));
}

int try_post(struct end *e, const struct op *op)
{
	struct ibv_sge s = sge(e, op->offset, op->length);
	struct ibv_send_wr wr = {
		.wr_id = op->wr_id,
		.sg_list = &s,
		.num_sge = 1,
		.opcode = op->opcode,
		.send_flags = op->flags | (op->unsignaled ? 0 : IBV_SEND_SIGNALED),
	}, *bad = NULL;
	int error;

	if (op->lkey != 0)
		s.lkey = op->lkey;
	switch (op->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr.wr.atomic.remote_addr = op->remote;
		wr.wr.atomic.rkey = op->rkey;
		wr.wr.atomic.compare_add = op->compare_add;
		wr.wr.atomic.swap = op->swap;
		break;
	default:
		wr.wr.rdma.remote_addr = op->remote;
		wr.wr.rdma.rkey = op->rkey;
	}
	if (op->opcode == IBV_WR_SEND_WITH_INV || op->opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = op->imm;
	else
		wr.imm_data = htonl(op->imm);
	if (op->opcode == IBV_WR_LOCAL_INV)
		wr.num_sge = 0;
	error = ibv_post_send(e->qp, &wr, &bad);
	if (error != 0 && bad != &wr)
		FAIL("ibv_post_send fails, and bad_wr is %p", (void *)bad);
	return error;
}
