/* Direct placement: riomap, riowrite, riounmap. */
#include "rsocket_pair.h"

/* Waits for an byte of the stream, by which what was written before has come. */
static void await(int from, int to)
{
	char c;

	EQ(rsend(from, "!", 1, 0), 1);
	EQ(rrecv(to, &c, 1, 0), 1);
}

int main(void)
{
	static uint8_t memory[300000], other[100];
	uint8_t *octets = malloc(sizeof(memory));
	char c;
	int a, b;

	for (size_t i = 0; i < sizeof(memory); i++)
		octets[i] = rs_octet(i);
	rs_pair(&a, &b, &(struct rs_plan){.mappings = 2});
	EQ(riomap(b, memory, sizeof(memory), PROT_WRITE, 0, 5000), 5000);
	await(b, a);
	EQ(riowrite(a, octets + 7, sizeof(memory) - 7, 5007, 0), sizeof(memory) - 7);
	await(a, b);
	EQ(memory[6], 0);
	EQ(memcmp(memory + 7, octets + 7, sizeof(memory) - 7), 0);

	/* Offsets of the library's choice, and indexes that are used again. */
	FAILS((int)riowrite(a, octets, 1, 4999, 0), EINVAL);
	FAILS((int)riowrite(a, octets, 1, 5000 + (off_t)sizeof(memory), 0), EINVAL);
	for (int i = 0; i < 5; i++) {
		off_t at = riomap(b, other, sizeof(other), PROT_WRITE, 0, -1);

		EQ(at, (off_t)(uintptr_t)other);
		FAILS((int)riomap(b, octets, 10, PROT_WRITE, 0, -1), ENOBUFS);
		await(b, a);
		EQ(riowrite(a, octets + i, sizeof(other), at, 0), sizeof(other));
		await(a, b);
		EQ(memcmp(other, octets + i, sizeof(other)), 0);
		OK(riounmap(b, other, sizeof(other)));
		await(b, a);
		FAILS((int)riowrite(a, octets, 1, at, 0), EINVAL);
	}
	EQ(riomap(b, other, sizeof(other), PROT_NONE, 0, 0), 0);
	OK(riounmap(b, other, sizeof(other)));
	FAILS(riounmap(b, other, sizeof(other)), EINVAL);
	FAILS((int)riomap(b, other, 0, PROT_WRITE, 0, -1), EINVAL);
	FAILS((int)riomap(b, other, 1, PROT_EXEC, 0, -1), EINVAL);
	OK(rclose(a));
	EQ(rrecv(b, &c, 1, 0), 0);
	OK(rclose(b));

	/* Without RDMA_IOMAPSIZE at the peer there is no place for any. */
	rs_pair(&a, &b, &(struct rs_plan){0});
	FAILS((int)riomap(b, other, sizeof(other), PROT_WRITE, 0, -1), ENOBUFS);
	OK(rclose(a));
	OK(rclose(b));
	free(octets);
	return 0;
}
