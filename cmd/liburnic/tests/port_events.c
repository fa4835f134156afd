/* A port goes down and comes back with the interface that has its address. */
#include "test.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

/* Gives the process a network of its own. Its loopback interface is down. */
static void own_network(void)
{
	if (unshare(CLONE_NEWNET))
		OK(unshare(CLONE_NEWUSER | CLONE_NEWNET));
}

static void set_loopback(short flags)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = flags};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(s >= 0);
	OK(ioctl(s, SIOCSIFFLAGS, &lo));
	close(s);
}

static void is(struct ibv_context *context, enum ibv_port_state state, int phys_state)
{
	struct ibv_port_attr attr;

	OK(___ibv_query_port(context, 1, &attr));
	EQ(attr.state, state);
	EQ(attr.phys_state, phys_state);
}

static void happens(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	OK(ibv_get_async_event(context, &event));
	EQ(event.event_type, type);
	EQ(event.element.port_num, 1);
	ibv_ack_async_event(&event);
}

int main(void)
{
	struct ibv_context *context;

	own_network();
	context = open_device();
	is(context, IBV_PORT_DOWN, 3); /* Disabled */
	for (int round = 0; round < 2; round++) {
		set_loopback(IFF_UP);
		happens(context, IBV_EVENT_PORT_ACTIVE);
		is(context, IBV_PORT_ACTIVE, 5); /* LinkUp */
		set_loopback(0);
		happens(context, IBV_EVENT_PORT_ERR);
		is(context, IBV_PORT_DOWN, 3);
	}
	CHECK(!is_readable(context->async_fd));
	OK(ibv_close_device(context));
	return 0;
}
