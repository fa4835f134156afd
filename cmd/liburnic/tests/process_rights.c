/* Changing user and group after the engine was loaded changes them for all threads. */
#include "process.h"

#include <dirent.h>
#include <grp.h>

/* want_ids wants all threads to have a user and a group. */
static void want_ids(uid_t uid, gid_t gid)
{
	char value[128], want[128];
	struct dirent *task;
	int tasks = 0;
	DIR *dir;

	CHECK(dir = opendir("/proc/self/task"));
	while ((task = readdir(dir))) {
		if (task->d_name[0] == '.')
			continue;
		tasks++;
		snprintf(want, sizeof(want), "%u\t%u\t%u\t%u", uid, uid, uid, uid);
		in_status(task->d_name, "Uid", value, sizeof(value));
		if (strcmp(value, want))
			FAIL("thread %s has user %s, not %u", task->d_name, value, uid);
		snprintf(want, sizeof(want), "%u\t%u\t%u\t%u", gid, gid, gid, gid);
		in_status(task->d_name, "Gid", value, sizeof(value));
		if (strcmp(value, want))
			FAIL("thread %s has group %s, not %u", task->d_name, value, gid);
	}
	closedir(dir);
	CHECK(tasks > 2); /* those of the engine */
}

int main(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_CM});
	traffic(&p, 4);
	if (uid == 0) { /* as a server that needed root to start */
		uid = gid = 65534;
		OK(setgroups(0, NULL));
	}
	OK(setgid(gid));
	OK(setuid(uid));
	OK(setresgid(gid, gid, gid));
	OK(setresuid(uid, uid, uid));
	want_ids(uid, gid);
	traffic(&p, 100);
	pair_close(&p);
	use_verbs();
	return 0;
}
