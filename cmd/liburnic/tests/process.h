/* What the tests of processes share: traffic, children, and how they end. */
#ifndef PROCESS_H
#define PROCESS_H

#include "test.h"

#include <signal.h>
#include <sys/types.h>

/* traffic has the ends of a pair send each other this many messages, and compares them. */
void traffic(struct pair *p, int messages);

/* use_verbs connects a pair, has some traffic, and closes it. */
void use_verbs(void);

/* child runs a function in a child of fork, which ends with its result. */
pid_t child(int (*run)(void));

/* ends waits for a child and wants it to exit with a status, killed by a signal. */
void ends_at(const char *file, int line, pid_t pid, int status);
void killed_at(const char *file, int line, pid_t pid, int sig);
#define ends(pid, status) ends_at(__FILE__, __LINE__, pid, status)
#define killed(pid, sig) killed_at(__FILE__, __LINE__, pid, sig)

/* in_status returns the value of a line of /proc/self/status, of a task if that is not NULL. */
void in_status(const char *task, const char *name, char *value, size_t size);

/* The sockets that a process has. */
static inline int sockets(void)
{
	char path[64], target[64];
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = 0;
		n += strncmp(target, "socket:", 7) == 0;
	}
	return n;
}

#endif
