/*
 * Memory regions.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter.h"

#define REMOTE_WRITERS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* What the engine is notified of. */
#define ENGINE_ACCESS                                                                                                  \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | REMOTE_WRITERS | IBV_ACCESS_MW_BIND |        \
			IBV_ACCESS_ZERO_BASED))

/* What means nothing here: pages are the process's own, and what is optional may be ignored. */
#define IGNORED_ACCESS ((unsigned int)(IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE))

/* Returns 0 or an errno: those of the kernel. Who is written to from afar must be writable at all. */
static int check_access(unsigned int access)
{
	if ((access & IBV_ACCESS_ON_DEMAND) && !urnic_is_adapter()) /* which devices that have it say in odp_caps */
		return urnic_unsupported("register: IBV_ACCESS_ON_DEMAND is not supported");
	if (access & ~(ENGINE_ACCESS | IGNORED_ACCESS))
		return EINVAL;
	return (access & REMOTE_WRITERS) && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

/* Says whether all pages of a range are mapped. */
static bool mapped(char *start, size_t len, size_t page)
{
	unsigned char in_core[1024];

	while (len) {
		size_t n = len < sizeof(in_core) * page ? len : sizeof(in_core) * page;

		if (mincore(start, n, in_core) && errno != EAGAIN)
			return errno != ENOMEM;
		start += n;
		len -= n;
	}
	return true;
}

/* Says whether the kernel knows the advice: if so, EINVAL means that the access is not allowed. */
static bool can_populate(size_t page)
{
	char here;

	return !madvise((void *)((uintptr_t)&here & ~(page - 1)), page, MADV_POPULATE_READ);
}

/* Above this, pages are not fetched beforehand: a program may reserve more than it uses. */
#define POPULATE_MAX ((size_t)256 << 20)

/*
 * Does what hardware's drivers do by pinning the pages: EFAULT if the range is not mapped, or
 * not for the access. The pages are there afterwards, so that the first messages don't wait
 * for them.
 */
static int touch(void *addr, size_t length, unsigned int access)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	size_t len;
	int advice = access & (IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITERS) ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (!length || (access & IBV_ACCESS_ON_DEMAND))
		return 0;
	if ((uintptr_t)addr + length < length || (uintptr_t)addr + length > UINTPTR_MAX - page)
		return EINVAL;
	len = (((uintptr_t)addr + length + page - 1) & ~(page - 1)) - start;
	if (len <= POPULATE_MAX) {
		if (!madvise((void *)start, len, advice))
			return 0;
		if (errno == EFAULT || errno == EHWPOISON || (errno == EINVAL && can_populate(page)))
			return EFAULT;
	}
	return mapped((char *)start, len, page) ? 0 : EFAULT;
}

/* The TO of the first byte. */
static uint64_t tagged_offset(uint64_t iova, unsigned int access)
{
	return access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
}

/* Notes what others may import, and what ibv_advise_mr asks about: 0 or an errno. */
static int share(const struct ibv_mr *mr, unsigned int access)
{
	if (!urnic_is_adapter())
		return 0;
	return urnic_share((struct urnic_shared){
		.kind = URNIC_MR,
		.handle = mr->handle,
		.family = urnic_context(mr->context)->family,
		.mr = *mr,
		.access = access,
	});
}

/* Whether a region is of all memory of the process: an implicit one. */
static bool is_implicit(const void *addr, size_t length, unsigned int access)
{
	return !addr && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND);
}

struct ibv_mr *urnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct urnic_mr want = {
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = tagged_offset(iova, access),
		.access = access & ENGINE_ACCESS,
	};
	const struct urnic_engine *e;
	struct urnic_region *r;
	int err;

	if (!pd)
		return urnic_null(EINVAL);
	e = urnic_engine();
	if (!e)
		return NULL;
	err = check_access(access);
	if (is_implicit(addr, length, access)) {
		want.access |= IBV_ACCESS_ON_DEMAND;
		if (iova || (access & IBV_ACCESS_ZERO_BASED))
			err = EINVAL; /* it has the process's own addresses */
	}
	if (!err)
		err = touch(addr, length, access);
	if (err)
		return urnic_null(err);
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	err = e->mr_reg(pd->handle, &want);
	if (err) {
		free(r);
		return urnic_null(err);
	}
	r->mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = want.mr,
		.lkey = want.stag,
		.rkey = want.stag,
	};
	r->access = access;
	err = share(&r->mr, access);
	if (err) {
		(void)e->mr_dereg(want.mr); /* nobody has seen it */
		free(r);
		return urnic_null(err);
	}
	urnic_pd_use(pd, 1);
	return &r->mr;
}

URNIC_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return urnic_reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

URNIC_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return urnic_reg_mr(pd, addr, length, iova, (unsigned int)access);
}

URNIC_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
					     unsigned int access)
{
	return urnic_reg_mr(pd, addr, length, iova, access);
}

/* Of an adapter, memory of another device that can be mapped is memory like any other. */
URNIC_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
					      int access)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), into = offset & (page - 1);
	struct urnic_region *r;
	struct ibv_mr *mr;
	void *mapping;

	if (!urnic_is_adapter())
		return urnic_null(urnic_unsupported("ibv_reg_dmabuf_mr: memory of other devices can't be registered"));
	if (!length || length > SIZE_MAX - into || offset > INT64_MAX || (access & IBV_ACCESS_ON_DEMAND))
		return urnic_null(EINVAL);
	mapping = mmap(NULL, length + into, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - into));
	if (mapping == MAP_FAILED && errno == EACCES && !(access & (IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITERS)))
		mapping = mmap(NULL, length + into, PROT_READ, MAP_SHARED, fd, (off_t)(offset - into));
	if (mapping == MAP_FAILED)
		return NULL;
	mr = urnic_reg_mr(pd, (char *)mapping + into, length, iova, (unsigned int)access);
	if (!mr) {
		int err = errno;

		munmap(mapping, length + into);
		return urnic_null(err);
	}
	mr->addr = NULL; /* the program has none */
	r = urnic_container(mr, struct urnic_region, mr);
	r->mapping = mapping;
	r->mapped = length + into;
	return mr;
}

static int rereg_fail(int err, int code)
{
	errno = err;
	return code;
}

/*
 * Returns 0, or IBV_REREG_MR_ERR_INPUT with errno: whatever fails, the region is valid, as it
 * was. The other codes are for regions that are not, and for ibv_fork_init, which has nothing
 * to do here.
 */
URNIC_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	const bool translation = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	const bool rights = flags & IBV_REREG_MR_CHANGE_ACCESS;
	const bool domain = flags & IBV_REREG_MR_CHANGE_PD;
	struct urnic_region *r = urnic_container(mr, struct urnic_region, mr);
	struct urnic_mr want = {0};
	const struct urnic_engine *e;
	int err;

	if (!mr || !flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) || (translation && (!addr || !length)) ||
	    (domain && !pd) || (access && !rights))
		return rereg_fail(EINVAL, IBV_REREG_MR_ERR_INPUT);
	err = rights ? check_access((unsigned int)access) : 0;
	if (err)
		return rereg_fail(err, IBV_REREG_MR_ERR_INPUT);
	e = urnic_engine();
	if (!e)
		return IBV_REREG_MR_ERR_INPUT;
	if (translation) {
		err = touch(addr, length, rights ? (unsigned int)access : 0);
		if (err)
			return rereg_fail(err, IBV_REREG_MR_ERR_INPUT);
		want.addr = (uintptr_t)addr;
		want.length = length;
		want.iova = tagged_offset((uintptr_t)addr, rights ? (unsigned int)access : 0);
	}
	if (rights) {
		err = translation ? 0 : touch(mr->addr, mr->length, (unsigned int)access);
		if (err)
			return rereg_fail(err, IBV_REREG_MR_ERR_INPUT);
		want.access = (unsigned int)access & ENGINE_ACCESS;
	}
	err = e->mr_rereg(mr->handle, (uint32_t)flags, domain ? pd->handle : 0, &want);
	if (err)
		return rereg_fail(err, IBV_REREG_MR_ERR_INPUT); /* the engine has left it as it was */
	if (translation) {
		mr->addr = addr;
		mr->length = length;
	}
	if (domain) {
		urnic_pd_use(pd, 1);
		urnic_pd_use(mr->pd, -1);
		mr->pd = pd;
	}
	mr->lkey = want.stag;
	mr->rkey = want.stag;
	if (rights)
		r->access = (unsigned int)access;
	urnic_unshare(URNIC_MR, mr->handle);
	(void)share(mr, r->access); /* if there is no memory for that, it can't be imported any more */
	return 0;
}

/* Frees what a region consists of here. */
static void release(struct urnic_region *r)
{
	if (r->mapping)
		munmap(r->mapping, r->mapped);
	if (r->dm)
		urnic_dm_use(r->dm, -1);
	free(r);
}

URNIC_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	const struct urnic_engine *e;
	int err;

	if (!mr)
		return urnic_fail(EINVAL);
	e = urnic_engine();
	if (!e)
		return errno;
	err = e->mr_dereg(mr->handle);
	if (err)
		return urnic_fail(err);
	urnic_unshare(URNIC_MR, mr->handle);
	urnic_pd_use(mr->pd, -1);
	release(urnic_container(mr, struct urnic_region, mr));
	return 0;
}

/* A region that another context of the process has made. Its memory is nobody's business here. */
URNIC_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct urnic_region *r;
	struct ibv_mr mr;

	if (!pd)
		return urnic_null(EINVAL);
	if (!urnic_is_adapter())
		return urnic_null(urnic_unsupported("ibv_import_mr: there is no device of the kernel to share"));
	if (!urnic_find_mr(mr_handle, urnic_context(pd->context)->family, &mr))
		return urnic_null(ENOENT);
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->mr = mr;
	r->mr.context = pd->context;
	r->mr.pd = pd;
	r->mr.addr = NULL;
	urnic_pd_use(pd, 1);
	return &r->mr;
}

/* Frees what is known of the region here, whether it was imported or has been by others: the region stays. */
URNIC_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (!mr)
		return;
	urnic_pd_use(mr->pd, -1);
	release(urnic_container(mr, struct urnic_region, mr));
}
