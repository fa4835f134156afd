/* Waiting for rsockets: for one in a call that blocks, for many in rpoll and rselect. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "rsocket.h"

#define SPIN_US 10 /* before a call that blocks sleeps */

static uint64_t microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* The eventfd of each thread that waits. The key's value is the descriptor and one. */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void close_bell(void *value)
{
	close((int)((intptr_t)value - 1));
}

static void make_key(void)
{
	pthread_key_create(&key, close_bell);
}

/* This thread's eventfd, silent, or -1 with errno. */
static int bell(void)
{
	uint64_t rung;
	intptr_t fd;

	pthread_once(&once, make_key);
	fd = (intptr_t)pthread_getspecific(key) - 1;
	if (fd >= 0) {
		if (read((int)fd, &rung, sizeof(rung)) == sizeof(rung) || errno == EAGAIN)
			return (int)fd;
	}
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd >= 0 && pthread_setspecific(key, (void *)(fd + 1))) {
		close((int)fd);
		return urnic_minus(ENOMEM);
	}
	return (int)fd;
}

void rs_tell_waiters(struct rsocket *rs, const struct rs_waiter *but)
{
	const uint64_t one = 1;

	for (struct rs_waiter *w = rs->waiters; w; w = w->next)
		if (w != but && write(w->fd, &one, sizeof(one)) < 0)
			continue; /* it is full: the waiter is awake */
}

static void join(struct rsocket *rs, struct rs_waiter *w, int fd)
{
	w->fd = fd;
	w->next = rs->waiters;
	rs->waiters = w;
}

static void leave(struct rsocket *rs, struct rs_waiter *w)
{
	for (struct rs_waiter **at = &rs->waiters; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			return;
		}
}

short rs_ready(const struct rsocket *rs, short events)
{
	short in = 0, out = 0;

	switch (rs->state) {
	case RS_NEW:
		return POLLHUP | (events & POLLOUT);
	case RS_LISTENING:
		return rs->requests ? events & (POLLIN | POLLRDNORM) : 0;
	case RS_FAILED:
		return POLLERR | POLLHUP | (events & (POLLIN | POLLOUT));
	case RS_CONNECTED:
		break;
	default:
		return 0;
	}
	if (rs->in_ready || rs->in_over || rs->in_shut || rs->drained)
		in = POLLIN | POLLRDNORM;
	if (rs->in_over || rs->in_shut || rs->drained)
		in |= POLLRDHUP;
	/* A Write at the end of the outbox may be small; a program that gets little room would send little. */
	if (rs->out_over || (rs_room(rs) && rs->outbox_free >= RS_LEAST_ROOM))
		out = POLLOUT | POLLWRNORM;
	/* Programs take a hang-up for the end: it comes when all has been read. */
	if (!rs->in_ready && (rs->drained || (rs->out_over && rs->in_over)))
		out |= POLLHUP;
	if (rs->error && !rs->in_ready)
		out |= POLLERR;
	return (short)((in | out) & (events | POLLHUP | POLLERR));
}

/*
 * Sees to it that the rsocket's descriptors become readable when something comes: takes the
 * event that is there, and asks for the next one. What came before is looked at once more.
 */
static void arm(struct rsocket *rs, const struct rs_waiter *me)
{
	struct ibv_cq *cq;
	void *context;

	if (rs->state != RS_CONNECTED)
		return;
	if (rs->armed && !ibv_get_cq_event(rs->comp, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		rs->armed = false;
		rs_tell_waiters(rs, me);
	}
	if (!rs->armed)
		rs->armed = !ibv_req_notify_cq(rs->cq, 0);
	rs_process(rs);
}

/* The descriptor that reports what comes to an rsocket; -1: nothing does. */
static int source(const struct rsocket *rs)
{
	switch (rs->state) {
	case RS_NEW:
	case RS_FAILED:
		return -1;
	case RS_CONNECTED:
		return rs->comp->fd;
	default:
		return rs->events->fd;
	}
}

/* One that waits in rs_wait. */
struct sleeper {
	struct rsocket *rs;
	struct rs_waiter waiter;
};

static void wake(void *arg)
{
	struct sleeper *s = arg;

	pthread_mutex_lock(&s->rs->lock);
	leave(s->rs, &s->waiter);
}

/* The thread is cancelled while it waits: the call's reference goes, too. */
static void cancelled(void *arg)
{
	struct sleeper *s = arg;

	wake(s);
	pthread_mutex_unlock(&s->rs->lock);
	rs_put(s->rs);
}

int rs_wait(struct rsocket *rs, short events)
{
	struct sleeper s = {.rs = rs};
	uint64_t until = microseconds() + SPIN_US;
	struct pollfd p[2];
	int fd, n, err;

	while (!rs->closed && !rs_ready(rs, events) && microseconds() < until)
		rs_process(rs);
	if (rs->closed || rs_ready(rs, events))
		return 0;
	fd = bell();
	if (fd < 0)
		return -1;
	join(rs, &s.waiter, fd);
	arm(rs, &s.waiter);
	if (rs->closed || rs->behind || rs_ready(rs, events)) {
		leave(rs, &s.waiter);
		return 0;
	}
	p[0] = (struct pollfd){.fd = source(rs), .events = POLLIN};
	p[1] = (struct pollfd){.fd = fd, .events = POLLIN};
	pthread_mutex_unlock(&rs->lock);
	pthread_cleanup_push(cancelled, &s);
	do {
		n = rs_poll(p, 2, -1);
		err = errno;
	} while (n < 0 && err == EINTR && urnic_restarts());
	pthread_cleanup_pop(0);
	wake(&s);
	if (n < 0)
		return urnic_minus(err);
	if (!rs->closed)
		rs_process(rs);
	return 0;
}

/* What rpoll has of one descriptor. */
struct entry {
	struct rsocket *rs; /* NULL: it is none */
	struct rs_waiter waiter;
	bool joined;
};

struct set {
	struct pollfd *fds; /* the program's */
	nfds_t n;
	struct entry *entries;
	struct pollfd *p; /* what is polled: one for each of these, and the bell */
	int bell;
	bool any;    /* there are rsockets among them */
	bool behind; /* and one of them has more than was looked at */
};

static void part(struct set *s)
{
	for (nfds_t i = 0; i < s->n; i++) {
		struct entry *e = &s->entries[i];

		if (!e->joined)
			continue;
		pthread_mutex_lock(&e->rs->lock);
		leave(e->rs, &e->waiter);
		pthread_mutex_unlock(&e->rs->lock);
		e->joined = false;
	}
}

static void set_free(void *arg)
{
	struct set *s = arg;

	part(s);
	for (nfds_t i = 0; i < s->n; i++)
		if (s->entries[i].rs)
			rs_put(s->entries[i].rs);
	free(s->entries);
	free(s->p);
}

static int set_make(struct set *s, struct pollfd *fds, nfds_t n)
{
	*s = (struct set){.fds = fds, .n = n, .bell = -1};
	s->entries = calloc(n + 1, sizeof(*s->entries));
	s->p = calloc(n + 1, sizeof(*s->p));
	if (!s->entries || !s->p) {
		free(s->entries);
		free(s->p);
		return urnic_minus(ENOMEM);
	}
	for (nfds_t i = 0; i < n; i++) {
		s->entries[i].rs = rs_find(fds[i].fd);
		s->any |= s->entries[i].rs != NULL;
	}
	return 0;
}

/* Looks at all rsockets: how many are ready. With wait, joins those that wait for them. */
static int look(struct set *s, bool wait)
{
	int ready = 0;

	s->behind = false;
	for (nfds_t i = 0; i < s->n; i++) {
		struct entry *e = &s->entries[i];

		s->p[i] = s->fds[i];
		s->p[i].revents = 0;
		if (!e->rs)
			continue;
		pthread_mutex_lock(&e->rs->lock);
		rs_process(e->rs);
		if (wait && !e->rs->closed) {
			if (!e->joined)
				join(e->rs, &e->waiter, s->bell);
			e->joined = true;
			arm(e->rs, &e->waiter);
		}
		s->p[i] = (struct pollfd){.fd = e->rs->closed ? -1 : source(e->rs), .events = POLLIN};
		s->fds[i].revents = e->rs->closed ? POLLNVAL : rs_ready(e->rs, s->fds[i].events);
		ready += s->fds[i].revents != 0;
		s->behind |= e->rs->behind;
		pthread_mutex_unlock(&e->rs->lock);
	}
	return ready;
}

/* Polls the descriptors: how many that are no rsockets are ready, or -1. */
static int sleep_for(struct set *s, int timeout)
{
	int ready = 0, n;

	s->p[s->n] = (struct pollfd){.fd = s->bell, .events = POLLIN};
	n = rs_poll(s->p, s->n + 1, timeout);
	if (n < 0)
		return -1;
	for (nfds_t i = 0; i < s->n; i++) {
		if (s->entries[i].rs)
			continue;
		s->fds[i].revents = s->p[i].revents;
		ready += s->p[i].revents != 0;
	}
	return ready;
}

/* Milliseconds until then, rounded up. */
static int left(uint64_t until)
{
	uint64_t now = microseconds();

	if (now >= until)
		return 0;
	return (until - now + 999) / 1000 > INT_MAX ? INT_MAX : (int)((until - now + 999) / 1000);
}

static int poll_set(struct set *s, int timeout)
{
	uint64_t until = timeout > 0 ? microseconds() + (uint64_t)timeout * 1000 : 0;

	for (;;) {
		int ready = look(s, false), others;

		if (ready || !timeout) {
			others = sleep_for(s, 0);
			return others < 0 ? -1 : ready + others;
		}
		s->bell = bell();
		if (s->bell < 0)
			return -1;
		ready = look(s, true);
		others = sleep_for(s, ready || s->behind ? 0 : timeout < 0 ? -1 : left(until));
		part(s);
		if (others < 0)
			return -1;
		if (ready || others)
			return ready + others;
		if (timeout > 0 && !left(until))
			timeout = 0; /* a last look */
	}
}

URNIC_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct set s;
	int n, err;

	if (nfds > INT_MAX)
		return urnic_minus(EINVAL);
	if (set_make(&s, fds, nfds))
		return -1;
	pthread_cleanup_push(set_free, &s);
	n = s.any ? poll_set(&s, timeout) : rs_poll(fds, nfds, timeout);
	err = errno;
	pthread_cleanup_pop(1);
	errno = err;
	return n;
}

static bool has(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

/* Writes what is ready back into a set: how many. */
static int tell(fd_set *set, int nfds, const struct pollfd *p, int n, short wanted, short what)
{
	int ready = 0;

	if (!set)
		return 0;
	for (int fd = 0; fd < nfds; fd++)
		FD_CLR(fd, set);
	for (int i = 0; i < n; i++)
		if ((p[i].events & wanted) && (p[i].revents & what)) {
			FD_SET(p[i].fd, set);
			ready++;
		}
	return ready;
}

/* select(2) rounds up, too. */
static int to_ms(const struct timeval *t)
{
	int64_t whole;

	if (!t)
		return -1;
	whole = t->tv_sec > INT_MAX / 1000 - 1 ? INT_MAX / 1000 - 1 : t->tv_sec;
	return (int)(whole * 1000 + (t->tv_usec > 999000 ? 1000 : (t->tv_usec + 999) / 1000));
}

/* What select does, with a list that is long enough. */
static int select_with(struct pollfd *p, int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, int timeout)
{
	int n = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = (short)((has(readfds, fd) ? POLLIN : 0) | (has(writefds, fd) ? POLLOUT : 0) |
				       (has(exceptfds, fd) ? POLLPRI : 0));

		if (events)
			p[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	if (rpoll(p, (nfds_t)n, timeout) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (p[i].revents & POLLNVAL)
			return urnic_minus(EBADF);
	return tell(readfds, nfds, p, n, POLLIN, POLLIN | POLLHUP | POLLERR) +
	       tell(writefds, nfds, p, n, POLLOUT, POLLOUT | POLLERR) +
	       tell(exceptfds, nfds, p, n, POLLPRI, POLLPRI);
}

URNIC_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd *p;
	int n;

	if (nfds < 0 || nfds > FD_SETSIZE || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return urnic_minus(EINVAL);
	p = calloc((size_t)nfds + 1, sizeof(*p));
	if (!p)
		return urnic_minus(ENOMEM);
	pthread_cleanup_push(free, p);
	n = select_with(p, nfds, readfds, writefds, exceptfds, to_ms(timeout));
	pthread_cleanup_pop(1);
	return n;
}
