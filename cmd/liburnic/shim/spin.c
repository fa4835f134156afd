/*
 * Programs spin: they poll until something has come. What they wait for comes from other
 * threads and processes, which may need this processor: where more threads spin than there
 * are processors, a round trip would take time slices. So a thread that has done nothing
 * but poll for a while, and has found nothing in any queue, waits in its polls for a
 * completion. At first it does so for a moment only, as one that polls several queues waits
 * at one of them.
 */
#include <time.h>

#include "shim.h"

enum {
	polls = 4096,   /* in vain before the first wait: about a millisecond */
	most = 50000,   /* microseconds that these take, if the thread does nothing else */
	first = 50,     /* microseconds of the first wait, and then between two */
	longest = 2000, /* microseconds of a wait, each of which is twice as long as the last one */
};

static _Thread_local struct {
	uint32_t vain;  /* polls in a row */
	uint32_t wait;  /* the last one, in microseconds; 0: it spins */
	uint64_t since; /* the first of the polls, or the end of the last wait */
} idle __attribute__((tls_model("initial-exec")));

static uint64_t microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void urnic_spin_anew(void)
{
	idle.vain = idle.wait = 0;
}

void urnic_polled(const struct urnic_engine *e, uint32_t cq, int n)
{
	uint64_t now;

	if (n) {
		urnic_spin_anew();
		return;
	}
	if (!idle.wait && ++idle.vain > 1 && idle.vain < polls)
		return;
	now = microseconds();
	if (idle.vain == 1) {
		idle.since = now;
		return;
	}
	if (now - idle.since > (idle.wait ? first : most)) { /* it does something else as well */
		urnic_spin_anew();
		return;
	}
	idle.wait = idle.wait ? idle.wait * 2 : first;
	if (idle.wait > longest)
		idle.wait = longest;
	e->cq_await(cq, idle.wait);
	idle.since = microseconds();
}
