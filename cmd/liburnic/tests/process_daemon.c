/* A daemon that leaves its parents, terminal and directory before its first verb. */
#include "process.h"

#include <sys/wait.h>

static int result[2];

/* daemonize does as daemon(3), in steps, which some programs prefer. */
static void daemonize(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		_exit(0);
	CHECK(setsid() >= 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		_exit(0);
	OK(chdir("/"));
}

static int by_steps(void)
{
	daemonize();
	use_verbs();
	EQ(write(result[1], "s", 1), 1);
	return 0;
}

static int by_daemon(void)
{
	OK(daemon(0, 0));
	use_verbs();
	EQ(write(result[1], "d", 1), 1);
	return 0;
}

int main(void)
{
	char c;

	OK(pipe(result));
	ends(child(by_steps), 0);
	EQ(read(result[0], &c, 1), 1);
	EQ(c, 's');
	ends(child(by_daemon), 0);
	close(result[1]);
	EQ(read(result[0], &c, 1), 1); /* 0, if it has failed */
	EQ(c, 'd');
	EQ(read(result[0], &c, 1), 0);
	use_verbs();
	return 0;
}
