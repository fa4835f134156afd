/* The descriptors of event channels: each event wakes, and who reads them blocks nobody. */
#include "test.h"

#include <poll.h>
#include <sys/epoll.h>

/* resolve starts something that ends with an event of the id. */
static void resolve(struct rdma_cm_id *id)
{
	struct sockaddr_in to = loopback(1);

	OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000));
}

/* A program that waits with EPOLLET, and fetches one event each time that it wakes, gets all. */
static void epoll_sees_each(struct rdma_event_channel *channel, struct rdma_cm_id **ids, int n)
{
	struct epoll_event ready;
	int ep;

	CHECK((ep = epoll_create1(EPOLL_CLOEXEC)) >= 0);
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, channel->fd, &(struct epoll_event){.events = EPOLLIN | EPOLLET}));
	for (int i = 0; i < n; i++) { /* nobody fetches them */
		resolve(ids[i]);
		EQ(epoll_wait(ep, &ready, 1, PATIENCE_MS), 1);
		EQ(epoll_wait(ep, &ready, 1, 0), 0);
	}
	for (int i = 0; i < n; i++) {
		cm_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		EQ(epoll_wait(ep, &ready, 1, 0), i < n - 1);
	}
	for (int i = 0; i < n; i++) /* at once */
		OK(rdma_resolve_route(ids[i], 5000));
	for (int i = 0; i < n; i++) {
		EQ(epoll_wait(ep, &ready, 1, PATIENCE_MS), 1);
		cm_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	}
	EQ(epoll_wait(ep, &ready, 1, 0), 0);
	close(ep);
}

/* A program that has read the descriptor finds the events nevertheless, and nobody waits. */
static void drained(struct rdma_event_channel *channel, struct rdma_cm_id **ids, int n)
{
	uint64_t number;

	for (int i = 0; i < n; i++) {
		resolve(ids[i]);
		wait_readable(channel->fd);
		CHECK(read(channel->fd, &number, sizeof(number)) > 0);
	}
	CHECK(!is_readable(channel->fd));
	for (int i = 0; i < n; i++) {
		struct rdma_cm_event *event;

		OK(rdma_get_cm_event(channel, &event));
		EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
		OK(rdma_ack_cm_event(event));
		CHECK(is_readable(channel->fd) == (i < n - 1)); /* those that are left are to be seen */
	}
}

static void with_ids(void (*f)(struct rdma_event_channel *, struct rdma_cm_id **, int))
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *ids[3];

	CHECK(channel = rdma_create_event_channel());
	for (size_t i = 0; i < COUNT(ids); i++)
		OK(rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP));
	f(channel, ids, COUNT(ids));
	for (size_t i = 0; i < COUNT(ids); i++)
		OK(rdma_destroy_id(ids[i]));
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	with_ids(epoll_sees_each);
	with_ids(drained);
	return 0;
}
