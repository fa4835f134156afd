package rds

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// A Recording takes what passes over one connection, as seen from this side. A
// connection calls its methods from several goroutines.
type Recording interface {
	// Sent takes bytes before they are sent, in pieces that belong together. They may be lost
	// with the connection.
	Sent(pieces ...[]byte)
	// Received takes bytes that came, before anything is done with them.
	Received(pieces ...[]byte)
	// Close says that a side has closed its direction, this one if byUs.
	Close(byUs bool)
	// Reset says that a side has ended the connection, this one if byUs. Further calls have no effect.
	Reset(byUs bool)
}

// recorded has a link recorded, if its transport records.
func (t *TCP) recorded(l *tcpLink, c net.Conn, dialled bool) *tcpLink {
	if t.Record != nil {
		l.record = t.Record(c.LocalAddr(), c.RemoteAddr(), dialled)
	}
	return l
}

// ended records why nothing more comes, when all that was received is recorded.
func (l *tcpLink) ended(err error) {
	if l.record == nil {
		return
	}
	if errors.Is(err, io.EOF) {
		l.record.Close(false)
	}
	l.record.Reset(!errors.Is(err, syscall.ECONNRESET))
}
