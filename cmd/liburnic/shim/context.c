/*
 * Contexts: opening the device.
 */
#include <stdlib.h>
#include <unistd.h>

#include "adapter.h"

/* Vectors cost nothing here, and programs spread their CQs over one for each CPU. */
static int vectors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (int)n;
}

void urnic_context_fill(struct urnic_context *ctx, struct ibv_device *device, int async_fd)
{
	struct verbs_context *v = &ctx->verbs;

	/* What stays NULL is answered by verbs.h: EOPNOTSUPP. */
	v->query_port = urnic_query_port;
	v->query_device_ex = urnic_query_device_ex;
	urnic_set_mw_ops(v);
	urnic_set_td_ops(v);
	urnic_set_cq_ops(v);
	urnic_set_srq_ops(v);
	urnic_set_qp_ops(v);
	urnic_set_post_ops(v);
	urnic_set_clock_ops(v);
	urnic_set_paging_ops(v);
	urnic_set_dm_ops(v);
	urnic_set_null_ops(v);
	v->sz = sizeof(*v);

	v->context.device = device;
	v->context.cmd_fd = -1;
	v->context.async_fd = async_fd;
	v->context.num_comp_vectors = vectors();
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&v->context.mutex, NULL);
	pthread_mutex_init(&ctx->async, NULL);
}

static struct ibv_context *open_device(struct ibv_device *device)
{
	const struct urnic_engine *e = urnic_engine();
	struct urnic_context *ctx;
	int32_t fd;
	int err;

	if (!e)
		return NULL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	err = e->context_open(urnic_device_index(device), (uintptr_t)ctx, &ctx->handle, &fd);
	if (err) {
		free(ctx);
		return urnic_null(err);
	}
	urnic_context_fill(ctx, device, fd);
	err = urnic_found_family(ctx);
	if (err) {
		(void)ibv_close_device(&ctx->verbs.context); /* nobody has seen it */
		return urnic_null(err);
	}
	return &ctx->verbs.context;
}

URNIC_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	if (!device || !urnic_device_info(device))
		return urnic_null(device ? ENODEV : EINVAL);
	return open_device(device);
}

URNIC_EXPORT int ibv_close_device(struct ibv_context *context)
{
	const struct urnic_engine *e;
	struct urnic_context *ctx;
	int err;

	if (!context)
		return urnic_minus(EINVAL);
	e = urnic_engine();
	if (!e)
		return -1;
	ctx = urnic_context(context);
	if (urnic_leave_family(ctx)) {
		err = e->context_close(ctx->handle);
		if (err)
			return urnic_minus(err);
	}
	if (ctx->imported)
		close(context->async_fd);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	pthread_mutex_destroy(&ctx->async);
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}

struct ibv_context *urnic_cm_context(uint32_t index)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct ibv_context *all[URNIC_MAX_GENERATION + 1][URNIC_MAX_DEVICES];
	struct ibv_device *device = urnic_ibv_device(index);
	struct ibv_context **shared, *context;

	if (!device)
		return NULL;
	pthread_mutex_lock(&lock);
	shared = all[urnic_generation()]; /* there is an engine */
	if (!shared[index])
		shared[index] = open_device(device);
	context = shared[index];
	pthread_mutex_unlock(&lock);
	return context;
}

/*
 * The RNIC reads and writes the process's memory as the process does, so pages that a fork
 * has made copy-on-write are no concern: the kernel's answer on such machines is "unneeded".
 */

URNIC_EXPORT int ibv_fork_init(void)
{
	return 0;
}

URNIC_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

URNIC_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

URNIC_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
