package rds

import (
	"errors"
	"sync"

	"urnic/rnic"
	"urnic/ulp/rds/wire"
)

// MaxRegion is how many bytes an MR can have, and an operation can move, as in Linux.
const MaxRegion = wire.MaxMessage

// What GetMR, and Send with a cookie, return.
var (
	// ErrRegion says that a buffer can't be an MR: it is empty, too long, or not aligned to 8 bytes
	// where atomics are wanted.
	ErrRegion = errors.New("rds: an MR has 1 byte to 1 MiB; for atomics it is aligned to 8 bytes")
	// ErrTooManyMRs says that the socket or the node has as many MRs as it may have.
	ErrTooManyMRs = errors.New("rds: the socket or the node has as many MRs as it may have: close one")
	// ErrCookie says that a cookie to be sent does not name an MR of the socket.
	ErrCookie = errors.New("rds: the cookie names no MR that the socket has over this transport")
)

// An MR is memory of a socket that peers may access: those that know its cookie, over
// the connections that there are and those that will be made.
//
// The memory must not be used while a peer may access it. When a message has come whose
// RKey is that of the MR's cookie, the operation before it is done.
type MR struct {
	s         *Socket
	mr        *rnic.MR
	transport int
	cookie    wire.Cookie
	length    int
	once      bool
	freeing   sync.Once
	freed     chan struct{}
	err       error // of freeing
}

// An MROption says what peers may do with an MR.
type MROption func(*mrOptions)

type mrOptions struct {
	access    rnic.Access
	once      bool
	transport int
}

// ReadWrite lets peers write to the MR; without it, they may read.
func ReadWrite() MROption {
	return func(o *mrOptions) { o.access |= rnic.LocalWrite | rnic.RemoteWrite }
}

// Atomics lets peers do atomic operations, and write. The buffer is aligned to 8 bytes.
func Atomics() MROption {
	return func(o *mrOptions) { o.access |= rnic.LocalWrite | rnic.RemoteWrite | rnic.RemoteAtomic }
}

// UseOnce frees the MR when the first message comes that names an operation with its
// cookie. Messages behind Writes and Reads do; those behind atomics do not, as in Linux.
func UseOnce() MROption { return func(o *mrOptions) { o.once = true } }

// MRVia makes the MR for the node's transport with an index; without it, it is for the first
// one that has RDMA.
func MRVia(transport int) MROption { return func(o *mrOptions) { o.transport = transport } }

// GetMR makes a buffer accessible for peers. Its cookie goes to one of them in a message
// (Message.Cookie); the peer's program uses it for an operation, see With. The MR is there until it
// is closed, used (UseOnce), or the socket is closed. The error is ErrRegion, ErrTooManyMRs, ErrClosed,
// ErrNotSupported if the transport has no RDMA, or that of the RNIC.
//
// As Linux's RDS_GET_MR; when an MR is freed, peers can't access it from that moment on, which
// Linux does with RDS_RDMA_INVALIDATE only.
func (s *Socket) GetMR(buf []byte, options ...MROption) (*MR, error) {
	o := mrOptions{access: rnic.RemoteRead, transport: -1}
	for _, set := range options {
		set(&o)
	}
	t := s.n.rdma(&o.transport)
	switch {
	case t == nil:
		return nil, ErrNotSupported
	case len(buf) == 0 || len(buf) > MaxRegion || o.access&rnic.RemoteAtomic != 0 && !aligned(buf):
		return nil, ErrRegion
	}
	if err := s.reserveMR(); err != nil {
		return nil, err
	}
	// The first byte has the offset 0, as cookies have 32 bits for it.
	r, err := t.pd.RegisterMemory(rnic.Memory{Slice: buf, ZeroBased: true}, o.access, nil)
	if err != nil {
		s.n.mu.Lock()
		s.n.mrs--
		s.held--
		s.n.mu.Unlock()
		return nil, err
	}
	m := &MR{
		s: s, mr: r, transport: o.transport, cookie: wire.NewCookie(uint32(r.STag()), 0), length: len(buf), once: o.once,
		freed: make(chan struct{}),
	}
	s.n.mu.Lock()
	over := s.n.sockets[s.s] == nil
	if !over {
		if s.mrs == nil {
			s.mrs = map[uint32]*MR{}
		}
		s.mrs[m.cookie.RKey()] = m
	}
	s.n.mu.Unlock()
	if over {
		return nil, errors.Join(ErrClosed, m.free())
	}
	return m, nil
}

// reserveMR takes a place for an MR.
func (s *Socket) reserveMR() error {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.sockets[s.s] == nil:
		return ErrClosed
	case s.held >= n.cfg.SocketMRs || n.mrs >= n.cfg.NodeMRs:
		return ErrTooManyMRs
	}
	s.held++
	n.mrs++
	return nil
}

// rdma returns the transport with an index if it has RDMA, or, if the index is negative, the first
// that does, and sets the index.
func (n *Node) rdma(index *int) *IWARP {
	for i, t := range n.cfg.Transports {
		if w, ok := t.(*IWARP); ok && (*index < 0 || *index == i) {
			*index = i
			return w
		}
	}
	return nil
}

// MRs returns how many MRs the node has.
func (n *Node) MRs() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mrs
}

// MRs returns how many MRs the socket has.
func (s *Socket) MRs() int {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	return s.held
}

// Cookie names the MR for a peer.
func (m *MR) Cookie() wire.Cookie { return m.cookie }

// Len returns how many bytes the MR has.
func (m *MR) Len() int { return m.length }

// Freed is closed when the MR is freed: no peer accesses the memory any more.
func (m *MR) Freed() <-chan struct{} { return m.freed }

// Close frees the MR. When it returns, no peer accesses the memory any more; one that tries
// loses its connection. It waits for accesses that are in progress.
func (m *MR) Close() error {
	m.s.n.mu.Lock()
	delete(m.s.mrs, m.cookie.RKey())
	m.s.n.mu.Unlock()
	return m.free()
}

// free frees an MR that is not in its socket's table any more. The node is not locked.
func (m *MR) free() error {
	m.freeing.Do(func() {
		m.err = m.mr.Close()
		m.s.n.mu.Lock()
		m.s.n.mrs--
		m.s.held--
		m.s.n.mu.Unlock()
		close(m.freed)
	})
	return m.err
}

// unuse frees an MR that a peer says that it has used, if it was for one use. The node
// is locked.
func (s *Socket) unuse(key uint32) {
	m := s.mrs[key]
	if m == nil || !m.once {
		return
	}
	delete(s.mrs, key)
	s.n.workers.Go(func() { _ = m.free() }) // Close returns the error, too
}

// offered returns an error if a cookie names no MR of the socket. The node is locked.
func (s *Socket) offered(c wire.Cookie, transport int) error {
	if m := s.mrs[c.RKey()]; c != 0 && (m == nil || m.transport != transport) {
		return ErrCookie
	}
	return nil
}
