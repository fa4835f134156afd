/*
 * Loads the engine when a program first needs it, and keeps it out of forked children.
 *
 * The engine is a Go runtime with threads of its own, which a fork does not copy: in a
 * child that was forked after loading, nothing here calls it any more. Such a child loads
 * an engine of its own when it needs one: a copy of the file, for the dynamic linker would
 * give it the one that is there.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"
#include "load.h"

#define ENGINE_FILE "liburnic-engine.so"

extern char **environ;

__thread const struct urnic_engine *urnic_here;

static const struct urnic_engine *live; /* the table, when the engine is open; atomic */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct urnic_engine table;
static uint32_t leave_patience; /* ms: how long the engine takes at most when the process exits; set before live */
static int failed;            /* why it can't be loaded: an errno, which does not change */
static uint32_t generation;   /* how many engines lie behind this process's, in those that it was forked from */
static const char *loading;   /* the file that is being loaded; its ranges are not known yet */
static uintptr_t text[2];     /* where the engine's code begins and ends */
static uintptr_t data[2];     /* and its variables */

/*
 * Tells what went wrong: errors are told at every level of URNIC_LOG. To write is a
 * cancellation point, and the caller may hold lock: a thread is not cancelled here.
 */
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	char line[PATH_MAX + 512];
	va_list args;
	int n, cancel;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (n > 0)
		dprintf(STDERR_FILENO, "liburnic: %s\n", line);
	pthread_setcancelstate(cancel, NULL);
}

/*
 * The variables that settings are in. If the process has more rights than its user (it is
 * set-uid or set-gid, or has capabilities of its file), there are none: the environment is
 * the user's, and settings name files to load and to write.
 */
static char **variables(void)
{
	static char *none[] = {NULL};

	return getauxval(AT_SECURE) || !environ ? none : environ;
}

static const char *setting(const char *name)
{
	size_t n = strlen(name);

	for (char **v = variables(); *v; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=' && (*v)[n + 1])
			return *v + n + 1;
	return NULL;
}

/* Appends the engine's name to the directory of a file. */
static bool beside(const char *file, char out[PATH_MAX])
{
	const char *slash = strrchr(file, '/');
	int dir = slash ? (int)(slash - file) + 1 : 0;
	int n = snprintf(out, PATH_MAX, "%.*s%s", dir, file, ENGINE_FILE);

	return n > 0 && n < PATH_MAX && access(out, R_OK) == 0;
}

/*
 * Finds the engine: URNIC_ENGINE, or beside this library, by the name that it was loaded
 * by, or by that of the file which that links to.
 */
static bool find(char out[PATH_MAX])
{
	const char *given = setting("URNIC_ENGINE");
	char real[PATH_MAX];
	Dl_info self;

	if (given) {
		snprintf(out, PATH_MAX, "%s", given);
		return true;
	}
	if (!dladdr((void *)find, &self) || !self.dli_fname) {
		complain("its own file is not known: set URNIC_ENGINE to the path of %s", ENGINE_FILE);
		return false;
	}
	if (beside(self.dli_fname, out) || (realpath(self.dli_fname, real) && beside(real, out)))
		return true;
	complain("no %s beside %s: install both, or set URNIC_ENGINE to its path", ENGINE_FILE, self.dli_fname);
	return false;
}

/* Notes where the library that holds an address has its code and its variables. */
static int ranges(struct dl_phdr_info *info, size_t size, void *address)
{
	bool found = false;

	(void)size;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < info->dlpi_phnum; i++) {
			const ElfW(Phdr) *p = &info->dlpi_phdr[i];
			uintptr_t low = info->dlpi_addr + p->p_vaddr, high = low + p->p_memsz;
			uintptr_t *range = p->p_flags & PF_X ? text : data;

			if (p->p_type != PT_LOAD)
				continue;
			if (low <= (uintptr_t)address && (uintptr_t)address < high)
				found = true;
			if (pass == 0 || !(p->p_flags & (PF_X | PF_W)))
				continue;
			if (range[0] == 0 || low < range[0])
				range[0] = low;
			if (high > range[1])
				range[1] = high;
		}
		if (!found)
			return 0;
	}
	return 1;
}

bool urnic_in_engine(uintptr_t address)
{
	const char *path = __atomic_load_n(&loading, __ATOMIC_ACQUIRE);
	Dl_info in;

	if (path)
		return dladdr((void *)address, &in) && in.dli_fname && strcmp(in.dli_fname, path) == 0;
	return text[0] <= address && address < text[1];
}

/* Opens the engine: hands over the settings of the environment. */
static int open_engine(void)
{
	size_t n = 0;
	int err;

	for (char **v = variables(); *v; v++)
		n += strncmp(*v, "URNIC_", 6) == 0;

	const char **settings = calloc(n + 1, sizeof(*settings));
	if (!settings)
		return ENOMEM;
	n = 0;
	for (char **v = variables(); *v; v++)
		if (strncmp(*v, "URNIC_", 6) == 0)
			settings[n++] = *v;

	const struct urnic_setup setup = { .version = URNIC_ENGINE_VERSION, .generation = generation, .settings = settings };
	err = table.open(&setup);
	free(settings);
	if (!err)
		leave_patience = table.leave_patience();
	return err;
}

/* Copies a file into memory, and returns the copy's descriptor, or -1 with errno. */
static int copy(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create(ENGINE_FILE, MFD_CLOEXEC), err;
	struct stat file;
	ssize_t n = -1;

	if (from >= 0 && to >= 0 && !fstat(from, &file))
		for (off_t at = 0; at < file.st_size && (n = sendfile(to, from, &at, (size_t)(file.st_size - at))) > 0;)
			;
	err = errno;
	if (from >= 0)
		close(from);
	if (to >= 0 && n <= 0) {
		close(to);
		to = -1;
	}
	errno = err;
	return to;
}

/* Makes path that of a copy of the file, under a name that no library has had. Returns a descriptor or -1. */
static int another(char path[PATH_MAX])
{
	int fd = copy(path), at;

	if (fd < 0)
		return -1;
	at = snprintf(path, PATH_MAX, "/proc/self/fd/");
	for (uint32_t i = 1; i < generation; i++)
		at += snprintf(path + at, PATH_MAX - (size_t)at, "./");
	snprintf(path + at, PATH_MAX - (size_t)at, "%d", fd);
	return fd;
}

/* Loads the engine, and returns 0 or why it can't, as an errno. */
static int load(void)
{
	char path[PATH_MAX];
	int err, fd = -1;
	void *so;

	if (!find(path))
		return ENOENT;
	if (generation > URNIC_MAX_GENERATION || (generation && (fd = another(path)) < 0)) {
		complain("process %d was forked after its parent had used verbs, and can't have an engine of its own: %s",
			 (int)getpid(), generation > URNIC_MAX_GENERATION ? "there are too many above it" : strerror(errno));
		return ENODEV;
	}
	__atomic_store_n(&loading, path, __ATOMIC_RELEASE);
	so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (fd >= 0)
		close(fd);
	if (!so) {
		complain("%s", dlerror());
		return ELIBACC;
	}
#define LOOK_UP(result, name, params)                                                             \
	*(void **)&table.name = dlsym(so, "urnic_engine_" #name);                                 \
	if (!table.name) {                                                                        \
		complain("%s has no urnic_engine_" #name ": it is of another version", path);     \
		return ELIBBAD;                                                                   \
	}
	URNIC_ENGINE(LOOK_UP)
#undef LOOK_UP
	dl_iterate_phdr(ranges, *(void **)&table.open);
	__atomic_store_n(&loading, NULL, __ATOMIC_RELEASE);
	err = open_engine();
	if (err == ELIBBAD)
		complain("%s is of another version than this library: install both of one build, by make liburnic install", path);
	else if (err && err != EINVAL) /* the engine has said itself what it finds invalid */
		complain("%s can't be used: %s", path, strerror(err));
	return err;
}

/*
 * Loads with all signals blocked, for the threads of the Go runtime inherit that: a
 * signal is then a thread's of the program. What the thread is cancelled for waits.
 */
static void load_quietly(void)
{
	sigset_t all, before;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	urnic_altstack_init();
	urnic_altstack();
	urnic_signals_before();
	failed = load();
	loading = NULL;
	urnic_signals_after(!failed);
	if (!failed)
		__atomic_store_n(&live, &table, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancel, NULL);
}

/*
 * Binds the thread to the runtime, which then unblocks signals of its own choice, and
 * gives it back its mask. Later calls leave that alone.
 */
static void enter(const struct urnic_engine *e)
{
	char line[64];
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	snprintf(line, sizeof(line), "thread %d enters", (int)gettid());
	urnic_here = e;
	urnic_altstack();
	e->log(4, line);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* The engine for whoever has none: loads it if nobody has. */
static const struct urnic_engine *first_call(void)
{
	const struct urnic_engine *e;

	pthread_mutex_lock(&lock);
	if (!failed && !live)
		load_quietly();
	e = live;
	pthread_mutex_unlock(&lock);
	if (!e)
		errno = failed;
	return e;
}

const struct urnic_engine *urnic_engine(void)
{
	const struct urnic_engine *e = urnic_here;

	if (e)
		return e;
	e = __atomic_load_n(&live, __ATOMIC_ACQUIRE);
	if (!e)
		e = first_call();
	if (e)
		enter(e);
	return e;
}

const struct urnic_engine *urnic_loaded(void)
{
	return __atomic_load_n(&live, __ATOMIC_ACQUIRE);
}

uint32_t urnic_leave_patience(void)
{
	return leave_patience;
}

uint32_t urnic_generation(void)
{
	return generation;
}

/* A fork waits until nobody loads. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	urnic_signals_before_fork();
}

static void after_fork(void)
{
	urnic_signals_after_fork();
	pthread_mutex_unlock(&lock);
}

/* The child does not have the engine of its parent. */
static void in_child(void)
{
	bool had = live;

	live = urnic_here = NULL;
	urnic_signals_in_child();
	pthread_mutex_unlock(&lock);
	if (had) {
		generation++;
		urnic_close_inherited(data[0], data[1]);
		text[0] = text[1] = data[0] = data[1] = 0;
	}
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

int urnic_unsupported(const char *what)
{
	const struct urnic_engine *e = urnic_engine();

	if (e)
		e->log(1, what); /* which tells each line once */
	return EOPNOTSUPP;
}
