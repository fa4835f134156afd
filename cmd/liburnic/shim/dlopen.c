/*
 * Programs that open libibverbs.so.1 or librdmacm.so.1 at run time get this library,
 * though it is preloaded and the distribution's are there.
 */
#include <dlfcn.h>
#include <string.h>

#include "shim.h"

typedef void *(*dlopen_t)(const char *, int);

/* This library's file, for such a name; else the name. One with a path means that file. */
__attribute__((noinline)) static const char *which(const char *file)
{
	static const char *const names[] = {"libibverbs.so.1", "librdmacm.so.1", "libibverbs.so", "librdmacm.so"};

	Dl_info self;

	for (size_t i = 0; file && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(file, names[i]) && dladdr((void *)which, &self) && self.dli_fname)
			return self.dli_fname;
	return file;
}

/*
 * The C library looks at the RUNPATH of whoever calls it, by the return address: so it must
 * not be called from here, but jumped to, as the compiler does with -O2.
 */
URNIC_EXPORT void *dlopen(const char *file, int mode)
{
	static dlopen_t next; /* atomic */
	dlopen_t to = __atomic_load_n(&next, __ATOMIC_RELAXED);

	if (!to) {
		to = (dlopen_t)dlsym(RTLD_NEXT, "dlopen");
		if (!to) /* the C library comes before this one: see set_kernel */
			to = (dlopen_t)dlsym(RTLD_DEFAULT, "dlopen");
		__atomic_store_n(&next, to, __ATOMIC_RELAXED);
	}
	if (!to)
		return NULL; /* dlerror says why */
	return to(which(file), mode);
}
