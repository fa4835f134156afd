/* Gives the library too little room for an answer: the sanitizer has to report it. */
#include <stdlib.h>

#include <infiniband/verbs.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);
	struct ibv_device_attr *attr = malloc(sizeof(*attr) - 8);

	ibv_query_device(context, attr);
	return 0;
}
