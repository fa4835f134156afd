/*
 * Programs that open the libraries at run time, and look functions up by name and
 * version, get ours: by LD_PRELOAD, and by LD_LIBRARY_PATH.
 */
#include "test.h"

#include <dlfcn.h>

static void *open_one(const char *name)
{
	void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!so)
		FAIL("%s: %s", name, dlerror());
	return so;
}

int main(void)
{
	void *verbs = open_one("libibverbs.so.1"), *cm = open_one("librdmacm.so.1"), *other;
	struct ibv_device **(*get_list)(int *);
	const char *(*get_name)(struct ibv_device *);
	struct ibv_device **list;
	int n;

	CHECK(get_list = (struct ibv_device **(*)(int *))dlvsym(verbs, "ibv_get_device_list", "IBVERBS_1.1"));
	CHECK(get_name = (const char *(*)(struct ibv_device *))dlsym(verbs, "ibv_get_device_name"));
	CHECK(list = get_list(&n));
	EQ(n, 1);
	EQ(strcmp(get_name(list[0]), "urnic0"), 0);
	ibv_free_device_list(list); /* the same library as that which the program is linked to */
	CHECK(dlvsym(cm, "rdma_create_event_channel", "RDMACM_1.0") == (void *)rdma_create_event_channel);
	CHECK(dlvsym(verbs, "ibv_reg_mr_iova2", "IBVERBS_1.8") != NULL);
	CHECK(dlvsym(verbs, "ibv_get_device_list", "IBVERBS_9.9") == NULL);

	/* Others are as they are. */
	CHECK(other = open_one("libm.so.6"));
	CHECK(dlsym(other, "cos"));
	OK(dlclose(other));
	CHECK(dlopen(NULL, RTLD_NOW));
	CHECK(!dlopen("libnowhere.so.7", RTLD_NOW));
	CHECK(strstr(dlerror(), "libnowhere.so.7"));

	OK(dlclose(verbs));
	OK(dlclose(cm));
	CHECK(list = ibv_get_device_list(NULL)); /* it is still there */
	ibv_free_device_list(list);
	return 0;
}
