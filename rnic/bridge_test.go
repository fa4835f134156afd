package rnic_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// Dial returns a byte stream to a listener of a device.
func (w *world) Dial(ctx context.Context, address string) (net.Conn, error) {
	if w.lower == nil {
		return w.Network.Dial(ctx, address)
	}
	b := newBridge()
	b.dial = func(ctx context.Context, o rnic.Offer) (rnic.LLPConn, error) { return w.lower.Dial(ctx, address, o) }
	b.remote = reorderingAddr(address)
	return b, nil
}

// Listen listens for byte streams of devices.
func (w *world) Listen(ctx context.Context, address string) (net.Listener, error) {
	if w.lower == nil {
		return w.Network.Listen(ctx, address)
	}
	l, err := w.lower.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return bridgeListener{l}, nil
}

type bridgeListener struct{ rnic.LLPListener }

func (l bridgeListener) Accept() (net.Conn, error) {
	a, err := l.LLPListener.Accept()
	if err != nil {
		return nil, err
	}
	b := newBridge()
	b.local, b.remote = a.LocalAddr(), a.RemoteAddr()
	if b.request, err = a.Receive(context.Background()); err != nil {
		return nil, err
	}
	o := offerOf(b.request)
	block, _ := mpa.Enhanced{IRD: o.IRD, ORD: o.ORD}.AppendBinary(nil)
	b.asked = mpa.Frame{Revision: mpa.Revision2, CRC: true, Enhanced: true, PrivateData: append(block, o.PrivateData...)}
	b.arrive(b.asked.AppendBinary(nil))
	return b, nil
}

type reorderingAddr string

func (reorderingAddr) Network() string  { return "reordering" }
func (a reorderingAddr) String() string { return string(a) }

// A bridge is a connection over a lower layer that is no MPA, in the shape of one over MPA: so
// peers that are played by hand, FPDU by FPDU, play over both. What they send goes out in
// their order, what they receive is put into order.
type bridge struct {
	dial    func(ctx context.Context, o rnic.Offer) (rnic.LLPConn, error) // of an initiator
	dialled chan struct{}                                                 // closed when start-up is over; nil before it begins
	giveUp  context.CancelFunc
	request rnic.LLPRequest // of a responder
	asked   mpa.Frame

	local, remote net.Addr
	llp           rnic.LLPConn
	out           []byte // written, and not sent
	framer        mpa.Framer
	deframer      mpa.Deframer

	mu       sync.Mutex
	changed  chan struct{}
	in       []byte // to be read
	err      error  // that follows
	deadline time.Time

	early map[uint64][]byte // received, and not in order
	next  uint64            // the order of the one that is missing
}

func newBridge() *bridge { return &bridge{changed: make(chan struct{}), early: map[uint64][]byte{}} }

func (b *bridge) update(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

// arrive adds bytes to be read.
func (b *bridge) arrive(octets []byte, err error) {
	b.update(func() { b.in, b.err = append(b.in, octets...), errors.Join(b.err, err) })
}

// Read receives when there is nothing left to be read: a peer that does not read takes
// nothing.
func (b *bridge) Read(p []byte) (int, error) {
	for {
		b.mu.Lock()
		n, err, changed, deadline, llp := copy(p, b.in), b.err, b.changed, b.deadline, b.llp
		b.in = b.in[n:]
		b.mu.Unlock()
		switch late := !deadline.IsZero() && !time.Now().Before(deadline); {
		case n > 0:
			return n, nil
		case err != nil:
			return 0, err
		case late:
			return 0, os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(math.MaxInt64)
		if !deadline.IsZero() {
			timer.Reset(time.Until(deadline))
		}
		if llp == nil {
			select {
			case <-changed:
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		done := make(chan struct{})
		go func() {
			select {
			case <-changed: // the deadline has
				llp.Interrupt()
			case <-timer.C:
				llp.Interrupt()
			case <-done:
			}
		}()
		err = b.receive()
		close(done)
		timer.Stop()
		if err != nil {
			return 0, err
		}
	}
}

// receive receives once, and makes FPDUs of what has come, in order.
func (b *bridge) receive() error {
	err := b.llp.Receive(func(segment []byte, order uint64) error {
		b.early[order] = append([]byte{}, segment...)
		return nil
	})
	for b.early[b.next] != nil {
		fpdu, err := b.framer.AppendFPDU(nil, b.early[b.next])
		if err != nil {
			return err
		}
		b.mu.Lock()
		b.in = append(b.in, fpdu...)
		b.mu.Unlock()
		delete(b.early, b.next)
		b.next++
	}
	switch {
	case err == nil, errors.Is(err, rnic.ErrInterrupted):
		return nil
	case errors.Is(err, io.EOF):
		return io.EOF
	}
	return syscall.ECONNRESET
}

func (b *bridge) Write(p []byte) (int, error) {
	b.out = append(b.out, p...)
	if b.dialled != nil {
		<-b.dialled
	}
	if b.llp == nil {
		f, n, err := mpa.ParseFrame(b.out)
		if err != nil {
			return len(p), nil // it continues
		}
		b.out = b.out[n:]
		if err := b.start(&f); err != nil {
			return 0, err
		}
		if b.request == nil || b.llp == nil { // an initiator's start-up continues by itself
			return len(p), nil
		}
	}
	for {
		ulpdu, n, err := b.deframer.Next(b.out)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		b.out = b.out[n:]
		for {
			ok, err := b.llp.Post(ulpdu, nil, false)
			if err != nil {
				return 0, err
			}
			if ok {
				break
			}
			if _, err := b.llp.Flush(true); err != nil {
				return 0, err
			}
		}
	}
	_, err := b.llp.Flush(true)
	return len(p), err
}

// start continues with start-up by a frame that was written.
func (b *bridge) start(f *mpa.Frame) error {
	o := rnic.Offer{IRD: mpa.MaxDepth, ORD: mpa.MaxDepth, PrivateData: f.ULPData()}
	o.MPA.ReplyTimeout = 24 * time.Hour
	if e, err := mpa.ParseEnhanced(f.PrivateData); f.Enhanced && err == nil {
		o.IRD, o.ORD = e.IRD, e.ORD
	}
	b.framer, b.deframer = mpa.Framer{CRC: true, Markers: f.Markers}, mpa.Deframer{CRC: true}
	if b.request != nil {
		var err error
		if f.Rejected {
			return b.request.Reject(context.Background(), o.PrivateData)
		}
		b.llp, err = b.request.Accept(context.Background(), o)
		return err
	}
	b.dialled = make(chan struct{})
	var ctx context.Context
	ctx, b.giveUp = context.WithCancel(context.Background())
	go b.initiate(ctx, f, o)
	return nil
}

// initiate dials, and makes a Reply of what comes of it.
func (b *bridge) initiate(ctx context.Context, f *mpa.Frame, o rnic.Offer) {
	defer close(b.dialled)
	reply := mpa.Frame{Reply: true, Revision: f.Revision, CRC: true, Enhanced: f.Enhanced}
	var rejected *mpa.RejectedError
	conn, err := b.dial(ctx, o)
	switch {
	case errors.As(err, &rejected):
		reply.Rejected, reply.PrivateData = true, rejected.PrivateData
		if f.Enhanced {
			block, _ := mpa.Enhanced{IRD: rejected.IRD, ORD: rejected.ORD}.AppendBinary(nil)
			reply.PrivateData = append(block, reply.PrivateData...)
		}
	case err != nil:
		b.arrive(nil, io.EOF)
		return
	default:
		p := conn.Params()
		reply.PrivateData = p.PrivateData
		if f.Enhanced {
			block, _ := mpa.Enhanced{IRD: p.PeerIRD, ORD: p.PeerORD}.AppendBinary(nil)
			reply.PrivateData = append(block, reply.PrivateData...)
		}
		b.local, b.remote = conn.LocalAddr(), conn.RemoteAddr()
	}
	octets, err := reply.AppendBinary(nil)
	b.update(func() { // whoever reads finds the Reply before anything that comes over conn
		b.llp, b.in, b.err = conn, append(b.in, octets...), errors.Join(b.err, err)
	})
}

func (b *bridge) Close() error {
	if b.dialled != nil {
		b.giveUp()
		<-b.dialled
	}
	if b.llp != nil {
		return b.llp.Close()
	}
	if b.request != nil {
		return b.request.Close()
	}
	return nil
}

func (b *bridge) CloseWrite() error {
	if b.llp == nil {
		return b.Close()
	}
	return b.llp.CloseWrite()
}

func (b *bridge) Abort() error {
	if b.llp == nil {
		return b.Close()
	}
	return b.llp.Abort()
}

func (b *bridge) LocalAddr() net.Addr              { return b.local }
func (b *bridge) RemoteAddr() net.Addr             { return b.remote }
func (b *bridge) SetDeadline(t time.Time) error    { return b.SetReadDeadline(t) }
func (b *bridge) SetWriteDeadline(time.Time) error { return nil }
func (b *bridge) SetReadDeadline(t time.Time) error {
	b.update(func() { b.deadline = t })
	return nil
}

// offerOf returns what an initiator offers, of either lower layer.
func offerOf(r rnic.LLPRequest) rnic.Offer {
	if o, ok := r.(interface{ Offer() rnic.Offer }); ok {
		return o.Offer()
	}
	return rnictest.OfferOf(r.(rnic.LLPArrival))
}
