/*
 * Each way to set a handler does what the C library's does, once the engine is loaded,
 * also for the signals that its runtime wants for itself.
 */
#include "process.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* What no header declares, or only to whoever wants old functions. */
extern int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);
extern __sighandler_t bsd_signal(int sig, __sighandler_t handler);
extern __sighandler_t __sysv_signal(int sig, __sighandler_t handler);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* siginterrupt, sigset, sigignore */

static volatile sig_atomic_t got, blocked;
static siginfo_t last;

static void handler(int sig)
{
	sigset_t now;

	got++;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	blocked = sigismember(&now, sig);
}

static void other(int sig)
{
	(void)sig;
}

static void informed(int sig, siginfo_t *info, void *context)
{
	handler(sig);
	last = *info;
	CHECK(context);
}

/* raise_once raises a signal and reports whether the handler ran; the signal was blocked meanwhile. */
static bool raise_once(int sig, bool masked)
{
	got = 0;
	OK(raise(sig));
	CHECK(got <= 1);
	if (got)
		EQ(blocked, masked);
	return got;
}

static int flags(int sig)
{
	struct sigaction a;

	OK(sigaction(sig, NULL, &a));
	return a.sa_flags & (int)(SA_RESTART | SA_ONSTACK | SA_SIGINFO | SA_NODEFER | SA_RESETHAND);
}

static void each_way(int sig)
{
	struct sigaction a = {.sa_sigaction = informed, .sa_flags = SA_SIGINFO | SA_NODEFER}, old;

	CHECK(signal(sig, handler) == SIG_DFL);
	EQ(flags(sig), SA_RESTART);
	CHECK(raise_once(sig, true) && raise_once(sig, true));
	CHECK(signal(sig, other) == handler);
	CHECK(bsd_signal(sig, handler) == other);
	CHECK(ssignal(sig, handler) == handler);
	CHECK(raise_once(sig, true));
	CHECK(signal(sig, SIG_ERR) == SIG_ERR && errno == EINVAL);

	OK(siginterrupt(sig, 1));
	EQ(flags(sig), 0);
	CHECK(signal(sig, handler) == handler);
	EQ(flags(sig), 0);
	OK(siginterrupt(sig, 0));
	EQ(flags(sig), SA_RESTART);

	CHECK(sysv_signal(sig, handler) == handler);
	EQ(flags(sig), (int)(SA_RESETHAND | SA_NODEFER));
	CHECK(raise_once(sig, false));
	CHECK(__sysv_signal(sig, other) == SIG_DFL); /* it was for one signal */

	CHECK(sigset(sig, handler) == other);
	EQ(flags(sig), 0);
	CHECK(raise_once(sig, true));
	CHECK(sigset(sig, SIG_HOLD) == handler);
	CHECK(!raise_once(sig, true));
	got = 0;
	CHECK(sigset(sig, handler) == SIG_HOLD); /* which lets the one come that waits */
	EQ(got, 1);

	OK(sigignore(sig));
	CHECK(!raise_once(sig, true));
	OK(sigaction(sig, &a, &old));
	CHECK(old.sa_handler == SIG_IGN);
	CHECK(raise_once(sig, false));
	EQ(last.si_signo, sig);
	EQ(last.si_code, SI_TKILL);
	OK(__sigaction(sig, NULL, &old));
	CHECK(old.sa_sigaction == informed);
	EQ(flags(sig), SA_SIGINFO | SA_NODEFER);

	a.sa_flags |= SA_ONSTACK; /* what the program wants itself, it is told */
	sigaddset(&a.sa_mask, SIGUSR2);
	OK(sigaction(sig, &a, NULL));
	EQ(flags(sig), SA_SIGINFO | SA_NODEFER | SA_ONSTACK);
	OK(sigaction(sig, NULL, &old));
	EQ(sigismember(&old.sa_mask, SIGUSR2), 1);
	CHECK(signal(sig, SIG_DFL) == handler || true);
	EQ(flags(sig), SA_RESTART);
}

static int fault(void)
{
	*(volatile int *)16 = 1;
	return 0;
}

static int fault_handled(void)
{
	struct sigaction a = {.sa_sigaction = informed, .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND)};

	OK(sigaction(SIGSEGV, &a, NULL));
	*(volatile int *)16 = 1; /* handled, and comes again, and kills */
	return 0;
}

static void *repaired;

static void repair(int sig, siginfo_t *info, void *context)
{
	(void)context;
	handler(sig);
	if (info->si_addr != repaired || mprotect(repaired, 4096, PROT_READ | PROT_WRITE))
		_exit(9);
}

/* A program that handles its own faults continues. */
static int fault_repaired(void)
{
	struct sigaction a = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};

	CHECK((repaired = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	OK(sigaction(SIGSEGV, &a, NULL));
	got = 0;
	*(volatile int *)repaired = 5;
	EQ(*(volatile int *)repaired, 5);
	EQ(got, 1);
	return 3;
}

static int divide(void)
{
	raise(SIGFPE);
	return 0;
}

static int write_to_nobody(void)
{
	int fds[2];

	OK(pipe(fds));
	close(fds[0]);
	FAILS((int)write(fds[1], "x", 1), EPIPE);
	return 4;
}

static int ignore_and_write(void)
{
	CHECK(signal(SIGPIPE, SIG_IGN) == SIG_DFL);
	return write_to_nobody();
}

static int raise_runtimes(void)
{
	raise(SIGRTMIN);
	return 0;
}

/* In a process that has the engine, and has asked for nothing, signals do what they always do. */
static int (*wanted)(void);

static int with_engine(void)
{
	use_verbs();
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction a;

		if (sig == 32 || sig == 33) /* the C library's */
			continue;
		OK(sigaction(sig, NULL, &a));
		CHECK(a.sa_handler == SIG_DFL || sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE); /* a sanitizer's */
		if (a.sa_handler != SIG_DFL)
			signal(sig, SIG_DFL);
	}
	return wanted();
}

static pid_t run(int (*function)(void))
{
	wanted = function;
	return child(with_engine);
}

/* A signal that all threads of the program block waits for whoever asks for it. */
static int wait_for_blocked(void)
{
	const int waited[] = {SIGUSR1, SIGCHLD, SIGPROF, SIGSTKFLT, SIGURG};
	const struct timespec patience = {20, 0};
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (size_t i = 0; i < COUNT(waited); i++)
		sigaddset(&set, waited[i]);
	OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	use_verbs();
	for (int i = 0; i < 100; i++) {
		OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}));
		use_verbs();
		EQ(sigtimedwait(&set, &info, &patience), SIGRTMIN);
		EQ(info.si_value.sival_int, i);
		EQ(info.si_code, SI_QUEUE);
	}
	for (size_t i = 0; i < COUNT(waited); i++) {
		OK(kill(getpid(), waited[i]));
		use_verbs();
		EQ(sigtimedwait(&set, &info, &patience), waited[i]);
	}
	return 5;
}

/* SIGURG is the program's: no other comes. */
static void urgent(void)
{
	struct pair p;

	CHECK(signal(SIGURG, handler) == SIG_DFL);
	got = 0;
	pair_open(&p, &(struct plan){0});
	traffic(&p, 2000);
	pair_close(&p);
	EQ(got, 0);
	CHECK(raise_once(SIGURG, true));
}

int main(void)
{
	killed(run(fault), SIGSEGV);
	killed(run(fault_handled), SIGSEGV);
	ends(run(fault_repaired), 3);
	killed(run(divide), SIGFPE);
	killed(run(write_to_nobody), SIGPIPE);
	ends(run(ignore_and_write), 4);
	killed(run(raise_runtimes), SIGRTMIN);
	ends(child(wait_for_blocked), 5);

	const int each[] = {SIGUSR1, SIGRTMIN, SIGPIPE, SIGFPE, SIGBUS, SIGSEGV};

	for (size_t i = 0; i < COUNT(each); i++)
		CHECK(signal(each[i], SIG_DFL) != SIG_ERR); /* a sanitizer has handlers */
	use_verbs();
	urgent();
	for (size_t i = 0; i < COUNT(each); i++)
		each_way(each[i]);
	return 0;
}
