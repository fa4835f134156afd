/* Devices, their list and names, and contexts. */
#include "test.h"

#include <fcntl.h>

static void list(void)
{
	struct ibv_device **devices;
	int n = -1;

	CHECK(devices = ibv_get_device_list(&n));
	EQ(n, 1);
	CHECK(devices[0] != NULL && devices[1] == NULL);
	EQ(strcmp(ibv_get_device_name(devices[0]), "urnic0"), 0);
	EQ(strcmp(devices[0]->name, "urnic0"), 0);
	CHECK(strlen(devices[0]->dev_name) > 0);
	EQ(devices[0]->node_type, IBV_NODE_RNIC);
	EQ(devices[0]->transport_type, IBV_TRANSPORT_IWARP);
	CHECK(ibv_get_device_guid(devices[0]) != 0);
	CHECK(ibv_get_device_index(devices[0]) >= -1);
	ibv_free_device_list(devices);

	CHECK(devices = ibv_get_device_list(NULL)); /* the count is optional */
	ibv_free_device_list(devices);
}

/* A device that is opened outlives the list, and a second list names the same. */
static void open_outlives_the_list(void)
{
	struct ibv_device **first, **second;
	struct ibv_context *context;
	struct ibv_device_attr attr;

	CHECK(first = ibv_get_device_list(NULL));
	CHECK(second = ibv_get_device_list(NULL));
	EQ(ibv_get_device_guid(first[0]), ibv_get_device_guid(second[0]));
	CHECK(context = ibv_open_device(first[0]));
	ibv_free_device_list(first);
	ibv_free_device_list(second);
	EQ(strcmp(ibv_get_device_name(context->device), "urnic0"), 0);
	OK(ibv_query_device(context, &attr));
	EQ(attr.node_guid, ibv_get_device_guid(context->device));
	OK(ibv_close_device(context));
}

static void context_members(void)
{
	struct ibv_context *context = open_device();

	CHECK(context->async_fd >= 0);
	CHECK(fcntl(context->async_fd, F_GETFD) & FD_CLOEXEC);
	CHECK(context->num_comp_vectors >= 1);
	CHECK(context->abi_compat == __VERBS_ABI_IS_EXTENDED);
	CHECK(verbs_get_ctx(context)->sz <= sizeof(struct verbs_context));
	CHECK(context->ops.poll_cq && context->ops.req_notify_cq && context->ops.post_send && context->ops.post_recv &&
	      context->ops.post_srq_recv && context->ops.alloc_mw && context->ops.bind_mw && context->ops.dealloc_mw);
	OK(ibv_close_device(context));
}

static void query(void)
{
	struct ibv_context *context = open_device();
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input input = {.comp_mask = 0};

	memset(&attr, 0xff, sizeof(attr));
	OK(ibv_query_device(context, &attr));
	CHECK(memchr(attr.fw_ver, 0, sizeof(attr.fw_ver)));
	CHECK(attr.fw_ver[0]); /* the version of the engine */
	CHECK(attr.sys_image_guid != 0 && attr.node_guid != 0);
	EQ(attr.vendor_id, 0x726e69);
	EQ(attr.vendor_id >> 16 & 3, 2); /* locally administered: it is nobody else's */
	EQ(attr.vendor_part_id, 1);
	CHECK(attr.max_mr_size >= (1ULL << 32));
	CHECK(attr.page_size_cap & 4096);
	CHECK(attr.max_qp >= 1000 && attr.max_qp_wr >= 1024 && attr.max_sge >= 4 && attr.max_sge_rd >= 1);
	CHECK(attr.max_cq >= 1000 && attr.max_cqe >= 1024 && attr.max_mr >= 1000 && attr.max_pd >= 100);
	CHECK(attr.max_mw >= 100 && attr.max_srq >= 100 && attr.max_srq_wr >= 1024 && attr.max_srq_sge >= 1);
	CHECK(attr.max_qp_rd_atom >= 16 && attr.max_qp_init_rd_atom >= 16);
	CHECK(attr.atomic_cap == IBV_ATOMIC_HCA || attr.atomic_cap == IBV_ATOMIC_GLOB);
	CHECK(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	CHECK(attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B));
	CHECK(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	EQ(attr.phys_port_cnt, 1);
	EQ(attr.max_pkeys, 1);
	EQ(attr.max_mcast_grp, 0);
	EQ(attr.max_ah, 0);

	memset(&ex, 0xff, sizeof(ex));
	OK(ibv_query_device_ex(context, &input, &ex));
	EQ(memcmp(&ex.orig_attr, &attr, sizeof(attr)), 0);
	EQ(ex.odp_caps.general_caps, 0);
	EQ(ex.tso_caps.max_tso, 0);
	EQ(ex.tm_caps.max_num_tags, 0);
	EQ(ex.max_dm_size, 0);
	EQ(ex.max_wq_type_rq, 0);
	EQ(ex.phys_port_cnt_ex, 1);
	memset(&ex, 0xff, sizeof(ex));
	OK(ibv_query_device_ex(context, NULL, &ex));
	input.comp_mask = 1;
	EQ(ibv_query_device_ex(context, &input, &ex), EINVAL);

	/* A program of an older rdma-core passes a smaller struct: nothing past it is written. */
	memset(&ex, 0xff, sizeof(ex));
	OK(verbs_get_ctx(context)->query_device_ex(context, NULL, &ex, offsetof(struct ibv_device_attr_ex, tso_caps)));
	EQ(memcmp(&ex.orig_attr, &attr, sizeof(attr)), 0);
	EQ(ex.tso_caps.max_tso, 0xffffffff);
	OK(ibv_close_device(context));
}

static void rt_values(void)
{
	struct ibv_context *context = open_device();
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_device_attr_ex ex;
	int error = ibv_query_rt_values_ex(context, &values);

	/* Completions have a time if the device has a clock, and not otherwise. */
	OK(ibv_query_device_ex(context, NULL, &ex));
	if (error == 0)
		CHECK(values.raw_clock.tv_sec != 0 || values.raw_clock.tv_nsec != 0);
	else
		EQ(error, EOPNOTSUPP);
	EQ(error == 0, ex.hca_core_clock != 0);
	OK(ibv_close_device(context));
}

/* Contexts are independent, and there may be several. */
static void several_contexts(void)
{
	struct ibv_context *contexts[8];
	struct ibv_pd *pds[8];

	for (size_t i = 0; i < COUNT(contexts); i++) {
		contexts[i] = open_device();
		CHECK(pds[i] = ibv_alloc_pd(contexts[i]));
		for (size_t j = 0; j < i; j++)
			CHECK(contexts[i] != contexts[j] && contexts[i]->async_fd != contexts[j]->async_fd);
	}
	for (size_t i = 0; i < COUNT(contexts); i++) {
		CHECK(pds[i]->context == contexts[i]);
		OK(ibv_dealloc_pd(pds[i]));
		OK(ibv_close_device(contexts[i]));
	}
}

/* Nothing is left open by many uses. */
static void no_descriptor_is_lost(void)
{
	int before, after;

	OK(ibv_close_device(open_device()));
	before = dup(0);
	close(before);
	for (int i = 0; i < 50; i++)
		OK(ibv_close_device(open_device()));
	after = dup(0);
	close(after);
	EQ(after, before);
}

int main(void)
{
	list();
	open_outlives_the_list();
	context_members();
	query();
	rt_values();
	several_contexts();
	no_descriptor_is_lost();
	return 0;
}
