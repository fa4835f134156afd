/*
 * A process that exits closes its connections, so that what its peers have sent is acknowledged.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "load.h"
#include "shim.h"

static void *leave(void *engine)
{
	((const struct urnic_engine *)engine)->leave();
	return NULL;
}

/*
 * The thread that exits may be in the engine, if a handler of a signal exits. So another one calls it.
 */
__attribute__((destructor)) static void leave_at_exit(void)
{
	const struct urnic_engine *engine = urnic_loaded();
	struct timespec until;
	pthread_t thread;
	sigset_t all, before;
	int err;

	if (!engine)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, leave, (void *)(uintptr_t)engine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err || clock_gettime(CLOCK_REALTIME, &until))
		return;
	/* The engine bounds its part; this is for a thread that holds something that the engine waits for. */
	until.tv_sec += urnic_leave_patience() / 1000;
	until.tv_nsec += urnic_leave_patience() % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_timedjoin_np(thread, NULL, &until); /* or it exits all the same */
}
