/*
 * What rsockets say to each other, after rdma-core's guide to their protocol (version 1).
 *
 * Each side has a ring for what it receives, cut in two halves, and returns the other side
 * of a half when it is free: it writes where the half is into one of two targets of the
 * other's, by turns. Data are RDMA Writes into the half. A message of 32 bits behind each
 * says what was written. On iWARP the message is a Send of four bytes in the sender's
 * byte order; elsewhere it is immediate data. Ours are Sends, since iWARP is what the
 * wire carries, and both are understood.
 */
#ifndef URNIC_RSOCKET_WIRE_H
#define URNIC_RSOCKET_WIRE_H

#include <stdint.h>

enum {
	RS_VERSION = 1,
	RS_FLAG_BIG_ENDIAN = 1, /* of a hello: so are the sender's targets and mappings */
	RS_FLAG_MAPPINGS = 2,   /* of a hello: it reports how many mappings there may be */
	RS_TARGETS = 2,
	RS_MOST_MAPPINGS = 0x7f << 8,
};

/* Memory of the other side. */
struct rs_target {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

/* Memory that riowrite of the other side reaches by an offset. Mappings lie behind the targets. */
struct rs_mapping {
	uint64_t offset;
	struct rs_target at;
};

/* The private data of both MPA frames, in network byte order. */
struct rs_hello {
	uint8_t version;
	uint8_t flags;
	uint16_t credits; /* messages that may be sent before the first grant */
	uint8_t reserved[3];
	uint8_t mappings; /* rs_scale */
	struct rs_target targets; /* where the targets are; its length counts them */
	struct rs_target buffer;  /* the first half: the first target */
};

_Static_assert(sizeof(struct rs_hello) == 40 && sizeof(struct rs_target) == 16 && sizeof(struct rs_mapping) == 24,
	       "without padding, as they are on the wire");

/* A message: its kind in the three upper bits, and a number. */
enum rs_kind {
	RS_DATA = 0,   /* bytes that were written */
	RS_GRANT = 4,  /* the count of messages, of 16 bits, that may be sent; a target may be new */
	RS_MAPPED = 6, /* the index of a mapping that is new */
	RS_CTRL = 7,
};

/* The numbers of RS_CTRL. */
enum rs_ctrl {
	RS_DISCONNECT = 0, /* neither sends nor receives any more */
	RS_KEEPALIVE = 1,
	RS_SHUTDOWN = 2, /* sends no more */
};

static inline uint32_t rs_message(enum rs_kind kind, uint32_t number)
{
	return (uint32_t)kind << 29 | (number & 0x1fffffff);
}

static inline enum rs_kind rs_kind(uint32_t message)
{
	return (enum rs_kind)(message >> 29);
}

static inline uint32_t rs_number(uint32_t message)
{
	return message & 0x1fffffff;
}

/* A number of mappings in eight bits: up to 128 as it is, more in units of 256. */
static inline uint8_t rs_scale(uint32_t n)
{
	return (uint8_t)(n <= 128 ? n : 0x80 | n >> 8);
}

static inline uint32_t rs_unscale(uint8_t n)
{
	return n <= 128 ? n : (uint32_t)(n & 0x7f) << 8;
}

#endif
