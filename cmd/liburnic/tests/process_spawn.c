/* Programs that are started while verbs are in use, in each way, while traffic flows. */
#include "process.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

extern char **environ;

static struct pair pair;
static atomic_bool stop;
static atomic_int rounds;

static void *flow(void *arg)
{
	while (!stop) {
		traffic(&pair, 2);
		rounds++;
	}
	return arg;
}

/*
 * Ends with 3 if signals are as a program expects them: none blocked, none ignored, but
 * for two of the C library's, which posix_spawn ignores for all that is started below (make(1)).
 */
#define SCRIPT                                                                                                         \
	"grep -q '^SigBlk:.*0000000000000000$' /proc/self/status && "                                                  \
	"grep -Eq '^SigIgn:.*0000000[01][08]0000000$' /proc/self/status && exit 3"

static char *const script[] = {"sh", "-c", (char *)SCRIPT, NULL};

static pid_t by_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		/* As Python's subprocess does, which in a child of vfork sets the parent's table, if there is one. */
		signal(SIGPIPE, SIG_DFL);
		execv("/bin/sh", script);
		_exit(1);
	}
	return pid;
}

static pid_t by_posix_spawn(void)
{
	posix_spawnattr_t attr;
	sigset_t all, none;
	pid_t pid;

	sigfillset(&all);
	sigemptyset(&none);
	OK(posix_spawnattr_init(&attr));
	OK(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
	OK(posix_spawnattr_setsigdefault(&attr, &all));
	OK(posix_spawnattr_setsigmask(&attr, &none));
	OK(posix_spawn(&pid, "/bin/sh", NULL, &attr, script, environ));
	OK(posix_spawnattr_destroy(&attr));
	return pid;
}

static pid_t by_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execv("/bin/sh", script);
		_exit(1);
	}
	return pid;
}

static void handler(int sig)
{
	(void)sig;
}

int main(void)
{
	struct sigaction now;
	char line[16] = "";
	pthread_t thread;
	sigset_t none;
	FILE *f;

	sigemptyset(&none);
	OK(sigprocmask(SIG_SETMASK, &none, NULL));
	for (int sig = 1; sig < NSIG; sig++) { /* whatever we have inherited */
		if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			CHECK(signal(sig, SIG_DFL) == SIG_IGN);
	}
	pair_open(&pair, &(struct plan){.how = BY_CM});
	OK(pthread_create(&thread, NULL, flow, NULL));
	CHECK(signal(SIGPIPE, handler) == SIG_DFL);
	for (int i = 0; i < 20; i++) {
		int before = rounds;

		ends(by_vfork(), 3);
		ends(by_posix_spawn(), 3);
		ends(by_fork(), 3);
		EQ(system(SCRIPT), 3 << 8);
		CHECK(f = popen("echo popen", "r"));
		CHECK(fgets(line, sizeof(line), f));
		EQ(strcmp(line, "popen\n"), 0);
		EQ(pclose(f), 0);
		while (rounds == before && !stop)
			sched_yield();
	}
	OK(sigaction(SIGPIPE, NULL, &now));
	CHECK(now.sa_handler == handler); /* what the child of vfork has set is not ours */
	stop = true;
	OK(pthread_join(thread, NULL));
	pair_close(&pair);
	return 0;
}
