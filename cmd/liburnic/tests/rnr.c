/*
 * How long a Send waits for a receive with the transport ethernet: as long as the sender's rnr_retry and the receiver's
 * min_rnr_timer say, a second at least.
 */
#include "test.h"

#include <time.h>

static double now(void)
{
	struct timespec t;

	OK(clock_gettime(CLOCK_MONOTONIC, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_one(struct pair *p)
{
	post(&p->a, .opcode = IBV_WR_SEND, .wr_id = 1, .length = 8);
}

/* fails wants a Send to fail after so many seconds at least, and long before the day that it waits otherwise. */
static void fails(enum how how, uint8_t retries, uint8_t timer, double least)
{
	double begin, took;
	struct pair p;

	rnr_retry = retries;
	min_rnr_timer = timer;
	pair_open(&p, &(struct plan){.how = how});
	begin = now();
	send_one(&p);
	want_wc(p.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR, 0);
	took = now() - begin;
	if (took < least)
		FAIL("how %d, rnr_retry %d, min_rnr_timer %d: %g s", how, retries, timer, took);
	pair_close(&p);
}

/* waits wants a Send to wait for a receive that is posted after 3 s. */
static void waits(enum how how)
{
	struct pair p;

	rnr_retry = 7;
	min_rnr_timer = 1;
	pair_open(&p, &(struct plan){.how = how});
	send_one(&p);
	sleep(3);
	empty(p.a.scq);
	recv_at(&p.b, 5, 0, 64);
	done(p.b.rcq, 5, IBV_WC_RECV);
	done(p.a.scq, 1, IBV_WC_SEND);
	pair_close(&p);
}

int main(void)
{
	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	OK(setenv("URNIC_TIMES", "receive=24h", 1));
	fails(BY_GID, 0, 12, 1);
	fails(BY_GID, 1, 1, 1); /* 10 us: a second all the same */
	fails(BY_GID, 3, 0, 3 * 0.65536);
	waits(BY_GID);
	fails(BY_CM, 0, 12, 1 - 0.31); /* rdma_cm: the receiver gives the sender's rnr_retry */
	fails(BY_CM, 2, 0, 2 * 0.65536 - 0.31);
	waits(BY_CM);
	return 0;
}
