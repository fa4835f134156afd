/* What the tests of processes share: see process.h. */
#include "process.h"

#include <sys/wait.h>

void traffic(struct pair *p, int messages)
{
	enum { LEN = 1000 };

	for (int i = 0; i < messages; i++) {
		struct end *from = i % 2 ? &p->b : &p->a, *to = i % 2 ? &p->a : &p->b;

		memset(from->memory, i, LEN);
		recv_at(to, (uint64_t)i, 4096, LEN);
		post(from, .opcode = IBV_WR_SEND, .wr_id = (uint64_t)i, .length = LEN);
		done(from->scq, (uint64_t)i, IBV_WC_SEND);
		EQ(done(to->rcq, (uint64_t)i, IBV_WC_RECV).byte_len, LEN);
		EQ(memcmp(from->memory, to->memory + 4096, LEN), 0);
	}
}

void use_verbs(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){0});
	traffic(&p, 4);
	pair_close(&p);
}

pid_t child(int (*run)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		exit(run());
	return pid;
}

void ends_at(const char *file, int line, pid_t pid, int status)
{
	int s;

	if (waitpid(pid, &s, 0) != pid)
		fail(file, line, "waitpid: %s", strerror(errno));
	if (!WIFEXITED(s) || WEXITSTATUS(s) != status)
		fail(file, line, "child ended with %#x, not with exit status %d", s, status);
}

void killed_at(const char *file, int line, pid_t pid, int sig)
{
	int s;

	if (waitpid(pid, &s, 0) != pid)
		fail(file, line, "waitpid: %s", strerror(errno));
	if (!WIFSIGNALED(s) || WTERMSIG(s) != sig)
		fail(file, line, "child ended with %#x, not by signal %d", s, sig);
}

void in_status(const char *task, const char *name, char *value, size_t size)
{
	char path[64], line[256];
	size_t len = strlen(name);
	FILE *f;

	if (task)
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	else
		snprintf(path, sizeof(path), "/proc/thread-self/status");
	CHECK(f = fopen(path, "re"));
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, len) || line[len] != ':')
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(value, size, "%s", line + len + 1 + strspn(line + len + 1, " \t"));
		fclose(f);
		return;
	}
	FAIL("%s has no %s", path, name);
}
