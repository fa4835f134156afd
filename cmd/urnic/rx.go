package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/capture"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma"
	"urnic/ulp/rx/rxudp"
)

func newRXCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rx",
		Short: "Rx, the RPC protocol of AFS: show servers, call them, measure",
		Long: `Rx shows the state of Rx servers, calls their operations, and measures their speed. Servers
are those of OpenAFS, Linux and urnic.`,
		Example: `  urnic rx debug 192.0.2.7 7000               state of a server
  urnic rx call 192.0.2.7:7003 52 514         call an operation
  urnic rx perf server                        on one machine, and
  urnic rx perf client 192.0.2.7:7009         on the other one`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRXDebugCommand(), newRXCallCommand(), newRXPerfCommand())
	return cmd
}

// rxArgs takes so many arguments; a negative number of most is no bound.
func rxArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return fmt.Errorf("give `%s %s`: see `%[1]s --help`", cmd.CommandPath(), cmd.Use[len(cmd.Name())+1:])
		}
		return nil
	}
}

// rxFlags are the flags of commands that open an endpoint.
type rxFlags struct {
	deviceFlags
	transport string
}

func (o *rxFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.transport, "transport", "udp", "`TRANSPORT` that carries Rx: "+strings.Join(rxTransportNames(), " or "))
	o.deviceFlags.add(f)
}

func (o *rxFlags) check() error {
	switch {
	case rxTransports[o.transport] == nil:
		return fmt.Errorf("--transport %s: must be %s", o.transport, strings.Join(rxTransportNames(), " or "))
	case o.trace && o.transport == "udp":
		return errors.New("--trace shows RDMA messages, and there are none over UDP: record the traffic with --pcap")
	}
	return nil
}

// An rxOpener opens the endpoint of e at an address, with the services that it has.
type rxOpener func(ctx context.Context, o *rxFlags, e *rxEndpoint, addr netip.AddrPort, services []rx.Service, stdout, stderr io.Writer) error

// rxTransports are what carries Rx.
var rxTransports = map[string]rxOpener{"udp": openRXUDP, "rdma": openRXRDMA}

func rxTransportNames() []string { return slices.Sorted(maps.Keys(rxTransports)) }

// An rxEndpoint is an endpoint with what the flags attach to it.
type rxEndpoint struct {
	rx.Endpoint
	close []func() error // in the reverse order
}

func (e *rxEndpoint) later(f func() error) { e.close = append(e.close, f) }

// Close closes the endpoint and what belongs to it.
func (e *rxEndpoint) Close() error {
	var errs []error
	for i := len(e.close); i > 0; i-- {
		errs = append(errs, e.close[i-1]())
	}
	return errors.Join(errs...)
}

// rxVersion is what endpoints of this command answer version queries with.
func rxVersion() string {
	return versionLine()
}

// openEndpoint opens an endpoint at an address, with the services that it has.
func (o *rxFlags) openEndpoint(ctx context.Context, addr netip.AddrPort, services []rx.Service, stdout, stderr io.Writer) (e *rxEndpoint, err error) {
	e = &rxEndpoint{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	return e, rxTransports[o.transport](ctx, o, e, addr, services, stdout, stderr)
}

func openRXUDP(ctx context.Context, o *rxFlags, e *rxEndpoint, addr netip.AddrPort, services []rx.Service, stdout, stderr io.Writer) error {
	cfg, err := o.config(stderr)
	if err != nil {
		return err
	}
	c := rxudp.Config{Addr: addr, Services: services, Version: rxVersion(), Log: cfg.Logger}
	w, err := o.recordUDP(e.later, stdout)
	if err != nil {
		return err
	}
	if w != nil {
		c.Recorder = w
	}
	udp, err := rxudp.Open(ctx, c)
	if err != nil {
		return err
	}
	e.Endpoint = udp
	e.later(udp.Close)
	return nil
}

func openRXRDMA(ctx context.Context, o *rxFlags, e *rxEndpoint, addr netip.AddrPort, services []rx.Service, stdout, stderr io.Writer) error {
	cfg, err := o.config(stderr)
	if err != nil {
		return err
	}
	dev, err := o.open(nil, stdout, stderr)
	if err != nil {
		return err
	}
	e.later(dev.Close)
	rdma, err := rxrdma.Open(ctx, dev.Device, rxrdma.Config{Addr: addr, Services: services, Log: cfg.Logger})
	if err != nil {
		return err
	}
	e.Endpoint = rdma
	e.later(rdma.Close)
	return nil
}

// recordUDP returns what records datagrams, or nil if nothing is to be recorded.
func (o *deviceFlags) recordUDP(later func(func() error), stdout io.Writer) (*capture.Writer, error) {
	if o.pcap == "" {
		return nil, nil
	}
	out := stdout
	if o.pcap != "-" {
		f, err := createRecording(o.pcap)
		if err != nil {
			return nil, err
		}
		later(f.Close)
		out = f
	}
	w, err := capture.NewWriter(out)
	if err != nil {
		return nil, err
	}
	later(w.Close)
	return w, nil
}

// rxAddress returns the address that HOST:PORT stands for. The host may be a name, and the
// port one of /etc/services.
func rxAddress(ctx context.Context, text string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || port == "" {
		return netip.AddrPort{}, fmt.Errorf("%s: give HOST:PORT, such as 192.0.2.7:7000", text)
	}
	return rxHostPort(ctx, host, port)
}

func rxHostPort(ctx context.Context, host, port string) (netip.AddrPort, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		known, lookup := net.DefaultResolver.LookupPort(ctx, "udp", port)
		if lookup != nil {
			return netip.AddrPort{}, fmt.Errorf("%s: give a port by its number, 1 to 65535", port)
		}
		n = uint64(known)
	}
	if n == 0 {
		return netip.AddrPort{}, fmt.Errorf("%s: give a port by its number, 1 to 65535", port)
	}
	a, err := rdsAddress(ctx, host)
	return netip.AddrPortFrom(a, uint16(n)), err
}

// rxListenAddress returns the address of a server from [HOST]:PORT.
func rxListenAddress(text string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(text)
	if err == nil {
		n, perr := strconv.ParseUint(port, 10, 16)
		var a netip.Addr
		if host != "" {
			a, err = netip.ParseAddr(host)
		}
		if err == nil && perr == nil {
			return netip.AddrPortFrom(a, uint16(n)), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("--listen %s: give ADDRESS:PORT with an IP address, or :PORT for all addresses", text)
}
