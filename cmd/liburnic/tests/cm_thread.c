/* A thread that waits for events of a channel which the program destroys, as many programs end. */
#include <pthread.h>

#include "test.h"

static void *wait_for_ever(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return channel; /* it has come back */
}

/* cancelled ends a thread, and wants that it had not come back. */
static void cancelled(pthread_t thread)
{
	void *result;

	OK(pthread_cancel(thread));
	OK(pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
}

int main(void)
{
	struct rdma_event_channel *channel;
	pthread_t before, after;

	CHECK(channel = rdma_create_event_channel());
	OK(pthread_create(&before, NULL, wait_for_ever, channel));
	rdma_destroy_event_channel(channel);
	OK(pthread_create(&after, NULL, wait_for_ever, channel)); /* as one that was about to wait */
	cancelled(before);
	cancelled(after);
	return 0;
}
