/*
 * Rsockets of the type SOCK_DGRAM.
 *
 * Rdma-core's find each other by UDP, and then use UD queue pairs. Here those are UDP on the wire, too, and so such an
 * rsocket is a UDP socket: its number is the socket's descriptor, and the system does all that it is asked for. The
 * table has it for the options of rsockets, and so that other calls know it.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include "rsocket.h"

int rs_make_datagram(int domain, int type, int protocol)
{
	struct rsocket *rs;
	int fd, err;

	if (protocol && protocol != IPPROTO_UDP)
		return urnic_minus(EPROTONOSUPPORT);
	fd = socket(domain, type, IPPROTO_UDP);
	if (fd < 0)
		return -1;
	rs = rs_make(domain, fd);
	if (rs) {
		rs->set = rs_defaults;
		rs_put(rs);
		return fd;
	}
	err = errno;
	close(fd);
	return urnic_minus(err);
}

/* Whether the system has the option of a datagram socket. The others are of rsockets, and change nothing. */
bool rs_of_system(int level)
{
	return level != SOL_RDMA && level != IPPROTO_TCP;
}
