package rpcbind

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"strings"
	"time"

	"urnic/ulp/oncrpc"
)

// Program returns the program that answers from the table, in versions 2, 3 and 4.
// Mappings are set and unset by callers on this host only, by their address.
func (t *Table) Program() *oncrpc.Program {
	three := map[uint32]oncrpc.Procedure{
		procSet:     {Name: "SET", Handle: t.set, Once: true},
		procUnset:   {Name: "UNSET", Handle: t.unset, Once: true},
		procGetAddr: {Name: "GETADDR", Handle: t.getAddr},
		procDump:    {Name: "DUMP", Handle: t.dump},
		procGetTime: {Name: "GETTIME", Handle: getTime},
	}
	four := map[uint32]oncrpc.Procedure{
		procGetVersAddr: {Name: "GETVERSADDR", Handle: t.getAddr},
		procGetAddrList: {Name: "GETADDRLIST", Handle: t.getAddrList},
	}
	maps.Copy(four, three)
	two := map[uint32]oncrpc.Procedure{
		procSet:     {Name: "SET", Handle: t.setPort, Once: true},
		procUnset:   {Name: "UNSET", Handle: t.unsetPort, Once: true},
		procGetAddr: {Name: "GETPORT", Handle: t.getPort},
		procDump:    {Name: "DUMP", Handle: t.dumpPorts},
	}
	return &oncrpc.Program{Number: Program, Name: "rpcbind", Versions: []oncrpc.ProgramVersion{
		{Number: versionPortmap, Procedures: two},
		{Number: version3, Procedures: three},
		{Number: version4, Procedures: four},
	}}
}

// ip returns the address of a side, without the port.
func ip(a net.Addr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap()
}

// mapping reads the arguments. It returns an error if that can't be done.
func mapping(in *oncrpc.Incoming) (m Mapping, err error) {
	m.decode(in.Args)
	return m, in.Args.End()
}

func portMapping(in *oncrpc.Incoming) (m PortMapping, err error) {
	m.decode(in.Args)
	return m, in.Args.End()
}

// local reports whether a caller is on this host (RFC 1833 §2.2.2).
func local(in *oncrpc.Incoming) bool { return ip(in.Exchange.Remote).IsLoopback() }

func (t *Table) set(_ context.Context, in *oncrpc.Incoming) error {
	m, err := mapping(in)
	if err != nil {
		return err
	}
	in.Results.Bool(local(in) && t.add(m, false) == nil)
	return nil
}

func (t *Table) unset(_ context.Context, in *oncrpc.Incoming) error {
	m, err := mapping(in)
	if err != nil {
		return err
	}
	in.Results.Bool(local(in) && t.remove(m.Program, m.Version, func(netid string, r row) bool {
		return !r.own && (m.Netid == "" || m.Netid == netid)
	}) == nil)
	return nil
}

// getAddr is GETADDR and GETVERSADDR.
func (t *Table) getAddr(_ context.Context, in *oncrpc.Incoming) error {
	m, err := mapping(in)
	if err != nil {
		return err
	}
	// The argument says nothing: "the r_netid is inferred from the network identifier of
	// the transport on which the request came in" (RFC 1833 §2.2.1). But a host that
	// wants to know of RDMA could not ask over that without knowing where.
	netid := in.Exchange.Netid
	if m.Netid == RDMA || m.Netid == RDMA6 {
		netid = m.Netid
	}
	addr, ok := t.find(m.Program, m.Version, netid, in.Header.Procedure == procGetAddr)
	if !ok {
		in.Results.String("")
		return nil
	}
	in.Results.String(FormatAddr(merged(addr, in)))
	return nil
}

// merged returns an address as the caller can reach it: that at which it has reached us,
// if the program listens at all of them.
func merged(a netip.AddrPort, in *oncrpc.Incoming) netip.AddrPort {
	here := ip(in.Exchange.Local)
	if !a.Addr().IsUnspecified() || !here.IsValid() || here.Is6() != a.Addr().Is6() {
		return a
	}
	return netip.AddrPortFrom(here, a.Port())
}

func (t *Table) dump(_ context.Context, in *oncrpc.Incoming) error {
	if err := in.Args.End(); err != nil {
		return err
	}
	encodeList(in.Results, t.Mappings())
	return nil
}

func getTime(_ context.Context, in *oncrpc.Incoming) error {
	if err := in.Args.End(); err != nil {
		return err
	}
	in.Results.Uint32(uint32(time.Now().Unix()))
	return nil
}

func (t *Table) getAddrList(_ context.Context, in *oncrpc.Incoming) error {
	m, err := mapping(in)
	if err != nil {
		return err
	}
	var list []Entry
	for _, r := range t.Mappings() {
		if r.Program != m.Program || r.Version != m.Version {
			continue
		}
		addr, err := ParseAddr(r.Addr)
		if err != nil {
			return err
		}
		n := Entry{FormatAddr(merged(addr, in)), r.Netid, graceful, "inet", strings.TrimSuffix(r.Netid, "6")}
		if families[r.Netid] {
			n.Family = "inet6"
		}
		if n.Protocol == UDP {
			n.Semantics = connectionless
		}
		list = append(list, n)
	}
	encodeList(in.Results, list)
	return nil
}

func (t *Table) setPort(_ context.Context, in *oncrpc.Incoming) error {
	m, err := portMapping(in)
	if err != nil {
		return err
	}
	in.Results.Bool(local(in) && m.Port <= 0xffff && t.add(m.mapping(), false) == nil)
	return nil
}

func (t *Table) unsetPort(_ context.Context, in *oncrpc.Incoming) error {
	m, err := portMapping(in)
	if err != nil {
		return err
	}
	in.Results.Bool(local(in) && t.remove(m.Program, m.Version, func(netid string, r row) bool {
		return !r.own && (netid == TCP || netid == UDP)
	}) == nil)
	return nil
}

func (t *Table) getPort(_ context.Context, in *oncrpc.Incoming) error {
	m, err := portMapping(in)
	if err != nil {
		return err
	}
	var port uint16
	if addr, ok := t.find(m.Program, m.Version, m.mapping().Netid, true); ok {
		port = addr.Port()
	}
	in.Results.Uint32(uint32(port))
	return nil
}

func (t *Table) dumpPorts(_ context.Context, in *oncrpc.Incoming) error {
	if err := in.Args.End(); err != nil {
		return err
	}
	var list []PortMapping
	for _, m := range t.Mappings() {
		protocol := map[string]uint32{TCP: ProtocolTCP, UDP: ProtocolUDP}[m.Netid]
		addr, err := ParseAddr(m.Addr)
		if err != nil {
			return err
		}
		if protocol != 0 {
			list = append(list, PortMapping{m.Program, m.Version, protocol, uint32(addr.Port())})
		}
	}
	encodeList(in.Results, list)
	return nil
}
