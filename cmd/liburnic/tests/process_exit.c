/*
 * A process that exits as soon as it has a message, without a word to anybody, has acknowledged it, as an adapter would have.
 */
#include "process.h"

#include <sys/wait.h>

enum { ROUNDS = 20, MESSAGES = 12, LENGTH = 5000 };

/* What a process tells the other one of its queue pair. */
struct side {
	int to, from;
	struct pair p; /* only its end a */
};

static void introduce(struct side *s)
{
	uint32_t theirs;
	union ibv_gid gid;

	pair_unconnected(&s->p, &(struct plan){.how = BY_GID});
	for (int i = 0; i < MESSAGES; i++)
		recv_at(&s->p.a, (uint64_t)i, 0, LENGTH);
	EQ(write(s->to, &s->p.a.qp->qp_num, sizeof(theirs)), sizeof(theirs));
	EQ(read(s->from, &theirs, sizeof(theirs)), sizeof(theirs));
	OK(ibv_query_gid(s->p.a.context, 1, 0, &gid));
	qp_to_rtr(s->p.a.qp, &gid, theirs, 4);
	qp_to_rts(s->p.a.qp, 4);
}

/* The server takes all messages, and exits. */
static void serve(struct side *s)
{
	introduce(s);
	for (int i = 0; i < MESSAGES; i++)
		done(s->p.a.rcq, (uint64_t)i, IBV_WC_RECV);
	exit(0);
}

static int send_to(struct side *s)
{
	introduce(s);
	for (int i = 0; i < MESSAGES; i++)
		post(&s->p.a, .opcode = IBV_WR_SEND, .wr_id = (uint64_t)i, .length = LENGTH);
	for (int i = 0; i < MESSAGES; i++)
		done(s->p.a.scq, (uint64_t)i, IBV_WC_SEND);
	pair_close(&s->p);
	return 0;
}

static pid_t start(void (*run)(struct side *), int to, int from)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		run(&(struct side){.to = to, .from = from});
	return pid;
}

static void send_and_exit(struct side *s)
{
	exit(send_to(s));
}

int main(void)
{
	OK(setenv("URNIC_TRANSPORT", "ethernet", 1));
	for (int i = 0; i < ROUNDS; i++) {
		int up[2], down[2];
		pid_t server, client;

		OK(pipe(up));
		OK(pipe(down));
		server = start(serve, up[1], down[0]);
		client = start(send_and_exit, down[1], up[0]);
		ends(client, 0);
		ends(server, 0);
		for (int j = 0; j < 2; j++) {
			close(up[j]);
			close(down[j]);
		}
	}
	return 0;
}
