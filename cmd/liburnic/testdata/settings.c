/*
 * Says what the device is like, after whether the process has more rights than its user.
 * A pair of ids on one channel makes traffic for a recording, if there is one.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <sys/auxv.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	if (!list || !*list) {
		printf("secure %lu, no device\n", getauxval(AT_SECURE));
		return 0;
	}
	context = ibv_open_device(*list);
	printf("secure %lu, %s\n", getauxval(AT_SECURE),
	       !context			       ? "closed"
	       : (*list)->node_type == IBV_NODE_CA ? "CA"
						       : "RNIC");
	if (context)
		ibv_close_device(context);
	ibv_free_device_list(list);
	return 0;
}
