package rnictest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"urnic/ddp/ddptest"
	"urnic/mpa"
	"urnic/rnic"
)

// A Reordering is a lower layer in memory that passes on the segments that have arrived in any
// order, as RFC 5041 §3 rule 5 allows and MPA over TCP never does. All devices that connect
// over it name it in rnic.Config.LowerLayer. Its zero value preserves the order.
//
// Its start-up offers what MPA's does (private data, IRD and ORD, rejection, time limits), but
// either side may send first. It loses and damages nothing, and can't be recorded.
type Reordering struct {
	Seed   uint64 // of the order; each connection has its own, derived from this one
	Window int    // from how many arrived segments the next is chosen; 0 and 1: in order
	MULPDU int    // bytes of the longest segment; 0 stands for mpa.DefaultEMSS less a little
	Polls  bool   // whether it can be polled, as TCP on Linux can

	mu        sync.Mutex
	listeners map[string]*reorderingListener // by address
	dialled   int
	ports     int
	conns     []*reorderingConn
}

// flight is the maximum of bytes in transit in one direction.
const flight = 256 << 10

// privateData is how many bytes fit into a request or an answer, as with MPA's enhanced ones.
const privateData = mpa.MaxPrivateData - mpa.EnhancedLen

// Reordered returns how many directions of its connections have passed on a segment before
// one that was sent earlier. Call it when nothing receives any more.
func (r *Reordering) Reordered() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		if c.llp.Reordered() {
			n++
		}
	}
	return n
}

// An address is a name of an end in memory.
type address string

func (address) Network() string  { return "reordering" }
func (a address) String() string { return string(a) }

// Listen implements rnic.LowerLayer. Any address will do; a port 0 is replaced by a free one.
func (r *Reordering) Listen(_ context.Context, name string) (rnic.LLPListener, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if host, port, err := net.SplitHostPort(name); err == nil && port == "0" {
		r.ports++
		name = net.JoinHostPort(host, strconv.Itoa(49151+r.ports))
	}
	if r.listeners[name] != nil {
		return nil, &net.OpError{Op: "listen", Net: address("").Network(), Err: syscall.EADDRINUSE}
	}
	if r.listeners == nil {
		r.listeners = make(map[string]*reorderingListener)
	}
	l := &reorderingListener{net: r, name: name, queue: make(chan *arrival, 128), done: make(chan struct{})}
	r.listeners[name] = l
	return l, nil
}

type reorderingListener struct {
	net   *Reordering
	name  string
	queue chan *arrival
	once  sync.Once
	done  chan struct{}
}

// Addr implements rnic.LLPListener.
func (l *reorderingListener) Addr() net.Addr { return address(l.name) }

// Accept implements rnic.LLPListener.
func (l *reorderingListener) Accept() (rnic.LLPArrival, error) {
	select {
	case a := <-l.queue:
		return a, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Err: net.ErrClosed}
	}
}

// Close implements rnic.LLPListener.
func (l *reorderingListener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, l.name)
		l.net.mu.Unlock()
		close(l.done)
		l.drain()
	})
	return nil
}

// drain ends the arrivals that nothing will ever accept.
func (l *reorderingListener) drain() {
	for {
		select {
		case a := <-l.queue:
			_ = a.Close()
		default:
			return
		}
	}
}

// An arrival is a connection in start-up. Its request is there from the
// beginning.
type arrival struct {
	net        *Reordering
	number     int
	from, to   address
	offer      rnic.Offer  // of the initiator
	answer     chan answer // one, from the end that accepts
	gone       chan struct{}
	mu         sync.Mutex
	over, left bool // answered; given up by the initiator
}

// An answer is the result of an arrival: a connection, or an error.
type answer struct {
	conn *reorderingConn
	err  error
}

var (
	errRefused  = fmt.Errorf("nobody listens: %w", syscall.ECONNREFUSED)
	errNoAnswer = &mpa.Error{Code: mpa.CodeConnectionLost, Reason: "the peer has closed the connection without an answer", Err: io.EOF}
	errGone     = errors.New("the peer has closed the connection")
)

// Dial implements rnic.LowerLayer.
func (r *Reordering) Dial(ctx context.Context, name string, o rnic.Offer) (rnic.LLPConn, error) {
	if err := fits(o.PrivateData); err != nil {
		return nil, err
	}
	r.mu.Lock()
	l := r.listeners[name]
	r.dialled++
	a := &arrival{
		net: r, number: r.dialled, from: address(fmt.Sprintf("dialler:%d", r.dialled)), to: address(name),
		offer: o, answer: make(chan answer, 1), gone: make(chan struct{}),
	}
	r.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: a.to.Network(), Addr: a.to, Err: errRefused}
	}
	limit := o.MPA.ReplyTimeout
	if limit == 0 {
		limit = mpa.DefaultReplyTimeout
	}
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case l.queue <- a:
		select {
		case <-l.done: // perhaps after the last look into the queue
			l.drain()
		default:
		}
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: a.to.Network(), Addr: a.to, Err: errRefused}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case got := <-a.answer:
		if got.conn == nil {
			return nil, got.err
		}
		return got.conn, nil
	case <-ctx.Done():
		return nil, a.leave(context.Cause(ctx))
	case <-patience.C:
		return nil, a.leave(fmt.Errorf("no answer came within %v: %w", limit, context.DeadlineExceeded))
	}
}

func fits(b []byte) error {
	if len(b) > privateData {
		return &mpa.ConfigError{Reason: fmt.Sprintf("%d octets of private data: at most %d fit", len(b), privateData)}
	}
	return nil
}

// leave cancels the arrival, and returns why.
func (a *arrival) leave(why error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.left = true
		close(a.gone)
	} else if got := <-a.answer; got.conn != nil {
		_ = got.conn.Abort() // nothing will use it
	}
	return why
}

// reply answers the initiator, if it still waits.
func (a *arrival) reply(with func() answer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.left:
		return errGone
	case !a.over:
		a.over = true
		a.answer <- with()
	}
	return nil
}

// LocalAddr implements rnic.LLPArrival.
func (a *arrival) LocalAddr() net.Addr { return a.to }

// RemoteAddr implements rnic.LLPArrival.
func (a *arrival) RemoteAddr() net.Addr { return a.from }

// Receive implements rnic.LLPArrival.
func (a *arrival) Receive(context.Context) (rnic.LLPRequest, error) {
	if err := a.Look(); err != nil {
		return nil, err
	}
	return a, nil
}

// PrivateData implements rnic.LLPRequest.
func (a *arrival) PrivateData() []byte { return a.offer.PrivateData }

// MaxPrivateData implements rnic.LLPRequest.
func (a *arrival) MaxPrivateData() int { return privateData }

// Watch implements rnic.LLPRequest.
func (a *arrival) Watch(ctx context.Context) error {
	select {
	case <-a.gone:
		return errGone
	case <-ctx.Done():
		return nil
	}
}

// Look implements rnic.LLPRequest.
func (a *arrival) Look() error {
	select {
	case <-a.gone:
		return errGone
	default:
		return nil
	}
}

// Close implements rnic.LLPArrival and rnic.LLPRequest.
func (a *arrival) Close() error {
	_ = a.reply(func() answer { return answer{err: errNoAnswer} }) // who has gone needs none
	return nil
}

// Reject implements rnic.LLPRequest.
func (a *arrival) Reject(_ context.Context, private []byte) error {
	if err := fits(private); err != nil {
		return err
	}
	return a.reply(func() answer { return answer{err: &mpa.RejectedError{PrivateData: append([]byte(nil), private...)}} })
}

// Linger implements rnic.LLPRequest: the initiator has the answer already.
func (a *arrival) Linger(context.Context) {}

// Accept implements rnic.LLPRequest. IRD and ORD become what RFC 6581 §9.1 says.
func (a *arrival) Accept(_ context.Context, o rnic.Offer) (rnic.LLPConn, error) {
	if err := fits(o.PrivateData); err != nil {
		_ = a.Close()
		return nil, err
	}
	ird, ord := min(o.IRD, a.offer.ORD), min(o.ORD, a.offer.IRD)
	if a.offer.IRD < o.MinORD {
		if err := a.reply(func() answer {
			return answer{err: &mpa.RejectedError{PrivateData: o.PrivateData, Enhanced: true, IRD: ird, ORD: o.MinORD}}
		}); err != nil {
			return nil, err
		}
		return nil, &mpa.Error{
			Code: mpa.CodeInsufficientIRD, Clause: "RFC 6581 §9.1",
			Reason: fmt.Sprintf("the initiator takes %d reads at a time; this side needs %d", a.offer.IRD, o.MinORD),
		}
	}
	var here *reorderingConn
	err := a.reply(func() answer {
		var there *reorderingConn
		there, here = a.net.pair(a)
		there.params = rnic.Params{
			Role: rnic.Initiator, Enhanced: true, IRD: a.offer.IRD, ORD: min(a.offer.ORD, ird),
			PeerIRD: ird, PeerORD: ord, PrivateData: append([]byte(nil), o.PrivateData...),
		}
		here.params = rnic.Params{
			Role: rnic.Responder, Enhanced: true, IRD: ird, ORD: ord,
			PeerIRD: a.offer.IRD, PeerORD: a.offer.ORD, PrivateData: append([]byte(nil), a.offer.PrivateData...),
		}
		return answer{conn: there}
	})
	switch {
	case err != nil:
		return nil, err
	case here == nil: // closed already
		return nil, errNoAnswer
	}
	return here, nil
}

// pair creates the two ends of a connection.
func (r *Reordering) pair(a *arrival) (initiator, responder *reorderingConn) {
	mulpdu := r.MULPDU
	if mulpdu == 0 {
		mulpdu = mpa.MULPDU(mpa.DefaultEMSS, false)
	}
	x, y := ddptest.Pair(ddptest.Options{MULPDU: mulpdu, Seed: r.Seed + uint64(a.number), Reorder: r.Window, Flight: flight})
	initiator = &reorderingConn{llp: x, LLP: x, polls: r.Polls, local: a.from, remote: a.to}
	responder = &reorderingConn{llp: y, LLP: y, polls: r.Polls, local: a.to, remote: a.from}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, initiator, responder)
	return initiator, responder
}

// A reorderingConn is one end of a connection over a Reordering. It implements rnic.LLPConn.
type reorderingConn struct {
	rnic.LLP
	llp           *ddptest.LLP
	params        rnic.Params
	polls         bool
	local, remote address
}

// Params implements rnic.LLPConn.
func (c *reorderingConn) Params() rnic.Params { return c.params }

// LocalAddr implements rnic.LLPConn.
func (c *reorderingConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements rnic.LLPConn.
func (c *reorderingConn) RemoteAddr() net.Addr { return c.remote }

// Polls implements rnic.LLPConn.
func (c *reorderingConn) Polls() bool { return c.polls }

// Flush implements rnic.LLP: without anything to send, it does not matter that the peer has
// closed.
func (c *reorderingConn) Flush(wait bool) (bool, error) {
	if c.llp.Posted() == c.llp.Accepted() {
		return true, nil
	}
	return c.llp.Flush(wait)
}

// Receive implements rnic.LLP.
func (c *reorderingConn) Receive(place func(segment []byte, order uint64) error) error {
	return interrupted(c.llp.Receive(place))
}

// Await implements rnic.LLPConn.
func (c *reorderingConn) Await() error { return interrupted(c.llp.Await()) }

func interrupted(err error) error {
	if errors.Is(err, ddptest.ErrInterrupted) {
		return rnic.ErrInterrupted
	}
	return err
}

// Interrupt implements rnic.LLPConn.
func (c *reorderingConn) Interrupt() { c.llp.Interrupt() }

// SetKeeper implements rnic.LLPConn: buffers are not bounded.
func (c *reorderingConn) SetKeeper(func(octets int)) {}

// Stalled implements rnic.LLPConn.
func (c *reorderingConn) Stalled() time.Time { return time.Time{} }

// Free implements rnic.LLPConn.
func (c *reorderingConn) Free() {}

// OfferOf returns the offer of the initiator of a connection over a Reordering, for tests
// that play the other side by hand. It is zero for other lower layers.
func OfferOf(a rnic.LLPArrival) rnic.Offer {
	if a, ok := a.(*arrival); ok {
		return a.offer
	}
	return rnic.Offer{}
}
