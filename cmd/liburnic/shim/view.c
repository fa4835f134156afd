/*
 * The view of sysfs: which paths it has, and where they lead.
 */
#include "view.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>

#define VERBS_MAJOR 231
#define VERBS_MINOR 192 /* of uverbs0 */
#define MISC_MAJOR 10
#define CM_MINOR 122 /* of rdma_cm: Linux takes one that is free */

/* The directory of the view. Written once, and then read: by signal handlers, too. */
static char root[PATH_MAX];
static size_t root_length; /* 0: there is no view */
static int state;          /* atomic */
enum { UNKNOWN, LOOKING, KNOWN };

/* A program that has more rights than its user has the host's sysfs, whatever the user has set. */
bool urnic_view(void)
{
	int unknown = UNKNOWN;
	const char *set;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == KNOWN)
		return root_length;
	if (!__atomic_compare_exchange_n(&state, &unknown, LOOKING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		return unknown == KNOWN && root_length;
	set = getauxval(AT_SECURE) ? NULL : getenv("URNIC_SYSFS");
	if (set && set[0] == '/' && strlen(set) < sizeof(root)) {
		strcpy(root, set);
		root_length = strlen(set);
	}
	__atomic_store_n(&state, KNOWN, __ATOMIC_RELEASE);
	return root_length;
}

__attribute__((constructor)) static void look_at_environment(void)
{
	urnic_view();
}

/* A part of a path, between slashes. */
struct part {
	const char *at;
	size_t length;
};

/* Takes the next part off a path. It is empty at the end. Parts "." are left out. */
static struct part take(const char **path)
{
	struct part p = {*path, 0};

	for (;;) {
		while (*p.at == '/')
			p.at++;
		p.length = strcspn(p.at, "/");
		if (p.length != 1 || p.at[0] != '.')
			break;
		p.at++;
	}
	*path = p.at + p.length;
	return p;
}

static bool is(struct part p, const char *name)
{
	return p.length == strlen(name) && memcmp(p.at, name, p.length) == 0;
}

/* Whether what is left of a path stays below where it begins. */
static bool stays(const char *path)
{
	int depth = 0;

	for (struct part p = take(&path); p.length; p = take(&path))
		if ((depth += is(p, "..") ? -1 : 1) < 0)
			return false;
	return true;
}

/* Where a path is in the view. */
struct place {
	const char *dir;       /* from the root of the view */
	struct part interface; /* between dir and rest, with below */
	const char *below;
	const char *rest;
	bool found, device;
};

static struct place find(const char *path)
{
	static const char *const classes[] = {"infiniband", "infiniband_verbs", "infiniband_mad"};
	static const char *const dirs[] = {"/class/infiniband", "/class/infiniband_verbs", "/class/infiniband_mad"};
	struct place where = {.below = ""};
	struct part first = take(&path), second = take(&path), third;

	if (is(first, "dev") && is(second, "infiniband")) {
		where.dir = "/dev/infiniband";
		where.device = true;
	} else if (is(first, "sys") && is(second, "class")) {
		third = take(&path);
		for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
			if (is(third, classes[i]))
				where.dir = dirs[i];
		if (is(third, "net")) {
			where.interface = take(&path);
			if (is(take(&path), "device") && is(take(&path), "infiniband") && !is(where.interface, "..")) {
				where.dir = "/class/net/";
				where.below = "/device/infiniband";
			}
		}
	}
	where.rest = path;
	where.found = where.dir && stays(path);
	return where;
}

size_t urnic_view_size(const char *path)
{
	struct place where = find(path);
	size_t n;

	if (!where.found || !urnic_view())
		return 0;
	n = root_length + strlen(where.dir) + where.interface.length + strlen(where.below) + strlen(where.rest) + 1;
	return n > PATH_MAX ? 0 : n;
}

char *urnic_view_path(const char *path, char *to)
{
	struct place where = find(path);
	char *end = stpcpy(stpcpy(to, root), where.dir);

	end = mempcpy(end, where.interface.at ? where.interface.at : "", where.interface.length);
	strcpy(stpcpy(end, where.below), where.rest);
	return to;
}

dev_t urnic_view_device(const char *path)
{
	struct place where = find(path);
	struct part name = take(&where.rest);
	unsigned int number = 0;

	if (!where.device || !name.length || take(&where.rest).length || is(name, ".."))
		return 0;
	if (name.length < 7 || memcmp(name.at, "uverbs", 6) != 0)
		return makedev(MISC_MAJOR, CM_MINOR);
	for (size_t i = 6; i < name.length && i < 9; i++)
		number = 10 * number + (unsigned int)(name.at[i] - '0');
	return makedev(VERBS_MAJOR, VERBS_MINOR + number);
}

/* The version of the C library's oldest functions, which dlsym does not find if they are for old programs only. */
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

/* A function of another library than this one. */
static void *others(void *f)
{
	Dl_info in, self;

	return f && dladdr(f, &in) && dladdr((void *)root, &self) && in.dli_fbase != self.dli_fbase ? f : NULL;
}

/* The C library comes before this one, and not next, in some programs of mode replace: see set_kernel. */
void *urnic_view_next(void **known, const char *name)
{
	void *f = __atomic_load_n(known, __ATOMIC_RELAXED);
	int before = errno;

	if (f)
		return f;
	f = dlsym(RTLD_NEXT, name);
	if (!f)
		f = dlvsym(RTLD_NEXT, name, OLDEST);
	if (!f)
		f = others(dlsym(RTLD_DEFAULT, name));
	if (!f)
		f = others(dlvsym(RTLD_DEFAULT, name, OLDEST));
	__atomic_store_n(known, f, __ATOMIC_RELAXED);
	errno = before;
	return f;
}
