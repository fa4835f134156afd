package machine

import (
	"errors"
	"io"
	"testing"

	"urnic/ulp/rx/wire"
)

// A server ends a call with an abort; the client has the code, and what it sends of the call
// is answered with the abort again. The next call works.
func TestServerAborts(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "abcd")
	k := r.calls[0]
	r.take()
	k.Abort(r.at, 13)
	p := r.only(wire.TypeAbort)
	if code(p) != 13 || p.Call != 1 || p.Seq != 0 || p.Service != testService || p.Flags != 0 || p.Serial == 0 {
		t.Errorf("sent: %v, code %d", &p.Header, code(p))
	}
	fails(t, k.Err(), 13, false)
	if _, err := k.Read(r.at, make([]byte, 1)); err == nil {
		t.Error("an aborted call is read")
	}
	k.Abort(r.at, 14)
	k.End(r.at)
	r.quiet()
	r.data(2, 0, "more")
	if p := r.only(wire.TypeAbort); code(p) != 13 {
		t.Errorf("sent: %v, code %d", &p.Header, code(p))
	}
	r.acksWith(wire.Ack{Reason: wire.ReasonPing, First: 1, Trailer: trailer}, "", wire.FlagRequestAck)
	if p := r.only(wire.TypeAbort); code(p) != 13 {
		t.Errorf("sent: %v", &p.Header)
	}
	r.acks(wire.ReasonIdle, 1, 0, "")
	a := r.header(wire.TypeAbort)
	r.says(a, wire.AppendAbort(nil, 13)) // an abort is never answered
	r.quiet()
	h := r.header(wire.TypeData)
	h.Call, h.Seq = 2, 1
	r.says(h, nil)
	if len(r.calls) != 2 {
		t.Error("no call can follow")
	}
	r.end()
}

// A client's abort ends the call at the server, and is not answered.
func TestClientAborts(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "abcd")
	k := r.calls[0]
	r.take()
	r.events = nil
	r.says(r.header(wire.TypeAbort), wire.AppendAbort(nil, -6))
	fails(t, k.Err(), wire.UserAbort, true)
	if len(r.events) != 1 || r.events[0].Kind != Changed {
		t.Errorf("effects: %v", r.events)
	}
	r.quiet()
	r.data(2, 0, "more")
	r.quiet() // the client has ended it
	r.end()

	r = newServer(t, Config{}, Service{})
	r.data(1, 0, "abcd")
	r.says(r.header(wire.TypeAbort), []byte{0, 0})
	fails(t, r.calls[0].Err(), wire.CallDead, true) // no code
}

// An abort of the connection ends every call on it. Later packets are answered with the same
// abort, but those of the server's side.
func TestConnectionAborts(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "abcd")
	h := r.header(wire.TypeData)
	h.CID |= 3
	h.Seq = 1
	r.says(h, nil)
	r.take()
	h = r.header(wire.TypeAbort)
	h.Call = 0
	r.says(h, wire.AppendAbort(nil, 99))
	for _, k := range r.calls {
		fails(t, k.Err(), 99, true)
	}
	r.quiet()
	r.data(2, 0, "more")
	if p := r.only(wire.TypeAbort); code(p) != 99 || p.Call != 0 {
		t.Errorf("sent: %v", &p.Header)
	}
	r.says(h, nil)
	r.quiet()

	c, k := newClient(t, Config{}, DialConfig{})
	c.write(k, 4, true)
	c.take()
	h = c.header(wire.TypeAbort)
	h.Call = 0
	c.says(h, wire.AppendAbort(nil, 77))
	fails(t, k.Err(), 77, true)
	fails(t, k.c.Err(), 77, true)
	if _, err := k.c.Begin(c.at); err == nil {
		t.Error("an aborted connection begins a call")
	}
	c.data(1, 0, "x")
	c.quiet()
}

// A client that ends a call before the reply is complete aborts it with -6; so does a server
// that ends one before it has replied. A call that has ended can't be aborted.
func TestEndsThatAreEarly(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, true)
	r.take()
	r.data(1, 0, "x")
	r.reads(k, "x", nil)
	r.take()
	k.End(r.at)
	k.End(r.at)
	if p := r.only(wire.TypeAbort); code(p) != int32(wire.UserAbort) || p.Flags != wire.FlagClient {
		t.Errorf("sent: %v", &p.Header)
	}
	if _, err := k.Read(r.at, nil); err == nil {
		t.Error("a call that has ended is read")
	}

	s := newServer(t, Config{}, Service{})
	k = s.served()
	s.take()
	k.End(s.at)
	if p := s.only(wire.TypeAbort); code(p) != int32(wire.UserAbort) {
		t.Errorf("sent: %v", &p.Header)
	}

	s = newServer(t, Config{}, Service{})
	k = s.served()
	s.write(k, 4, true)
	k.End(s.at)
	s.take()
	k.Abort(s.at, 9)
	s.quiet()
	s.acks(wire.ReasonIdle, 2, 0, "")
	if s.stats.LiveCalls != 0 || k.Err() != nil {
		t.Error("the reply is not delivered")
	}
}

// A server replies after it has the whole request; a client reads after it has written.
// Anything else is refused.
func TestOrderOfRequestAndReply(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "abcd")
	k := r.calls[0]
	if _, err := k.Write(0, []byte("x")); !errors.Is(err, ErrOrder) {
		t.Errorf("a reply before the request: %v", err)
	}
	if err := k.CloseWrite(0); !errors.Is(err, ErrOrder) {
		t.Errorf("an end before the request: %v", err)
	}
	r.data(2, wire.FlagLast, "efgh")
	r.write(k, 1, false) // what it did not read is dropped
	if _, err := k.Read(0, make([]byte, 1)); !errors.Is(err, ErrOrder) {
		t.Errorf("a request after the reply: %v", err)
	}
	if r.Memory() != 0 {
		t.Errorf("%d bytes are held", r.Memory())
	}
	r.write(k, 0, true)
	if _, err := k.Write(0, []byte("x")); !errors.Is(err, ErrWritten) {
		t.Errorf("after the end: %v", err)
	}
	if !errors.Is(k.CloseWrite(0), ErrWritten) || !errors.Is(k.Flush(0), ErrWritten) {
		t.Error("a stream ends twice")
	}

	c, k := newClient(t, Config{}, DialConfig{})
	c.write(k, 4, false)
	if _, err := k.Read(0, make([]byte, 1)); !errors.Is(err, ErrOrder) {
		t.Errorf("a client reads early: %v", err)
	}
	k.End(0)
	if _, err := k.Write(0, nil); err == nil {
		t.Error("a call that has ended is written")
	}
}

// A reply that begins before the request is complete breaks the protocol.
func TestReplyBeforeTheRequest(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, false)
	k.Flush(0) //nolint:errcheck // it has no error
	r.take()
	r.data(1, 0, "x")
	if p := r.only(wire.TypeAbort); code(p) != int32(wire.ProtocolError) {
		t.Errorf("sent: %v", &p.Header)
	}
	fails(t, k.Err(), wire.ProtocolError, false)
}

// The whole life of a call, as the peer sees it.
func TestWholeCall(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	k := r.served()
	if !k.Readable() || k.Number() != 1 || k.Channel() != 0 || k.Conn().Peer() != there {
		t.Error("the call is another one")
	}
	r.write(k, 3, true)
	p := r.only(wire.TypeData)
	if string(p.body) != "012" || p.Seq != 1 || p.Flags != wire.FlagLast || p.CID != testCID || p.Epoch != testEpoch {
		t.Errorf("sent: %v", &p.Header)
	}
	k.End(r.at)
	if r.stats.LiveCalls != 1 || r.Unfinished() != 1 {
		t.Error("the call is over before its reply is acknowledged")
	}
	r.acks(wire.ReasonIdle, 2, 0, "")
	if r.stats.LiveCalls != 0 || r.Unfinished() != 0 {
		t.Error("the call is not over")
	}
	r.reads2(k)
	r.end()
}

func (r *raw) reads2(k *Call) {
	if _, err := k.Read(r.at, make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		r.t.Errorf("a call that has ended is read: %v", err)
	}
}
