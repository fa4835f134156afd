package rds

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"urnic/ulp/rds/machine"
)

// An Addr is a port of a node, and the type of service with which messages go to it.
type Addr struct {
	Host netip.Addr
	Port uint16
	TOS  uint8 // over RDMA, types of service have connections of their own; over TCP, all is 0 as on Linux
}

// Network returns "rds".
func (a Addr) Network() string { return "rds" }

// String returns the address as HOST:PORT, and the type of service behind a slash if it is not 0.
func (a Addr) String() string {
	s := net.JoinHostPort(a.Host.String(), strconv.Itoa(int(a.Port)))
	if a.TOS != 0 {
		s += fmt.Sprintf("/%d", a.TOS)
	}
	return s
}

func (a Addr) endpoint() machine.Endpoint { return machine.Endpoint{Addr: a.Host, Port: a.Port} }

// ParseAddr parses what String returns: HOST:PORT, or HOST:PORT/TOS. HOST is an IP address.
func ParseAddr(s string) (Addr, error) {
	hostPort, service, with := strings.Cut(s, "/")
	ap, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return Addr{}, fmt.Errorf("rds: %q is not an address of the form HOST:PORT: %w", s, err)
	}
	a := Addr{Host: ap.Addr().Unmap(), Port: ap.Port()}
	if with {
		tos, err := strconv.ParseUint(service, 10, 8)
		if err != nil {
			return Addr{}, fmt.Errorf("rds: %q is not an address of the form HOST:PORT/TOS: the type of service is 0 to 255", s)
		}
		a.TOS = uint8(tos)
	}
	return a, nil
}
