package rpcbind

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

var (
	// ErrRefused says that the service has not registered or removed a mapping: there is
	// another one, or none, or it does not take that from the caller.
	ErrRefused = errors.New("rpcbind: the service refuses: the program is registered already, or not, or this host or user may not do so")
	// ErrUnknown says that a program is not registered.
	ErrUnknown = errors.New("rpcbind: the program is not registered")
)

// A Client asks a host's RPCBIND service, or its port mapper.
type Client struct{ rpc *oncrpc.Client }

// NewClient returns a client that calls by rpc, which is its own from now on.
func NewClient(rpc *oncrpc.Client) *Client { return &Client{rpc} }

// Close closes the client.
func (c *Client) Close() error { return c.rpc.Close() }

// call calls a procedure whose results are of at most so many bytes.
func (c *Client) call(ctx context.Context, version, procedure uint32, args func(*xdr.Encoder), most int, results func(*xdr.Decoder)) error {
	return c.rpc.Call(ctx, &oncrpc.Invocation{
		Program: Program, Version: version, Procedure: procedure,
		Args: args, ResultsMost: most,
		Results: func(d *xdr.Decoder) error { results(d); return d.Err() },
	})
}

// change calls a procedure that returns whether it has done what it should.
func (c *Client) change(ctx context.Context, version, procedure uint32, args func(*xdr.Encoder)) error {
	var done bool
	err := c.call(ctx, version, procedure, args, 4, func(d *xdr.Decoder) { done = d.Bool() })
	if err == nil && !done {
		return ErrRefused
	}
	return err
}

// Set registers a program with the service, which is to be that of the same host. It
// returns ErrRefused if that has it already.
func (c *Client) Set(ctx context.Context, m Mapping) error {
	return c.change(ctx, version4, procSet, m.encode)
}

// Unset removes the mapping of a program: of all transports, if it has no Netid. It
// returns ErrRefused if there was none.
func (c *Client) Unset(ctx context.Context, m Mapping) error {
	return c.change(ctx, version4, procUnset, m.encode)
}

// addr calls a procedure that returns an address.
func (c *Client) addr(ctx context.Context, version, procedure uint32, m *Mapping) (netip.AddrPort, error) {
	var s string
	if err := c.call(ctx, version, procedure, m.encode, 4+maxForeignAddr, func(d *xdr.Decoder) { s = d.String(maxForeignAddr) }); err != nil {
		return netip.AddrPort{}, err
	}
	if s == "" {
		return netip.AddrPort{}, fmt.Errorf("%w: %v", ErrUnknown, m)
	}
	return ParseAddr(s)
}

// GetAddr returns where a program is, in that version or another one, over the transport
// that the client calls by, whatever Netid says. It returns ErrUnknown, or an *AddrError.
func (c *Client) GetAddr(ctx context.Context, m Mapping) (netip.AddrPort, error) {
	return c.addr(ctx, version3, procGetAddr, &m)
}

// GetVersAddr returns what GetAddr does, but of that version only.
func (c *Client) GetVersAddr(ctx context.Context, m Mapping) (netip.AddrPort, error) {
	return c.addr(ctx, version4, procGetVersAddr, &m)
}

// GetAddrList returns where a version of a program is over all transports, which may be
// nowhere.
func (c *Client) GetAddrList(ctx context.Context, m Mapping) ([]Entry, error) {
	var list []Entry
	err := c.call(ctx, version4, procGetAddrList, m.encode, maxList, func(d *xdr.Decoder) { list = decodeList[Entry](d) })
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Dump returns all that is registered: by version 4, or 3 or 2 if the service has no
// other.
func (c *Client) Dump(ctx context.Context) ([]Mapping, error) {
	for _, version := range []uint32{version4, version3} {
		var list []Mapping
		err := c.call(ctx, version, procDump, nil, maxList, func(d *xdr.Decoder) { list = decodeList[Mapping](d) })
		if err == nil {
			return list, nil
		}
		if !hasNot(err) {
			return nil, err
		}
	}
	ports, err := c.Ports(ctx)
	var list []Mapping
	for _, p := range ports {
		list = append(list, p.mapping())
	}
	return list, err
}

// hasNot reports whether an error says that the service has no such version.
func hasNot(err error) bool {
	e, ok := errors.AsType[*oncrpc.AcceptedError](err)
	return ok && (e.Stat == oncrpc.ProgramMismatch || e.Stat == oncrpc.ProcedureUnavailable)
}

// FindPort returns where a version of a program listens over a transport. It returns
// ErrUnknown if it does not, or an *AddrError.
func (c *Client) FindPort(ctx context.Context, program, version uint32, netid string) (uint16, error) {
	list, err := c.Dump(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range list {
		if m.Program == program && m.Version == version && m.Netid == netid {
			a, err := ParseAddr(m.Addr)
			return a.Port(), err
		}
	}
	return 0, fmt.Errorf("%w: %v", ErrUnknown, Mapping{Program: program, Version: version, Netid: netid})
}

// GetTime returns what time it is at the host, to the second.
func (c *Client) GetTime(ctx context.Context) (time.Time, error) {
	var seconds uint32
	if err := c.call(ctx, version3, procGetTime, nil, 4, func(d *xdr.Decoder) { seconds = d.Uint32() }); err != nil {
		return time.Time{}, err
	}
	return time.Unix(int64(seconds), 0), nil
}

// SetPort registers a program as version 2 does. It returns what Set does.
func (c *Client) SetPort(ctx context.Context, m PortMapping) error {
	return c.change(ctx, versionPortmap, procSet, m.encode)
}

// UnsetPort removes the mappings of a version of a program over all protocols. It returns
// what Unset does.
func (c *Client) UnsetPort(ctx context.Context, program, version uint32) error {
	m := PortMapping{Program: program, Version: version}
	return c.change(ctx, versionPortmap, procUnset, m.encode)
}

// GetPort returns where a program is over ProtocolTCP or ProtocolUDP, in that version or
// another one. It returns ErrUnknown.
func (c *Client) GetPort(ctx context.Context, program, version, protocol uint32) (uint16, error) {
	m := PortMapping{Program: program, Version: version, Protocol: protocol}
	var port uint32
	err := c.call(ctx, versionPortmap, procGetAddr, m.encode, 4, func(d *xdr.Decoder) {
		if port = d.Uint32(); port > 0xffff {
			d.Fail("a port", xdr.ErrValue)
		}
	})
	if err == nil && port == 0 {
		return 0, fmt.Errorf("%w: version %d of program %d", ErrUnknown, version, program)
	}
	return uint16(port), err
}

// Ports returns all that is registered, as version 2 does.
func (c *Client) Ports(ctx context.Context) ([]PortMapping, error) {
	var list []PortMapping
	err := c.call(ctx, versionPortmap, procDump, nil, maxList, func(d *xdr.Decoder) { list = decodeList[PortMapping](d) })
	if err != nil {
		return nil, err
	}
	return list, nil
}

// mapping returns what a mapping of version 2 is in version 3. Its Netid is empty if the
// protocol is neither TCP nor UDP.
func (m *PortMapping) mapping() Mapping {
	netid := map[uint32]string{ProtocolTCP: TCP, ProtocolUDP: UDP}[m.Protocol]
	addr := netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(m.Port))
	return Mapping{Program: m.Program, Version: m.Version, Netid: netid, Addr: FormatAddr(addr)}
}
