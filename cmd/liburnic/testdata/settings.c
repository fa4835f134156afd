/*
 * Says what the device is like, after whether the process has more rights than its user.
 * A pair of ids on one channel makes traffic for a recording, if there is one. And whether it sees
 * a view of sysfs with a file of the test.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	if (!list || !*list) {
		printf("secure %lu, no device\n", getauxval(AT_SECURE));
		return 0;
	}
	context = ibv_open_device(*list);
	printf("secure %lu, %s%s\n", getauxval(AT_SECURE),
	       !context			       ? "closed"
	       : (*list)->node_type == IBV_NODE_CA ? "CA"
						       : "RNIC",
	       access("/sys/class/infiniband/of-a-test", F_OK) == 0 ? ", view" : "");
	if (context)
		ibv_close_device(context);
	ibv_free_device_list(list);
	return 0;
}
