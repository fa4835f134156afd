package rdsstress

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rds"
)

func rdmaParams(size uint32, mode uint8) Params {
	p := params(200, 100, 2, 3)
	p.RDMASize = size
	p.Flags[Mode], p.Flags[Fence] = mode, 1
	return p
}

// Each request has the other side read or write memory, whose contents both compare.
func TestRDMA(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"read and write": func(*Params) {},
		"read":           func(p *Params) { p.Flags[Mode] = ReadOnly },
		"write":          func(p *Params) { p.Flags[Mode] = WriteOnly },
		"use once":       func(p *Params) { p.Flags[UseOnce] = 1 },
		"cached":         func(p *Params) { p.Flags[CacheMRs] = 1 },
		"pieces":         func(p *Params) { p.Vectors = 4 },
		"odd size":       func(p *Params) { p.RDMASize = 1001 },
		"one way":        func(p *Params) { p.Flags[Simplex] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			p := rdmaParams(8192, ReadWrite)
			change(&p)
			active, passive := both(within(t), t, p, transports["iwarp"], Options{Requests: 300})
			if err := errors.Join(active.err, passive.err); err != nil {
				t.Fatal(err)
			}
			// The first messages of the four pairs have no RDMA.
			if least := uint64(300-4*firstRDMA) / 3 * uint64(p.length()); p.Flags[Mode] != WriteOnly && active.All.RDMAOut < least || p.Flags[Mode] != ReadOnly && active.All.RDMAIn < least {
				t.Errorf("%d bytes have come by RDMA, %d have gone", active.All.RDMAIn, active.All.RDMAOut)
			}
			if active.All.RDMAOut+active.All.RDMAIn > 0 && p.On(Simplex) && passive.All.RequestsSent > 0 {
				t.Errorf("the passive side has sent %d requests", passive.All.RequestsSent)
			}
		})
	}
}

// An acknowledgement that says that memory was written, which was not, is found out.
func TestRDMAThatDidNotTakePlace(t *testing.T) {
	ctx := within(t)
	l := listener(t, "4000")
	server, client := open(t, serverAddr, transports["iwarp"](t)), open(t, clientAddr, transports["iwarp"](t))
	p := params(100, 100, 1, 1)
	p.RDMASize, p.Flags[Mode], p.Flags[Simplex] = 64, WriteOnly, 1
	faked := make(chan error, 1)
	go func() { faked <- fake(ctx, l, server) }()
	c, err := Dial(ctx, clientAddr, serverAddr, p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(ctx, client, Options{Requests: 100})
	if m, is := errors.AsType[*Mismatch](err); !is || !strings.Contains(m.What, "byte 0 of the memory that was written by RDMA is 0x00") {
		t.Errorf("the active side says %v", err)
	}
	if err := <-faked; err != nil {
		t.Error(err)
	}
}

// fake is a passive side that acknowledges requests without their RDMA operations, until it is ended.
func fake(ctx context.Context, l net.Listener, n *rds.Node) error {
	c, err := Accept(ctx, l)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := n.Bind(4001)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.ready(ctx, 10*time.Minute); err != nil {
		return err
	}
	q := newPair(&c.Params, c.Local, c.Peer, 0, 0, pattern(100))
	go func() {
		_, _ = io.Copy(io.Discard, c.conn) // until the active side is gone
		s.Close()
	}()
	for {
		msg, err := s.Receive(ctx)
		if errors.Is(err, rds.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, _, err := q.arrived(msg.Data, uint64(msg.Cookie)); err != nil {
			return err
		}
		ack := q.compose(time.Time{}, false, free)
		if err := s.SendTo(ctx, q.encode(&ack), msg.Addr); err != nil {
			return err
		}
	}
}

func TestRDMAThatWasNotAgreed(t *testing.T) {
	p := rdmaParams(64, WriteOnly)
	p.Depth = 20
	for name, test := range map[string]struct {
		spoil  func(h *Header)
		cookie uint64
		want   string
	}{
		"no cookie": {func(*Header) {}, 0, "no cookie"},
		"size":      {func(h *Header) { h.Size++ }, 1, "RDMA of 1 times 65 bytes"},
		"pieces":    {func(h *Header) { h.Vectors = 100 }, 1, "RDMA of 100 times 64 bytes"},
		"operation": {func(h *Header) { h.RDMAOp = 3 }, 1, "operation 3"},
		"an acknowledgement of another operation": {func(h *Header) { h.Op, h.Index = Ack, 0 }, 1, "that of the request was 0"},
	} {
		a := newPair(&p, p.Receive, p.Send, 0, 0, nil)
		b := newPair(&p, p.Send, p.Receive, 0, 0, nil)
		var err error
		for err == nil {
			h := a.compose(time.Time{}, true, free)
			b.compose(time.Time{}, true, free)
			if h.RDMAOp != NoRDMA {
				test.spoil(&h)
			}
			_, _, err = b.arrived(a.encode(&h), test.cookie)
		}
		if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
	}
}
