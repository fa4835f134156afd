/*
 * Opens each library that it is given in a thread, uses it, closes it and lets the thread
 * end. Then it does what would reach the code of a library that is gone: another thread
 * ends, a child is forked, a signal comes, and the process exits. It is linked to none of
 * the libraries.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x)                                                                       \
	do {                                                                           \
		if (!(x)) {                                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);        \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

static void *function(void *so, const char *name)
{
	void *f = dlsym(so, name);

	if (!f)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(f);
	return f;
}

static void use_verbs(void *so)
{
	struct ibv_device **(*get_list)(int *) = function(so, "ibv_get_device_list");
	void (*free_list)(struct ibv_device **) = function(so, "ibv_free_device_list");
	struct ibv_context *(*open_device)(struct ibv_device *) = function(so, "ibv_open_device");
	int (*close_device)(struct ibv_context *) = function(so, "ibv_close_device");
	struct ibv_context *context;
	struct ibv_device **list;
	int n;

	CHECK(list = get_list(&n));
	CHECK(n == 1);
	CHECK(context = open_device(list[0]));
	CHECK(!close_device(context));
	free_list(list);
}

static void use_cm(void *so)
{
	struct rdma_event_channel *(*create)(void) = function(so, "rdma_create_event_channel");
	void (*destroy)(struct rdma_event_channel *) = function(so, "rdma_destroy_event_channel");
	struct rdma_event_channel *channel = create();

	CHECK(channel);
	destroy(channel);
}

static void use_efa(void *so)
{
	int (*query)(struct ibv_context *, void *, uint32_t) = function(so, "efadv_query_device");

	CHECK(query(NULL, NULL, 0));
}

static void use_mlx5(void *so)
{
	void *(*open_device)(struct ibv_device *, void *) = function(so, "mlx5dv_open_device");

	CHECK(!open_device(NULL, NULL));
}

static void *in_thread(void *arg)
{
	const char *name = arg;
	void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!so)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(so);
	if (strstr(name, "libibverbs"))
		use_verbs(so);
	else if (strstr(name, "librdmacm"))
		use_cm(so);
	else if (strstr(name, "libefa"))
		use_efa(so);
	else
		use_mlx5(so);
	CHECK(!dlclose(so));
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

static void run(void *(*f)(void *), void *arg)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, f, arg));
	CHECK(!pthread_join(thread, NULL));
}

static volatile sig_atomic_t caught;

static void count(int sig)
{
	(void)sig;
	caught++;
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = count};
	int status;
	pid_t child;

	for (int round = 0; round < 3; round++)
		for (int i = 1; i < argc; i++)
			run(in_thread, argv[i]);
	run(nothing, NULL);

	/* SIGPIPE is one of the signals whose handler is replaced once the engine runs. */
	CHECK(!sigaction(SIGPIPE, &act, NULL));
	CHECK(!raise(SIGPIPE));
	CHECK(caught == 1);

	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		exit(0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(status == 0);
	return 0;
}
