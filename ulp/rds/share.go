package rds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"urnic/internal/host/listen"
)

// mpaKey is what a connection over iWARP begins with (RFC 5044 §7.1.1). As a sequence number,
// with which a header of RDS begins, its first half is one that no node comes to.
const mpaKey = "MPA ID Req Frame"

// Bounds of a listener that two transports share.
const (
	// firstByte is how long a connection may say nothing before it counts as one of RDS over
	// TCP, where either side may speak first. Who uses iWARP sends its request at once.
	firstByte = time.Second
	// indecision is how long it may take until a connection is sorted.
	indecision = 5 * time.Second
	// maxUnsorted is how many connections may be unsorted.
	maxUnsorted = 128
)

// A sharedListener hands the connections of a listener to RDS over TCP or to RDS over iWARP, by
// their first bytes.
type sharedListener struct {
	on         net.Listener
	tcp, iwarp *half
	limit      int

	firstByte, indecision time.Duration // the constants, but in tests

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	unsorted []*unsorted // the oldest first
}

// unsorted is a connection of which it is not known yet whose it is.
type unsorted struct {
	net.Conn
	host string
}

// A half is what one of the transports sees of a shared listener.
type half struct {
	l     *sharedListener
	conns chan net.Conn
	ctx   context.Context
	stop  context.CancelFunc
}

func newSharedListener(l net.Listener) *sharedListener {
	s := &sharedListener{on: l, limit: maxUnsorted, firstByte: firstByte, indecision: indecision}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.tcp, s.iwarp = s.newHalf(), s.newHalf()
	return s
}

func (s *sharedListener) newHalf() *half {
	h := &half{l: s, conns: make(chan net.Conn)}
	h.ctx, h.stop = context.WithCancel(s.ctx)
	return h
}

// Accept returns the next connection of the transport.
func (h *half) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Connections of the transport are reset from then on.
func (h *half) Close() error {
	h.stop()
	return nil
}

// Addr returns the address of the shared listener.
func (h *half) Addr() net.Addr { return h.l.on.Addr() }

// run sorts connections until the listener is closed.
func (s *sharedListener) run() {
	for {
		c, err := s.on.Accept()
		switch {
		case s.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				reset(c)
			}
			return
		case err != nil:
			select {
			case <-time.After(10 * time.Millisecond): // descriptors may be free again then
			case <-s.ctx.Done():
			}
			continue
		}
		u := s.enter(c)
		s.wg.Go(func() {
			defer s.leave(u)
			s.sort(u)
		})
	}
}

// end closes the listener, and what is not sorted, and waits.
func (s *sharedListener) end() error {
	s.stop()
	err := s.on.Close()
	s.mu.Lock()
	for _, u := range s.unsorted {
		reset(u.Conn)
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}

// enter notes a connection. If there are too many, one of those makes room whose host has
// most: the oldest.
func (s *sharedListener) enter(c net.Conn) *unsorted {
	u := &unsorted{Conn: c, host: hostOf(c)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		reset(c) // end has been at those before
	}
	if len(s.unsorted) >= s.limit {
		count := map[string]int{}
		for _, o := range s.unsorted {
			count[o.host]++
		}
		out := 0
		for i, o := range s.unsorted {
			if count[o.host] > count[s.unsorted[out].host] {
				out = i
			}
		}
		reset(s.unsorted[out].Conn)
		s.unsorted = append(s.unsorted[:out], s.unsorted[out+1:]...)
	}
	s.unsorted = append(s.unsorted, u)
	return u
}

// hostOf returns what stands for the host at the other end: its address, or of an address of
// IPv6 the network, as a host has all of the addresses there.
func hostOf(c net.Conn) string {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	ip := a.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}

func (s *sharedListener) leave(u *unsorted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.unsorted {
		if o == u {
			s.unsorted = append(s.unsorted[:i], s.unsorted[i+1:]...)
			return
		}
	}
}

// sort hands a connection to the transport that it is for.
func (s *sharedListener) sort(u *unsorted) {
	h, c := s.whose(u.Conn)
	if h == nil {
		reset(u.Conn)
		return
	}
	late := time.NewTimer(s.indecision)
	defer late.Stop()
	select {
	case h.conns <- c:
	case <-late.C: // nobody takes it
		reset(c)
	case <-h.ctx.Done():
		reset(c)
	}
}

// whose looks at the first bytes of a connection. It returns it with these bytes still to be
// read, and nil for one that is neither's.
func (s *sharedListener) whose(c net.Conn) (*half, net.Conn) {
	p := newPeeker(c)
	begun := time.Now()
	for n := 1; ; {
		limit := begun.Add(s.indecision)
		if n == 1 {
			limit = begun.Add(s.firstByte)
		}
		_ = c.SetReadDeadline(limit)
		b, err := p.peek(n)
		_ = c.SetReadDeadline(time.Time{})
		var late net.Error
		switch {
		case len(b) > 0 && !bytes.HasPrefix([]byte(mpaKey), b):
			return s.tcp, p.conn()
		case len(b) == len(mpaKey):
			return s.iwarp, p.conn()
		case err == nil:
			n = len(b) + 1
		case len(b) > 0:
			return nil, nil // it stops within the key
		case errors.As(err, &late) && late.Timeout():
			return s.tcp, p.conn()
		case errors.Is(err, io.EOF):
			// A node with a higher address knocks: it connects, and lets go at once (RDS over TCP
			// of Linux). Its peer is to dial.
			return s.tcp, p.conn()
		default:
			return nil, nil
		}
	}
}

// A peeker reports what a connection begins with.
type peeker interface {
	// peek waits for n bytes, at most as many as the key has, and returns what there is: fewer
	// with an error.
	peek(n int) ([]byte, error)
	// conn returns the connection, of which nothing has been read.
	conn() net.Conn
}

// aheadPeeker reads ahead.
type aheadPeeker struct {
	net.Conn
	head []byte
}

func (p *aheadPeeker) peek(n int) ([]byte, error) {
	for len(p.head) < n {
		b := make([]byte, len(mpaKey)-len(p.head))
		k, err := p.Read(b)
		p.head = append(p.head, b[:k]...)
		if err != nil && len(p.head) < n {
			return p.head, err
		}
	}
	return p.head, nil
}

func (p *aheadPeeker) conn() net.Conn { return &aheadConn{Conn: p.Conn, head: p.head} }

// An aheadConn is a connection of which the first bytes were read ahead.
type aheadConn struct {
	net.Conn
	head []byte
}

// Read returns the bytes that were read ahead before others.
func (c *aheadConn) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// SetLinger has Close reset the connection, if that can be done.
func (c *aheadConn) SetLinger(sec int) error {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// CloseWrite ends this side's half, if that can be done.
func (c *aheadConn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

// share has a transport over TCP and one over iWARP use one listener, if both listen at the
// same address: over IPv6, their ports are the same. It returns how that ends.
func share(ctx context.Context, cfg *Config) (end func() error, err error) {
	var tcp *TCP
	var iwarp *IWARP
	for _, t := range cfg.Transports {
		switch t := t.(type) {
		case *TCP:
			if tcp == nil && t.Listener == nil {
				tcp = t
			}
		case *IWARP:
			if iwarp == nil && t.Listener == nil {
				iwarp = t
			}
		}
	}
	if tcp == nil || iwarp == nil {
		return func() error { return nil }, nil
	}
	at, err := netip.ParseAddrPort(iwarp.address(cfg.Addr))
	if err != nil || netip.AddrPortFrom(at.Addr().Unmap(), at.Port()) != netip.AddrPortFrom(cfg.Addr, tcp.port()) {
		return func() error { return nil }, nil //nolint:nilerr // listening says what is wrong with the address
	}
	l, err := listen.TCP(ctx, at.String())
	if err != nil {
		return nil, fmt.Errorf("rds: transports %s and %s: %w", tcp.Name(), iwarp.Name(), err)
	}
	s := newSharedListener(l)
	if cfg.firstByte > 0 {
		s.firstByte = cfg.firstByte
	}
	if cfg.indecision > 0 {
		s.indecision = cfg.indecision
	}
	s.wg.Go(s.run)
	tcp.shared, iwarp.shared = s.tcp, s.iwarp
	return s.end, nil
}
