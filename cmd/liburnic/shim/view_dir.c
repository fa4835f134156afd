/*
 * The view of sysfs: directories.
 */
#include "view.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUNCTIONS(X) X(opendir) X(scandir) X(scandir64) X(glob) X(glob64) X(chdir)
VIEW_FUNCTIONS(FUNCTIONS)

URNIC_EXPORT DIR *opendir(const char *path)
{
	return NEXT(opendir)(SEEN(path));
}

URNIC_EXPORT int scandir(const char *path, struct dirent ***out, int (*wanted)(const struct dirent *),
			 int (*compare)(const struct dirent **, const struct dirent **))
{
	return NEXT(scandir)(SEEN(path), out, wanted, compare);
}

URNIC_EXPORT int scandir64(const char *path, struct dirent64 ***out, int (*wanted)(const struct dirent64 *),
			   int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	return NEXT(scandir64)(SEEN(path), out, wanted, compare);
}

/* A program that goes there is in the view's directory, and getcwd says so. */
URNIC_EXPORT int chdir(const char *path)
{
	return NEXT(chdir)(SEEN(path));
}

static void *open_dir(const char *path)
{
	return opendir(path);
}

static void close_dir(void *dir)
{
	closedir(dir);
}

static struct dirent *read_dir(void *dir)
{
	return readdir(dir);
}

static struct dirent64 *read_dir64(void *dir)
{
	return readdir64(dir);
}

/* The pattern stays as it is, so that the names are those that the program knows; the functions
 * that look for files are ours. */
#define GLOB(name, result, reads, lstats, stats)                                                                       \
	URNIC_EXPORT int name(const char *pattern, int flags, int (*failed)(const char *, int), result *out)           \
	{                                                                                                              \
		if (!(flags & GLOB_ALTDIRFUNC) && urnic_view_look(pattern)) {                                          \
			out->gl_opendir = open_dir;                                                                    \
			out->gl_closedir = close_dir;                                                                  \
			out->gl_readdir = reads;                                                                       \
			out->gl_lstat = lstats;                                                                        \
			out->gl_stat = stats;                                                                          \
			flags |= GLOB_ALTDIRFUNC;                                                                      \
		}                                                                                                      \
		return NEXT(name)(pattern, flags, failed, out);                                                        \
	}
GLOB(glob, glob_t, read_dir, lstat, stat)
GLOB(glob64, glob64_t, read_dir64, lstat64, stat64)
