/* rdma_getaddrinfo: names to addresses, over getaddrinfo(3). */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

static int copy_addr(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from, socklen_t len)
{
	if (*to || !from || !len)
		return 0;
	*to = calloc(1, len);
	if (!*to)
		return ENOMEM;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

/* The QP type and port space that are wanted: those of hints, each by the other if it is not given. */
static int service_of(const struct rdma_addrinfo *hints, struct rdma_addrinfo *out)
{
	out->ai_qp_type = hints->ai_qp_type;
	out->ai_port_space = hints->ai_port_space;
	if (!out->ai_port_space)
		out->ai_port_space = out->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (!out->ai_qp_type)
		out->ai_qp_type =
			out->ai_port_space == RDMA_PS_UDP || out->ai_port_space == RDMA_PS_IPOIB ? IBV_QPT_UD
												 : IBV_QPT_RC;
	if ((out->ai_port_space == RDMA_PS_TCP && out->ai_qp_type == IBV_QPT_UD) ||
	    (out->ai_port_space == RDMA_PS_UDP && out->ai_qp_type != IBV_QPT_UD))
		return EAI_SOCKTYPE;
	return 0;
}

/* Looks a name up: 0, or what getaddrinfo returns. */
static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo *out)
{
	struct addrinfo want = {0}, *found;
	int err;

	if (out->ai_flags & RAI_PASSIVE)
		want.ai_flags |= AI_PASSIVE;
	if (out->ai_flags & RAI_NUMERICHOST)
		want.ai_flags |= AI_NUMERICHOST;
	if (out->ai_flags & RAI_FAMILY) {
		if (hints->ai_family != AF_INET && hints->ai_family != AF_INET6 && hints->ai_family != AF_UNSPEC)
			return EAI_FAMILY;
		want.ai_family = hints->ai_family;
	}
	want.ai_socktype = out->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
	err = getaddrinfo(node, service, &want, &found);
	if (err)
		return err;
	if (out->ai_flags & RAI_PASSIVE)
		err = copy_addr(&out->ai_src_addr, &out->ai_src_len, found->ai_addr, found->ai_addrlen);
	else
		err = copy_addr(&out->ai_dst_addr, &out->ai_dst_len, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return err ? EAI_MEMORY : 0;
}

static int fill(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo *out)
{
	int err;

	out->ai_flags = hints->ai_flags;
	err = service_of(hints, out);
	if (err)
		return err;
	if (node || service) {
		err = look_up(node, service, hints, out);
		if (err)
			return err;
	}
	if (copy_addr(&out->ai_src_addr, &out->ai_src_len, hints->ai_src_addr, hints->ai_src_len) ||
	    copy_addr(&out->ai_dst_addr, &out->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len))
		return EAI_MEMORY;
	if (out->ai_dst_addr)
		out->ai_family = out->ai_dst_addr->sa_family;
	else if (out->ai_src_addr)
		out->ai_family = out->ai_src_addr->sa_family;
	else
		out->ai_family = hints->ai_family;
	return 0;
}

URNIC_EXPORT int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
				  struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo none;
	struct rdma_addrinfo *out;
	int err;

	if (!res || (!node && !service && !hints))
		return urnic_minus(EINVAL);
	out = calloc(1, sizeof(*out));
	if (!out)
		return urnic_minus(ENOMEM);
	err = fill(node, service, hints ? hints : &none, out);
	if (err) {
		rdma_freeaddrinfo(out);
		return err;
	}
	*res = out;
	return 0;
}

URNIC_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
	}
}
