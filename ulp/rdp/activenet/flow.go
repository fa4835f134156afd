package activenet

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/machine"
)

// A FlowConfig describes a flow: messages from one node to another, over an RDP connection that it
// opens.
type FlowConfig struct {
	Name     string
	Control  func() congestion.Controller // of the sender; nil: none
	Bytes    int                          // of a message; 0: 1000
	Messages int                          // how many are sent; 0: as many as go
	Start    time.Duration                // when the connection is opened
	Window   int                          // how many segments the receiver lets be unacknowledged; 0: 512
	Version  uint8                        // of RDP; 0: 2

	// Order has the receiver deliver messages in order.
	Order bool

	// Machine is the configuration of both endpoints. The Secret is set, so that runs repeat.
	Machine machine.Config
}

const (
	defaultMessage = 1000
	defaultWindow  = 512
	carrierBytes   = 28 // IPv4 and UDP headers
	port           = 10908
)

// A Flow is traffic of one sender to one receiver, each a [machine.Machine].
type Flow struct {
	Stats FlowStats

	net        *Network
	cfg        FlowConfig
	path, back []*Link
	sender     *host
	receiver   *host
	control    *watched
	left       int // messages still to be sent; negative: no end
	message    []byte
	buf        []byte // for a segment
	err        error
}

// FlowStats counts what a flow has done.
type FlowStats struct {
	Sent      int           // segments with data, each time they were sent
	Dropped   int           // of them: that did not arrive
	Marked    int           // that arrived with a mark
	Reports   int           // that came to the sender
	Delivered int           // messages that the receiver's program has got
	Bytes     int           // in them
	Done      time.Duration // when the last message was acknowledged; 0: not yet
}

// Flow adds a flow. The error says that a node can't be reached from the other, or what of the
// machine's configuration can't be used.
func (n *Network) Flow(from, to *Node, cfg FlowConfig) (*Flow, error) {
	if from == to {
		return nil, fmt.Errorf("activenet: the flow %q leads from %v to itself: name two nodes", cfg.Name, from)
	}
	if cfg.Bytes <= 0 {
		cfg.Bytes = defaultMessage
	}
	if cfg.Window <= 0 {
		cfg.Window = defaultWindow
	}
	if cfg.Version == 0 {
		cfg.Version = 2
	}
	if cfg.Control == nil {
		cfg.Control = congestion.None
	}
	f := &Flow{net: n, cfg: cfg, left: cfg.Messages, message: make([]byte, cfg.Bytes), buf: make([]byte, machine.MaxPacket)}
	if cfg.Messages <= 0 {
		f.left = -1
	}
	var err error
	if f.path, err = n.path(from, to); err != nil {
		return nil, err
	}
	if f.back, err = n.path(to, from); err != nil {
		return nil, err
	}
	id := len(n.flows)
	if f.sender, err = f.newHost(id, true); err != nil {
		return nil, err
	}
	if f.receiver, err = f.newHost(id, false); err != nil {
		return nil, err
	}
	n.flows = append(n.flows, f)
	if err := f.receiver.listen(); err != nil {
		return nil, err
	}
	n.At(cfg.Start, f.open)
	return f, nil
}

// Name returns the name.
func (f *Flow) Name() string { return f.cfg.Name }

// Err returns why the flow has ended before its time, or nil.
func (f *Flow) Err() error { return f.err }

// Window returns the congestion window of the sender; 0 if the connection is not open.
func (f *Flow) Window() int {
	if f.control == nil {
		return 0
	}
	return f.control.Window()
}

// InFlight returns how many segments are in flight.
func (f *Flow) InFlight() int {
	if f.control == nil {
		return 0
	}
	return f.control.inFlight
}

// Status returns what the sender's machine knows of the connection.
func (f *Flow) Status() machine.Status {
	if f.sender.conn == nil {
		return machine.Status{}
	}
	return f.sender.conn.Status()
}

// params are those of both ends.
func (f *Flow) params() machine.Params {
	// IP and RDP headers, with room for all extended acknowledgements.
	const headers = 20 + 510
	return machine.Params{
		MaxSegment: min(headers+f.cfg.Bytes, 1<<16-1), Window: f.cfg.Window, SendQueue: f.cfg.Window, Sequenced: f.cfg.Order,
		Keepalive: -1, Congestion: f.newControl,
	}
}

// newControl makes the controller of a connection: the receiver's, which sends no data, needs none.
func (f *Flow) newControl() congestion.Controller {
	c := f.cfg.Control()
	f.control = &watched{Controller: c, name: fmt.Sprint(c)}
	return f.control
}

// open has the sender open the connection.
func (f *Flow) open() {
	h := f.sender
	h.conn, f.err = h.m.Open(f.net.now, machine.OpenConfig{
		Path: machine.Path{Local: h.addr, Remote: netip.AddrPortFrom(f.receiver.addr, port)}, Version: f.cfg.Version, Remote: service, Params: f.params(),
	})
	h.work()
}

// deliver takes a packet that has arrived at one of the hosts.
func (f *Flow) deliver(p *Packet) {
	switch {
	case p.Report != nil:
		f.reported(*p.Report)
	case p.Forward:
		if p.Marked {
			f.Stats.Marked++
			f.net.inject(Packet{Flow: f, Bytes: reportBytes, Report: &congestion.Report{Marks: 1, From: "receiver"}}, f.back)
		}
		f.receiver.arrive(p.Segment, f.sender)
	default:
		f.sender.arrive(p.Segment, f.receiver)
	}
}

// reported gives a report to the sender's connection.
func (f *Flow) reported(r congestion.Report) {
	f.Stats.Reports++
	if c := f.sender.conn; c != nil {
		c.Report(f.net.now, r)
		f.sender.work()
	}
}

// fill gives the sender's connection messages to send.
func (f *Flow) fill() {
	for f.left != 0 {
		switch err := f.sender.conn.Send(f.net.now, f.message); {
		case err == nil:
			if f.left > 0 {
				f.left--
			}
		case errors.Is(err, machine.ErrWouldBlock), errors.Is(err, machine.ErrNotOpen):
			return
		default:
			f.err, f.left = err, 0
		}
	}
}

// transmitted stamps a segment of a host, and sends it on its way.
func (f *Flow) transmitted(h *host, segment []byte) {
	p := Packet{Flow: f, Forward: h == f.sender, Bytes: carrierBytes + len(segment), Segment: segment}
	path := f.back
	if p.Forward {
		path = f.path
		p.Data = 2*int(segment[1]) < len(segment) // more than a header
		if f.control != nil {
			p.State = f.control.state()
		}
	}
	if p.Data {
		f.Stats.Sent++
	}
	f.net.inject(p, path)
}

// A watched is a controller that remembers what was in flight.
type watched struct {
	congestion.Controller
	name     string
	inFlight int
}

func (w *watched) Sent(now time.Duration, inFlight int) {
	w.inFlight = inFlight
	w.Controller.Sent(now, inFlight)
}

func (w *watched) Acked(now time.Duration, a congestion.Ack) {
	w.inFlight = a.InFlight
	w.Controller.Acked(now, a)
}

// state is what packets say of the sender.
func (w *watched) state() State {
	return State{Control: w.name, Window: w.Window(), InFlight: w.inFlight}
}
