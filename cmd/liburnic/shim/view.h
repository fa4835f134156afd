/*
 * What the view's files share.
 *
 * URNIC_SYSFS names a directory with the layout of /sys, in which `urnic run` has written what
 * there would be of the device. Calls with a path below /sys/class/infiniband and its like go
 * there: the functions here have the names of the C library's, and give it another path. All
 * other paths they hand on as they are, after a look at the first letters.
 *
 * These files need nothing of the others: liburnic-sysfs.so has them alone, for programs in mode
 * replace that are not linked to libibverbs.
 */
#ifndef URNIC_VIEW_H
#define URNIC_VIEW_H

/* The checking variants have the names of what they check. */
#undef _FORTIFY_SOURCE

#include <alloca.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define URNIC_EXPORT __attribute__((visibility("default")))

/* view.c: whether there is a view. */
bool urnic_view(void);

/* view.c: how many bytes urnic_view_path needs for a path that the view has; 0 for all others. */
size_t urnic_view_size(const char *path);

/* view.c: writes the path of the view's own file. Returns to. */
char *urnic_view_path(const char *path, char *to);

/* view.c: the number of the device that a path below /dev/infiniband stands for; else 0. */
dev_t urnic_view_device(const char *path);

/* view.c: the C library's function of a name, which it looks up unless it is known. NULL: it has none. */
void *urnic_view_next(void **known, const char *name);

/* Most paths are told by two letters. What is no pointer is left to the kernel, which says EFAULT. */
static inline size_t urnic_view_look(const char *path)
{
	__asm__("" : "+r"(path)); /* the compiler takes it for granted that it is not NULL */
	if ((uintptr_t)path < 4096 || path[0] != '/' || (path[1] != 's' && path[1] != 'd' && path[1] != '/'))
		return 0;
	return urnic_view_size(path);
}

/* The file that a path stands for: the path itself, or one of the view, on the stack of the caller. */
#define SEEN(path)                                                                                                     \
	({                                                                                                             \
		const char *path_ = (path);                                                                            \
		size_t size_ = urnic_view_look(path_);                                                                 \
		size_ ? urnic_view_path(path_, alloca(size_)) : path_;                                                 \
	})

/*
 * FUNCTIONS is a file's list of what it stands in for. They are looked up when the library is
 * loaded, for dlsym is not for signal handlers; what comes sooner looks them up itself.
 */
#define VIEW_NEXT(name) static void *next_##name;
#define VIEW_FIND(name) urnic_view_next(&next_##name, #name);
#define VIEW_FUNCTIONS(list)                                                                                           \
	list(VIEW_NEXT) __attribute__((constructor)) static void find_next(void)                                       \
	{                                                                                                              \
		list(VIEW_FIND)                                                                                        \
	}

/* Calls the C library's function of a name. */
#define NEXT(name) ((__typeof__(&name))urnic_view_next(&next_##name, #name))

#endif
