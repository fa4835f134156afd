/*
 * What a program can import by the descriptor of a context: in the process that has made it,
 * for no kernel holds the objects.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter.h"

struct entry {
	struct entry *next;
	struct urnic_shared what;
};

static struct entry *table[1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry **list_of(uint32_t handle)
{
	return &table[handle % (sizeof(table) / sizeof(table[0]))];
}

int urnic_share(struct urnic_shared what)
{
	struct entry *e = malloc(sizeof(*e)), **list = list_of(what.handle);

	if (!e)
		return ENOMEM;
	e->what = what;
	pthread_mutex_lock(&lock);
	e->next = *list;
	*list = e;
	pthread_mutex_unlock(&lock);
	return 0;
}

void urnic_unshare(enum urnic_kind kind, uint32_t handle)
{
	struct entry **at, *e;

	pthread_mutex_lock(&lock);
	for (at = list_of(handle); (e = *at); at = &e->next)
		if (e->what.kind == kind && e->what.handle == handle)
			break;
	if (e)
		*at = e->next;
	pthread_mutex_unlock(&lock);
	free(e);
}

/* The caller holds lock. */
static const struct urnic_shared *find(enum urnic_kind kind, uint32_t handle, uint64_t family)
{
	const struct entry *e;

	for (e = *list_of(handle); e; e = e->next)
		if (e->what.kind == kind && e->what.handle == handle && e->what.family == family)
			return &e->what;
	return NULL;
}

bool urnic_find_pd(uint32_t handle, uint64_t family)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = find(URNIC_PD, handle, family);
	pthread_mutex_unlock(&lock);
	return found;
}

bool urnic_find_mr(uint32_t handle, uint64_t family, struct ibv_mr *mr)
{
	const struct urnic_shared *found;

	pthread_mutex_lock(&lock);
	found = find(URNIC_MR, handle, family);
	if (found)
		*mr = found->mr;
	pthread_mutex_unlock(&lock);
	return found;
}

static int judge(const struct urnic_shared *s, uint64_t addr, uint64_t length, unsigned int access)
{
	uint64_t start = (uintptr_t)s->mr.addr;

	if (!(s->access & IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	if (addr < start || length > s->mr.length || addr - start > s->mr.length - length)
		return EFAULT;
	return access & ~s->access ? EPERM : 0;
}

/* Advice is rare, so no table by key is kept. */
int urnic_find_region(uint32_t lkey, uint64_t addr, uint64_t length, unsigned int access)
{
	int err = ENOENT;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (const struct entry *e = table[i]; e; e = e->next)
			if (e->what.kind == URNIC_MR && e->what.mr.lkey == lkey)
				err = judge(&e->what, addr, length, access);
	pthread_mutex_unlock(&lock);
	return err;
}

/* The contexts that have been imported from one, and that one: to the engine they are one context. */
struct family {
	struct family *next;
	uint64_t id;
	struct ibv_device *device;
	uint32_t handle;
	int32_t async_fd; /* the engine's */
	uint32_t contexts;
};

static struct family *families;

/*
 * The descriptor of a context is a file in memory that holds the family's number, and whose it
 * is: in another process the same handles are other objects.
 */
struct badge {
	char name[8];
	uint64_t process, family;
};

static const char badge_name[8] = "urnic";

static bool read_badge(int fd, struct badge *b)
{
	return pread(fd, b, sizeof(*b), 0) == (ssize_t)sizeof(*b) && !memcmp(b->name, badge_name, sizeof(badge_name));
}

/* Returns a descriptor, or -1 with errno. */
static int write_badge(uint64_t family)
{
	struct badge b = {.process = (uint64_t)getpid(), .family = family};
	int fd = memfd_create("urnic", MFD_CLOEXEC);

	memcpy(b.name, badge_name, sizeof(badge_name));
	if (fd >= 0 && pwrite(fd, &b, sizeof(b), 0) != (ssize_t)sizeof(b)) {
		close(fd);
		return urnic_minus(EIO);
	}
	return fd;
}

int urnic_found_family(struct urnic_context *ctx)
{
	static uint64_t last;
	struct family *f;
	int fd;

	if (!urnic_is_adapter())
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return ENOMEM;
	f->id = __atomic_add_fetch(&last, 1, __ATOMIC_ACQ_REL);
	f->device = ctx->verbs.context.device;
	f->handle = ctx->handle;
	f->async_fd = ctx->verbs.context.async_fd;
	f->contexts = 1;
	fd = write_badge(f->id);
	if (fd < 0) {
		free(f);
		return errno;
	}
	ctx->verbs.context.cmd_fd = fd;
	ctx->family = f->id;
	pthread_mutex_lock(&lock);
	f->next = families;
	families = f;
	pthread_mutex_unlock(&lock);
	return 0;
}

bool urnic_leave_family(struct urnic_context *ctx)
{
	struct family **at, *f;
	bool last;

	if (!ctx->family)
		return true;
	pthread_mutex_lock(&lock);
	for (at = &families; (*at)->id != ctx->family; at = &(*at)->next)
		;
	f = *at;
	last = !--f->contexts;
	if (last)
		*at = f->next;
	pthread_mutex_unlock(&lock);
	if (last)
		free(f);
	return last;
}

/* Joins a family: its device, the handle of its context and a descriptor for its events, or an errno. */
static int join(uint64_t id, struct ibv_device **device, uint32_t *handle, int *async_fd)
{
	int err = EINVAL;

	pthread_mutex_lock(&lock);
	for (struct family *f = families; f; f = f->next) {
		if (f->id != id)
			continue;
		*device = f->device;
		*handle = f->handle;
		*async_fd = fcntl(f->async_fd, F_DUPFD_CLOEXEC, 0);
		err = *async_fd < 0 ? errno : 0;
		if (!err)
			f->contexts++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* cmd_fd becomes the context's. */
URNIC_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_device *device;
	struct urnic_context *ctx;
	struct badge b;
	int err, fd;

	if (!urnic_is_adapter())
		return urnic_null(urnic_unsupported("ibv_import_device: there is no device of the kernel to share"));
	if (!read_badge(cmd_fd, &b))
		return urnic_null(EINVAL);
	if (b.process != (uint64_t)getpid())
		return urnic_null(urnic_unsupported("ibv_import_device: the context is another process's"));
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	err = join(b.family, &device, &ctx->handle, &fd);
	if (err) {
		free(ctx);
		return urnic_null(err);
	}
	ctx->family = b.family;
	ctx->imported = true;
	urnic_context_fill(ctx, device, fd);
	ctx->verbs.context.cmd_fd = cmd_fd;
	return &ctx->verbs.context;
}

URNIC_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	(void)context;
	(void)dm_handle;
	return urnic_null(urnic_unsupported("ibv_import_dm: memory of the device is its context's alone"));
}

URNIC_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}
