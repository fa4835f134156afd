package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/capture"
	"urnic/ulp/rds"
	"urnic/ulp/rds/rdsinfo"
)

func newRDSCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rds",
		Short: "Reliable Datagram Sockets: a node, pings, load, status",
		Long: `Rds runs nodes of Reliable Datagram Sockets 3.1, over TCP or iWARP. Peers are nodes of Linux
(rds_tcp, rds_rdma) and of urnic.

Peers identify a node by its address. So a host has one node for each address and transport;
if its modules are loaded, Linux's RDS is such a node. For a second node, add an address to
the host: ip addr add. On one machine, 127.0.0.1, 127.0.0.2 and so on can be nodes.`,
		Example: `  urnic rds node 192.0.2.7                  a node that answers pings, and
  urnic rds ping 192.0.2.7                  a ping of it
  urnic rds stress                          the passive side, and
  urnic rds stress -s 192.0.2.7 -T 10 -v    the active one
  urnic rds info                            status of this user's nodes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRDSPingCommand(), newRDSNodeCommand(), newRDSInfoCommand(), newRDSStressCommand())
	return cmd
}

// rdsFlags are the flags of commands that make a node.
type rdsFlags struct {
	deviceFlags
	transport string
	port      int
	paths     int
	allow     []string
	noInfo    bool

	allowed []netip.Prefix
}

func (o *rdsFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.transport, "transport", "tcp", "`TRANSPORT` that carries RDS: tcp or iwarp")
	f.IntVar(&o.port, "transport-port", 0, fmt.Sprintf("`PORT` at which this node and its peers listen (default %d for tcp; %d for iwarp over IPv4, %d over IPv6)", rds.TCPPort, rds.RDMAPort4, rds.RDMAPort6))
	f.IntVar(&o.paths, "paths", 8, "most `CONNECTIONS` to a peer over TCP, 1 to 8")
	f.StringArrayVar(&o.allow, "allow", nil, "allow peers with addresses in this `CIDR`, or all (default all); can be given several times")
	f.BoolVar(&o.noInfo, "no-info", false, "hide the node from urnic rds info")
	o.deviceFlags.add(f)
}

func (o *rdsFlags) check() (err error) {
	if o.allowed, err = parseAllow(o.allow); err != nil {
		return err
	}
	switch {
	case o.transport != "tcp" && o.transport != "iwarp":
		return fmt.Errorf("--transport %s: must be tcp or iwarp", o.transport)
	case o.port < 0 || o.port > 65535:
		return fmt.Errorf("--transport-port %d: must be 1 to 65535, or 0 for that of the transport", o.port)
	case o.paths < 1 || o.paths > 8:
		return fmt.Errorf("--paths %d: must be 1 to 8", o.paths)
	case o.trace && o.transport == "tcp":
		return errors.New("--trace shows messages of RDMA: give --transport iwarp, or record what passes with --pcap")
	}
	return nil
}

// allows reports whether a node may be a peer.
func (o *rdsFlags) allows(a netip.Addr) bool {
	a = a.WithZone("") // which no prefix contains
	return len(o.allowed) == 0 || slices.ContainsFunc(o.allowed, func(p netip.Prefix) bool { return p.Contains(a) })
}

// checkPeer returns an error if the flags do not allow a peer that the command itself is to talk to.
func (o *rdsFlags) checkPeer(a netip.Addr) error {
	if o.allows(a) {
		return nil
	}
	return fmt.Errorf("--allow does not include %v: add --allow %[1]v", a)
}

// An rdsNode is a node with what the flags attach to it.
type rdsNode struct {
	*rds.Node
	close []func() error // in the reverse order
}

func (n *rdsNode) later(f func() error) { n.close = append(n.close, f) }

// Close closes the node and what belongs to it.
func (n *rdsNode) Close() error {
	var errs []error
	for i := len(n.close); i > 0; i-- {
		errs = append(errs, n.close[i-1]())
	}
	return errors.Join(errs...)
}

// openNode makes the node with an address. Events, if not nil, is called for each of its events.
func (o *rdsFlags) openNode(ctx context.Context, addr netip.Addr, events func(rds.Event), stdout, stderr io.Writer) (n *rdsNode, err error) {
	n = &rdsNode{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	cfg, err := o.config(stderr)
	if err != nil {
		return n, err
	}
	var transport rds.Transport
	if o.transport == "tcp" {
		transport, err = o.tcp(n, stdout)
	} else {
		transport, err = o.iwarp(n, addr, stdout, stderr)
	}
	if err != nil {
		return n, err
	}
	n.Node, err = rds.Open(ctx, rds.Config{
		Addr: addr, Transports: []rds.Transport{transport}, Allow: o.allowed, Events: events, Logger: cfg.Logger,
	})
	if err != nil {
		return n, adviseRDSListen(err, addr, o)
	}
	n.later(n.Node.Close)
	if !o.noInfo {
		o.serveInfo(n, cfg.Logger)
	}
	return n, nil
}

func (o *rdsFlags) tcp(n *rdsNode, stdout io.Writer) (*rds.TCP, error) {
	t := &rds.TCP{Port: uint16(o.port), Paths: o.paths}
	if o.pcap == "" {
		return t, nil
	}
	out := stdout
	if o.pcap != "-" {
		f, err := createRecording(o.pcap)
		if err != nil {
			return nil, err
		}
		n.later(f.Close)
		out = f
	}
	w, err := capture.NewWriter(out)
	if err != nil {
		return nil, err
	}
	n.later(w.Close)
	t.Record = func(l, r net.Addr, dialled bool) rds.Recording {
		return w.Stream(capture.AddrPort(l), capture.AddrPort(r), dialled)
	}
	return t, nil
}

func (o *rdsFlags) iwarp(n *rdsNode, addr netip.Addr, stdout, stderr io.Writer) (*rds.IWARP, error) {
	dev, err := o.open(nil, stdout, stderr)
	if err != nil {
		return nil, err
	}
	n.later(dev.Close)
	t := &rds.IWARP{Device: dev.Device}
	if o.port != 0 {
		at := func(a netip.Addr) string { return net.JoinHostPort(a.String(), strconv.Itoa(o.port)) }
		t.Address, t.PeerAddress = at(addr), at
	}
	return t, nil
}

// serveInfo lets rds info see the node. It is not worth more than a warning if it can't.
func (o *rdsFlags) serveInfo(n *rdsNode, log *slog.Logger) {
	s, err := rdsinfo.Serve(n.Node, "")
	if err != nil {
		log.Warn("rds info can't see this node", "error", err)
		return
	}
	n.later(s.Close)
}

// adviseRDSListen says what to do if a node can't have its address.
func adviseRDSListen(err error, addr netip.Addr, o *rdsFlags) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return advise(err, "another node has %v already, of urnic or of Linux (rds_%s)%s: end it, use another address of this host, or another --transport-port for both sides",
			addr, map[string]string{"tcp": "tcp", "iwarp": "rdma"}[o.transport], errno(err))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "%v is no address of this machine: give one of its own%s", addr, errno(err))
	}
	return err
}

// rdsAddress returns the address that a text stands for, which may be a name.
func rdsAddress(ctx context.Context, text string) (netip.Addr, error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Unmap(), nil
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return netip.Addr{}, fmt.Errorf("%s: give the address without a port: %v", text, a.Addr())
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", text)
	if err != nil {
		var unresolved *net.DNSError
		if errors.As(err, &unresolved) && ctx.Err() == nil {
			return netip.Addr{}, advise(err, "there is no address for %q: give an IP address, or a name that can be looked up (%s)", text, unresolved.Err)
		}
		return netip.Addr{}, err
	}
	for _, a := range list {
		if a.Unmap().Is4() {
			return a.Unmap(), nil
		}
	}
	return list[0], nil
}

// sourceFor returns the address of this host from which it reaches another one.
func sourceFor(ctx context.Context, peer netip.Addr) (netip.Addr, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", netip.AddrPortFrom(peer, rds.TCPPort).String()) // nothing is sent
	if err != nil {
		return netip.Addr{}, advise(err, "no route to %v%s: check the address and this machine's routes", peer, errno(err))
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	return hostOfAddr(c.LocalAddr()), nil
}

// hostOfAddr returns the IP address of an endpoint of TCP or UDP, with its zone.
func hostOfAddr(a net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
