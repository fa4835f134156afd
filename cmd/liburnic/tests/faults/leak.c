/* Forgets a protection domain: the sanitizer has to report it. */
#include <stddef.h>

#include <infiniband/verbs.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);

	ibv_free_device_list(list);
	return ibv_alloc_pd(context) == NULL;
}
