/*
 * The view of sysfs: what files are, and who may use them.
 */
#include "view.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* What programs call that were built for a C library before 2.33. */
int __xstat(int version, const char *path, struct stat *out);
int __xstat64(int version, const char *path, struct stat64 *out);
int __lxstat(int version, const char *path, struct stat *out);
int __lxstat64(int version, const char *path, struct stat64 *out);
int __fxstatat(int version, int dir, const char *path, struct stat *out, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *out, int flags);

#define FUNCTIONS(X)                                                                                                   \
	X(stat) X(stat64) X(lstat) X(lstat64) X(fstatat) X(fstatat64) X(statx) X(__xstat) X(__xstat64) X(__lxstat)     \
	X(__lxstat64) X(__fxstatat) X(__fxstatat64) X(access) X(faccessat) X(eaccess) X(euidaccess)             \
	X(getxattr) X(lgetxattr) X(listxattr) X(llistxattr)
VIEW_FUNCTIONS(FUNCTIONS)

/* In /dev/infiniband there are character devices that all may read and write. */
#define DEVICE_MODE (S_IFCHR | 0666)

/* Makes the result of a call on a file of the view that stands for a device one of a device. */
#define AS_DEVICE(result, path, seen, out)                                                                             \
	({                                                                                                             \
		int result_ = (result);                                                                                \
		dev_t device_ = (seen) != (path) && result_ == 0 ? urnic_view_device(path) : 0;                        \
		if (device_ && S_ISREG((out)->st_mode)) {                                                              \
			(out)->st_mode = DEVICE_MODE;                                                                  \
			(out)->st_rdev = device_;                                                                      \
			(out)->st_size = 0;                                                                            \
			(out)->st_blocks = 0;                                                                          \
		}                                                                                                      \
		result_;                                                                                               \
	})

#define STAT(name, buffer)                                                                                             \
	URNIC_EXPORT int name(const char *path, struct buffer *out)                                                    \
	{                                                                                                              \
		const char *seen = SEEN(path);                                                                         \
                                                                                                                       \
		return AS_DEVICE(NEXT(name)(seen, out), path, seen, out);                                              \
	}
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

#define FSTATAT(name, buffer)                                                                                          \
	URNIC_EXPORT int name(int dir, const char *path, struct buffer *out, int flags)                                \
	{                                                                                                              \
		const char *seen = SEEN(path);                                                                         \
                                                                                                                       \
		return AS_DEVICE(NEXT(name)(dir, seen, out, flags), path, seen, out);                                  \
	}
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

#define XSTAT(name, buffer)                                                                                            \
	URNIC_EXPORT int name(int version, const char *path, struct buffer *out)                                       \
	{                                                                                                              \
		const char *seen = SEEN(path);                                                                         \
                                                                                                                       \
		return AS_DEVICE(NEXT(name)(version, seen, out), path, seen, out);                                     \
	}
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)

#define FXSTATAT(name, buffer)                                                                                         \
	URNIC_EXPORT int name(int version, int dir, const char *path, struct buffer *out, int flags)                   \
	{                                                                                                              \
		const char *seen = SEEN(path);                                                                         \
                                                                                                                       \
		return AS_DEVICE(NEXT(name)(version, dir, seen, out, flags), path, seen, out);                         \
	}
FXSTATAT(__fxstatat, stat)
FXSTATAT(__fxstatat64, stat64)

URNIC_EXPORT int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *out)
{
	const char *seen = SEEN(path);
	int result = NEXT(statx)(dir, seen, flags, mask, out);
	dev_t device = seen != path && result == 0 ? urnic_view_device(path) : 0;

	if (device && S_ISREG(out->stx_mode)) {
		out->stx_mode = DEVICE_MODE;
		out->stx_rdev_major = major(device);
		out->stx_rdev_minor = minor(device);
		out->stx_size = 0;
		out->stx_blocks = 0;
	}
	return result;
}

/* Whether a file of the view that stands for a device may be used so. */
static int device_access(const char *seen, int mode)
{
	if (NEXT(access)(seen, F_OK) != 0)
		return -1;
	if (!(mode & X_OK))
		return 0;
	errno = EACCES;
	return -1;
}

#define ACCESS(name)                                                                                                   \
	URNIC_EXPORT int name(const char *path, int mode)                                                              \
	{                                                                                                              \
		const char *seen = SEEN(path);                                                                         \
                                                                                                                       \
		if (seen != path && urnic_view_device(path))                                                           \
			return device_access(seen, mode);                                                              \
		return NEXT(name)(seen, mode);                                                                         \
	}
ACCESS(access)
ACCESS(eaccess)
ACCESS(euidaccess)

URNIC_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	const char *seen = SEEN(path);

	if (seen != path && urnic_view_device(path))
		return device_access(seen, mode);
	return NEXT(faccessat)(dir, seen, mode, flags);
}

/* ls looks for them, and complains of files that have gone meanwhile. */

URNIC_EXPORT ssize_t getxattr(const char *path, const char *name, void *out, size_t size)
{
	return NEXT(getxattr)(SEEN(path), name, out, size);
}

URNIC_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *out, size_t size)
{
	return NEXT(lgetxattr)(SEEN(path), name, out, size);
}

URNIC_EXPORT ssize_t listxattr(const char *path, char *out, size_t size)
{
	return NEXT(listxattr)(SEEN(path), out, size);
}

URNIC_EXPORT ssize_t llistxattr(const char *path, char *out, size_t size)
{
	return NEXT(llistxattr)(SEEN(path), out, size);
}
