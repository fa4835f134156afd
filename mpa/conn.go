package mpa

import (
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"urnic/internal/host/sockio"
)

// A Conn is an MPA connection in full operation: it carries ULPDUs as FPDUs
// over a byte stream, and is a lower layer as RFC 5041 §3 requires.
//
// One goroutine at a time may send (Post, Flush, CloseWrite) while another one
// receives (Receive, TryReceive, Await, Discard). The other methods may be
// called from any goroutine.
type Conn struct {
	netConn  net.Conn
	stream   sockio.Stream
	params   Params
	recorder Recorder
	rec      recording

	fixedMULPDU int // or 0
	emss        int // if the stream can't report it
	mulpdu      atomic.Int64

	framer   Framer   // of the sender
	deframer Deframer // of the receiver
	out      batch
	in       intake

	opened    chan struct{} // closed when FPDUs may be sent
	isOpen    atomic.Bool   // so it is
	openOnce  sync.Once
	firstFPDU *time.Timer // bounds the wait for that, or ends it; or nil

	closeOnce sync.Once
	closeErr  error
	done      chan struct{}         // closed by Close and Abort
	over      atomic.Bool           // so is done
	cause     atomic.Pointer[Error] // why we aborted by ourselves
}

// newConn enters full operation on a stream whose start-up is over.
func newConn(conn net.Conn, cfg *Config, p Params) *Conn {
	c := &Conn{
		netConn: conn, stream: sockio.New(conn), params: p, recorder: cfg.Recorder,
		fixedMULPDU: cfg.MULPDU, emss: cfg.EMSS,
		framer:   Framer{CRC: p.CRC, Markers: p.SendMarkers},
		deframer: Deframer{CRC: p.CRC, Markers: p.RecvMarkers},
		opened:   make(chan struct{}),
		done:     make(chan struct{}),
	}
	if c.emss == 0 {
		c.emss = DefaultEMSS
	}
	c.in.init()
	c.measure()
	switch {
	case p.Role == Initiator && cfg.Settle > 0:
		c.firstFPDU = time.AfterFunc(math.MaxInt64, c.open)
		c.firstFPDU.Reset(cfg.Settle) // only now, as the function reads firstFPDU
	case p.Role == Initiator:
		c.open()
	case p.PeerToPeer: // the RTR follows the Reply at once; without it, an Initiator may take its time
		limit := orDefault(cfg.FirstFPDUTimeout, DefaultFirstFPDUTimeout)
		c.firstFPDU = time.AfterFunc(math.MaxInt64, func() {
			c.abortFor(&Error{
				Code: CodeConnectionLost, Clause: "RFC 6581 §9.2",
				Reason: fmt.Sprintf("no ready-to-receive indication came within %v", limit),
			})
		})
		c.firstFPDU.Reset(limit) // only now, as the function reads firstFPDU
	}
	return c
}

// open allows FPDUs to be sent: the first FPDU of the peer has arrived, or is
// no longer needed.
func (c *Conn) open() {
	c.openOnce.Do(func() {
		c.isOpen.Store(true)
		close(c.opened)
		if c.firstFPDU != nil {
			c.firstFPDU.Stop()
		}
	})
}

// MaySend reports whether FPDUs may be sent. A Responder may not send before it
// has received the Initiator's first one (RFC 5044 §7.1.2 rule 4). Until then,
// what is posted waits.
func (c *Conn) MaySend() bool { return c.isOpen.Load() }

// Params returns what start-up has negotiated.
func (c *Conn) Params() Params { return c.params }

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.netConn.LocalAddr() }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.netConn.RemoteAddr() }

// MULPDU returns the length in bytes of the largest ULPDU whose FPDU fits into
// one TCP segment (RFC 5044 §4.5). It follows the stream's segment size.
func (c *Conn) MULPDU() int { return int(c.mulpdu.Load()) }

// measure brings MULPDU up to date.
func (c *Conn) measure() {
	mulpdu := c.fixedMULPDU
	if mulpdu == 0 {
		emss := c.stream.MSS()
		if emss == 0 {
			emss = c.emss
		}
		mulpdu = MULPDU(emss, c.params.SendMarkers)
	}
	c.mulpdu.Store(int64(mulpdu))
}

// CloseWrite ends this end's half of the connection gracefully: the peer gets
// all that Flush has sent, then the end of the stream (RFC 5044 §7.2).
// Receiving continues.
func (c *Conn) CloseWrite() error {
	c.recordFin()
	if err := c.stream.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
		c.recordWriteError(err)
		return lost(err)
	}
	return nil
}

// Close closes the connection. What Flush has not sent is lost. The rest may be
// lost too if CloseWrite was not called first or something is unread, see
// Discard. A second call has no effect.
func (c *Conn) Close() error { return c.end(c.stream.Close, false) }

// Abort resets the connection. A call after Close has no effect.
func (c *Conn) Abort() error { return c.end(c.stream.Abort, true) }

func (c *Conn) abortFor(cause *Error) {
	c.cause.CompareAndSwap(nil, cause)
	_ = c.Abort() // cause is the error to report
}

func (c *Conn) end(how func() error, reset bool) error {
	c.closeOnce.Do(func() {
		if c.firstFPDU != nil {
			c.firstFPDU.Stop()
		}
		c.over.Store(true)
		close(c.done)
		c.closeErr = how()
		c.recordClosed(reset)
	})
	return c.closeErr
}

// failure says what an error of the stream means.
func (c *Conn) failure(err error) error {
	c.recordWriteError(err)
	if cause := c.cause.Load(); cause != nil {
		return cause
	}
	return lost(err)
}
