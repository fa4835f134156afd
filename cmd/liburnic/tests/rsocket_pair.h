/* Two rsockets of one process that are connected. */
#ifndef RSOCKET_PAIR_H
#define RSOCKET_PAIR_H

#include <rdma/rsocket.h>

#include "test.h"

/* A listener at a port of 127.0.0.1, whose address it returns. */
int rs_listener(struct sockaddr_in *at);

/* Connects two rsockets, which block. The numbers are what is set beforehand; 0 stands for what is usual. */
struct rs_plan {
	int buffer, mappings, queue;
};
void rs_pair(int *a, int *b, const struct rs_plan *plan);

/* The byte at a place of a stream: never the same for long. */
uint8_t rs_octet(uint64_t at);

/* Sends bytes of a stream; wants them. */
void rs_send_stream(int socket, uint64_t from, size_t length, size_t at_once);
void rs_want_stream(int socket, uint64_t from, size_t length, size_t at_once);

#endif
