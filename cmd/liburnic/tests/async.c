/* Asynchronous events, and that they must be acknowledged. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>

/* Who has set O_NONBLOCK on the descriptor gets EAGAIN. */
static void nonblocking(void)
{
	struct ibv_context *context = open_device();
	struct ibv_async_event event;
	int flags = fcntl(context->async_fd, F_GETFL);

	CHECK(!is_readable(context->async_fd));
	OK(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK));
	FAILS(ibv_get_async_event(context, &event), EAGAIN);
	OK(ibv_close_device(context));
}

struct destroyer {
	struct pair *p;
	volatile int ended;
};

static void *destroy(void *argument)
{
	struct destroyer *d = argument;

	OK(ibv_destroy_qp(d->p->b.qp));
	__atomic_store_n(&d->ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/*
 * A peer that writes where it may not makes an event of the queue pair that it wrote to;
 * to destroy that waits until the event is acknowledged.
 */
static void access_error(void)
{
	struct destroyer d = {0};
	struct epoll_event ready;
	struct ibv_async_event event;
	pthread_t thread;
	struct pair p;
	int ep;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK((ep = epoll_create1(0)) >= 0);
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, p.b.context->async_fd, &(struct epoll_event){.events = EPOLLIN}));
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8, .remote = to(&p.b, 0),
	     .rkey = p.b.mr->rkey ^ 0xffff00);
	EQ(epoll_wait(ep, &ready, 1, PATIENCE_MS), 1);
	close(ep);
	OK(ibv_get_async_event(p.b.context, &event));
	CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR || event.event_type == IBV_EVENT_QP_REQ_ERR ||
	      event.event_type == IBV_EVENT_QP_FATAL);
	CHECK(event.element.qp == p.b.qp);

	d.p = &p;
	OK(pthread_create(&thread, NULL, destroy, &d));
	/* It can't be seen that a thread waits; that it has not ended can. */
	for (int i = 0; i < 100; i++)
		sched_yield();
	EQ(__atomic_load_n(&d.ended, __ATOMIC_SEQ_CST), 0);
	ibv_ack_async_event(&event);
	OK(pthread_join(thread, NULL));
	p.b.qp = NULL;
	pair_close(&p);
}

/* Events of an object that is destroyed are gone with it. */
static void events_go_with_the_object(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8, .remote = to(&p.b, 0),
	     .rkey = p.b.mr->rkey ^ 0xffff00);
	wait_readable(p.b.context->async_fd);
	OK(ibv_destroy_qp(p.b.qp));
	p.b.qp = NULL;
	CHECK(!is_readable(p.b.context->async_fd));
	pair_close(&p);
}

int main(void)
{
	nonblocking();
	access_error();
	events_go_with_the_object();
	return 0;
}
