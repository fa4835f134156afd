/* The devices as librdmacm has them: each with a context and a PD that all ids share, never closed. */
#include <stdlib.h>

#include "cm.h"

bool cm_iwarp(void)
{
	const struct urnic_device *device = urnic_device_info(urnic_ibv_device(0)); /* they are all alike */

	return !device || device->iwarp;
}

struct ibv_pd *cm_default_pd(uint32_t device)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct ibv_pd *all[URNIC_MAX_GENERATION + 1][URNIC_MAX_DEVICES];
	struct ibv_pd **pds, *pd;
	struct ibv_context *context = urnic_cm_context(device);

	if (!context)
		return NULL;
	pthread_mutex_lock(&lock);
	pds = all[urnic_generation()]; /* there is an engine */
	if (!pds[device])
		pds[device] = ibv_alloc_pd(context);
	pd = pds[device];
	pthread_mutex_unlock(&lock);
	return pd;
}

URNIC_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	uint32_t n = urnic_devices();
	struct ibv_context **list;

	if (num_devices)
		*num_devices = 0;
	if (!n)
		return NULL;
	list = calloc(n + 1, sizeof(struct ibv_context *));
	if (!list)
		return urnic_null(ENOMEM);
	for (uint32_t i = 0; i < n; i++) {
		list[i] = urnic_cm_context(i);
		if (!list[i]) {
			free(list);
			return NULL;
		}
	}
	if (num_devices)
		*num_devices = (int)n;
	return list;
}

URNIC_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
