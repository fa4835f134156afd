/*
 * The view of sysfs: paths below /sys/class/infiniband and its like lead into the directory of
 * URNIC_SYSFS, by whatever call; all others are left alone.
 */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define CLASS "/sys/class/infiniband"
#define DEVICE CLASS "/urnic0"
#define UVERBS "/dev/infiniband/uverbs1"
#define GONE CLASS "/none"
#define HOST "/proc/self/status" /* of which there is none in the view */

/* What programs of older C libraries, and checked ones, call. */
int __xstat(int version, const char *path, struct stat *out);
int __xstat64(int version, const char *path, struct stat64 *out);
int __lxstat(int version, const char *path, struct stat *out);
int __lxstat64(int version, const char *path, struct stat64 *out);
int __fxstatat(int version, int dir, const char *path, struct stat *out, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *out, int flags);
#if defined(__x86_64__)
#define OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
OLD(__xstat);
OLD(__xstat64);
OLD(__lxstat);
OLD(__lxstat64);
__asm__(".symver __fxstatat,__fxstatat@GLIBC_2.4");
__asm__(".symver __fxstatat64,__fxstatat64@GLIBC_2.4");
#endif
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t size, size_t room);
char *__realpath_chk(const char *path, char *out, size_t room);

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size); /* in no public header */

static char root[PATH_MAX];

static void make_file(const char *name, const char *text)
{
	char path[PATH_MAX * 2], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	CHECK(f = fopen(path, "w"));
	CHECK(fputs(text, f) >= 0);
	OK(fclose(f));
}

static void make_tree(void)
{
	char link[PATH_MAX * 2];

	CHECK(getcwd(root, sizeof(root)));
	make_file("class/infiniband/urnic0/fw_ver", "seen\n");
	make_file("class/infiniband/urnic0/ports/1/rate", "40\n");
	make_file("class/infiniband_verbs/abi_version", "6\n");
	make_file("class/infiniband_mad/abi_version", "5\n");
	make_file("class/net/lo/device/infiniband/urnic0", "");
	make_file("class/net/lo/address", "not of the view");
	make_file("class/device/infiniband", "of no interface");
	make_file("dev/infiniband/uverbs1", "");
	make_file("dev/infiniband/rdma_cm", "");
	snprintf(link, sizeof(link), "%s/class/infiniband/urnic0/link", root);
	OK(symlink("fw_ver", link));
}

/* Wants a descriptor of a file of the view, and closes it. */
static void is_seen(int fd)
{
	char text[16] = "";

	CHECK(fd >= 0);
	EQ(read(fd, text, sizeof(text) - 1), 5);
	EQ(strcmp(text, "seen\n"), 0);
	OK(close(fd));
}

/* The same of a stream. */
static void is_read(FILE *f)
{
	char text[16];

	CHECK(f);
	CHECK(fgets(text, sizeof(text), f));
	EQ(strcmp(text, "seen\n"), 0);
	OK(fclose(f));
}

/* Each call that opens does so in the view, and elsewhere as ever. */
static void opening(void)
{
	int fd;

	is_seen(open(DEVICE "/fw_ver", O_RDONLY));
	is_seen(open64(DEVICE "/fw_ver", O_RDONLY));
	is_seen(openat(AT_FDCWD, DEVICE "/fw_ver", O_RDONLY));
	is_seen(openat64(-1, DEVICE "/fw_ver", O_RDONLY));
	is_seen(__open_2(DEVICE "/fw_ver", O_RDONLY));
	is_seen(__open64_2(DEVICE "/fw_ver", O_RDONLY));
	is_seen(__openat_2(AT_FDCWD, DEVICE "/fw_ver", O_RDONLY));
	is_seen(__openat64_2(AT_FDCWD, DEVICE "/fw_ver", O_RDONLY));
	is_read(fopen(DEVICE "/fw_ver", "r"));
	is_read(fopen64(DEVICE "/fw_ver", "re"));
	FAILS(open(GONE, O_RDONLY), ENOENT);
	NONE(fopen(GONE, "r"), ENOENT);

	/* All are for reading only, even for root. */
	FAILS(open(DEVICE "/fw_ver", O_WRONLY), EACCES);
	FAILS(open64(DEVICE "/fw_ver", O_RDWR), EACCES);
	FAILS(openat(AT_FDCWD, DEVICE "/fw_ver", O_RDONLY | O_TRUNC), EACCES);
	FAILS(open(DEVICE "/new", O_CREAT | O_RDONLY, 0666), EACCES);
	FAILS(open(DEVICE "/new", O_WRONLY), ENOENT);
	NONE(fopen(DEVICE "/fw_ver", "w"), EACCES);
	NONE(fopen(DEVICE "/fw_ver", "r+"), EACCES);
	NONE(fopen(DEVICE "/new", "a"), EACCES);
	NONE(fopen64(DEVICE "/new", "r+"), ENOENT);
	is_seen(open(DEVICE "/fw_ver", O_RDONLY));

	/* From a directory of the view, by names that say nothing of it. */
	CHECK((fd = open(DEVICE, O_RDONLY | O_DIRECTORY)) >= 0);
	is_seen(openat(fd, "fw_ver", O_RDONLY));
	OK(close(fd));

	/* The argument that only some calls have arrives. */
	umask(0);
	CHECK((fd = open("made", O_CREAT | O_WRONLY, 0642)) >= 0);
	OK(close(fd));
	CHECK((fd = openat(AT_FDCWD, "made64", O_CREAT | O_WRONLY, 0624)) >= 0);
	OK(close(fd));
	struct stat s;
	OK(stat("made", &s));
	EQ(s.st_mode & 0777, 0642);
	OK(stat("made64", &s));
	EQ(s.st_mode & 0777, 0624);
}

#define REGULAR(call)                                                                                                  \
	do {                                                                                                           \
		memset(&s, 0, sizeof(s));                                                                              \
		OK(call);                                                                                              \
		EQ(S_ISREG(s.st_mode), 1);                                                                             \
		EQ(s.st_size, 5);                                                                                      \
	} while (0)
#define CHARACTER(call)                                                                                                \
	do {                                                                                                           \
		memset(&s, 0, sizeof(s));                                                                              \
		OK(call);                                                                                              \
		EQ(s.st_mode, S_IFCHR | 0666);                                                                         \
		EQ(s.st_rdev, makedev(231, 193));                                                                      \
	} while (0)

#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif

static void looking(void)
{
	{
		struct stat s;

		REGULAR(stat(DEVICE "/fw_ver", &s));
		REGULAR(stat(DEVICE "/link", &s));
		REGULAR(lstat(DEVICE "/fw_ver", &s));
		REGULAR(fstatat(AT_FDCWD, DEVICE "/fw_ver", &s, 0));
		REGULAR(__xstat(STAT_VERSION, DEVICE "/fw_ver", &s));
		REGULAR(__lxstat(STAT_VERSION, DEVICE "/fw_ver", &s));
		REGULAR(__fxstatat(STAT_VERSION, AT_FDCWD, DEVICE "/fw_ver", &s, 0));
		CHARACTER(stat(UVERBS, &s));
		CHARACTER(lstat(UVERBS, &s));
		CHARACTER(fstatat(-1, UVERBS, &s, AT_SYMLINK_NOFOLLOW));
		CHARACTER(__xstat(STAT_VERSION, UVERBS, &s));
		CHARACTER(__lxstat(STAT_VERSION, UVERBS, &s));
		CHARACTER(__fxstatat(STAT_VERSION, AT_FDCWD, UVERBS, &s, 0));
		OK(lstat(DEVICE "/link", &s));
		EQ(S_ISLNK(s.st_mode), 1);
		OK(stat(DEVICE, &s));
		EQ(S_ISDIR(s.st_mode), 1);
		OK(stat("/dev/infiniband", &s));
		EQ(S_ISDIR(s.st_mode), 1);
		FAILS(stat(GONE, &s), ENOENT);
		FAILS(stat("/dev/infiniband/uverbs7", &s), ENOENT);
	}
	{
		struct stat64 s;

		REGULAR(stat64(DEVICE "/fw_ver", &s));
		REGULAR(lstat64(DEVICE "/fw_ver", &s));
		REGULAR(fstatat64(AT_FDCWD, DEVICE "/fw_ver", &s, 0));
		REGULAR(__xstat64(STAT_VERSION, DEVICE "/fw_ver", &s));
		REGULAR(__lxstat64(STAT_VERSION, DEVICE "/fw_ver", &s));
		REGULAR(__fxstatat64(STAT_VERSION, AT_FDCWD, DEVICE "/fw_ver", &s, 0));
		CHARACTER(stat64(UVERBS, &s));
	}
	struct statx x;
	OK(statx(AT_FDCWD, DEVICE "/fw_ver", 0, STATX_BASIC_STATS, &x));
	EQ(x.stx_size, 5);
	OK(statx(AT_FDCWD, UVERBS, 0, STATX_BASIC_STATS, &x));
	EQ(x.stx_mode, S_IFCHR | 0666);
	EQ(x.stx_rdev_major, 231);
	EQ(x.stx_rdev_minor, 193);

	OK(access(DEVICE "/fw_ver", R_OK));
	OK(faccessat(AT_FDCWD, DEVICE "/fw_ver", R_OK, 0));
	OK(eaccess(DEVICE, R_OK | X_OK));
	OK(euidaccess(DEVICE "/ports/1", X_OK));
	FAILS(access(GONE, F_OK), ENOENT);
	EQ(getxattr(DEVICE "/fw_ver", "user.none", NULL, 0), -1);
	CHECK(errno != ENOENT);
	EQ(lgetxattr(DEVICE "/fw_ver", "user.none", NULL, 0), -1);
	CHECK(listxattr(DEVICE "/fw_ver", NULL, 0) >= 0);
	CHECK(llistxattr(DEVICE "/fw_ver", NULL, 0) >= 0);
}

/* Devices may be used, as far as one can see, and can't be opened. */
static void devices(void)
{
	OK(access(UVERBS, R_OK | W_OK));
	OK(faccessat(AT_FDCWD, UVERBS, W_OK, AT_EACCESS));
	OK(eaccess("/dev/infiniband/rdma_cm", W_OK));
	FAILS(access(UVERBS, X_OK), EACCES);
	FAILS(access("/dev/infiniband/uverbs7", W_OK), ENOENT);
	FAILS(open(UVERBS, O_RDWR), ENXIO);
	FAILS(open64(UVERBS, O_RDWR | O_CLOEXEC), ENXIO);
	FAILS(openat(AT_FDCWD, UVERBS, O_RDONLY), ENXIO);
	NONE(fopen(UVERBS, "r+"), ENXIO);
	FAILS(open("/dev/infiniband/uverbs7", O_RDWR), ENOENT);
}

static int count(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	CHECK(dir);
	for (struct dirent *d; (d = readdir(dir));)
		n += d->d_name[0] != '.';
	OK(closedir(dir));
	return n;
}

static void directories(void)
{
	struct dirent **list;
	struct dirent64 **list64;
	char before[PATH_MAX], text[16] = "";
	glob_t found;
	glob64_t found64;
	int fd;

	EQ(count(CLASS), 1);
	EQ(count(DEVICE), 3);
	EQ(count("/dev/infiniband"), 2);
	EQ(count("/dev/infiniband/"), 2);
	EQ(count("/sys/class/infiniband_verbs"), 1);
	EQ(count("/sys/class/infiniband_mad"), 1);
	EQ(count("/sys/class/net/lo/device/infiniband"), 1);
	NONE(opendir(GONE), ENOENT);

	EQ(scandir(DEVICE "/ports", &list, NULL, alphasort), 3);
	EQ(strcmp(list[2]->d_name, "1"), 0);
	for (int i = 0; i < 3; i++)
		free(list[i]);
	free(list);
	EQ(scandir64(DEVICE "/ports", &list64, NULL, alphasort64), 3);
	for (int i = 0; i < 3; i++)
		free(list64[i]);
	free(list64);

	/* The names that are found are those that the program knows. */
	OK(glob(CLASS "/*/ports/*/rate", 0, NULL, &found));
	EQ(found.gl_pathc, 1);
	EQ(strcmp(found.gl_pathv[0], DEVICE "/ports/1/rate"), 0);
	globfree(&found);
	OK(glob64("/dev/infiniband/uverbs*", 0, NULL, &found64));
	EQ(found64.gl_pathc, 1);
	EQ(strcmp(found64.gl_pathv[0], UVERBS), 0);
	globfree64(&found64);
	OK(glob("/proc/self/stat*", 0, NULL, &found));
	CHECK(found.gl_pathc >= 3);
	globfree(&found);

	CHECK(getcwd(before, sizeof(before)));
	OK(chdir(DEVICE "/ports"));
	CHECK((fd = open("1/rate", O_RDONLY)) >= 0);
	EQ(read(fd, text, sizeof(text)), 3);
	OK(close(fd));
	OK(chdir(before));
}

static void links(void)
{
	char out[PATH_MAX], *made;

	EQ(readlink(DEVICE "/link", out, sizeof(out)), 6);
	EQ(readlinkat(AT_FDCWD, DEVICE "/link", out, sizeof(out)), 6);
	EQ(__readlink_chk(DEVICE "/link", out, sizeof(out), sizeof(out)), 6);
	EQ(__readlinkat_chk(AT_FDCWD, DEVICE "/link", out, sizeof(out), sizeof(out)), 6);
	EQ(memcmp(out, "fw_ver", 6), 0);
	FAILS((int)readlink(DEVICE "/fw_ver", out, sizeof(out)), EINVAL);

	CHECK(realpath(DEVICE "/link", out));
	is_seen(open(out, O_RDONLY));
	CHECK(__realpath_chk(DEVICE "/link", out, sizeof(out)));
	is_seen(open(out, O_RDONLY));
	CHECK(made = canonicalize_file_name(DEVICE "/link"));
	EQ(strcmp(made, out), 0);
	free(made);
	CHECK(realpath(HOST, out));
}

/* However a path is written, it is the same file; and what only looks like one is not. */
static void spelling(void)
{
	static const char *const same[] = {
		"/sys/class/infiniband//urnic0/fw_ver",    "//sys/class//infiniband/urnic0/fw_ver",
		"/sys/./class/infiniband/./urnic0/fw_ver", "/sys/class/infiniband/urnic0/ports/../fw_ver",
		"/sys/class/infiniband/urnic0/ports/1/../../fw_ver",
	};
	static const char *const others[] = {
		"/sys/class/infinibandx/urnic0/fw_ver", "/sys/class/infiniband_/urnic0/fw_ver", "/sys/class/infinib",
		"/sys/clas/infiniband/urnic0/fw_ver",	"/sys/class/infiniband/../infiniband_verbs/abi_version",
		"/xys/class/infiniband/urnic0/fw_ver",	"/dev/infinibandx/uverbs1", "/sys/class/net/../device/infiniband",
		"/sxs/class/infiniband/urnic0/fw_ver",	"/sys/clasx/infiniband/urnic0/fw_ver", "/sys/class/infinibanx/urnic0/fw_ver",
		"/dxv/infiniband/uverbs1",		"/sys/class/nxt/lo/device/infiniband", "/sys/class/net/lo/devicx/infiniband",
		"sys/class/infiniband/urnic0/fw_ver",	"/sys/class/infiniband/../../../x", "", "/", "//",
	};
	struct stat s;

	for (size_t i = 0; i < COUNT(same); i++)
		is_seen(open(same[i], O_RDONLY));
	for (size_t i = 0; i < COUNT(others); i++) {
		/* What the kernel itself says. */
		long want = syscall(SYS_access, others[i], F_OK);

		EQ(access(others[i], F_OK), want);
		EQ(stat(others[i], &s), want);
	}
	/* An interface's other files are the host's. */
	CHECK(open("/sys/class/net/lo/address", O_RDONLY) >= 0 || errno == ENOENT);
}

/* All else is as if the library were not there: results, errno, and what is no path at all. */
static void others(void)
{
	char long_path[PATH_MAX + 100] = CLASS "/";
	const char *volatile nowhere = (const char *)1;
	const size_t huge = 32 << 20; /* more than a stack */
	struct stat s, t;
	char *path;
	int fd;

	errno = 4711;
	OK(stat("/proc/self", &s));
	CHECK((fd = open(HOST, O_RDONLY)) >= 0);
	OK(close(fd));
	OK(access(HOST, R_OK));
	FAILS(open("/proc/self/none", O_RDONLY), ENOENT);
	FAILS(stat("/proc/self/status/x", &s), ENOTDIR);
	OK(fstatat(AT_FDCWD, ".", &s, 0));
	OK(stat(".", &t));
	EQ(s.st_ino, t.st_ino);

	memset(long_path + strlen(long_path), 'x', sizeof(long_path) - 1 - strlen(long_path));
	FAILS(open(long_path, O_RDONLY), ENAMETOOLONG);
	FAILS(stat(long_path, &s), ENAMETOOLONG);
	CHECK(path = malloc(huge));
	memset(path, 'x', huge);
	memcpy(path, CLASS "/", sizeof(CLASS "/") - 1);
	path[huge - 1] = 0;
	FAILS(open(path, O_RDONLY), ENAMETOOLONG);
	free(path);
	FAILS(open(nowhere, O_RDONLY), EFAULT);
	FAILS(access(nowhere, F_OK), EFAULT);
}

static void errno_is_kept(void)
{
	struct stat s;

	errno = 4711;
	if (stat(DEVICE "/fw_ver", &s) != 0 || stat(UVERBS, &s) != 0 || access(UVERBS, W_OK) != 0 || errno != 4711)
		FAIL("a call that succeeds changes errno to %d", errno);
}

static volatile sig_atomic_t handled;

static void handler(int sig)
{
	struct stat s;
	int fd = open(DEVICE "/fw_ver", O_RDONLY);

	(void)sig;
	handled = fd >= 0 && stat(UVERBS, &s) == 0 && close(fd) == 0;
}

/* Handlers, and children, see it too. */
static void elsewhere(void)
{
	pid_t child;
	int status;

	CHECK(signal(SIGUSR1, handler) != SIG_ERR);
	OK(raise(SIGUSR1));
	EQ(handled, 1);
	CHECK((child = fork()) >= 0);
	if (child == 0)
		_exit(access(DEVICE "/fw_ver", R_OK) == 0 && access("/sys/class/infiniband/none", F_OK) != 0 ? 0 : 1);
	EQ(waitpid(child, &status, 0), child);
	EQ(status, 0);
}

/* libibverbs names files that are there. */
static void the_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char text[16];
	struct stat s;

	CHECK(list && list[0]);
	EQ(strcmp(list[0]->dev_name, "uverbs0"), 0);
	OK(stat(list[0]->ibdev_path, &s));
	EQ(ibv_read_sysfs_file(list[0]->ibdev_path, "ports/1/rate", text, sizeof(text)), 2);
	EQ(strcmp(text, "40"), 0);
	FAILS(ibv_read_sysfs_file(list[0]->ibdev_path, "none", text, sizeof(text)), ENOENT);
	ibv_free_device_list(list);
}

/* Without a view there is the host's sysfs. */
static void no_view(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct stat s;

	CHECK(list && list[0]);
	EQ(strcmp(list[0]->dev_name, "uverbs-urnic0"), 0);
	ibv_free_device_list(list);
	EQ(stat(CLASS, &s), syscall(SYS_access, CLASS, F_OK));
	FAILS(open(DEVICE "/fw_ver", O_RDONLY), ENOENT);
}

int main(int argc, char **argv)
{
	if (argc == 1) {
		no_view();
		make_tree();
		OK(setenv("URNIC_SYSFS", root, 1));
		execl("/proc/self/exe", argv[0], "view", NULL);
		FAIL("execl: %s", strerror(errno));
	}
	OK(unsetenv("URNIC_SYSFS")); /* it was looked at before */
	opening();
	looking();
	devices();
	directories();
	links();
	spelling();
	others();
	errno_is_kept();
	elsewhere();
	the_device();
	return 0;
}
