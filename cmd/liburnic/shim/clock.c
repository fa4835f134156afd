/*
 * The device's clock: CLOCK_MONOTONIC in nanoseconds. A completion's time is when it is taken
 * from its queue.
 */
#include <time.h>

#include "adapter.h"

static uint64_t read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t urnic_clock_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t urnic_clock_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

/* The count is in tv_nsec alone, where programs compare it with those of completions. */
static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)urnic_clock_ns();
	}
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

void urnic_set_clock_ops(struct verbs_context *v)
{
	if (urnic_is_adapter())
		v->query_rt_values = query_rt_values;
}
