/* An OpenSHMEM program that checks puts, gets and atomics. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH 50000

long from[LENGTH], to[LENGTH], sums[LENGTH], counter;

int main(void)
{
	shmem_init();
	int me = shmem_my_pe(), all = shmem_n_pes();
	for (int round = 0; round < 5; round++) {
		for (long i = 0; i < LENGTH; i++)
			from[i] = i * (me + 1) + round;
		shmem_barrier_all();
		shmem_long_put(to, from, LENGTH, (me + 1) % all);
		shmem_barrier_all();
		int left = (me + all - 1) % all;
		for (long i = 0; i < LENGTH; i++)
			if (to[i] != i * (left + 1) + round) {
				fprintf(stderr, "put %ld is wrong\n", i);
				shmem_global_exit(1);
			}
		shmem_long_get(sums, from, LENGTH, (me + 1) % all);
		for (long i = 0; i < LENGTH; i++)
			if (sums[i] != i * ((me + 1) % all + 1) + round) {
				fprintf(stderr, "get %ld is wrong\n", i);
				shmem_global_exit(1);
			}
		for (int i = 0; i < 10; i++)
			shmem_long_atomic_fetch_add(&counter, me + 1, 0);
		shmem_barrier_all();
	}
	if (!me) {
		if (counter != 50L * all * (all + 1) / 2) {
			fprintf(stderr, "the counter is %ld\n", counter);
			shmem_global_exit(1);
		}
		printf("%d elements: all puts, gets and atomics are right\n", all);
	}
	shmem_finalize();
	return 0;
}
