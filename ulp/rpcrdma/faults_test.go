package rpcrdma_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/cutnet"
	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// over connects a client to a server over a network, and returns what it is to do at the
// end, or nil if it can't connect.
func over(t *testing.T, n rnic.Network, s oncrpc.Service, server, client rpcrdma.Config) (conn *rpcrdma.Conn, end func()) {
	t.Helper()
	dev := func(name string) *rnic.Device {
		d, err := rnic.Open(rnic.Config{Name: name, Network: n})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b := dev("client"), dev("server")
	l, err := b.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, err := rpcrdma.NewServer(s, server)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background(), l) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err = rpcrdma.Dial(ctx, a, l.Addr().String(), client)
	if err != nil {
		conn = nil
	}
	return conn, func() {
		if conn != nil {
			_ = conn.Close()
		}
		if err := errors.Join(srv.Close(), <-served, a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	}
}

// bulksOnce makes a call with bulks, whose arguments and results must be right, or returns
// why it has failed.
func bulksOnce(ctx context.Context, c oncrpc.Conn, lengths ...int) error {
	r, e := call(procBulks)
	r.ReplyMost = headerLen + 4 + 4*len(lengths)
	e.Uint32(uint32(len(lengths)))
	for i, n := range lengths {
		e.Bulk(filled(n, uint32(i)))
		r.Sinks = append(r.Sinks, make([]byte, n))
	}
	m, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer m.Release()
	d := m.Decoder()
	var reply oncrpc.Reply
	if err := errors.Join(reply.Decode(d), reply.Err); err != nil {
		return err
	}
	d.Uint32()
	for i, n := range lengths {
		if got := d.Bulk(n); !bytes.Equal(got, filled(n, uint32(i))) {
			return fmt.Errorf("result %d of %d octets is not what it should be", i, n)
		}
	}
	return d.End()
}

// However reads and writes of the network are cut, calls come through.
func TestCallsComeThroughInPieces(t *testing.T) {
	n := &cutnet.Network{Seed: 1}
	conn, end := over(t, n, newService(t), rpcrdma.Config{}, rpcrdma.Config{MaxSegment: 10_000})
	defer end()
	for i := range 20 {
		if err := bulksOnce(t.Context(), conn, 7*i, 1000*i, 3001*i); err != nil {
			t.Fatal(err)
		}
	}
}

// Wherever the connection is cut, or stands still, calls end as they have to, and nothing
// is left behind: the bubble sees to that.
func TestCallsEndWhereverTheConnectionDoes(t *testing.T) {
	for _, how := range registrations {
		for seed := range int64(30) {
			cut := 1 + seed*seed*50
			for name, faults := range map[string]simnet.Options{
				"to the server":    {AB: simnet.Faults{CutAt: cut}},
				"from the server":  {BA: simnet.Faults{CutAt: cut}},
				"stands still to":  {AB: simnet.Faults{StallAt: cut}},
				"stands still fro": {BA: simnet.Faults{StallAt: cut}},
				"is corrupted to":  {AB: simnet.Faults{CorruptAt: cut, Seed: uint64(seed)}},
			} {
				synctest.Test(t, func(t *testing.T) {
					n := &simnet.Network{Options: func(int) simnet.Options { return faults }}
					conn, end := over(t, n, newService(t), rpcrdma.Config{}, rpcrdma.Config{Registration: how})
					defer end()
					if conn == nil {
						return
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					for {
						err := bulksOnce(ctx, conn, 100, 5001, 6000)
						var lost *oncrpc.LostError
						switch {
						case errors.As(err, &lost), errors.Is(err, context.DeadlineExceeded):
							return
						case err != nil:
							t.Fatalf("%v, %s octet %d: %v", how, name, cut, err)
						}
					}
				})
			}
		}
	}
}

// A responder that takes nothing of what is sent can't hold up a call that is canceled: its
// connection is ended (RFC 8166 §4.5.4).
func TestCanceledCallsOfAPeerThatStandsStillEnd(t *testing.T) {
	for _, how := range registrations {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &simnet.Network{Options: func(int) simnet.Options { return simnet.Options{Buffer: 4096} }}
				conn, end := over(t, &deafNetwork{network, 3000, true}, newService(t), rpcrdma.Config{}, rpcrdma.Config{Registration: how})
				defer end()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := bulksOnce(ctx, conn, 30_000) // which the responder has asked for, and does not take
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the call ends with %v", err)
				}
				<-conn.Done()
				// A region that is deregistered is so at once, and what is left of the Read has
				// no source any more.
				if err := conn.Err(); how != rpcrdma.RegisterEach && !errors.Is(err, rpcrdma.ErrHeld) {
					t.Errorf("the connection has ended for %v", err)
				}
			})
		})
	}
}

// A requester that does not answer RDMA Reads, or take what is written to it, has its
// connection ended.
func TestRequesterThatHoldsUpItsCallsIsCutOff(t *testing.T) {
	small := func(int) simnet.Options { return simnet.Options{Buffer: 8192} }
	for name, n := range map[string]rnic.Network{
		"reads":  &simnet.Network{Options: func(int) simnet.Options { return simnet.Options{AB: simnet.Faults{StallAt: 50_000}} }},
		"writes": &deafNetwork{&simnet.Network{Options: small}, 50_000, false},
	} {
		t.Run(name, func(t *testing.T) { holdUp(t, n) })
	}
}

// A deafNetwork is one of whose connections one end reads only so many bytes: who has
// dialed, or who has accepted.
type deafNetwork struct {
	*simnet.Network
	most   int
	server bool
}

func (n *deafNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := n.Network.Listen(ctx, address)
	if err != nil || !n.server {
		return l, err
	}
	return &deafListener{l, n.most}, nil
}

type deafListener struct {
	net.Listener
	most int
}

func (l *deafListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &deaf{Conn: c, left: l.most, closed: make(chan struct{})}, nil
}

func (n *deafNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, address)
	if err != nil || n.server {
		return c, err
	}
	return &deaf{Conn: c, left: n.most, closed: make(chan struct{})}, nil
}

type deaf struct {
	net.Conn
	left   int
	closed chan struct{}
	once   sync.Once
}

func (d *deaf) Read(p []byte) (int, error) {
	if d.left == 0 {
		<-d.closed
		return 0, net.ErrClosed
	}
	n, err := d.Conn.Read(p[:min(len(p), d.left)])
	d.left -= n
	return n, err
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

func holdUp(t *testing.T, n rnic.Network) {
	synctest.Test(t, func(t *testing.T) {
		peers := make(chan *rpcrdma.Peer, 1)
		conn, end := over(t, n, newService(t), rpcrdma.Config{Connected: func(p *rpcrdma.Peer) { peers <- p }}, rpcrdma.Config{})
		defer end()
		peer := <-peers
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := bulksOnce(ctx, conn, 100_000); err == nil {
			t.Error("the call comes through")
		}
		<-peer.Done()
		if !errors.Is(peer.Err(), rpcrdma.ErrStalled) {
			t.Errorf("the connection has ended for %v after %v", peer.Err(), time.Since(begin))
		}
	})
}

// Whatever a peer sends, nothing panics, and the connection is either ended or works.
func FuzzServer(f *testing.F) {
	f.Add(callMessage(header(1, nil), procNull, nil))
	f.Add(callMessage(header(1, func(h *rpcrdma.Header) {
		h.Read = at(40, rpcrdma.Segment{Handle: 1, Length: 8})
		h.Write = [][]rpcrdma.Segment{{{Handle: 2, Length: 8}}}
		h.HasReply, h.Reply = true, []rpcrdma.Segment{{Handle: 3, Length: 8}}
	}), procRead, func(e *xdr.Encoder) { e.Uint32(1); e.Uint32(8) }))
	f.Add(octets(header(1, func(h *rpcrdma.Header) { h.Proc, h.Read = rpcrdma.NoMsg, at(0, rpcrdma.Segment{Handle: 1, Length: 44}) })))
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > 4096 {
			return
		}
		s := newService(t)
		s.most = 1 << 16
		_, address := serve(t, serviceFunc(func(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
			if d := x.Call.Decoder(); d.Left() > 44 { // a call that asks for nothing that is huge, or waits
				return (&oncrpc.Reply{XID: 1}).Encode(reply)
			}
			return s.Serve(ctx, x, reply)
		}), rpcrdma.Config{})
		r := rawDial(t, address, rawPrivate)
		close(s.release)
		if err := r.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{r.register(append([]byte{0}, message...), 0).SGE(1, len(message))}}); err != nil {
			t.Fatal(err)
		}
	})
}
