package profile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"urnic/conformance"
	"urnic/conformance/rpc"
	"urnic/conformance/wire"
)

// RPCRDMA gets at a target that speaks RPC-over-RDMA: a server of NFS version 3 that
// listens for RDMA connections, or a client that connects again and again.
type RPCRDMA struct {
	Raw
	export Export

	mounting sync.Mutex
	root     []byte
}

// An Export is a directory of the target in which the tester may make files. Its file
// handle is Handle, or the one that the server of MOUNT returns for Path. That server
// is at the address Mount or, without one, at the address from the target's portmapper.
// MOUNT goes over TCP (RFC 8267 §5.1).
type Export struct {
	Path   string
	Mount  string
	Handle []byte
}

// NewRPCRDMA returns a profile as NewRaw does. Without an export, that is, a path or a
// handle, it offers no memory of files.
func NewRPCRDMA(target string, listener Listener, timeout time.Duration, export Export) *RPCRDMA {
	return &RPCRDMA{Raw: Raw{target: target, listener: listener, timeout: timeout}, export: export}
}

// Name returns "rpcrdma".
func (*RPCRDMA) Name() string { return "rpcrdma" }

// Offers returns the roles, and RPC-over-RDMA.
func (r *RPCRDMA) Offers() (conformance.Needs, conformance.Roles) {
	needs := conformance.NeedRPC
	if r.export.Path != "" || len(r.export.Handle) > 0 {
		needs |= conformance.NeedExport
	}
	return needs, roles(r.target, r.listener)
}

// Begin makes ready for one case.
func (r *RPCRDMA) Begin(context.Context, *wire.Tape) (conformance.Session, error) {
	return &rpcSession{rawSession: rawSession{raw: &r.Raw}, of: r}, nil
}

type rpcSession struct {
	rawSession
	of *RPCRDMA
}

// Attach does nothing: a client sends its first call when it likes.
func (s *rpcSession) Attach(context.Context, *conformance.Stream) error { return nil }

// Root implements conformance.Exporter. It asks once.
func (s *rpcSession) Root(ctx context.Context) ([]byte, error) {
	r := s.of
	r.mounting.Lock()
	defer r.mounting.Unlock()
	if r.root != nil {
		return r.root, nil
	}
	if len(r.export.Handle) > 0 {
		r.root = r.export.Handle
		return r.root, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	address := r.export.Mount
	if address == "" {
		var err error
		if address, err = findMount(ctx, r.target); err != nil {
			return nil, fmt.Errorf("asking for the port of MOUNT: %w", err)
		}
	}
	results, err := callTCP(ctx, address, rpc.Call{
		XID: 1, Program: rpc.Mount, Version: rpc.Mount3, Procedure: rpc.MountMnt, Cred: rpc.Root(),
		Args: rpc.Opaque(nil, []byte(r.export.Path)),
	})
	if err != nil {
		return nil, fmt.Errorf("mounting %s at %s: %w", r.export.Path, address, err)
	}
	status, handle, err := rpc.ParseMnt(results)
	if err != nil {
		return nil, fmt.Errorf("mounting %s at %s: %w", r.export.Path, address, err)
	}
	if status != rpc.OK {
		return nil, fmt.Errorf("mounting %s at %s: status %d", r.export.Path, address, status)
	}
	r.root = handle
	return handle, nil
}

// portmapper is the port of every portmapper (RFC 1833 §3.1).
const portmapper = "111"

// findMount asks the target's portmapper where MOUNT is served.
func findMount(ctx context.Context, target string) (string, error) {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return "", err
	}
	args := make([]byte, 0, 16)
	for _, w := range []uint32{rpc.Mount, rpc.Mount3, 6, 0} { // 6 is TCP
		args = binary.BigEndian.AppendUint32(args, w)
	}
	results, err := callTCP(ctx, net.JoinHostPort(host, portmapper), rpc.Call{
		XID: 1, Program: rpc.Portmap, Version: rpc.Portmap2, Procedure: rpc.PmapPort, Args: args,
	})
	if err != nil {
		return "", err
	}
	port, err := rpc.ParseStatus(results)
	if err != nil {
		return "", err
	}
	if port == 0 || port > 0xFFFF {
		return "", errNoMount
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}

var errNoMount = errors.New("the portmapper knows of none over TCP")

// maxRecord bounds a record that the target sends, in bytes.
const maxRecord = 1 << 16

// lastFragment marks the last fragment of a record (RFC 5531 §11).
const lastFragment = 1 << 31

// callTCP makes one call over TCP and returns its results.
func callTCP(ctx context.Context, address string, c rpc.Call) (_ []byte, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	message := c.Octets()
	record := binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(message)))
	if _, err := conn.Write(append(record, message...)); err != nil {
		return nil, err
	}
	var reply []byte
	for last := false; !last; {
		var mark [4]byte
		if _, err := io.ReadFull(conn, mark[:]); err != nil {
			return nil, err
		}
		n := binary.BigEndian.Uint32(mark[:])
		last = n&lastFragment != 0
		if n &^= lastFragment; int(n)+len(reply) > maxRecord {
			return nil, fmt.Errorf("a record of more than %d octets", maxRecord)
		}
		fragment := make([]byte, n)
		if _, err := io.ReadFull(conn, fragment); err != nil {
			return nil, err
		}
		reply = append(reply, fragment...)
	}
	r, err := rpc.ParseReply(reply)
	switch {
	case err != nil:
		return nil, err
	case r.Denied || r.Status != rpc.Success:
		return nil, fmt.Errorf("there comes %s", r)
	}
	return r.Results, nil
}
