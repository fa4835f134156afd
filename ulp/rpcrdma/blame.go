package rpcrdma

import (
	"net"
	"sync"
)

// maxBlamed is how many calls are remembered that have ended connections.
const maxBlamed = 256

// blamed remembers calls whose chunks have ended the connection, so that they are
// refused when they come again, and don't end the next one (RFC 8166 §4.5.3).
type blamed struct {
	mu    sync.Mutex
	calls []blamedCall // the oldest first
}

type blamedCall struct {
	host string
	xid  uint32
}

// host returns the part of a peer's address that stays when it connects again.
func host(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.IP.String()
	}
	if a == nil {
		return ""
	}
	if h, _, err := net.SplitHostPort(a.String()); err == nil {
		return h
	}
	return a.String()
}

func (b *blamed) add(peer net.Addr, xid uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.calls) == maxBlamed {
		b.calls = append(b.calls[:0], b.calls[1:]...)
	}
	b.calls = append(b.calls, blamedCall{host(peer), xid})
}

// take reports whether a call is remembered, and forgets it.
func (b *blamed) take(peer net.Addr, xid uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.calls) == 0 {
		return false
	}
	c := blamedCall{host(peer), xid}
	for i := range b.calls {
		if b.calls[i] == c {
			b.calls = append(b.calls[:i], b.calls[i+1:]...)
			return true
		}
	}
	return false
}
