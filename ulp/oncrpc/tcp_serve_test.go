package oncrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// A site is a server on a simulated network, of whose connections so many bytes may be
// on their way. It is for a bubble.
type site struct {
	*service
	network simnet.Network
	served  chan error
}

func newSite(t *testing.T, cfg oncrpc.ServerConfig, octets int) *site {
	t.Helper()
	s := &site{service: newService(t, cfg), served: make(chan error, 1)}
	s.network.Options = func(int) simnet.Options { return simnet.Options{Buffer: octets} }
	l, err := s.network.Listen(t.Context(), ":2049")
	if err != nil {
		t.Fatal(err)
	}
	go func() { s.served <- s.ServeTCP(t.Context(), l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A caller is a client's end of a connection, at which a test is the client.
type caller struct {
	net.Conn
	r *oncrpc.RecordReader
}

func (s *site) dial(t *testing.T) *caller {
	t.Helper()
	c, err := s.network.Dial(t.Context(), "server:2049")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // perhaps for the second time
	return &caller{c, oncrpc.NewRecordReader(c, 1<<30)}
}

// record is a call as a record.
func record(t *testing.T, xid, procedure uint32, args func(*xdr.Encoder)) []byte {
	t.Helper()
	var e xdr.Encoder
	e.Fixed(stream(t, head(xid, procedure), args))
	var b bytes.Buffer
	if err := oncrpc.WriteRecord(&b, &e); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// call sends a call without waiting for its reply.
func (c *caller) call(t *testing.T, xid, procedure uint32, args func(*xdr.Encoder)) {
	t.Helper()
	if _, err := c.Write(record(t, xid, procedure, args)); err != nil {
		t.Error(err)
	}
}

// reply returns the XID of the next reply, which must be a success.
func (c *caller) reply(t *testing.T) uint32 {
	t.Helper()
	p, err := c.r.Next(nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	var r oncrpc.Reply
	if err := errors.Join(r.Decode(xdr.NewDecoder(p)), r.Err); err != nil {
		t.Error(err)
	}
	return r.XID
}

// ended waits until the server has closed the connection, and returns when.
func (c *caller) ended(t *testing.T) time.Time {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); n > 0 {
		t.Errorf("the server has sent %d octets, %v", n, err)
	}
	return time.Now()
}

func TestPeersThatTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Idle: 5 * time.Minute, Stall: 30 * time.Second, RecordMost: 1 << 20}}, 0)
		begin := time.Now()
		silent, busy, stalled, slow := s.dial(t), s.dial(t), s.dial(t), s.dial(t)
		busy.call(t, 1, procWait, nil)
		stalled.call(t, 1, 0, nil)
		if xid := stalled.reply(t); xid != 1 {
			t.Errorf("reply to %d", xid)
		}
		call := record(t, 2, 0, nil)
		if _, err := stalled.Write(call[:len(call)-1]); err != nil {
			t.Fatal(err)
		}
		if took := stalled.ended(t).Sub(begin); took != 30*time.Second {
			t.Errorf("one that stops in a call is closed after %v", took)
		}
		// 64 KiB in each half of a minute are enough.
		begin = time.Now()
		call = record(t, 3, procEcho, func(e *xdr.Encoder) { e.Opaque(make([]byte, 500<<10)) })
		for len(call) > 0 {
			n := min(len(call), 70<<10)
			if _, err := slow.Write(call[:n]); err != nil {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
			call = call[n:]
			time.Sleep(20 * time.Second)
		}
		if xid := slow.reply(t); xid != 3 {
			t.Errorf("reply to %d", xid)
		}
		_ = slow.Close()
		if took := silent.ended(t).Sub(begin); took > 5*time.Minute {
			t.Errorf("one without calls is closed after %v", took)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		close(s.hold)
		if xid := busy.reply(t); xid != 1 {
			t.Errorf("reply to %d", xid)
		}
		begin = time.Now()
		if took := busy.ended(t).Sub(begin); took > 5*time.Minute {
			t.Errorf("one without calls any more is closed after %v", took)
		}
	})
}

func TestCallsThatAreTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{RecordMost: 100}}, 0)
		c := s.dial(t)
		c.call(t, 1, procEcho, func(e *xdr.Encoder) { e.Opaque(make([]byte, 56)) })
		if xid := c.reply(t); xid != 1 {
			t.Errorf("reply to %d", xid)
		}
		c.call(t, 2, procEcho, func(e *xdr.Encoder) { e.Opaque(make([]byte, 60)) })
		c.ended(t)
		other := s.dial(t)
		if _, err := other.Write([]byte{0xff, 0xff, 0xff, 0xff}); err != nil {
			t.Fatal(err)
		}
		other.ended(t)
	})
}

// What is no call gets no reply, and does not end the connection.
func TestMessagesThatAreNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{}, 0)
		c := s.dial(t)
		if _, err := c.Write([]byte{0x80, 0, 0, 4, 1, 2, 3, 4, 0x80, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		c.call(t, 5, 0, nil)
		if xid := c.reply(t); xid != 5 {
			t.Errorf("reply to %d", xid)
		}
	})
}

func TestPeerThatTakesNoReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{Calls: 4, TCP: oncrpc.ServeTCPConfig{Stall: time.Minute}}, 8<<10)
		slow, quick := s.dial(t), s.dial(t)
		go func() {
			for xid := range uint32(100) { // more than are carried out at a time
				if _, err := slow.Write(record(t, xid, procEcho, func(e *xdr.Encoder) { e.Opaque(make([]byte, 4000)) })); err != nil {
					return
				}
			}
			t.Error("the server has read calls without end")
		}()
		time.Sleep(time.Second)
		begin := time.Now()
		quick.call(t, 1, procEcho, func(e *xdr.Encoder) { e.Opaque(make([]byte, 4000)) })
		if xid := quick.reply(t); xid != 1 || time.Since(begin) != 0 {
			t.Errorf("another peer got the reply to %d, after %v", xid, time.Since(begin))
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if _, err := slow.Write([]byte{0}); err == nil {
			t.Error("the connection lives")
		}
	})
}

func TestLimitsOfConnectionsAndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{Calls: 5, TCP: oncrpc.ServeTCPConfig{Connections: 2, Calls: 3}}, 0)
		a, b := s.dial(t), s.dial(t)
		synctest.Wait()
		s.dial(t).ended(t)
		for xid := range uint32(4) {
			a.call(t, xid, procWait, nil)
			b.call(t, xid, procWait, nil)
		}
		synctest.Wait()
		if n := len(s.entered); n != 5 {
			t.Errorf("%d calls are carried out at a time; 5 should be, of both", n)
		}
		_ = b.Close() // that is, its calls do not begin any more
		synctest.Wait()
		close(s.hold)
		for range 4 {
			a.reply(t)
		}
		synctest.Wait()
		c := s.dial(t)
		c.call(t, 9, 0, nil)
		if xid := c.reply(t); xid != 9 {
			t.Errorf("reply to %d", xid)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Calls: 3}}, 0)
		c := s.dial(t)
		for xid := range uint32(4) {
			c.call(t, xid, procWait, nil)
		}
		synctest.Wait()
		if n := len(s.entered); n != 3 {
			t.Errorf("%d calls of a connection are carried out at a time; 3 should be", n)
		}
		close(s.hold)
		for range 4 {
			c.reply(t)
		}
	})
}

// The bytes that calls and replies hold are limited, of one connection and of all, but
// each may have one call.
func TestLimitOfOctets(t *testing.T) {
	for _, c := range []struct {
		octets, connections, least, most int
	}{
		{16 << 20, 1, 3, 3},         // a sixteenth has room for 256 KiB and the call, three times
		{16 * 800 << 10, 4, 12, 12}, // the same of each
		{1 << 20, 10, 10, 10},       // one of each
		{16 << 20, 40, 63, 102},     // three of each are more than all may have
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Octets: c.octets, Connections: c.connections, PerHost: c.connections}}, 0)
			var callers []*caller
			for range c.connections {
				c := s.dial(t)
				for xid := range uint32(8) {
					c.call(t, xid, procWait, nil)
				}
				callers = append(callers, c)
			}
			synctest.Wait()
			if n := len(s.entered); n < c.least || n > c.most {
				t.Errorf("%d octets, %d connections: %d calls at a time; want %d to %d", c.octets, c.connections, n, c.least, c.most)
			}
			close(s.hold)
			for _, c := range callers {
				for range 8 {
					c.reply(t)
				}
			}
		})
	}
}

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{}, 0)
		idle, busy, half := s.dial(t), s.dial(t), s.dial(t)
		busy.call(t, 1, procWait, nil)
		if _, err := half.Write(record(t, 1, 0, nil)[:20]); err != nil {
			t.Fatal(err)
		}
		<-s.entered
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(t.Context()) }()
		idle.ended(t)
		half.ended(t)
		synctest.Wait()
		busy.call(t, 2, 0, nil) // too late
		if _, err := s.network.Dial(t.Context(), "server:2049"); err == nil {
			t.Error("there is still a listener")
		}
		if _, err := answer(t, s, stream(t, head(1, 0), nil), here); !errors.Is(err, oncrpc.ErrClosed) {
			t.Errorf("a call over another transport: %v", err)
		}
		synctest.Wait()
		if len(down) > 0 {
			t.Fatal("Shutdown has not waited for a call")
		}
		close(s.hold)
		if xid := busy.reply(t); xid != 1 {
			t.Errorf("reply to %d", xid)
		}
		busy.ended(t)
		if err := <-down; err != nil {
			t.Error(err)
		}
		if err := <-s.served; !errors.Is(err, oncrpc.ErrClosed) {
			t.Errorf("ServeTCP: %v", err)
		}
		l, err := s.network.Listen(t.Context(), ":1")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ServeTCP(t.Context(), l); !errors.Is(err, oncrpc.ErrClosed) {
			t.Errorf("ServeTCP after Shutdown: %v", err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown again: %v", err)
		}
	})
}

// Calls that were read before Shutdown, but not carried out, do not disturb the others.
func TestShutdownWithCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{TCP: oncrpc.ServeTCPConfig{Calls: 2}}, 0)
		c := s.dial(t)
		for xid := range uint32(6) {
			c.call(t, xid, procWait, nil)
		}
		synctest.Wait()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		close(s.hold)
		a, b := c.reply(t), c.reply(t)
		if a+b != 1 {
			t.Errorf("replies to %d and %d", a, b)
		}
		c.ended(t)
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownWaitsOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{}, 0)
		c := s.dial(t)
		c.call(t, 1, procWait, nil)
		c.call(t, 2, procSaved, nil)
		<-s.entered
		<-s.entered
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

func TestContextOfServeTCPEndsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{}, 0)
		ctx, cancel := context.WithCancel(t.Context())
		l, err := s.network.Listen(ctx, ":1")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.ServeTCP(ctx, l) }()
		conn, err := s.network.Dial(ctx, "server:1")
		if err != nil {
			t.Fatal(err)
		}
		other := s.dial(t)
		c := &caller{conn, oncrpc.NewRecordReader(conn, 1000)}
		c.call(t, 1, procWait, nil)
		<-s.entered
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		c.ended(t)
		other.call(t, 2, 0, nil)
		if xid := other.reply(t); xid != 2 {
			t.Errorf("another listener's connection: reply to %d", xid)
		}
	})
}

// A peer may say that it has no more calls, and wait for what it has asked.
func TestPeerThatClosesItsSideGetsItsReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{}, 0)
		c := s.dial(t)
		c.call(t, 1, procWait, nil)
		<-s.entered
		if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(s.hold)
		if xid := c.reply(t); xid != 1 {
			t.Errorf("reply to %d", xid)
		}
		c.ended(t)
	})
}

// A flaky listener fails for some time.
type flaky struct {
	net.Listener
	failures int
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.failures > 0 {
		f.failures--
		return nil, errors.New("too many open files")
	}
	return f.Listener.Accept()
}

func TestListenerThatFailsForSomeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, oncrpc.ServerConfig{}, 0)
		ctx := context.WithoutCancel(t.Context()) // the server is closed at the end, and that counts
		for failures, want := range map[int]error{5: nil, 1 << 30: oncrpc.ErrClosed} {
			l, err := s.network.Listen(t.Context(), fmt.Sprint(":", failures%60_000+1))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if err := s.ServeTCP(ctx, &flaky{l, failures}); want != nil && !errors.Is(err, want) {
					t.Errorf("ServeTCP: %v", err)
				}
			}()
		}
		conn, err := s.network.Dial(t.Context(), "server:6")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := &caller{conn, oncrpc.NewRecordReader(conn, 1000)}
		c.call(t, 1, 0, nil)
		if xid := c.reply(t); xid != 1 {
			t.Errorf("reply to %d", xid)
		}
		time.Sleep(time.Minute)
	})
}
