/*
 * Lets the program and the engine's Go runtime handle signals side by side.
 *
 * A thread of the program that calls the engine runs Go code on small stacks, so once
 * the engine is loaded, handlers run on the thread's alternate stack, as if they had been
 * installed with SA_ONSTACK. What a program learns of its handlers does not change.
 *
 * The runtime takes some signals for itself. SIGURG is given back: the engine is built
 * not to need it (cmd/liburnic/build). The others come to dispatch, which hands them to
 * the runtime if they are its own, and else does what the program has asked for.
 */
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "shim.h"
#include "load.h"

static const int taken[] = { SIGSEGV, SIGBUS, SIGFPE, SIGPIPE };

static bool lock_bit;                /* held with all signals blocked, so handlers can wait for it */
static pid_t tracked;                /* the process whose handlers are tracked here; 0: none yet */
static bool loading;                 /* the runtime is at work: taken signals are its own for now */
static bool is_taken[NSIG];
static bool added[NSIG];             /* SA_ONSTACK is ours, not the program's */
static struct sigaction program[NSIG]; /* of taken signals: what the program has set */
static struct sigaction runtime[NSIG];
static bool interrupts[NSIG];        /* siginterrupt: signal's handlers interrupt system calls */

typedef int (*sigaction_t)(int, const struct sigaction *, struct sigaction *);

/*
 * The C library's sigaction. It comes before this library, and not next, in a program that
 * is linked to us only by way of another library.
 */
static int set_kernel(int sig, const struct sigaction *act, struct sigaction *old)
{
	static sigaction_t next;

	if (!next)
		next = (sigaction_t)dlsym(RTLD_NEXT, "sigaction");
	if (!next)
		next = (sigaction_t)dlsym(RTLD_DEFAULT, "sigaction");
	return next(sig, act, old);
}

__attribute__((constructor)) static void find_sigaction(void)
{
	struct sigaction old; /* later calls come from handlers, where dlsym is not allowed */

	set_kernel(SIGURG, NULL, &old);
}

static void lock_table(sigset_t *mask)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, mask);
	while (__atomic_test_and_set(&lock_bit, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock_table(const sigset_t *mask)
{
	__atomic_clear(&lock_bit, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

static bool is_function(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

/* Where the interrupted code was. */
static uintptr_t interrupted(const void *context)
{
	const ucontext_t *u = context;

#if defined(__x86_64__)
	return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)u->uc_mcontext.pc;
#else
#error "the interrupted address is not known for this processor"
#endif
}

/* Calls the runtime's handler, which wants no other signal meanwhile. */
static void to_runtime(int sig, siginfo_t *info, void *context)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	runtime[sig].sa_sigaction(sig, info, context);
}

/* Does what the system does by default: ends the process, when the handler returns. */
static void by_default(int sig, const siginfo_t *info)
{
	struct sigaction none = { .sa_handler = SIG_DFL };

	set_kernel(sig, &none, NULL);
	if (info->si_code <= 0 || sig == SIGPIPE)
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), sig);
	/* Else it is a fault, which comes again. */
}

/* What the program has set for a taken signal; a handler that is for once is then gone. */
static struct sigaction fetch(int sig)
{
	struct sigaction a;
	sigset_t mask;

	lock_table(&mask);
	a = program[sig];
	if (is_function(&a) && a.sa_flags & (int)SA_RESETHAND)
		program[sig].sa_handler = SIG_DFL;
	unlock_table(&mask);
	return a;
}

/* Handles the taken signals. */
static void dispatch(int sig, siginfo_t *info, void *context)
{
	bool inside = urnic_in_engine(interrupted(context));
	struct sigaction a;

	if (inside && sig == SIGPIPE)
		return; /* the engine sees EPIPE */
	if (inside && info->si_code > 0) {
		to_runtime(sig, info, context);
		return;
	}
	a = fetch(sig);
	if (is_function(&a))
		a.sa_sigaction(sig, info, context); /* a handler of one parameter ignores two */
	else if (a.sa_handler == SIG_DFL || info->si_code > 0)
		by_default(sig, info);
}

/* Tells the kernel of what the program has set for a taken signal. */
static int install(int sig)
{
	struct sigaction a = program[sig];

	if (a.sa_handler != SIG_IGN) { /* what is ignored stays so in programs that this one executes */
		a.sa_flags &= ~(int)SA_RESETHAND;
		a.sa_flags |= SA_SIGINFO | SA_ONSTACK | (is_function(&a) ? 0 : SA_RESTART);
		a.sa_sigaction = dispatch;
	}
	return set_kernel(sig, &a, NULL);
}

/* Sets and returns a handler, in a process whose handlers are tracked. */
static int set_tracked(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction a, before;
	bool add = false;

	if (is_taken[sig]) {
		before = program[sig];
		if (act) {
			program[sig] = *act;
			if (!loading)
				install(sig);
		}
	} else {
		if (act) {
			a = *act;
			add = is_function(act) && !(act->sa_flags & SA_ONSTACK);
			a.sa_flags |= add ? SA_ONSTACK : 0;
			add |= loading && added[sig]; /* the runtime has set what is set */
		}
		if (set_kernel(sig, act ? &a : NULL, &before))
			return -1;
		before.sa_flags &= added[sig] ? ~SA_ONSTACK : ~0;
		if (act)
			added[sig] = add;
	}
	if (old)
		*old = before;
	return 0;
}

/* In a child of vfork, which shares its parent's memory, the tables are the parent's. */
static bool is_tracked(void)
{
	pid_t pid = __atomic_load_n(&tracked, __ATOMIC_ACQUIRE);

	return pid != 0 && pid == getpid();
}

URNIC_EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	sigset_t mask;
	int ret;

	if (sig <= 0 || sig >= NSIG || !is_tracked())
		return set_kernel(sig, act, old);
	if (act && is_function(act) && urnic_in_engine((uintptr_t)act->sa_handler))
		return set_kernel(sig, act, old); /* the runtime calls the C library's sigaction, so us */
	lock_table(&mask);
	ret = tracked ? set_tracked(sig, act, old) : set_kernel(sig, act, old);
	unlock_table(&mask);
	return ret;
}

/* The other ways to set a handler do as the C library's do. */

static __sighandler_t set_handler(int sig, __sighandler_t h, int flags, bool masked)
{
	struct sigaction a = { .sa_handler = h, .sa_flags = flags }, old;

	if (h == SIG_ERR || sig <= 0 || sig >= NSIG) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (masked)
		sigaddset(&a.sa_mask, sig);
	return sigaction(sig, &a, &old) ? SIG_ERR : old.sa_handler;
}

URNIC_EXPORT __sighandler_t signal(int sig, __sighandler_t h)
{
	return set_handler(sig, h, sig > 0 && sig < NSIG && interrupts[sig] ? 0 : SA_RESTART, true);
}

URNIC_EXPORT __sighandler_t sysv_signal(int sig, __sighandler_t h)
{
	return set_handler(sig, h, (int)SA_RESETHAND | SA_NODEFER, false);
}

#define ALIAS(of) __attribute__((alias(of), visibility("default"), nothrow, leaf))
int __sigaction(int sig, const struct sigaction *act, struct sigaction *old) ALIAS("sigaction");
__sighandler_t bsd_signal(int sig, __sighandler_t h) ALIAS("signal");
__sighandler_t ssignal(int sig, __sighandler_t h) ALIAS("signal");
__sighandler_t __sysv_signal(int sig, __sighandler_t h) ALIAS("sysv_signal");

URNIC_EXPORT int siginterrupt(int sig, int flag)
{
	struct sigaction a;

	if (sigaction(sig, NULL, &a))
		return -1;
	interrupts[sig] = flag != 0;
	a.sa_flags = flag ? a.sa_flags & ~SA_RESTART : a.sa_flags | SA_RESTART;
	return sigaction(sig, &a, NULL);
}

URNIC_EXPORT int sigignore(int sig)
{
	struct sigaction a = { .sa_handler = SIG_IGN };

	return sigaction(sig, &a, NULL);
}

URNIC_EXPORT __sighandler_t sigset(int sig, __sighandler_t disposition)
{
	__sighandler_t old = SIG_HOLD;
	sigset_t one, before;

	sigemptyset(&one);
	if (disposition == SIG_ERR || sigaddset(&one, sig)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (disposition == SIG_HOLD) {
		struct sigaction a;

		if (sigprocmask(SIG_BLOCK, &one, &before) || sigaction(sig, NULL, &a))
			return SIG_ERR;
		old = a.sa_handler;
	} else {
		old = set_handler(sig, disposition, 0, false);
		if (old == SIG_ERR || sigprocmask(SIG_UNBLOCK, &one, &before))
			return SIG_ERR;
	}
	return sigismember(&before, sig) ? SIG_HOLD : old;
}

void urnic_signals_before(void)
{
	sigset_t mask;

	lock_table(&mask);
	loading = true;
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		is_taken[taken[i]] = true;
		set_kernel(taken[i], NULL, &program[taken[i]]);
	}
	is_taken[SIGURG] = true; /* until it is given back */
	set_kernel(SIGURG, NULL, &program[SIGURG]);
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction a;

		if (!is_taken[sig] && !set_kernel(sig, NULL, &a) && is_function(&a))
			set_tracked(sig, &a, NULL);
	}
	__atomic_store_n(&tracked, getpid(), __ATOMIC_RELEASE);
	unlock_table(&mask);
}

/* Ends the tracking: the kernel gets what the program has set. The table is locked. */
static void untrack(void)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction a;

		if (is_taken[sig]) {
			set_kernel(sig, &program[sig], NULL);
		} else if (added[sig] && !set_kernel(sig, NULL, &a)) {
			a.sa_flags &= ~SA_ONSTACK;
			set_kernel(sig, &a, NULL);
		}
		is_taken[sig] = added[sig] = false;
	}
	tracked = 0;
}

void urnic_signals_after(bool loaded)
{
	sigset_t mask;

	lock_table(&mask);
	loading = false;
	if (!loaded) {
		untrack();
		unlock_table(&mask);
		return;
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		set_kernel(taken[i], NULL, &runtime[taken[i]]);
		install(taken[i]);
	}
	is_taken[SIGURG] = false;
	set_kernel(SIGURG, &program[SIGURG], NULL);
	unlock_table(&mask);
}

/* While a process forks, nobody changes the table. */
static sigset_t fork_mask;

void urnic_signals_before_fork(void)
{
	sigset_t mask;

	lock_table(&mask);
	fork_mask = mask;
}

void urnic_signals_after_fork(void)
{
	sigset_t mask = fork_mask;

	unlock_table(&mask);
}

void urnic_signals_in_child(void)
{
	sigset_t mask = fork_mask;

	if (tracked)
		untrack();
	unlock_table(&mask);
}
