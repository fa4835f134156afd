/* Completion channels: when they are readable, what they tell, and acknowledgements. */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>

static void take(struct end *e, struct ibv_cq *want)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	wait_readable(e->channel->fd);
	OK(ibv_get_cq_event(e->channel, &cq, &context));
	CHECK(cq == want);
	CHECK(context == e);
	ibv_ack_cq_events(cq, 1);
}

static void send_one(struct pair *p, unsigned int flags)
{
	recv_at(&p->b, 1, 0, 8);
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8, .flags = flags);
	done(p->a.scq, 2, IBV_WC_SEND);
}

/* A queue tells once for each time that it is armed. */
static void armed(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true});
	EQ(p.b.channel->refcnt, 2);
	EQ(ibv_destroy_comp_channel(p.b.channel), EBUSY);
	CHECK(!is_readable(p.b.channel->fd));

	OK(ibv_req_notify_cq(p.b.rcq, 0));
	CHECK(!is_readable(p.b.channel->fd));
	send_one(&p, 0);
	take(&p.b, p.b.rcq);
	done(p.b.rcq, 1, IBV_WC_RECV);
	CHECK(!is_readable(p.b.channel->fd));

	send_one(&p, 0); /* not armed: it is silent */
	done(p.b.rcq, 1, IBV_WC_RECV);
	CHECK(!is_readable(p.b.channel->fd));

	OK(ibv_req_notify_cq(p.a.scq, 0)); /* the other queue, of sends */
	recv_at(&p.b, 1, 0, 8);
	post(&p.a, .opcode = IBV_WR_SEND, .wr_id = 2, .length = 8);
	take(&p.a, p.a.scq);
	done(p.a.scq, 2, IBV_WC_SEND);
	done(p.b.rcq, 1, IBV_WC_RECV);
	pair_close(&p);
}

/* There is an event for each arming, though nobody fetches the first before the second. */
static void each_arming(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true});
	for (int i = 0; i < 3; i++) {
		OK(ibv_req_notify_cq(p.b.rcq, 0));
		send_one(&p, 0);
		done(p.b.rcq, 1, IBV_WC_RECV);
	}
	for (int i = 0; i < 3; i++)
		take(&p.b, p.b.rcq);
	CHECK(!is_readable(p.b.channel->fd));
	pair_close(&p);
}

/*
 * The receives of a queue pair whose peer has gone wait until the program ends it, if it
 * has no rdma_cm that could tell. The channel reports them then.
 */
static void released(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true, .how = BY_GID});
	send_one(&p, 0);
	done(p.b.rcq, 1, IBV_WC_RECV);
	recv_at(&p.b, 7, 0, 8);
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	take(&p.b, p.b.rcq); /* something has happened, of which nothing is to be seen */
	empty(p.b.rcq);
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	CHECK(!is_readable(p.b.channel->fd));
	OK(ibv_modify_qp(p.b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	take(&p.b, p.b.rcq);
	want_wc(p.b.rcq, 7, IBV_WC_WR_FLUSH_ERR, 0);
	pair_close(&p);

	/* A send that fails has them flushed too; whoever arms afterwards is told at once. */
	pair_open(&p, &(struct plan){.channels = true, .how = BY_GID});
	send_one(&p, 0);
	done(p.b.rcq, 1, IBV_WC_RECV);
	recv_at(&p.b, 7, 0, 8);
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	OK(ibv_modify_qp(p.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	take(&p.b, p.b.rcq);
	empty(p.b.rcq);
	post(&p.b, .opcode = IBV_WR_SEND, .wr_id = 8, .length = 8);
	want_wc(p.b.scq, 8, IBV_WC_RETRY_EXC_ERR, 0);
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	take(&p.b, p.b.rcq);
	want_wc(p.b.rcq, 7, IBV_WC_WR_FLUSH_ERR, 0);
	pair_close(&p);
}

/* Armed for solicited ones, it reports those, and failures. */
static void solicited(void)
{
	struct ibv_wc wc;
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true, .how = BY_GID});
	OK(ibv_req_notify_cq(p.b.rcq, 1));
	send_one(&p, 0);
	wc = done(p.b.rcq, 1, IBV_WC_RECV); /* it has arrived: so would have the event */
	EQ(wc.byte_len, 8);
	CHECK(!is_readable(p.b.channel->fd));
	send_one(&p, IBV_SEND_SOLICITED);
	take(&p.b, p.b.rcq);
	done(p.b.rcq, 1, IBV_WC_RECV);

	OK(ibv_req_notify_cq(p.b.rcq, 1));
	recv_at(&p.b, 3, 0, 8);
	OK(ibv_modify_qp(p.b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	take(&p.b, p.b.rcq);
	want_wc(p.b.rcq, 3, IBV_WC_WR_FLUSH_ERR, 0);
	pair_close(&p);
}

/* To arm for all is more than to arm for solicited ones, whatever the order. */
static void arming_adds(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true});
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	OK(ibv_req_notify_cq(p.b.rcq, 1));
	send_one(&p, 0);
	take(&p.b, p.b.rcq);
	done(p.b.rcq, 1, IBV_WC_RECV);
	pair_close(&p);
}

static void epoll_sees_it(void)
{
	struct epoll_event ready;
	struct pair p;
	int ep;

	pair_open(&p, &(struct plan){.channels = true});
	CHECK((ep = epoll_create1(EPOLL_CLOEXEC)) >= 0);
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, p.b.channel->fd,
		     &(struct epoll_event){.events = EPOLLIN | EPOLLET, .data.u32 = 77}));
	for (int i = 0; i < 3; i++) { /* edge-triggered, as event loops want it */
		OK(ibv_req_notify_cq(p.b.rcq, 0));
		EQ(epoll_wait(ep, &ready, 1, 0), 0);
		send_one(&p, 0);
		EQ(epoll_wait(ep, &ready, 1, PATIENCE_MS), 1);
		EQ(ready.data.u32, 77);
		take(&p.b, p.b.rcq);
		done(p.b.rcq, 1, IBV_WC_RECV);
	}
	close(ep);
	pair_close(&p);
}

/*
 * An event that comes while another is there wakes an edge-triggered wait too. So each of
 * several events at once is seen, by a program that fetches one for each time that it wakes.
 */
static void epoll_sees_each(void)
{
	struct epoll_event ready;
	struct pair p;
	int ep;

	pair_open(&p, &(struct plan){.channels = true});
	CHECK((ep = epoll_create1(EPOLL_CLOEXEC)) >= 0);
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, p.b.channel->fd, &(struct epoll_event){.events = EPOLLIN | EPOLLET}));
	for (int i = 0; i < 3; i++) { /* nobody fetches them */
		OK(ibv_req_notify_cq(p.b.rcq, 0));
		send_one(&p, 0);
		done(p.b.rcq, 1, IBV_WC_RECV);
		EQ(epoll_wait(ep, &ready, 1, PATIENCE_MS), 1);
		EQ(epoll_wait(ep, &ready, 1, 0), 0);
	}
	for (int i = 0; i < 3; i++) {
		take(&p.b, p.b.rcq);
		EQ(epoll_wait(ep, &ready, 1, 0), i < 2);
	}
	for (int i = 0; i < 3; i++) { /* at once */
		OK(ibv_req_notify_cq(p.b.rcq, 0));
		send_one(&p, 0);
		done(p.b.rcq, 1, IBV_WC_RECV);
	}
	for (int i = 0; i < 3; i++) {
		EQ(epoll_wait(ep, &ready, 1, PATIENCE_MS), 1);
		take(&p.b, p.b.rcq);
	}
	EQ(epoll_wait(ep, &ready, 1, 0), 0);
	close(ep);
	pair_close(&p);
}

/* A program that has read the descriptor finds the events nevertheless, and nobody waits. */
static void drained(void)
{
	uint64_t number;
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true});
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			OK(ibv_req_notify_cq(p.b.rcq, 0));
			send_one(&p, 0);
			done(p.b.rcq, 1, IBV_WC_RECV);
		}
		wait_readable(p.b.channel->fd);
		CHECK(read(p.b.channel->fd, &number, sizeof(number)) > 0);
		for (int i = 0; i < 2; i++) {
			struct ibv_cq *cq;
			void *context;

			OK(ibv_get_cq_event(p.b.channel, &cq, &context));
			CHECK(cq == p.b.rcq);
			CHECK(is_readable(p.b.channel->fd) == (i == 0)); /* the other one is to be seen */
			ibv_ack_cq_events(cq, 1);
		}
	}
	pair_close(&p);
}

static void nonblocking(void)
{
	struct ibv_cq *cq;
	struct pair p;
	void *context;

	pair_open(&p, &(struct plan){.channels = true});
	OK(fcntl(p.b.channel->fd, F_SETFL, fcntl(p.b.channel->fd, F_GETFL) | O_NONBLOCK));
	FAILS(ibv_get_cq_event(p.b.channel, &cq, &context), EAGAIN);
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	send_one(&p, 0);
	take(&p.b, p.b.rcq);
	FAILS(ibv_get_cq_event(p.b.channel, &cq, &context), EAGAIN);
	pair_close(&p);
}

static int fetched;

static void *get_event(void *argument)
{
	struct end *e = argument;
	struct ibv_cq *cq;
	void *context;

	OK(ibv_get_cq_event(e->channel, &cq, &context));
	CHECK(cq == e->rcq);
	__atomic_fetch_add(&fetched, 1, __ATOMIC_SEQ_CST);
	return cq;
}

/* Two threads wait on one channel: each of two events wakes one of them. */
static void threads_wait(void)
{
	pthread_t threads[2];
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true});
	for (size_t i = 0; i < COUNT(threads); i++)
		OK(pthread_create(&threads[i], NULL, get_event, &p.b));
	for (int i = 0; i < (int)COUNT(threads); i++) {
		OK(ibv_req_notify_cq(p.b.rcq, 0));
		send_one(&p, 0);
		done(p.b.rcq, 1, IBV_WC_RECV);
		while (__atomic_load_n(&fetched, __ATOMIC_SEQ_CST) <= i)
			poll(NULL, 0, 1); /* a queue that fires again before its event is fetched adds none */
	}
	for (size_t i = 0; i < COUNT(threads); i++)
		OK(pthread_join(threads[i], NULL));
	ibv_ack_cq_events(p.b.rcq, 2);
	pair_close(&p);
}

static void *destroy(void *argument)
{
	struct end *e = argument;

	OK(ibv_destroy_qp(e->qp));
	OK(ibv_destroy_cq(e->rcq));
	__atomic_store_n(&e->rcq, NULL, __ATOMIC_SEQ_CST);
	return NULL;
}

/* To destroy a queue waits for the acknowledgement of its events. */
static void destroy_waits(void)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true, .how = BY_GID});
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	send_one(&p, 0);
	wait_readable(p.b.channel->fd);
	OK(ibv_get_cq_event(p.b.channel, &cq, &context));
	OK(pthread_create(&thread, NULL, destroy, &p.b));
	for (int i = 0; i < 100; i++)
		sched_yield();
	CHECK(__atomic_load_n(&p.b.rcq, __ATOMIC_SEQ_CST) != NULL);
	ibv_ack_cq_events(cq, 1);
	OK(pthread_join(thread, NULL));
	p.b.qp = NULL;
	CHECK(p.b.rcq = ibv_create_cq(p.b.context, 1, NULL, NULL, 0)); /* for pair_close */
	pair_close(&p);
}

/* An event that nobody has fetched goes with its queue. */
static void unfetched(void)
{
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true, .how = BY_GID});
	OK(ibv_req_notify_cq(p.b.rcq, 0));
	send_one(&p, 0);
	wait_readable(p.b.channel->fd);
	OK(ibv_destroy_qp(p.b.qp));
	p.b.qp = NULL;
	OK(ibv_destroy_cq(p.b.rcq));
	CHECK(!is_readable(p.b.channel->fd));
	CHECK(p.b.rcq = ibv_create_cq(p.b.context, 1, NULL, NULL, 0));
	pair_close(&p);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

/* A handler without SA_RESTART ends the wait, as it ends read(2). */
static void interrupted(void)
{
	struct sigaction action = {.sa_handler = on_alarm}, old;
	struct ibv_cq *cq;
	void *context;
	struct pair p;

	pair_open(&p, &(struct plan){.channels = true});
	OK(sigaction(SIGALRM, &action, &old));
	alarms = 0;
	ualarm(20000, 20000); /* again and again: the first may come before the wait */
	FAILS(ibv_get_cq_event(p.b.channel, &cq, &context), EINTR);
	ualarm(0, 0);
	CHECK(alarms > 0);
	OK(sigaction(SIGALRM, &old, NULL));
	pair_close(&p);
}

int main(void)
{
	armed();
	each_arming();
	released();
	solicited();
	arming_adds();
	epoll_sees_it();
	epoll_sees_each();
	drained();
	nonblocking();
	threads_wait();
	destroy_waits();
	unfetched();
	interrupted();
	return 0;
}
