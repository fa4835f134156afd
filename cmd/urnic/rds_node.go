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
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/host/plural"
	"urnic/ulp/rds"
)

const rdsNodeLong = `Node runs a node of RDS until it is interrupted. The node answers pings and accepts
connections. It has no sockets, so messages to its ports are acknowledged and dropped.

It prints a line when it listens, a line for each event, and the sums at the end. The events
are connections that came up, were lost or were refused; peers that have restarted or have
broken a rule of the protocol; and messages to ports without a socket. Events that come
faster than they can be printed are counted instead.

ADDRESS is an address of this host that no other node has, not even Linux's RDS. RDS has no
authentication: anyone who reaches the node can connect, unless --allow says who may.

With --json it prints a JSON object in one line when it listens, for each event, and at the
end; see docs/json.md.`

// rdsNodeFormat is the format of --json.
const rdsNodeFormat = "urnic-rds-node/1"

// rdsNodeOptions are the flags of urnic rds node.
type rdsNodeOptions struct {
	rdsFlags
	json bool
}

func newRDSNodeCommand() *cobra.Command {
	var o rdsNodeOptions
	cmd := &cobra.Command{
		Use:   "node ADDRESS",
		Short: "Run a node that answers pings, until interrupted",
		Long:  rdsNodeLong,
		Example: `  urnic rds node 192.0.2.7
  urnic rds node --transport iwarp --allow 192.0.2.0/24 192.0.2.7
  urnic rds node --json --pcap node.pcapng 192.0.2.7

On one machine, in two terminals:
  urnic rds node 127.0.0.2
  urnic rds ping --source 127.0.0.1 127.0.0.2`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("give one address of this machine: see `%s --help`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			addr, err := rdsAddress(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return served(cmd.Context(), o.run(cmd.Context(), addr, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "write JSON objects, one for each event")
	o.add(f)
	return cmd
}

func (o *rdsNodeOptions) check() error {
	if o.json && o.pcap == "-" {
		return errJSONAndPcap
	}
	return o.rdsFlags.check()
}

// listening returns where the node takes connections.
func (o *rdsNodeOptions) listening(addr netip.Addr) string {
	port := o.port
	switch {
	case port != 0:
	case o.transport == "tcp":
		port = rds.TCPPort
	case addr.Is4():
		port = rds.RDMAPort4
	default:
		port = rds.RDMAPort6
	}
	return net.JoinHostPort(addr.String(), strconv.Itoa(port))
}

// run keeps a node until the context ends.
func (o *rdsNodeOptions) run(ctx context.Context, addr netip.Addr, stdout, stderr io.Writer) error {
	v := &rdsNodeView{o: o, addr: addr, out: &lines{w: stdout}, events: make(chan rdsNodeEvent, rdsNodeEvents)}
	if o.pcap == "-" {
		v.out.w = stderr
	}
	node, err := o.openNode(ctx, addr, v.event, stdout, stderr)
	if err != nil {
		return err
	}
	v.listening()
	for ctx.Err() == nil {
		select {
		case e := <-v.events:
			v.print(&e)
		case <-ctx.Done():
		}
	}
	info := node.Info(0)
	err = node.Close() // no event comes after it
	v.end(info)
	return errors.Join(alwaysTell(err), v.out.failed)
}

// rdsNodeEvents is how many events may wait to be printed.
const rdsNodeEvents = 1024

// A rdsNodeEvent is an event as it is printed.
type rdsNodeEvent struct {
	Event string     `json:"event"`
	Time  time.Time  `json:"time"`
	Peer  netip.Addr `json:"peer"`
	TOS   uint8      `json:"tos"`
	Path  *int       `json:"path,omitempty"`
	Port  *uint16    `json:"port,omitempty"`
	Error string     `json:"error,omitempty"`
}

// rdsNodeSum is what has happened at a node.
type rdsNodeSum struct {
	Event       string  `json:"event"`
	Seconds     float64 `json:"seconds"`
	Pings       uint64  `json:"pings"`
	Connections uint64  `json:"connections"`
	Lost        uint64  `json:"lost"`
	Refused     uint64  `json:"refused"`
	NoSocket    uint64  `json:"no_socket"`
	Violations  uint64  `json:"violations"`
	Unprinted   uint64  `json:"unprinted_events"`
}

// A rdsNodeView prints what happens at a node.
type rdsNodeView struct {
	o      *rdsNodeOptions
	addr   netip.Addr
	out    *lines
	events chan rdsNodeEvent

	refused, unprinted atomic.Uint64
}

// event takes an event of the node, which waits meanwhile: nothing may be printed here.
func (v *rdsNodeView) event(e rds.Event) {
	if e.Kind == rds.Refused {
		if !errors.Is(e.Err, rds.ErrNotAllowed) && !errors.Is(e.Err, rds.ErrBusy) && !errors.Is(e.Err, rds.ErrTooMany) {
			return // the peer need not try: the other side dials, or has
		}
		v.refused.Add(1)
	}
	p := rdsNodeEvent{Event: strings.ReplaceAll(e.Kind.String(), " ", "_"), Time: time.Now(), Peer: e.Peer, TOS: e.TOS}
	switch e.Kind {
	case rds.NoSocket, rds.MessageLost:
		p.Port = &e.Port
	case rds.Connected, rds.Disconnected:
		p.Path = &e.Path
	case rds.PeerViolation:
		p.Event = "violation"
	default:
	}
	switch {
	case errors.Is(e.Err, rds.ErrNotAllowed):
		p.Error = "--allow does not include its address"
	case e.Err != nil && e.Kind != rds.PeerRestarted: // which says it all
		p.Error = strings.TrimPrefix(text(e.Err), "rds: ")
	}
	select {
	case v.events <- p:
	default:
		v.unprinted.Add(1)
	}
}

// print prints an event.
func (v *rdsNodeView) print(e *rdsNodeEvent) {
	if v.o.json {
		v.object(e)
		return
	}
	line := fmt.Sprintf("%s %v %s", e.Time.Format("15:04:05.000"), e.Peer, strings.ReplaceAll(e.Event, "_", " "))
	if e.Port != nil {
		line += fmt.Sprintf(" at port %d", *e.Port)
	}
	if e.Path != nil && *e.Path > 0 {
		line += fmt.Sprintf(", path %d", *e.Path)
	}
	if e.TOS != 0 {
		line += fmt.Sprintf(", type of service %d", e.TOS)
	}
	if e.Error != "" {
		line += ": " + e.Error
	}
	v.out.print(line)
}

// object prints a JSON object.
func (v *rdsNodeView) object(o any) {
	if line, err := jsonLine(rdsNodeFormat, o); err == nil { // of texts and numbers: it can't be
		v.out.print(line)
	}
}

// listening says where the node listens.
func (v *rdsNodeView) listening() {
	at := v.o.listening(v.addr)
	if !v.o.json {
		v.out.print(fmt.Sprintf("listening at %s over %s", at, v.o.transport))
		return
	}
	v.object(&struct {
		Event     string `json:"event"`
		Listening string `json:"listening"`
		Transport string `json:"transport"`
	}{"listening", at, v.o.transport})
}

// end prints the events that still wait, and sums up. The node is closed; info is what it had before.
func (v *rdsNodeView) end(info *rds.Info) {
	for len(v.events) > 0 {
		e := <-v.events
		v.print(&e)
	}
	counters := map[string]uint64{}
	for _, c := range info.Counters {
		counters[c.Name] = c.Value
	}
	s := rdsNodeSum{
		Event: "end", Seconds: info.Seconds, Pings: counters["pings"], Connections: counters["connects"], Lost: counters["losses"],
		Refused: v.refused.Load(), NoSocket: counters["no_socket"], Violations: counters["violations"], Unprinted: v.unprinted.Load(),
	}
	if v.o.json {
		v.object(&s)
		return
	}
	v.out.print(fmt.Sprintf("--- %v rds node statistics ---", v.addr))
	v.out.print(fmt.Sprintf("%s (probes included), %s, %d lost, %d refused, %s without a socket, %s", plural.Count(s.Pings, "ping"),
		plural.Count(s.Connections, "connection"), s.Lost, s.Refused, plural.Count(s.NoSocket, "message"), plural.Count(s.Violations, "violation")))
	if s.Unprinted > 0 {
		v.out.print(plural.Count(s.Unprinted, "event") + " came too fast to be printed")
	}
}
