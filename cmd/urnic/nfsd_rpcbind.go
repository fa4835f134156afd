package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"syscall"

	"urnic/internal/host/listen"
	"urnic/internal/host/printable"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/rpcbind"
)

// mappings returns what rpcbind is to know: NFS over both transports (RFC 8166 §10.2), and
// MOUNT, which is never asked over RDMA (RFC 8267 §5.1).
func (s *nfsServer) mappings() []rpcbind.Mapping {
	var list []rpcbind.Mapping
	both := listen.Network(s.o.tcp) == "tcp"
	for _, l := range s.tcp {
		list = append(list, mappings(nfs3.Program, l.Addr(), both, rpcbind.TCP, rpcbind.TCP6)...)
		list = append(list, mappings(nfs3.MountProgram, l.Addr(), both, rpcbind.TCP, rpcbind.TCP6)...)
	}
	both = listen.Network(s.o.rdma) == "tcp"
	for _, l := range s.rdma {
		list = append(list, mappings(nfs3.Program, l.Addr(), both, rpcbind.RDMA, rpcbind.RDMA6)...)
	}
	return list
}

// mappings returns those of version 3 of a program: of both families, if it listens at all
// addresses of a machine with IPv6, and was not told to listen at those of IPv6 alone.
func mappings(program uint32, listener net.Addr, both bool, four, six string) (list []rpcbind.Mapping) {
	a, err := netip.ParseAddrPort(listener.String())
	if err != nil {
		return nil
	}
	add := func(netid string, ip netip.Addr) {
		addr := rpcbind.FormatAddr(netip.AddrPortFrom(ip, a.Port()))
		list = append(list, rpcbind.Mapping{Program: program, Version: 3, Netid: netid, Addr: addr, Owner: "urnic"})
	}
	ip := a.Addr().Unmap()
	switch {
	case ip.Is4():
		add(four, ip)
	case ip.IsUnspecified() && both:
		add(four, netip.IPv4Unspecified())
		fallthrough
	default:
		add(six, ip)
	}
	return list
}

// askBinder calls this host's rpcbind. The connection is not kept: it is only wanted when
// the server begins and when it ends.
func (s *nfsServer) askBinder(ctx context.Context, do func(ctx context.Context, c *rpcbind.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, nfsdPatience)
	defer cancel()
	c := rpcbind.NewClient(oncrpc.NewClient(s.o.binder, oncrpc.ClientConfig{Dials: 1, Sends: 1}))
	return errors.Join(do(ctx, c), c.Close())
}

// register tells rpcbind where the server is.
func (s *nfsServer) register(ctx context.Context) error {
	return s.askBinder(ctx, func(ctx context.Context, c *rpcbind.Client) error {
		for _, m := range s.mappings() {
			if err := c.Set(ctx, m); err != nil {
				return adviseRegistration(ctx, c, m, err)
			}
			s.registered = append(s.registered, m)
		}
		return nil
	})
}

// unregister tells rpcbind that the server is to end.
func (s *nfsServer) unregister(ctx context.Context) error {
	if len(s.registered) == 0 {
		return nil
	}
	list := s.registered
	s.registered = nil
	return s.askBinder(ctx, func(ctx context.Context, c *rpcbind.Client) error {
		for _, m := range list {
			err := c.Unset(ctx, m)
			if absent(err) {
				return nil // what it knew has gone with it
			}
			if err != nil && !errors.Is(err, rpcbind.ErrRefused) { // somebody has removed it
				return fmt.Errorf("--register-rpcbind: this host's rpcbind could not be notified that the server has ended: %w", err)
			}
		}
		return nil
	})
}

// absent reports whether an error says that no rpcbind runs.
func absent(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// adviseRegistration says what to do about a mapping that rpcbind does not take.
func adviseRegistration(ctx context.Context, c *rpcbind.Client, m rpcbind.Mapping, err error) error {
	switch {
	case absent(err):
		return advise(err, "--register-rpcbind: no rpcbind runs on this host: start it, such as with `systemctl start rpcbind`, or leave that flag out and tell clients the ports")
	case !errors.Is(err, rpcbind.ErrRefused):
		return fmt.Errorf("--register-rpcbind: this host's rpcbind takes no registration: %w", err)
	}
	if list, e := c.Dump(ctx); e == nil {
		for _, other := range list {
			if other.Program == m.Program && other.Version == m.Version && other.Netid == m.Netid {
				return fmt.Errorf("--register-rpcbind: rpcbind knows of another server already: %v is at %s. End that, such as the kernel's NFS server; or if it is gone, remove what is left of it with `rpcinfo -d %d %d`",
					other, printable.Column(other.Addr), m.Program, m.Version)
			}
		}
	}
	return fmt.Errorf("--register-rpcbind: this host's rpcbind takes no registration from this user: become root, or leave that flag out and tell clients the ports (%w)", err)
}
