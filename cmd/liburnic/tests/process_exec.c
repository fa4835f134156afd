/* A program that uses verbs and executes another, here itself, leaves nothing to it. */
#include "process.h"

#include <dirent.h>
#include <sys/wait.h>

static int descriptors(void)
{
	struct dirent *e;
	int n = 0;
	DIR *dir;

	CHECK(dir = opendir("/proc/self/fd"));
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n - 1; /* without dir's own */
}

/* want_mask wants signals as they were before the engine was loaded. */
static void want_signals(void)
{
	sigset_t mask;

	OK(sigprocmask(SIG_SETMASK, NULL, &mask));
	for (int sig = 1; sig < NSIG; sig++)
		CHECK(sigismember(&mask, sig) == (sig == SIGUSR2));
	CHECK(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
	CHECK(signal(SIGURG, SIG_DFL) == SIG_DFL);
	CHECK(signal(SIGCHLD, SIG_DFL) == SIG_DFL);
}

int main(int argc, char **argv)
{
	char before[16];
	struct pair p;
	sigset_t mask;

	if (argc > 1) {
		EQ(descriptors(), atoi(argv[1]));
		want_signals();
		use_verbs();
		return 0;
	}
	(void)argv;
	snprintf(before, sizeof(before), "%d", descriptors());
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	OK(sigprocmask(SIG_BLOCK, &mask, NULL));
	CHECK(signal(SIGPIPE, SIG_IGN) == SIG_DFL);
	pair_open(&p, &(struct plan){.how = BY_CM});
	traffic(&p, 4);
	CHECK(descriptors() > atoi(before));
	execl("/proc/self/exe", "process_exec", before, NULL);
	FAIL("execl: %s", strerror(errno));
}
