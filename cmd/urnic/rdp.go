package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/ulp/rdp"
	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpinfo"
)

// rdpPort is the RDP port at which urnic rdp receives. Both versions have it.
const rdpPort = 7

func newRDPCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rdp",
		Short: "Reliable Data Protocol: files, pipes, pings, endpoint status",
		Long: fmt.Sprintf(`Rdp runs the Reliable Data Protocol, version 1 (RFC 908) and version 2 (RFC 1151), over UDP or
over IP. Peers are urnic and other implementations.

Over UDP, each datagram is one segment, and the endpoint of a host is at UDP port %d
unless another port is given. In addition, RDP has its own ports: --port, %d by default.
Version 1 has the ports 1 to 255, version 2 the ports 1 to 65535.`, rdp.DefaultPort, rdpPort),
		Example: `  urnic rdp recv -o copy                    on one machine, and
  urnic rdp send file 192.0.2.7             on the other one
  urnic rdp ping 192.0.2.7
  urnic rdp status                          status of this user's endpoints`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRDPSendCommand(), newRDPRecvCommand(), newRDPCatCommand(), newRDPPingCommand(), newRDPStatusCommand())
	return cmd
}

// The carriers of RDP.
const (
	carrierUDP = "udp"
	carrierIP  = "ip"
)

// rdpFlags are the flags of commands that open an endpoint.
type rdpFlags struct {
	deviceFlags
	version     int
	carrier     string
	port        int
	window      int
	maxSegment  int
	congestion  string
	keepalive   time.Duration
	strictReset bool
	noInfo      bool

	control func() congestion.Controller // what --congestion names
}

// add adds the flags. version is the default of --version.
func (o *rdpFlags) add(f *pflag.FlagSet, version int) {
	o.version = version
	text := "`VERSION` of RDP, 1 or 2"
	if version == 0 {
		text += " (0: both)"
	}
	f.IntVar(&o.version, "version", version, text)
	f.StringVar(&o.carrier, "carrier", carrierUDP, "`CARRIER` of segments: udp, or ip (protocol 27; needs CAP_NET_RAW)")
	f.IntVarP(&o.port, "port", "p", rdpPort, "RDP `PORT` of the side that listens: 1 to 255 in version 1, to 65535 in version 2")
	f.IntVar(&o.window, "window", 0, "most `SEGMENTS` that the peer may have outstanding (0: as the socket's buffer has room)")
	f.IntVar(&o.maxSegment, "max-segment", 0, "largest segment to send and to accept, in `BYTES` including 20 for the IP header (0: one packet on the path; to accept, one Ethernet packet, and any size on loopback)")
	f.StringVar(&o.congestion, "congestion", "none", "congestion `CONTROL`: none (as RDP specifies), reno or cubic")
	f.DurationVar(&o.keepalive, "keepalive", 500*time.Millisecond, "idle time of a connection before the peer is probed (0: never)")
	f.BoolVar(&o.strictReset, "strict-reset", true, "accept only an RST with the next sequence number; if false, any in the window, as RFC 908 does")
	f.BoolVar(&o.noInfo, "no-info", false, "hide the endpoint from urnic rdp status")
	f.StringVar(&o.pcap, "pcap", "", "record the traffic in this `FILE` (pcapng; - is standard output)")
	f.StringVar(&o.logLevel, "log-level", "error", "what to log to standard error: debug, info, warn or error")
}

func (o *rdpFlags) check() (err error) {
	o.control, err = congestion.ByName(o.congestion)
	switch {
	case o.carrier != carrierUDP && o.carrier != carrierIP:
		return fmt.Errorf("--carrier %s: must be udp or ip", o.carrier)
	case o.version < 0 || o.version > 2:
		return fmt.Errorf("--version %d: must be 1 or 2", o.version)
	case o.port < 1 || o.port > 65535:
		return fmt.Errorf("--port %d: must be 1 to 65535", o.port)
	case o.version == 1 && o.port > 255:
		return fmt.Errorf("--port %d: version 1 has the ports 1 to 255", o.port)
	case o.window < 0 || o.window > 65535:
		return fmt.Errorf("--window %d: must be 1 to 65535 segments", o.window)
	case o.maxSegment != 0 && (o.maxSegment < rdpMinSegment || o.maxSegment > 65535):
		return fmt.Errorf("--max-segment %d: must be %d to 65535", o.maxSegment, rdpMinSegment)
	case err != nil:
		return fmt.Errorf("--congestion %s: must be one of none, reno, cubic", o.congestion)
	case o.keepalive < 0:
		return fmt.Errorf("--keepalive %v: must be 0 or more (0: never)", o.keepalive)
	}
	return nil
}

// rdpMinSegment leaves room for the headers of IP and RDP, an offset and a byte.
const rdpMinSegment = 20 + 18 + 8 + 1

// params are those of connections from an address of this host.
func (o *rdpFlags) params(at netip.AddrPort) rdp.Params {
	p := rdp.Params{
		MaxSegment: o.maxSegment, SendLimit: o.maxSegment, Window: o.window, Keepalive: o.keepalive, Congestion: o.control,
		AckRead: true, // a peer waits for a reader that is slow
	}
	switch { // a peer may not know the path
	case o.maxSegment != 0:
	case at.Addr().IsLoopback():
		p.MaxSegment = 65535
	case o.carrier == carrierIP:
		p.MaxSegment = 1500
	default:
		p.MaxSegment = 1472
	}
	if p.Keepalive == 0 {
		p.Keepalive = -1
	}
	return p
}

// versions are those that an endpoint has.
func (o *rdpFlags) versions() machine.Versions {
	if o.version == 0 {
		return 0
	}
	return machine.Versions(1 << (o.version - 1))
}

// An rdpEndpoint is an endpoint with what the flags attach to it.
type rdpEndpoint struct {
	*rdp.Endpoint
	close []func() error // in the reverse order
}

func (e *rdpEndpoint) later(f func() error) { e.close = append(e.close, f) }

// Close closes the endpoint and what belongs to it.
func (e *rdpEndpoint) Close() error {
	var errs []error
	for i := len(e.close); i > 0; i-- {
		errs = append(errs, e.close[i-1]())
	}
	return errors.Join(errs...)
}

// rdpRetry bounds the time between tries: a peer whose reader was slow is not waited for for long.
const rdpRetry = 5 * time.Second

// openEndpoint opens an endpoint at an address of this host, for a command, and has begin do at once what it is for, such as
// listen: whoever calls before that is refused.
func (o *rdpFlags) openEndpoint(ctx context.Context, command string, at netip.AddrPort, begin func(*rdp.Endpoint) error, stdout, stderr io.Writer) (e *rdpEndpoint, err error) {
	e = &rdpEndpoint{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	device, err := o.config(stderr)
	if err != nil {
		return e, err
	}
	c := rdp.Config{Protocol: machine.Config{Versions: o.versions(), StrictReset: o.strictReset, RTOMax: rdpRetry}}
	w, err := o.recordUDP(e.later, stdout)
	if err != nil {
		return e, err
	}
	if w != nil {
		c.Recorder = w
	}
	if o.carrier == carrierIP {
		c.Carrier, err = rdp.RawIP(ctx, at.Addr())
	} else {
		c.Carrier, err = rdp.UDP(ctx, at)
	}
	if err != nil {
		return e, adviseRDPListen(err, at)
	}
	if e.Endpoint, err = rdp.Open(ctx, c); err != nil {
		return e, err
	}
	e.later(e.Endpoint.Close)
	if begin != nil {
		if err := begin(e.Endpoint); err != nil {
			return e, err
		}
	}
	if !o.noInfo {
		s, err := rdpinfo.Serve(e.Endpoint, command, "")
		if err != nil { // not worth more than a warning
			device.Logger.Warn("rdp status can't see this endpoint", "error", err)
			return e, nil
		}
		e.later(s.Close)
	}
	return e, nil
}

// host returns the address of a peer from HOST[:UDPPORT].
func (o *rdpFlags) host(ctx context.Context, text string) (netip.AddrPort, error) {
	host, port := text, ""
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	switch {
	case host == "":
		return netip.AddrPort{}, fmt.Errorf("%q: give HOST, or HOST:PORT with the UDP port of the peer", text)
	case port != "" && o.carrier == carrierIP:
		return netip.AddrPort{}, fmt.Errorf("%s: over IP there are no UDP ports: give the host alone, and RDP's port with --port", text)
	case port != "":
		return rxHostPort(ctx, host, port)
	}
	a, err := rdsAddress(ctx, host)
	if o.carrier == carrierIP {
		return netip.AddrPortFrom(a, 0), err
	}
	return netip.AddrPortFrom(a, rdp.DefaultPort), err
}

// source returns the address at which to open an endpoint that reaches a peer.
func (o *rdpFlags) source(ctx context.Context, peer netip.AddrPort) (netip.AddrPort, error) {
	if o.carrier == carrierUDP {
		return netip.AddrPort{}, nil
	}
	a, err := sourceFor(ctx, peer.Addr())
	return netip.AddrPortFrom(a, 0), err
}

// listenAt returns the address at which to listen from [ADDRESS][:UDPPORT].
func (o *rdpFlags) listenAt(text string) (netip.AddrPort, error) {
	port := uint16(rdp.DefaultPort)
	host := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if h, p, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("%s: give the UDP port by its number, up to 65535", text)
		}
		if o.carrier == carrierIP {
			return netip.AddrPort{}, fmt.Errorf("%s: over IP there are no UDP ports: give the address alone, and RDP's port with --port", text)
		}
		host, port = h, uint16(n)
	}
	var a netip.Addr
	if host != "" {
		var err error
		if a, err = netip.ParseAddr(host); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%s: give an IP address of this machine, ADDRESS:PORT with a UDP port, or :PORT for all addresses", text)
		}
	}
	if o.carrier == carrierIP {
		if !a.IsValid() || a.IsUnspecified() {
			return netip.AddrPort{}, errors.New("--carrier ip: give the IP address of this machine at which to listen")
		}
		port = 0
	}
	return netip.AddrPortFrom(a.Unmap(), port), nil
}

// place is how an endpoint and a port of RDP are named.
func (o *rdpFlags) place(at netip.AddrPort, port uint16) string {
	if o.carrier == carrierIP {
		return fmt.Sprintf("RDP port %d of %v", port, at.Addr())
	}
	return fmt.Sprintf("RDP port %d of %v", port, at)
}

// dial opens a connection to a peer.
func (o *rdpFlags) dial(ctx context.Context, e *rdpEndpoint, to netip.AddrPort, p rdp.Params, timeout time.Duration) (*rdp.Conn, error) {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errRDPSilent)
	defer cancel()
	c, err := e.Dial(limited, rdp.DialConfig{Host: to, Port: uint16(o.port), Version: uint8(o.version), Params: p})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return c, o.adviseDial(err, to, timeout)
}

// checkConnectTimeout looks at --connect-timeout.
func checkConnectTimeout(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("--connect-timeout %v: must be more than 0", d)
	}
	return nil
}
