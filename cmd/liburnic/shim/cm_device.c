/* The device as librdmacm has it: a context and a PD that all ids share, never closed. */
#include <stdlib.h>

#include "cm.h"

bool cm_iwarp(void)
{
	const struct urnic_device *device = urnic_device_info();

	return !device || device->iwarp;
}

struct ibv_pd *cm_default_pd(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct ibv_pd *pd;
	struct ibv_context *context = urnic_cm_context();

	if (!context)
		return NULL;
	pthread_mutex_lock(&lock);
	if (!pd)
		pd = ibv_alloc_pd(context);
	pthread_mutex_unlock(&lock);
	return pd;
}

URNIC_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list, *context;

	if (num_devices)
		*num_devices = 0;
	context = urnic_cm_context();
	if (!context)
		return NULL;
	list = calloc(2, sizeof(struct ibv_context *));
	if (!list)
		return urnic_null(ENOMEM);
	list[0] = context;
	if (num_devices)
		*num_devices = 1;
	return list;
}

URNIC_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
