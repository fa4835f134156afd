/* An all-reduce of MPI whose sums are checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 5
#define LENGTH 100000

int main(int argc, char **argv)
{
	long *mine = malloc(LENGTH * sizeof(*mine)), *sums = malloc(LENGTH * sizeof(*sums));
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (long round = 0; round < ROUNDS; round++) {
		for (long i = 0; i < LENGTH; i++)
			mine[i] = i * (rank + 1) + round;
		MPI_Allreduce(mine, sums, LENGTH, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		for (long i = 0; i < LENGTH; i++) {
			if (sums[i] != i * ranks * (ranks + 1) / 2 + round * ranks) {
				fprintf(stderr, "round %ld: sum %ld is wrong\n", round, i);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
		}
	}
	if (!rank)
		printf("%d ranks: all sums are right\n", ranks);
	MPI_Finalize();
	free(mine);
	free(sums);
	return 0;
}
