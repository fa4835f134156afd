package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// adviseNFS says what to do about a server that could not be reached, or lets nothing be
// mounted.
func adviseNFS(err error, t nfs.Target) error {
	var unresolved *net.DNSError
	switch {
	case errors.As(err, &unresolved):
		return advise(err, "there is no address for the name %q: give an IP address, or a name that can be looked up (%s)", unresolved.Name, unresolved.Err)
	case errors.Is(err, nfs3.MountErrAcces), errors.Is(err, nfs3.MountErrPerm):
		return fmt.Errorf("%w: the server's exports say which hosts may mount it; many take calls from privileged ports, which only root has, and of users of their own host as themselves only", err)
	case errors.Is(err, nfs3.MountErrNoEnt):
		return fmt.Errorf("%w: give a path that it exports", err)
	case hungUp(err):
		other := "that for TCP, which is 2049 unless it was told another, and that of MOUNT as ?mountport=PORT"
		if _, lost := errors.AsType[*oncrpc.LostError](err); !lost && t.Transport == nfs.RDMA {
			other = "that for RDMA, which is 20049 unless it was told another"
		}
		return advise(err, "%s hangs up on us, as at the port of another transport, or as its exports are not for this host: give %s", t.Host, other)
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(err, "nobody listens at %s%s: start the server first, such as `urnic nfsd`, or give its ports: %s://HOST:PORT/PATH?mountport=PORT", undialed(err, t.Host), errno(syscall.ECONNREFUSED), scheme(t))
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return advise(err, "no route to %s%s: check the address and this machine's routes", t.Host, errno(err))
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return advise(err, "no answer from %s: check address and ports", t.Host)
	}
	return err
}

// hungUp reports whether an error says that whoever listens has ended the connection, in
// place of an answer.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

func scheme(t nfs.Target) string {
	if t.Transport == nfs.RDMA {
		return "nfs+rdma"
	}
	return "nfs"
}
