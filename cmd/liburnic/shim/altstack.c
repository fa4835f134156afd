/*
 * Gives threads that call the engine an alternate signal stack, which handlers run on
 * (signals.c). A thread that has one keeps it. The Go runtime would give it one as well,
 * but of a size that is enough for its own handler, not for any.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"
#include "load.h"

#define STACK_SIZE (256 << 10)

/* A thread's, at the upper end of its mapping; below it is a page that nobody can use. */
struct altstack {
	void *map;
	size_t len;
	bool late; /* the destructor was called once */
};

static pthread_key_t key;
static bool have_key;

/*
 * Frees a thread's. Other destructors may still call the engine, and the runtime's own
 * wants a stack: what is set again is destructed in a second round.
 */
static void destroy(void *arg)
{
	struct altstack *a = arg;
	stack_t now;

	if (!a->late) {
		a->late = true;
		if (!pthread_setspecific(key, a))
			return;
	}
	if (!sigaltstack(NULL, &now) && (char *)now.ss_sp - (char *)a->map == (ptrdiff_t)(a->len - STACK_SIZE)) {
		now.ss_flags = SS_DISABLE;
		sigaltstack(&now, NULL);
	}
	munmap(a->map, a->len);
	free(a);
}

void urnic_altstack_init(void)
{
	have_key = have_key || !pthread_key_create(&key, destroy);
}

void urnic_altstack(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct altstack *a;
	stack_t now;

	if (!have_key || sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE))
		return;
	a = calloc(1, sizeof(*a));
	if (!a)
		return;
	a->len = STACK_SIZE + page;
	a->map = mmap(NULL, a->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (a->map == MAP_FAILED) {
		free(a);
		return;
	}
	now = (stack_t){ .ss_sp = (char *)a->map + page, .ss_size = STACK_SIZE };
	if (mprotect(a->map, page, PROT_NONE) || pthread_setspecific(key, a) || sigaltstack(&now, NULL)) {
		pthread_setspecific(key, NULL);
		munmap(a->map, a->len);
		free(a);
	}
}
