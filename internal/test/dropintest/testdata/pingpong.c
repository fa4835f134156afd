/* A ping-pong of MPI between two processes: pingpong SIZE ITERATIONS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int size = argc > 2 ? atoi(argv[1]) : 8, iterations = argc > 2 ? atoi(argv[2]) : 1000, rank;
	char *memory = calloc(1, size);
	double begun = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = -iterations / 10; i < iterations; i++) { /* the first ones warm up */
		if (!i)
			begun = MPI_Wtime();
		if (!rank) {
			MPI_Send(memory, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(memory, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(memory, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(memory, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
	}
	if (!rank)
		printf("half of a round trip: %.2f us\n", (MPI_Wtime() - begun) / iterations / 2 * 1e6);
	MPI_Finalize();
	free(memory);
	return 0;
}
