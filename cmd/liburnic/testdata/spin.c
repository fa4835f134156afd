/*
 * When a thread that polls in vain waits: shim/spin.c with an engine and a clock of the test's own.
 * Each poll takes one microsecond, each wait as long as it may.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../shim/shim.h"

static uint64_t now = 1000000; /* microseconds */
static uint32_t waited;        /* the last wait */
static int waits;

int clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	t->tv_sec = now / 1000000;
	t->tv_nsec = now % 1000000 * 1000;
	return 0;
}

static void await(uint32_t cq, uint32_t most)
{
	(void)cq;
	waits++;
	waited = most;
	now += most;
}

static const struct urnic_engine engine = {.cq_await = await};

static void poll(int times, int n, int takes)
{
	while (times--) {
		urnic_polled(&engine, 7, n);
		now += takes;
	}
}

static void want(const char *when, int w, uint32_t last)
{
	if (waits != w || waited != last) {
		fprintf(stderr, "%s: %d waits, the last of %u us; want %d, %u us\n", when, waits, waited, w, last);
		exit(1);
	}
	waits = waited = 0;
}

int main(void)
{
	static const uint32_t each[] = {50, 100, 200, 400, 800, 1600, 2000, 2000};

	for (int round = 0; round < 2; round++) {
		poll(4095, 0, 1);
		want("a thread that begins to spin", 0, 0);
		for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
			poll(1, 0, 1);
			want("a thread that spins", 1, each[i]);
		}
		poll(1, 1, 1);
		want("something has come", 0, 0);
	}
	poll(4096, 0, 1);
	want("a thread that spins again", 1, 50);
	now += 100;
	poll(4000, 0, 1);
	want("a thread that has done something else", 0, 0);
	poll(1, 1, 1);
	poll(20000, 0, 100);
	want("a thread that polls now and then", 0, 0);
	for (int i = 0; i < 20000; i++) {
		urnic_spin_anew();
		poll(1, 0, 1);
	}
	want("a thread that posts, and polls in vain", 0, 0);
	return 0;
}
