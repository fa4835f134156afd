/*
 * The view of sysfs: opening files.
 */
#include "view.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

#define FUNCTIONS(X)                                                                                                   \
	X(open) X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2) X(__openat64_2) X(fopen)       \
	X(fopen64) X(access)
VIEW_FUNCTIONS(FUNCTIONS)

/* Whether a file may be made. O_TMPFILE has the bit of O_DIRECTORY. */
#define MAKES(flags) (((flags) & O_CREAT) || ((flags) & __O_TMPFILE) == __O_TMPFILE)

/* The argument that is there only then. */
#define MODE(flags, mode)                                                                                              \
	mode_t mode = 0;                                                                                               \
	if (MAKES(flags)) {                                                                       \
		va_list args;                                                                                          \
		va_start(args, flags);                                                                                 \
		mode = va_arg(args, mode_t);                                                                           \
		va_end(args);                                                                                          \
	}

#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY || ((flags) & O_TRUNC) || MAKES(flags))

/*
 * Whether a file of the view can't be opened so, with errno. There is no device of the kernel behind
 * the files of /dev/infiniband: they can be seen, and not opened. ENXIO is what a device file says that
 * has no device. The other files are for reading, by root too, for other programs may have the same view.
 */
static bool refused(const char *path, const char *seen, bool writes, bool makes)
{
	bool there;

	if (path == seen)
		return false;
	there = NEXT(access)(seen, F_OK) == 0;
	if (there && urnic_view_device(path))
		errno = ENXIO;
	else if (makes || (writes && there))
		errno = EACCES;
	else
		return false;
	return true;
}

static bool refused_flags(const char *path, const char *seen, int flags)
{
	return refused(path, seen, WRITES(flags), MAKES(flags));
}

static bool refused_mode(const char *path, const char *seen, const char *mode)
{
	return path != seen && refused(path, seen, mode[0] != 'r' || strchr(mode, '+'), mode[0] != 'r');
}

URNIC_EXPORT int open(const char *path, int flags, ...)
{
	const char *seen = SEEN(path);

	MODE(flags, mode)
	return refused_flags(path, seen, flags) ? -1 : NEXT(open)(seen, flags, mode);
}

URNIC_EXPORT int open64(const char *path, int flags, ...)
{
	const char *seen = SEEN(path);

	MODE(flags, mode)
	return refused_flags(path, seen, flags) ? -1 : NEXT(open64)(seen, flags, mode);
}

URNIC_EXPORT int openat(int dir, const char *path, int flags, ...)
{
	const char *seen = SEEN(path);

	MODE(flags, mode)
	return refused_flags(path, seen, flags) ? -1 : NEXT(openat)(dir, seen, flags, mode);
}

URNIC_EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	const char *seen = SEEN(path);

	MODE(flags, mode)
	return refused_flags(path, seen, flags) ? -1 : NEXT(openat64)(dir, seen, flags, mode);
}

URNIC_EXPORT int __open_2(const char *path, int flags)
{
	const char *seen = SEEN(path);

	return refused_flags(path, seen, flags) ? -1 : NEXT(__open_2)(seen, flags);
}

URNIC_EXPORT int __open64_2(const char *path, int flags)
{
	const char *seen = SEEN(path);

	return refused_flags(path, seen, flags) ? -1 : NEXT(__open64_2)(seen, flags);
}

URNIC_EXPORT int __openat_2(int dir, const char *path, int flags)
{
	const char *seen = SEEN(path);

	return refused_flags(path, seen, flags) ? -1 : NEXT(__openat_2)(dir, seen, flags);
}

URNIC_EXPORT int __openat64_2(int dir, const char *path, int flags)
{
	const char *seen = SEEN(path);

	return refused_flags(path, seen, flags) ? -1 : NEXT(__openat64_2)(dir, seen, flags);
}

URNIC_EXPORT FILE *fopen(const char *path, const char *mode)
{
	const char *seen = SEEN(path);

	return refused_mode(path, seen, mode) ? NULL : NEXT(fopen)(seen, mode);
}

URNIC_EXPORT FILE *fopen64(const char *path, const char *mode)
{
	const char *seen = SEEN(path);

	return refused_mode(path, seen, mode) ? NULL : NEXT(fopen64)(seen, mode);
}
