/*
 * Closes, in a child that was forked after the engine was loaded, the sockets that the
 * engine has open, so that connections end with the parent.
 *
 * All of them are in the epoll instance of the Go runtime, or in one that is in it, as UDP sockets are,
 * and Linux lists what an instance holds in /proc/self/fdinfo. The runtime's is the one that has an entry whose
 * data is the address of one of its variables. Only what is safe in a child of a process
 * with threads is called here.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "load.h"

/* struct linux_dirent64, which no header has. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

/* An fdinfo file, read by lines. */
struct lines {
	int fd;
	size_t at, end;
	char buf[4096];
};

/* The next line, without its end, or NULL. Longer ones than any that Linux writes are cut. */
static char *next_line(struct lines *l)
{
	for (;;) {
		char *start = l->buf + l->at, *end = memchr(start, '\n', l->end - l->at);
		ssize_t n;

		if (end) {
			*end = 0;
			l->at = (size_t)(end - l->buf) + 1;
			return start;
		}
		memmove(l->buf, start, l->end - l->at);
		l->end -= l->at;
		l->at = 0;
		if (l->end == sizeof(l->buf))
			l->end = 0;
		n = read(l->fd, l->buf + l->end, sizeof(l->buf) - l->end);
		if (n <= 0)
			return NULL;
		l->end += (size_t)n;
	}
}

/* Reads a number after a name in a line. */
static bool field(const char *line, const char *name, int base, unsigned long long *out)
{
	const char *at = strstr(line, name);
	unsigned long long v = 0;

	if (!at)
		return false;
	for (at += strlen(name); *at == ' ' || *at == '\t'; at++)
		;
	for (; *at; at++) {
		int digit;

		if (*at >= '0' && *at <= '9')
			digit = *at - '0';
		else if (base == 16 && *at >= 'a' && *at <= 'f')
			digit = *at - 'a' + 10;
		else
			break;
		v = v * (unsigned)base + (unsigned)digit;
	}
	*out = v;
	return true;
}

/* Opens the fdinfo of a descriptor. */
static bool open_lines(struct lines *l, int dir, const char *name)
{
	l->at = l->end = 0;
	l->fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	return l->fd >= 0;
}

/* Reports whether a descriptor is an epoll instance with an entry of the runtime's. */
static bool is_netpoll(int dir, const char *name, uintptr_t low, uintptr_t high)
{
	unsigned long long fd, value;
	bool found = false;
	struct lines l;
	char *line;

	if (!open_lines(&l, dir, name))
		return false;
	while (!found && (line = next_line(&l)))
		found = field(line, "tfd:", 10, &fd) && field(line, "data:", 16, &value) && low <= value && value < high;
	close(l.fd);
	return found;
}

/* The name of a descriptor's file in fdinfo, in a buffer. */
static const char *name_of(int fd, char buf[16])
{
	char *at = buf + 15;

	*at = 0;
	do
		*--at = (char)('0' + fd % 10);
	while (fd /= 10);
	return at;
}

/* Closes what an epoll instance holds, and what is held by those that it holds, but for itself. */
static void close_held(int dir, const char *name, int depth)
{
	unsigned long long fd;
	struct lines l;
	char *line, buf[16];

	if (!open_lines(&l, dir, name))
		return;
	while ((line = next_line(&l)))
		if (field(line, "tfd:", 10, &fd)) {
			if (depth)
				close_held(dir, name_of((int)fd, buf), depth - 1);
			close((int)fd);
		}
	close(l.fd);
}

/* Closes what an epoll instance holds, and itself. */
static void close_all(int dir, const char *name, int epoll)
{
	close_held(dir, name, 1);
	close(epoll);
}

void urnic_close_inherited(uintptr_t low, uintptr_t high)
{
	int dir = open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char buf[4096] __attribute__((aligned(8)));
	long n;

	if (dir < 0)
		return; /* no /proc: the child keeps the sockets until it ends or execs */
	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(buf + at);
			unsigned long long fd;

			at += e->len;
			if (e->name[0] == '.' || !field(e->name, "", 10, &fd))
				continue;
			if ((int)fd != dir && is_netpoll(dir, e->name, low, high)) {
				close_all(dir, e->name, (int)fd);
				goto done; /* there is one */
			}
		}
	}
done:
	close(dir);
}
