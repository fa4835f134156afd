/* Rsockets by number, and how one begins and goes. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rsocket.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rsocket **table;
static size_t entries;
static bool used;           /* there has been one: atomic */
static bool used_datagrams; /* and one that is a UDP socket: atomic */

/* A thread that has an rsocket is cancelled where it waits (rs_poll), for it may hold the rsocket's lock elsewhere. */
static _Thread_local struct {
	unsigned int depth;
	int state;
} cancel __attribute__((tls_model("initial-exec")));

static void hold(void)
{
	if (!cancel.depth++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel.state);
}

static void let_go(void)
{
	if (!--cancel.depth)
		pthread_setcancelstate(cancel.state, NULL);
}

int rs_poll(struct pollfd *p, nfds_t n, int timeout)
{
	int ready, err;

	if (!cancel.depth)
		return poll(p, n, timeout);
	pthread_setcancelstate(cancel.state, NULL);
	ready = poll(p, n, timeout);
	err = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	errno = err;
	return ready;
}

/* Numbers are descriptors, and so below the limit on those. Under the lock. */
static int enter(struct rsocket *rs)
{
	size_t n = entries ? entries : 64;
	struct rsocket **more;

	while (n <= (size_t)rs->number)
		n *= 2;
	if (n > entries) {
		more = realloc(table, n * sizeof(*table));
		if (!more)
			return ENOMEM;
		memset(more + entries, 0, (n - entries) * sizeof(*table));
		table = more;
		entries = n;
	}
	table[rs->number] = rs;
	if (rs->datagram)
		__atomic_store_n(&used_datagrams, true, __ATOMIC_RELEASE);
	__atomic_store_n(&used, true, __ATOMIC_RELEASE);
	return 0;
}

struct rsocket *rs_make(int domain, int udp)
{
	struct rsocket *rs = calloc(1, sizeof(*rs));
	int err;

	if (!rs)
		return urnic_null(ENOMEM);
	rs->datagram = udp >= 0;
	rs->number = rs->datagram ? udp : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rs->number < 0) {
		err = errno;
		free(rs);
		return urnic_null(err);
	}
	rs->domain = domain;
	rs->refs = 2; /* the table's, and the caller's */
	rs->owed = -1;
	pthread_mutex_init(&rs->lock, NULL);
	pthread_mutex_lock(&lock);
	err = enter(rs);
	pthread_mutex_unlock(&lock);
	if (!err) {
		hold();
		return rs;
	}
	if (!rs->datagram)
		close(rs->number);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
	return urnic_null(err);
}

bool rs_is_datagram(int number)
{
	bool is;

	if (number < 0 || !__atomic_load_n(&used_datagrams, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&lock);
	is = (size_t)number < entries && table[number] && table[number]->datagram;
	pthread_mutex_unlock(&lock);
	return is;
}

/* In a child that has lost the engine there are none. Elsewhere it is there if any rsocket is. */
static struct rsocket *find(int number, bool datagrams)
{
	struct rsocket *rs = NULL;
	int err = errno;

	if (number < 0 || !__atomic_load_n(&used, __ATOMIC_ACQUIRE))
		return NULL;
	if (urnic_engine()) {
		pthread_mutex_lock(&lock);
		if ((size_t)number < entries && table[number] && (datagrams || !table[number]->datagram)) {
			rs = table[number];
			rs->refs++;
		}
		pthread_mutex_unlock(&lock);
		if (rs)
			hold();
	}
	errno = err;
	return rs;
}

struct rsocket *rs_find(int number)
{
	return find(number, false);
}

struct rsocket *rs_any(int number)
{
	struct rsocket *rs;

	if (__atomic_load_n(&used, __ATOMIC_ACQUIRE) && !urnic_engine())
		return NULL; /* with errno: in a child */
	rs = find(number, true);
	return rs ? rs : urnic_null(EBADF);
}

struct rsocket *rs_get(int number)
{
	struct rsocket *rs = rs_any(number);

	if (!rs || !rs->datagram)
		return rs;
	rs_put(rs);
	return urnic_null(EOPNOTSUPP);
}

struct rsocket *rs_remove(int number)
{
	struct rsocket *rs = rs_any(number);
	bool mine;

	if (!rs)
		return NULL;
	pthread_mutex_lock(&lock);
	mine = table[number] == rs;
	if (mine) {
		table[number] = NULL;
		rs->refs--;
	}
	pthread_mutex_unlock(&lock);
	if (mine)
		return rs;
	rs_put(rs); /* another thread was faster */
	return urnic_null(EBADF);
}

void rs_put(struct rsocket *rs)
{
	uint32_t left;
	int err = errno;

	pthread_mutex_lock(&lock);
	left = --rs->refs;
	pthread_mutex_unlock(&lock);
	if (!left) {
		rs_release(rs);
		pthread_mutex_destroy(&rs->lock);
		free(rs);
	}
	let_go();
	errno = err;
}
