/* What the device has not: each call says so by the errno of its manual page. */
#include "test.h"

#include <infiniband/sa.h>

/* Tools call these, which headers do not have. */
enum ibv_gid_type_sysfs { GID_TYPE_IB_ROCE_V1, GID_TYPE_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index, enum ibv_gid_type_sysfs *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

static void datagrams(struct ibv_context *context, struct ibv_pd *pd, struct ibv_qp *qp)
{
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1};
	struct ibv_ah ah = {.context = context, .pd = pd};
	struct ibv_wc wc = {0};
	struct ibv_grh grh = {0};
	union ibv_gid group = {.raw = {0xff}};
	uint8_t mac[6];
	uint16_t vlan;

	NONE(ibv_create_ah(pd, &attr), EOPNOTSUPP);
	CHECK(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr) != 0);
	CHECK(ibv_create_ah_from_wc(pd, &wc, &grh, 1) == NULL);
	EQ(ibv_destroy_ah(&ah), EOPNOTSUPP);
	EQ(ibv_attach_mcast(qp, &group, 0), EOPNOTSUPP);
	EQ(ibv_detach_mcast(qp, &group, 0), EOPNOTSUPP);
	CHECK(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan) != 0);
}

static void xrc(struct ibv_context *context)
{
	NONE(ibv_open_xrcd(context, &(struct ibv_xrcd_init_attr){
					    .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1}),
	     EOPNOTSUPP);
}

static void flows(struct ibv_context *context, struct ibv_qp *qp)
{
	struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr), .port = 1};
	struct ibv_flow flow = {.context = context};
	struct ibv_flow_action action = {.context = context};
	struct ibv_flow_action_esp_attr esp = {0};

	NONE(ibv_create_flow(qp, &attr), EOPNOTSUPP);
	EQ(ibv_destroy_flow(&flow), EOPNOTSUPP);
	NONE(ibv_create_flow_action_esp(context, &esp), EOPNOTSUPP);
	EQ(ibv_modify_flow_action_esp(&action, &esp), EOPNOTSUPP);
	EQ(ibv_destroy_flow_action(&action), EOPNOTSUPP);
}

static void work_queues(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd};
	struct ibv_rwq_ind_table_init_attr table_attr = {0};
	struct ibv_rwq_ind_table table = {.context = context};
	struct ibv_wq wq = {.context = context};
	struct ibv_wq_attr change = {0};

	NONE(ibv_create_wq(context, &attr), EOPNOTSUPP);
	EQ(ibv_modify_wq(&wq, &change), EOPNOTSUPP);
	EQ(ibv_destroy_wq(&wq), EOPNOTSUPP);
	NONE(ibv_create_rwq_ind_table(context, &table_attr), EOPNOTSUPP);
	EQ(ibv_destroy_rwq_ind_table(&table), EOPNOTSUPP);
}

static void device_memory(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_alloc_dm_attr attr = {.length = 4096};
	struct ibv_dm dm = {.context = context};

	NONE(ibv_alloc_dm(context, &attr), EOPNOTSUPP);
	EQ(ibv_free_dm(&dm), EOPNOTSUPP);
	NONE(ibv_reg_dm_mr(pd, &dm, 0, 4096, IBV_ACCESS_ZERO_BASED), EOPNOTSUPP);
	NONE(ibv_import_dm(context, 1), EOPNOTSUPP);
	ibv_unimport_dm(NULL);
}

static void counters(struct ibv_context *context)
{
	struct ibv_counters_init_attr attr = {0};
	struct ibv_counters counters = {.context = context};
	struct ibv_counter_attach_attr attach = {0};
	uint64_t value;

	NONE(ibv_create_counters(context, &attr), EOPNOTSUPP);
	EQ(ibv_destroy_counters(&counters), EOPNOTSUPP);
	EQ(ibv_attach_counters_point_flow(&counters, &attach, NULL), EOPNOTSUPP);
	EQ(ibv_read_counters(&counters, &value, 1, 0), EOPNOTSUPP);
}

/* Objects of another process: they have no kernel that holds them. */
static void imports(struct ibv_context *context, struct ibv_pd *pd)
{
	NONE(ibv_import_device(0), EOPNOTSUPP);
	NONE(ibv_import_pd(context, 1), EOPNOTSUPP);
	NONE(ibv_import_mr(pd, 1), EOPNOTSUPP);
	ibv_unimport_pd(NULL);
	ibv_unimport_mr(NULL);
}

/* What asks about the machine. */
static void machine(struct ibv_context *context)
{
	enum ibv_gid_type_sysfs type;
	char text[64];
	int n;

	OK(ibv_query_gid_type(context, 1, 0, &type));
	CHECK(ibv_query_gid_type(context, 1, 100000, &type) != 0);
	CHECK(strlen(ibv_get_sysfs_path()) > 0);
	CHECK((n = ibv_read_sysfs_file(context->device->ibdev_path, "node_guid", text, sizeof(text))) > 0);
	CHECK((size_t)n == strlen(text));
	EQ(n, 19); /* four groups of four digits */
	CHECK(ibv_read_sysfs_file(context->device->ibdev_path, "no_such_file", text, sizeof(text)) < 0);
	CHECK(ibv_read_sysfs_file("/no/such/directory", "node_guid", text, sizeof(text)) < 0);
}

/* Memory of a forked child is its own: nothing has to be kept from it. */
static void forks(void)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));

	OK(ibv_fork_init());
	CHECK(ibv_is_fork_initialized() == IBV_FORK_ENABLED || ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
	OK(ibv_dontfork_range(page, sizeof(page)));
	OK(ibv_dofork_range(page, sizeof(page)));
}

int main(void)
{
	struct pair p;

	forks();
	pair_open(&p, &(struct plan){.how = BY_GID});
	datagrams(p.a.context, p.a.pd, p.a.qp);
	xrc(p.a.context);
	flows(p.a.context, p.a.qp);
	work_queues(p.a.context, p.a.pd);
	device_memory(p.a.context, p.a.pd);
	counters(p.a.context);
	imports(p.a.context, p.a.pd);
	machine(p.a.context);
	recv_at(&p.b, 1, 0, 8); /* and nothing of it has done harm */
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	done(p.a.scq, 2, IBV_WC_SEND);
	done(p.b.rcq, 1, IBV_WC_RECV);
	pair_close(&p);
	return 0;
}
