/* Memory of the program that the peer's riowrite reaches, and riowrite. */
#include <stdlib.h>
#include <string.h>

#include "rsocket.h"

void rs_free_regions(struct rsocket *rs)
{
	while (rs->regions) {
		struct rs_region *r = rs->regions;

		rs->regions = r->next;
		if (r->mr)
			ibv_dereg_mr(r->mr);
		free(r);
	}
}

/* A region that is gone is a mapping of no bytes. Its index is free once the peer knows that. */
void rs_tell_regions(struct rsocket *rs)
{
	struct rs_region **at = &rs->regions;

	while (*at && rs_may_count(rs)) {
		struct rs_region *r = *at;
		struct rs_mapping m = {0};

		if (r->untold) {
			if (r->mr)
				m = (struct rs_mapping){r->offset,
							{(uintptr_t)r->mr->addr, r->mr->rkey, (uint32_t)r->mr->length}};
			rs_send_mapping(rs, r->index, &m);
			r->untold = false;
		}
		if (r->mr) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
	}
}

/* An index of the peer's that is free, or -1. */
static int free_index(const struct rsocket *rs)
{
	for (uint32_t i = 0; i < rs->peer_mappings_n; i++) {
		const struct rs_region *r = rs->regions;

		while (r && r->index != (int)i)
			r = r->next;
		if (!r)
			return (int)i;
	}
	return -1;
}

static int map(struct rsocket *rs, void *buf, size_t len, int prot, off_t *offset)
{
	int access = prot ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_LOCAL_WRITE;
	struct rs_region *r;
	int err;

	if (!buf || !len || len > UINT32_MAX || (prot & ~PROT_WRITE) || *offset < -1)
		return EINVAL;
	rs_process(rs);
	if (rs->state != RS_CONNECTED || rs->dead)
		return ENOTCONN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return ENOMEM;
	r->index = prot ? free_index(rs) : -1;
	if (prot && r->index < 0) {
		free(r);
		return ENOBUFS; /* the peer has not asked for so many: RDMA_IOMAPSIZE */
	}
	r->mr = ibv_reg_mr(rs->pd, buf, len, access);
	if (!r->mr) {
		err = errno;
		free(r);
		return err;
	}
	if (*offset == -1)
		*offset = (off_t)(uintptr_t)buf;
	r->offset = (uint64_t)*offset;
	r->untold = prot;
	r->next = rs->regions;
	rs->regions = r;
	rs_tell_regions(rs);
	return 0;
}

URNIC_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *rs = rs_get(socket);
	int err;

	(void)flags;
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = map(rs, buf, len, prot, &offset);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : offset;
}

static int unmap(struct rsocket *rs, const void *buf, size_t len)
{
	for (struct rs_region **at = &rs->regions; *at; at = &(*at)->next) {
		struct rs_region *r = *at;

		if (!r->mr || r->mr->addr != buf || r->mr->length != len)
			continue;
		ibv_dereg_mr(r->mr);
		r->mr = NULL;
		if (r->index < 0) {
			*at = r->next;
			free(r);
			return 0;
		}
		r->untold = true;
		rs_process(rs);
		return 0;
	}
	return EINVAL;
}

URNIC_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	struct rsocket *rs = rs_get(socket);
	int err;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = unmap(rs, buf, len);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err ? urnic_minus(err) : 0;
}

/* The mapping that has an offset: how many bytes of it begin there. The peer may write the table meanwhile. */
static uint32_t find(const struct rsocket *rs, uint64_t offset, struct rs_target *to)
{
	for (uint32_t i = 0; i < rs->set.mappings; i++) {
		const volatile struct rs_mapping *from = &rs->mappings[i];
		struct rs_mapping m = {from->offset, {from->at.addr, from->at.key, from->at.length}};

		if (rs->peer_swaps)
			m = (struct rs_mapping){__builtin_bswap64(m.offset),
						{__builtin_bswap64(m.at.addr), __builtin_bswap32(m.at.key),
						 __builtin_bswap32(m.at.length)}};
		if (offset < m.offset || offset - m.offset >= m.at.length)
			continue;
		*to = m.at;
		to->addr += offset - m.offset;
		return m.at.length - (uint32_t)(offset - m.offset);
	}
	return 0;
}

/* Writes what there is room for: 0 or an errno. */
static int write_some(struct rsocket *rs, const uint8_t *buf, size_t count, uint64_t offset, size_t *done)
{
	while (*done < count && !rs->dead && rs->sq_free >= RS_SPARE + 1 && rs->outbox_free) {
		uint32_t room = rs->set.sndbuf - rs->outbox_at, part;
		struct rs_target to;

		part = find(rs, offset + *done, &to);
		if (!part)
			return EINVAL; /* nothing is mapped there */
		if (room > rs->outbox_free)
			room = rs->outbox_free;
		if (room > RS_MOST_WRITE)
			room = RS_MOST_WRITE;
		if (part > room)
			part = room;
		if (part > count - *done)
			part = (uint32_t)(count - *done);
		memcpy(rs->outbox + rs->outbox_at, buf + *done, part);
		rs_send_mapped(rs, to.addr, to.key, part);
		*done += part;
	}
	return 0;
}

static int write_at(struct rsocket *rs, const uint8_t *buf, size_t count, off_t offset, int flags, size_t *done)
{
	int err;

	if (offset < 0 || (count && !buf))
		return EINVAL;
	for (;;) {
		rs_process(rs);
		if (rs->closed)
			return EBADF;
		if (rs->state != RS_CONNECTED)
			return ENOTCONN;
		if (rs->out_over)
			return rs->error ? rs->error : rs->dead || rs->in_over ? ECONNRESET : EPIPE;
		err = write_some(rs, buf, count, (uint64_t)offset, done);
		if (err || *done == count)
			return err;
		if (rs->dead)
			continue;
		if (rs->nonblocking || (flags & MSG_DONTWAIT))
			return EAGAIN;
		if (rs_wait(rs, POLLOUT))
			return errno;
	}
}

URNIC_EXPORT size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rsocket *rs = rs_get(socket);
	size_t done = 0;
	int err;

	if (!rs)
		return (size_t)-1;
	pthread_mutex_lock(&rs->lock);
	err = write_at(rs, buf, count, offset, flags, &done);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return err && !done ? (size_t)urnic_minus(err) : done;
}
