package rnic

import (
	"net"

	"urnic/mpa"
)

// Params returns what MPA start-up has negotiated, with the peer's private
// data, or false before there was a connection.
func (q *QP) Params() (mpa.Params, bool) {
	if l := q.lastLink(); l != nil {
		return l.params, true
	}
	return mpa.Params{}, false
}

// LocalAddr returns the address of this side of the connection, or of the last
// one; nil before there was one, and after a Reset.
func (q *QP) LocalAddr() net.Addr {
	if l := q.lastLink(); l != nil {
		return l.conn.LocalAddr()
	}
	return nil
}

// RemoteAddr returns the address of the peer, as LocalAddr does that of this
// side.
func (q *QP) RemoteAddr() net.Addr {
	if l := q.lastLink(); l != nil {
		return l.conn.RemoteAddr()
	}
	return nil
}

// Done returns a channel that is closed when the current or last stream has ended,
// for any reason; nil before there was one, and after a Reset.
func (q *QP) Done() <-chan struct{} {
	if l := q.lastLink(); l != nil {
		return l.done
	}
	return nil
}

// lastLink returns the current or last stream, or nil.
func (q *QP) lastLink() *link {
	if !q.made() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.link
}
