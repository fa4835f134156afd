/*
 * Threads that are cancelled while they wait in a call. They leave no lock behind, so other
 * threads go on. What they were about to free stays.
 */
#include <pthread.h>

#include "../tests/rsocket_pair.h"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct pair p;

static void cancelled(void *(*f)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	OK(pthread_create(&thread, NULL, f, arg));
	OK(pthread_cancel(thread));
	OK(pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
}

static void *wait_for_event(void *arg)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return arg;
}

static void *destroy_id(void *arg)
{
	rdma_destroy_id(id);
	return arg;
}

static void *migrate_id(void *arg)
{
	rdma_migrate_id(id, arg);
	return arg;
}

static void *wait_for_completion(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(p.b.channel, &cq, &context);
	return arg;
}

static void *wait_for_async(void *arg)
{
	struct ibv_async_event event;

	ibv_get_async_event(p.b.context, &event);
	return arg;
}

static void *destroy_cq(void *arg)
{
	ibv_destroy_cq(p.b.rcq);
	return arg;
}

static void *destroy_qp(void *arg)
{
	ibv_destroy_qp(p.b.qp);
	return arg;
}

/* resolve returns an event of an id, which is not acked yet. */
static struct rdma_cm_event *resolve(struct rdma_cm_id *of)
{
	struct sockaddr_in to = loopback(1);

	OK(rdma_resolve_addr(of, NULL, (struct sockaddr *)&to, 5000));
	return cm_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

/* others_go_on fetches and acks an event of another id. */
static void others_go_on(void)
{
	struct rdma_cm_id *other;

	OK(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	OK(rdma_ack_cm_event(resolve(other)));
	OK(rdma_destroy_id(other));
}

/* To destroy or migrate an id waits until its events are acked. */
static void ids(void)
{
	struct rdma_event_channel *second;
	struct rdma_cm_event *event;

	CHECK(channel = rdma_create_event_channel());
	CHECK(second = rdma_create_event_channel());
	OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	cancelled(wait_for_event, NULL);
	others_go_on();

	event = resolve(id);
	cancelled(migrate_id, second);
	others_go_on();
	OK(rdma_ack_cm_event(event));
	CHECK(id->channel == second);
	OK(rdma_migrate_id(id, channel));

	OK(rdma_resolve_route(id, 5000));
	event = cm_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cancelled(destroy_id, NULL);
	others_go_on();
	OK(rdma_ack_cm_event(event));
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(second);
}

/* To destroy a queue pair or a completion queue waits until its events are acked. */
static void queues(void)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	pair_open(&p, &(struct plan){.channels = true, .how = BY_GID});
	cancelled(wait_for_completion, NULL);
	cancelled(wait_for_async, NULL);
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	recv_at(&p.b, 1, 0, 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	done(p.a.scq, 2, IBV_WC_SEND);
	wait_readable(p.b.channel->fd);
	OK(ibv_get_cq_event(p.b.channel, &cq, &context));

	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 3, .length = 8, .remote = to(&p.b, 0),
	     .rkey = p.b.mr->rkey ^ 0xffff00);
	wait_readable(p.b.context->async_fd);
	OK(ibv_get_async_event(p.b.context, &event));
	cancelled(destroy_qp, NULL);
	ibv_ack_async_event(&event);
	cancelled(destroy_cq, NULL);
	ibv_ack_cq_events(cq, 1);
}

static void *receive(void *arg)
{
	char c;

	rrecv(*(int *)arg, &c, 1, 0);
	return arg;
}

static void *accept_one(void *arg)
{
	raccept(*(int *)arg, NULL, NULL);
	return arg;
}

static void *poll_one(void *arg)
{
	struct pollfd fd = {.fd = *(int *)arg, .events = POLLIN};

	rpoll(&fd, 1, -1);
	return arg;
}

static void rsockets(void)
{
	struct sockaddr_in at;
	int a, b, listener = rs_listener(&at);
	char c;

	rs_pair(&a, &b, &(struct rs_plan){0});
	for (int i = 0; i < 20; i++) {
		cancelled(receive, &a);
		cancelled(poll_one, &a);
		cancelled(accept_one, &listener);
	}
	EQ(rsend(a, "x", 1, 0), 1);
	EQ(rrecv(b, &c, 1, 0), 1);
	OK(rclose(a));
	OK(rclose(b));
	OK(rclose(listener));
}

int main(void)
{
	ids();
	queues();
	rsockets();
	return 0;
}
