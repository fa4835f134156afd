/*
 * Threads that come, use verbs, and go: each keeps its signal mask and its signal stack,
 * and leaves nothing behind; and one that is cancelled while it waits.
 */
#include "process.h"

#include <pthread.h>
#include <sys/mman.h>

static struct pair pair;

static void *short_lived(void *arg)
{
	sigset_t set, now;
	struct ibv_wc wc;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGPROF);
	sigaddset(&set, SIGURG);
	OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	EQ(ibv_poll_cq(pair.a.scq, 1, &wc), 0);
	OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
	for (int sig = 1; sig < NSIG; sig++)
		CHECK(sigismember(&now, sig) == sigismember(&set, sig));
	return NULL;
}

/* A thread that has a signal stack has the same after verbs, and may give it up. */
static void *own_stack(void *arg)
{
	stack_t mine = {.ss_size = 1 << 16}, now;
	struct ibv_wc wc;

	(void)arg;
	mine.ss_sp = mmap(NULL, mine.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mine.ss_sp != MAP_FAILED);
	OK(sigaltstack(&mine, NULL));
	EQ(ibv_poll_cq(pair.a.scq, 1, &wc), 0);
	OK(sigaltstack(NULL, &now));
	CHECK(now.ss_sp == mine.ss_sp && now.ss_size == mine.ss_size && !(now.ss_flags & SS_DISABLE));
	mine.ss_flags = SS_DISABLE;
	OK(sigaltstack(&mine, NULL));
	OK(munmap(mine.ss_sp, 1 << 16));
	EQ(ibv_poll_cq(pair.a.scq, 1, &wc), 0);
	return NULL;
}

static void *waits(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	ibv_get_cq_event(pair.b.channel, &cq, &context);
	FAIL("it was not cancelled");
}

static void run(void *(*function)(void *))
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, function, NULL));
	OK(pthread_join(thread, NULL));
}

static long mappings(void)
{
	FILE *f;
	long n = 0;
	int c;

	CHECK(f = fopen("/proc/self/maps", "re"));
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

int main(void)
{
	pthread_t thread;
	void *result;
	long before;

	pair_open(&pair, &(struct plan){.how = BY_CM, .channels = true});
	for (int i = 0; i < 20; i++)
		run(short_lived);
	before = mappings();
	for (int i = 0; i < 200; i++)
		run(short_lived);
	CHECK(mappings() < before + 100); /* 200 signal stacks would be 400 */
	run(own_stack);

	for (int i = 0; i < 20; i++) {
		OK(pthread_create(&thread, NULL, waits, NULL));
		if (i % 2)
			traffic(&pair, 1);
		OK(pthread_cancel(thread));
		OK(pthread_join(thread, &result));
		CHECK(result == PTHREAD_CANCELED);
	}
	traffic(&pair, 10);
	pair_close(&pair);
	return 0;
}
