package rds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"urnic/internal/wake"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// What calls of a socket return. Those of package machine are the same values.
var (
	ErrClosed     = machine.ErrClosed
	ErrCongested  = machine.ErrCongested
	ErrBufferFull = machine.ErrBufferFull
	ErrTooLong    = machine.ErrTooLong
	ErrPortInUse  = machine.ErrPortInUse
	ErrAddress    = machine.ErrAddress
	// ErrNoContext says that a call has got nil for a context.
	ErrNoContext = errors.New("rds: the context is nil: pass context.Background() if nothing bounds the call")
	// ErrEmpty says that there is no message to receive.
	ErrEmpty = errors.New("rds: there is no message to receive")
	// ErrNotAllowed says that the node's configuration does not allow the peer.
	ErrNotAllowed = errors.New("rds: the node does not allow connections with this address")
)

// A Socket is bound to a port of a node. All its methods are safe for concurrent use.
type Socket struct {
	n        *Node
	s        *machine.Socket
	port     uint16
	readable wake.One
	writable wake.Bell
	ended    chan struct{} // closed with the socket
	ending   sync.Once
	err      error // why; read after ended is closed

	reading, writing deadline

	mrs  map[uint32]*MR // by their R_Keys; under the node's lock, as the next
	held int            // MRs that are not freed
}

// A SocketOption sets something of a socket when it is bound.
type SocketOption func(*socketOptions)

type socketOptions struct{ send, receive int }

// SendBuffer sets how many bytes the socket may have unsent and unacknowledged.
func SendBuffer(bytes int) SocketOption { return func(o *socketOptions) { o.send = bytes } }

// ReceiveBuffer sets from how many unread bytes on the socket's port is congested.
func ReceiveBuffer(bytes int) SocketOption { return func(o *socketOptions) { o.receive = bytes } }

// Bind makes a socket with a port; 0 lets the node choose one. The error is ErrPortInUse,
// ErrNodeClosed, or says that there are too many sockets.
func (n *Node) Bind(port uint16, options ...SocketOption) (*Socket, error) {
	var o socketOptions
	for _, set := range options {
		set(&o)
	}
	n.mu.Lock()
	defer n.unlock()
	if n.closed {
		return nil, ErrNodeClosed
	}
	m, err := n.m.Bind(port, o.send, o.receive)
	if err != nil {
		return nil, err
	}
	s := &Socket{n: n, s: m, port: m.Port(), readable: wake.NewOne(), ended: make(chan struct{})}
	s.reading.init()
	s.writing.init()
	n.sockets[m] = s
	return s, nil
}

// Addr returns the socket's own address.
func (s *Socket) Addr() Addr { return Addr{Host: s.n.cfg.Addr, Port: s.port} }

// Close closes the socket. Its messages that are not acknowledged are given up, as on
// Linux; Flush waits for them. Calls that wait return ErrClosed.
func (s *Socket) Close() error {
	s.end(ErrClosed)
	return nil
}

func (s *Socket) end(why error) {
	s.ending.Do(func() {
		var mrs []*MR
		s.n.mu.Lock()
		for _, m := range s.mrs {
			mrs = append(mrs, m)
		}
		s.mrs = nil
		s.s.Close(s.n.now())
		s.n.effects() // while the socket can still be named
		delete(s.n.sockets, s.s)
		s.n.unlock()
		for _, m := range mrs {
			_ = m.free() // MR.Close returns the error, too
		}
		s.err = why
		close(s.ended)
	})
}

// over returns why a call is not to begin, if its context has ended.
func over(ctx context.Context) error {
	if ctx == nil {
		return ErrNoContext
	}
	return context.Cause(ctx)
}

// isOver returns why the socket is closed, or nil.
func (s *Socket) isOver() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

// A Message is a datagram.
type Message struct {
	Addr Addr // from where it has come, or where it goes
	Data []byte
	// Cookie names memory of the sender that the receiver may read or write; 0: none.
	Cookie wire.Cookie
	// RKey is that of the memory, of this side, which the sender has written or read before it has
	// sent the message: Cookie.RKey of an MR. 0: none. Of a message to be sent it is not used: see With.
	RKey uint32
}

// A SendOption changes how a message is sent.
type SendOption func(*sendOptions)

type sendOptions struct {
	machine.Options
	now, silent bool
	op          *Operation
}

// NoWait makes Send return ErrCongested or ErrBufferFull, where it would wait.
func NoWait() SendOption { return func(o *sendOptions) { o.now = true } }

// Via sends over the node's transport with an index.
func Via(transport int) SendOption { return func(o *sendOptions) { o.Carrier = transport } }

// SendTo sends a datagram. It returns when the node has accepted it; b can be used again
// then. While the destination is congested or the send buffer is full, it waits. The
// error is that of the context, ErrClosed, ErrTooLong, ErrAddress or ErrNotAllowed.
func (s *Socket) SendTo(ctx context.Context, b []byte, to Addr, options ...SendOption) error {
	_, err := s.Send(ctx, &Message{Addr: to, Data: b}, options...)
	return err
}

// Send is SendTo for a message with all that belongs to it. It returns a number that
// events name.
func (s *Socket) Send(ctx context.Context, msg *Message, options ...SendOption) (uint64, error) {
	var o sendOptions
	for _, set := range options {
		set(&o)
	}
	return s.send(ctx, msg, &o)
}

func (s *Socket) send(ctx context.Context, msg *Message, o *sendOptions) (uint64, error) {
	if err := over(ctx); err != nil {
		return 0, err
	}
	if !s.n.cfg.allows(msg.Addr.Host.Unmap()) {
		return 0, ErrNotAllowed
	}
	o.TOS = msg.Addr.TOS
	if msg.Cookie != 0 {
		o.Extensions = wire.Extensions{Has: 1 << wire.ExtRDMADest, Dest: msg.Cookie}
	}
	if err := o.prepare(msg); err != nil {
		return 0, err
	}
	id, err := s.accept(ctx, msg, o)
	if err != nil && o.op != nil {
		o.op.used.Store(false)
	}
	return id, err
}

// accept waits until the machine accepts a message.
func (s *Socket) accept(ctx context.Context, msg *Message, o *sendOptions) (uint64, error) {
	data, err := s.n.copied(msg.Data, o)
	if over := s.isOver(); err != nil && over != nil {
		return 0, over // which is why there is no memory
	} else if err != nil {
		return 0, err
	}
	for {
		s.n.mu.Lock()
		var id uint64
		err := s.offered(msg.Cookie, o.Carrier)
		if err == nil {
			id, err = s.s.Send(s.n.now(), msg.Addr.endpoint(), data, o.Options)
		}
		wait := errors.Is(err, ErrCongested) || errors.Is(err, ErrBufferFull)
		var writable <-chan struct{}
		if wait && !o.now {
			writable = s.writable.Heard()
		}
		s.n.unlock()
		if err != nil && (!wait || o.now) {
			o.free()
		}
		switch {
		case errors.Is(err, ErrClosed):
			if over := s.isOver(); over != nil {
				return 0, over
			}
			return 0, err
		case !wait:
			return id, err
		case o.now:
			return 0, err
		}
		if err := wake.Await(ctx, writable, s.ended); err != nil {
			o.free()
			return 0, err
		}
	}
}

// copied copies a message to memory of the transport that will send it.
func (n *Node) copied(data []byte, o *sendOptions) ([]byte, error) {
	if len(data) > wire.MaxMessage || o.Carrier < 0 || o.Carrier >= len(n.cfg.Transports) {
		return data, nil // the machine says why not
	}
	b, err := n.cfg.Transports[o.Carrier].memory(len(data))
	if err != nil {
		return nil, fmt.Errorf("rds: no memory for the message: %w", err)
	}
	b.Use()
	o.Memory, o.Free = b, b.free
	return b.data[:copy(b.data, data)], nil
}

// free gives back what copied has taken, if the machine has not got it.
func (o *sendOptions) free() {
	if o.Free != nil {
		o.Free()
	}
}

// RecvFrom receives the oldest datagram into b and returns its length and sender. If b is
// too short, the rest is lost and the error is io.ErrShortBuffer. It waits until there is one. The other errors are those
// of the context and ErrClosed.
func (s *Socket) RecvFrom(ctx context.Context, b []byte) (int, Addr, error) {
	msg, err := s.Receive(ctx)
	if err != nil {
		return 0, Addr{}, err
	}
	n, from, err := taken(msg, b)
	s.n.bytes.back(msg.Data)
	return n, from, err
}

// Receive receives the oldest datagram, like RecvFrom. Its data are the caller's.
func (s *Socket) Receive(ctx context.Context) (*Message, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	for {
		msg, err := s.TryReceive()
		if !errors.Is(err, ErrEmpty) {
			return msg, err
		}
		if err := s.readable.Wait(ctx, s.ended); err != nil {
			return nil, err
		}
	}
}

// TryReceive is Receive that does not wait: without a message, the error is ErrEmpty.
func (s *Socket) TryReceive() (*Message, error) {
	if err := s.isOver(); err != nil {
		return nil, err
	}
	s.n.mu.Lock()
	m, ok := s.s.Receive(s.n.now())
	more, _ := s.s.Queued()
	s.n.unlock()
	if !ok {
		return nil, ErrEmpty
	}
	if more > 0 {
		s.readable.Wake()
	}
	return &Message{Addr: Addr{Host: m.From.Addr, Port: m.From.Port, TOS: m.TOS}, Data: m.Data, Cookie: m.Extensions.Dest, RKey: m.Extensions.RKey}, nil
}

// Flush waits until all messages of the socket are acknowledged or lost.
func (s *Socket) Flush(ctx context.Context) error {
	if err := over(ctx); err != nil {
		return err
	}
	for {
		s.n.mu.Lock()
		left := s.s.Unsent()
		if left > 0 {
			s.s.Hasten(s.n.now())
		}
		writable := s.writable.Heard()
		s.n.unlock()
		if err := s.isOver(); left == 0 || err != nil {
			return err
		}
		if err := wake.Await(ctx, writable, s.ended); err != nil {
			return err
		}
	}
}

// A deadline is a moment after which calls return os.ErrDeadlineExceeded.
type deadline struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (d *deadline) init() { d.ctx, d.cancel = context.WithCancelCause(context.Background()) }

// set sets the moment; zero for none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		d.init() // its function may not have run yet
	}
	d.timer = nil
	if d.ctx.Err() != nil {
		d.init()
	}
	if t.IsZero() {
		return
	}
	cancel := d.cancel
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { cancel(os.ErrDeadlineExceeded) })
	} else {
		cancel(os.ErrDeadlineExceeded)
	}
}

func (d *deadline) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ctx
}
