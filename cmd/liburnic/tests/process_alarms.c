/*
 * Ten thousand signals, for handlers without SA_ONSTACK that want much stack, come in
 * while the thread sends and receives.
 */
#include "process.h"

#include <sys/time.h>

#define SIGNALS 10000

/* A sanitizer's signal stack would be too small: the one that the library makes is wanted. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}

static volatile sig_atomic_t alarms, profiles;
static pthread_t first;

/* alarm_in sets a timer for one signal: the next is wanted when this one was handled. */
static void alarm_in(int which, int us)
{
	const struct itimerval once = {.it_value = {0, us}};

	OK(setitimer(which, &once, NULL));
}

/* A handler that uses 64 KiB of stack: more than Go code has. */
static void count(int sig)
{
	volatile char big[64 << 10];

	for (size_t i = 0; i < sizeof(big); i += 64)
		big[i] = (char)sig;
	if (!pthread_equal(pthread_self(), first))
		abort(); /* it ran in a thread that is not the program's */
	if (sig == SIGPROF)
		profiles++;
	else if (++alarms < SIGNALS)
		alarm_in(ITIMER_REAL, 50);
}

int main(void)
{
	struct sigaction before = {.sa_handler = count, .sa_flags = SA_RESTART}, now;
	struct pair p;

	first = pthread_self();
	OK(sigaction(SIGALRM, &before, NULL)); /* from before the library is in use */
	pair_open(&p, &(struct plan){.how = BY_CM});
	CHECK(signal(SIGPROF, count) == SIG_DFL); /* and from after */

	alarm_in(ITIMER_REAL, 50);
	alarm_in(ITIMER_PROF, 50);
	while (alarms < SIGNALS || profiles == 0)
		traffic(&p, 16);

	/* The program finds its handlers as it has set them. */
	OK(sigaction(SIGALRM, NULL, &now));
	CHECK(now.sa_handler == count);
	EQ(now.sa_flags & (SA_RESTART | SA_ONSTACK | SA_SIGINFO), SA_RESTART);
	OK(sigaction(SIGPROF, NULL, &now));
	EQ(now.sa_flags & (SA_RESTART | SA_ONSTACK | SA_SIGINFO), SA_RESTART);
	EQ(sigismember(&now.sa_mask, SIGPROF), 1);
	pair_close(&p);
	return 0;
}
