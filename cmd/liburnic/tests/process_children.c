/*
 * Signals that the program blocks wait for it: no thread of the engine takes them. A
 * process that waits for its children by sigwait would wait for ever else.
 */
#include "process.h"

#include <sys/wait.h>

static volatile sig_atomic_t got;
static pid_t where;

static void handler(int sig)
{
	(void)sig;
	got++;
	where = gettid();
}

static void die(siginfo_t *info)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	OK(waitid(P_PID, (id_t)pid, info, WEXITED | WNOWAIT)); /* its SIGCHLD has been sent */
	ends(pid, 0);
}

/* Nobody handles it: a thread that had it unblocked would drop it. */
static void waits(void)
{
	const struct timespec patience = {.tv_sec = PATIENCE_MS / 1000};
	siginfo_t info, died;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (int i = 0; i < 20; i++) {
		die(&died);
		EQ(sigtimedwait(&set, &info, &patience), SIGCHLD);
		EQ(info.si_pid, died.si_pid);
	}
}

/* The handler runs when the program lets it, in the program's thread. */
static void handled(int sig)
{
	sigset_t one;

	CHECK(signal(sig, handler) != SIG_ERR);
	sigemptyset(&one);
	sigaddset(&one, sig);
	OK(pthread_sigmask(SIG_BLOCK, &one, NULL));
	got = 0;
	where = 0;
	OK(kill(getpid(), sig));
	EQ(got, 0);
	use_verbs();
	EQ(got, 0);
	OK(pthread_sigmask(SIG_UNBLOCK, &one, NULL));
	EQ(got, 1);
	EQ(where, getpid());
}

int main(void)
{
	const int signals[] = {SIGCHLD, SIGURG, SIGPROF, SIGSTKFLT, SIGRTMIN, SIGHUP, SIGINT, SIGTERM, SIGALRM, SIGIO, SIGWINCH};
	struct pair p;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	pair_open(&p, &(struct plan){.how = BY_CM});
	traffic(&p, 16);
	waits();
	OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	for (size_t i = 0; i < COUNT(signals); i++)
		handled(signals[i]);
	pair_close(&p);
	return 0;
}
