/*
 * The view of sysfs: where links lead.
 *
 * The names that programs get of files in it are those of its own directory.
 */
#include "view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t size, size_t room);
char *__realpath_chk(const char *path, char *out, size_t room);

#define FUNCTIONS(X)                                                                                                   \
	X(readlink) X(readlinkat) X(__readlink_chk) X(__readlinkat_chk) X(realpath) X(__realpath_chk)                  \
	X(canonicalize_file_name)
VIEW_FUNCTIONS(FUNCTIONS)

URNIC_EXPORT ssize_t readlink(const char *path, char *out, size_t size)
{
	return NEXT(readlink)(SEEN(path), out, size);
}

URNIC_EXPORT ssize_t readlinkat(int dir, const char *path, char *out, size_t size)
{
	return NEXT(readlinkat)(dir, SEEN(path), out, size);
}

URNIC_EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room)
{
	return NEXT(__readlink_chk)(SEEN(path), out, size, room);
}

URNIC_EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t size, size_t room)
{
	return NEXT(__readlinkat_chk)(dir, SEEN(path), out, size, room);
}

URNIC_EXPORT char *realpath(const char *path, char *out)
{
	return NEXT(realpath)(SEEN(path), out);
}

URNIC_EXPORT char *__realpath_chk(const char *path, char *out, size_t room)
{
	return NEXT(__realpath_chk)(SEEN(path), out, room);
}

URNIC_EXPORT char *canonicalize_file_name(const char *path)
{
	return NEXT(canonicalize_file_name)(SEEN(path));
}
