package mpa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// frame returns the bytes of a start-up frame.
func frame(key []byte, flags, rev byte, pd ...byte) []byte {
	return join(key, []byte{flags, rev, byte(len(pd) >> 8), byte(len(pd))}, pd)
}

// A peer is the other end of a stream. It says bytes and hears bytes, and knows
// nothing of MPA.
type peer struct {
	t    *testing.T
	conn *simnet.Conn
}

// beside runs f in a bubble with one end of a stream and the peer at the other,
// and ends the stream after it.
func beside(t *testing.T, o simnet.Options, f func(t *testing.T, conn *simnet.Conn, p *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := simnet.Pipe(o)
		defer func() {
			_ = a.Abort()
			_ = b.Abort()
		}()
		f(t, a, &peer{t, b})
	})
}

// says sends bytes.
func (p *peer) says(octets ...[]byte) {
	p.t.Helper()
	if _, err := p.conn.Write(join(octets...)); err != nil {
		p.t.Errorf("the peer can't send: %v", err)
	}
}

// hears takes so many bytes.
func (p *peer) hears(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	if n, err := io.ReadFull(p.conn, b); err != nil {
		p.t.Errorf("the peer got %d octets, then: %v", n, err)
	}
	return b
}

// expects takes bytes that must be these.
func (p *peer) expects(want ...[]byte) {
	p.t.Helper()
	if got := p.hears(len(join(want...))); !bytes.Equal(got, join(want...)) {
		p.t.Errorf("the peer got  %x\nwant          %x", got, join(want...))
	}
}

// expectsSilence waits until nobody has anything to do, and finds nothing sent
// and nothing ended.
func (p *peer) expectsSilence() {
	p.t.Helper()
	synctest.Wait()
	b := make([]byte, 100)
	if n, err := p.conn.TryRead(b); n != 0 || err != nil {
		p.t.Errorf("the peer got %x, %v; want silence", b[:n], err)
	}
}

// expectsEnd waits until nobody has anything to do, and finds that the other
// side has closed or reset the stream without another byte.
func (p *peer) expectsEnd() {
	p.t.Helper()
	synctest.Wait()
	b := make([]byte, 100)
	if n, err := p.conn.TryRead(b); n != 0 || err == nil {
		p.t.Errorf("the peer got %x, %v; want the end of the stream", b[:n], err)
	}
	if _, err := p.conn.Writev([][]byte{{0}}, false); err == nil {
		p.t.Error("the peer can still send; want the stream closed")
	}
}

// A started is what a start-up comes to.
type started struct {
	conn *Conn
	req  *Request
	err  error
}

// initiates runs Initiate in the background.
func initiates(ctx context.Context, conn net.Conn, cfg Config) <-chan started {
	done := make(chan started, 1)
	go func() {
		c, err := Initiate(ctx, conn, cfg)
		done <- started{conn: c, err: err}
	}()
	return done
}

// responds runs ReceiveRequest in the background, and Accept if that succeeds.
func responds(ctx context.Context, conn net.Conn, cfg Config) <-chan started {
	done := make(chan started, 1)
	go func() {
		req, err := ReceiveRequest(ctx, conn, cfg)
		if err != nil {
			done <- started{err: err}
			return
		}
		c, err := req.Accept(ctx, cfg)
		done <- started{c, req, err}
	}()
	return done
}

// initiated returns an Initiator in full operation that got this reply.
func initiated(t *testing.T, conn net.Conn, p *peer, cfg Config, reply []byte) *Conn {
	t.Helper()
	req, err := cfg.request()
	if err != nil {
		t.Fatal(err)
	}
	done := initiates(t.Context(), conn, cfg)
	p.hears(req.Len())
	p.says(reply)
	s := <-done
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	return s.conn
}

// responded returns a Responder in full operation that got this request, and the
// reply that it sent.
func responded(t *testing.T, conn net.Conn, p *peer, cfg Config, request []byte) (*Conn, []byte) {
	t.Helper()
	done := responds(t.Context(), conn, cfg)
	p.says(request)
	s := <-done
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	reply := p.hears(FrameHeaderLen)
	return s.conn, append(reply, p.hears(int(reply[18])<<8|int(reply[19]))...)
}

// plainRequest and plainReply start revision 1 without CRCs and markers.
var (
	plainRequest = frame(reqKey, 0, 1)
	plainReply   = frame(repKey, 0, 1)
	plainConfig  = Config{Revision: Revision1, CRC: CRCOff}
)

// fpdus returns the bytes that a Framer makes of these ULPDUs.
func fpdus(f *Framer, ulpdus ...[]byte) []byte {
	var b []byte
	for _, u := range ulpdus {
		b, _ = f.AppendFPDU(b, u)
	}
	return b
}

// wantCode checks that err is an *Error with this code.
func wantCode(t *testing.T, what string, err error, code Code) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: %v; want code %d, %v", what, err, code, code)
		return &Error{}
	}
	return e
}

// An inbox takes ULPDUs, in the background.
type inbox struct {
	mu     sync.Mutex
	ulpdus []string
	err    error // why Receive ended
	ended  bool
}

// receives calls Receive until it fails.
func receives(c *Conn) *inbox {
	in := new(inbox)
	go func() {
		for {
			err := c.Receive(each(func(u []byte, _ uint64) {
				in.mu.Lock()
				defer in.mu.Unlock()
				in.ulpdus = append(in.ulpdus, string(u))
			}))
			if err != nil {
				in.mu.Lock()
				defer in.mu.Unlock()
				in.err, in.ended = err, true
				return
			}
		}
	}()
	return in
}

// now waits until nobody has anything to do, and returns what has come.
func (in *inbox) now() (ulpdus []string, err error) {
	synctest.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ulpdus, in.err
}

// post posts ULPDUs without flushing.
func post(t *testing.T, c *Conn, ulpdus ...string) {
	t.Helper()
	for _, u := range ulpdus {
		if ok, err := c.Post([]byte(u), nil, false); !ok || err != nil {
			t.Fatalf("posting %d octets: %v, %v", len(u), ok, err)
		}
	}
}

// flush flushes all.
func flush(t *testing.T, c *Conn) {
	t.Helper()
	if done, err := c.Flush(false); !done || err != nil {
		t.Errorf("flushing: %v, %v", done, err)
	}
}
