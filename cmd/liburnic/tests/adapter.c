/* What InfiniBand adapters have besides: URNIC_TRANSPORT=ethernet. */
#include "test.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The device says what it has. */
static void attributes(void)
{
	struct ibv_context *context = open_device();
	struct ibv_device_attr_ex attr;

	OK(ibv_query_device_ex(context, NULL, &attr));
	EQ(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	CHECK(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_READ);
	EQ(attr.hca_core_clock, 1000000); /* kHz */
	CHECK(attr.completion_timestamp_mask == UINT64_MAX);
	CHECK(attr.max_dm_size >= 1 << 20);
	OK(ibv_close_device(context));
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Completions have the time of the device's clock, and of the wall's if it was asked for. */
static void times(void)
{
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
	struct plan plan = {.how = BY_GID,
			    .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	uint64_t wall = now_ns(CLOCK_REALTIME), at;
	struct ibv_poll_cq_attr none = {0};
	struct ibv_cq_ex *cq;
	struct pair p;

	pair_open(&p, &plan);
	OK(ibv_query_rt_values_ex(p.a.context, &before));
	recv_at(&p.b, 1, 0, 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	cq = (struct ibv_cq_ex *)p.b.rcq;
	while (ibv_start_poll(cq, &none) == ENOENT)
		;
	EQ(cq->wr_id, 1);
	at = ibv_wc_read_completion_ts(cq);
	OK(ibv_query_rt_values_ex(p.a.context, &after));
	CHECK((uint64_t)before.raw_clock.tv_nsec <= at && at <= (uint64_t)after.raw_clock.tv_nsec);
	CHECK(wall <= ibv_wc_read_completion_wallclock_ns(cq));
	CHECK(ibv_wc_read_completion_wallclock_ns(cq) <= now_ns(CLOCK_REALTIME));
	ibv_end_poll(cq);
	pair_close(&p);
}

/* A region for paging on demand may be registered before its memory is there, and is used when it is. */
static void paging(void)
{
	const int access = ALL_ACCESS | IBV_ACCESS_ON_DEMAND;
	unsigned char in_core[2];
	struct ibv_sge sge = {0};
	struct ibv_mr *mr, *plain;
	struct pair p;
	char *memory;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK((memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	CHECK(mr = ibv_reg_mr(p.a.pd, memory, 8192, access));
	OK(mincore(memory, 8192, in_core));
	EQ(in_core[0] & 1, 0); /* not touched */
	sge = (struct ibv_sge){.addr = (uintptr_t)memory + 4096, .length = 4096, .lkey = mr->lkey};
	OK(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	OK(mincore(memory, 8192, in_core));
	EQ(in_core[0] & 1, 0);
	EQ(in_core[1] & 1, 1);
	OK(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, &sge, 1));

	sge.length = 4097; /* past the end */
	EQ(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EFAULT);
	sge = (struct ibv_sge){.addr = (uintptr_t)memory, .length = 1, .lkey = mr->lkey + 1};
	EQ(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), ENOENT);
	CHECK(plain = ibv_reg_mr(p.a.pd, memory, 1, IBV_ACCESS_LOCAL_WRITE));
	sge.lkey = plain->lkey; /* no region for paging on demand */
	EQ(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EINVAL);
	OK(ibv_dereg_mr(plain));
	CHECK(plain = ibv_reg_mr(p.a.pd, memory, 1, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND));
	sge.lkey = plain->lkey;
	EQ(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1), EPERM);
	EQ(ibv_advise_mr(p.a.pd, (enum ibv_advise_mr_advice)99, 0, &sge, 1), ENOTSUP);
	EQ(ibv_advise_mr(p.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 1), EINVAL);
	OK(ibv_dereg_mr(plain));

	memcpy(memory, "on demand", 9);
	recv_at(&p.b, 1, 0, 64);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .offset = (uintptr_t)memory - (uintptr_t)p.a.memory, .length = 9,
	     .lkey = mr->lkey);
	done(p.a.scq, 2, IBV_WC_SEND);
	done(p.b.rcq, 1, IBV_WC_RECV);
	EQ(memcmp(p.b.memory, "on demand", 9), 0);
	OK(ibv_dereg_mr(mr));
	OK(munmap(memory, 8192));
	pair_close(&p);
}

/* Device memory is copied to and from, and is registered from 0. */
static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 4096, .log_align_req = 12};
	char text[12] = {0};
	struct ibv_mr *mr, *none;
	struct ibv_dm *dm;
	struct pair p;

	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(dm = ibv_alloc_dm(p.b.context, &attr));
	OK(ibv_memcpy_from_dm(text, dm, 4084, 12));
	EQ(text[0], 0); /* it is cleared */
	EQ(ibv_memcpy_to_dm(dm, 4092, "beyond!", 8), EFAULT);
	EQ(ibv_memcpy_to_dm(dm, 1, "odd.", 4), EFAULT);
	EQ(ibv_memcpy_from_dm(text, dm, 0, 3), EFAULT);
	NONE(ibv_reg_dm_mr(p.b.pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE), EINVAL); /* not from 0 */
	NONE(ibv_reg_dm_mr(p.b.pd, dm, 4, 4096, ALL_ACCESS | IBV_ACCESS_ZERO_BASED), EINVAL);
	CHECK(mr = ibv_reg_dm_mr(p.b.pd, dm, 1024, 1024, ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	EQ(ibv_free_dm(dm), EBUSY);
	CHECK(none = ibv_reg_dm_mr(p.b.pd, dm, 4096, 0, ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	EQ(none->length, 0);
	OK(ibv_dereg_mr(none));

	memcpy(p.a.memory, "to a device", 12);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 12, .remote = 8, .rkey = mr->rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	memset(p.a.memory, 0, 12);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 12, .remote = 8, .rkey = mr->rkey);
	done(p.a.scq, 2, IBV_WC_RDMA_READ);
	EQ(memcmp(p.a.memory, "to a device", 12), 0);
	OK(ibv_memcpy_from_dm(text, dm, 1032, 12));
	EQ(memcmp(text, "to a device", 12), 0);
	OK(ibv_dereg_mr(mr));
	OK(ibv_free_dm(dm));

	attr.length = (size_t)1 << 40;
	NONE(ibv_alloc_dm(p.b.context, &attr), ENOMEM);
	attr.length = 0;
	NONE(ibv_alloc_dm(p.b.context, &attr), EINVAL);
	pair_close(&p);
}

/* Memory behind a descriptor that can be mapped, as that of a DMA-BUF. */
static void mapped(void)
{
	int fd = memfd_create("memory of another device", MFD_CLOEXEC);
	char text[8] = {0};
	struct ibv_mr *mr;
	struct pair p;

	CHECK(fd >= 0);
	OK(ftruncate(fd, 8192));
	pair_open(&p, &(struct plan){.how = BY_GID});
	CHECK(mr = ibv_reg_dmabuf_mr(p.b.pd, 4100, 64, 0x1000, fd, ALL_ACCESS));
	memcpy(p.a.memory, "mapped", 7);
	post(&p.a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 7, .remote = 0x1000, .rkey = mr->rkey);
	done(p.a.scq, 1, IBV_WC_RDMA_WRITE);
	post(&p.a, .opcode = IBV_WR_RDMA_READ, .wr_id = 2, .length = 7, .remote = 0x1000, .rkey = mr->rkey);
	done(p.a.scq, 2, IBV_WC_RDMA_READ);
	EQ(pread(fd, text, 7, 4100), 7);
	EQ(memcmp(text, "mapped", 7), 0);
	OK(ibv_dereg_mr(mr));
	NONE(ibv_reg_dmabuf_mr(p.b.pd, 0, 64, 0, -1, ALL_ACCESS), EBADF);
	NONE(ibv_reg_dmabuf_mr(p.b.pd, 0, 0, 0, fd, ALL_ACCESS), EINVAL);
	pair_close(&p);
	OK(close(fd));
}

/* A context's PDs and regions can be imported by its descriptor, and outlive the context that made them. */
static void imports(void)
{
	struct ibv_context *first = open_device(), *second, *stranger;
	struct ibv_mr *mr, *imported;
	struct ibv_pd *pd, *shared;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	char memory[64];
	int fd;

	CHECK(pd = ibv_alloc_pd(first));
	CHECK(mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	CHECK((fd = dup(first->cmd_fd)) >= 0);
	CHECK(second = ibv_import_device(fd));
	CHECK(shared = ibv_import_pd(second, pd->handle));
	CHECK(imported = ibv_import_mr(shared, mr->handle));
	EQ(imported->lkey, mr->lkey);
	EQ(imported->rkey, mr->rkey);
	EQ(imported->length, sizeof(memory));
	CHECK(imported->addr == NULL);
	NONE(ibv_import_pd(second, pd->handle + 1000), ENOENT);
	NONE(ibv_import_mr(shared, mr->handle + 1000), ENOENT);

	stranger = open_device();
	NONE(ibv_import_pd(stranger, pd->handle), ENOENT); /* not of its family */
	OK(ibv_close_device(stranger));

	/* Queue pairs of the imported context use the PD. */
	CHECK(attr.send_cq = attr.recv_cq = ibv_create_cq(second, 4, NULL, NULL, 0));
	{
		struct ibv_qp *qp;

		CHECK(qp = ibv_create_qp(shared, &attr));
		OK(ibv_destroy_qp(qp));
	}
	OK(ibv_destroy_cq(attr.send_cq));

	/* Who is through with them forgets them; the other one destroys them. */
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	OK(ibv_close_device(first));
	OK(ibv_dereg_mr(imported));
	OK(ibv_dealloc_pd(shared));
	CHECK((fd = dup(second->cmd_fd)) >= 0);
	OK(ibv_close_device(second));
	NONE(ibv_import_device(fd), EINVAL); /* nobody of the family is left */
	OK(close(fd));
	CHECK((fd = memfd_create("no context", MFD_CLOEXEC)) >= 0);
	NONE(ibv_import_device(fd), EINVAL);
	OK(close(fd));
	NONE(ibv_import_dm(NULL, 1), EOPNOTSUPP);
}

int main(void)
{
	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	attributes();
	times();
	paging();
	device_memory();
	mapped();
	imports();
	return 0;
}
