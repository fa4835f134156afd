package machine

import (
	"errors"
	"io"
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

// A client's connection IDs are multiples of four, each of its own. The two low bits are the
// channel, call numbers begin at 1 on each channel, and four calls continue at a time.
func TestFourChannelsHaveTheirOwnCallNumbers(t *testing.T) {
	r := newRaw(t, Config{})
	a, err := r.Dial(0, there, testService, DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := r.Dial(0, there, testService, DialConfig{})
	if a.ID()%4 != 0 || b.ID() != a.ID()+4 {
		t.Errorf("connection IDs %x, %x", a.ID(), b.ID())
	}
	var calls []*Call
	for i := range 4 {
		k := r.begin(a)
		calls = append(calls, k)
		r.write(k, 4, true)
		p := r.only(wire.TypeData)
		if p.CID != a.ID()+uint32(i) || p.Call != 1 || p.Seq != 1 || p.Serial != uint32(i+1) || p.Epoch != r.Epoch() {
			t.Errorf("call %d begins with %v", i, &p.Header)
		}
		if p.Flags != wire.FlagClient|wire.FlagLast || p.Service != testService || p.UserStatus != 0 || p.Checksum != 0 {
			t.Errorf("call %d begins with %v", i, &p.Header)
		}
	}
	if _, err := a.Begin(0); !errors.Is(err, ErrNoChannel) {
		t.Fatalf("a fifth call: %v", err)
	}
	r.events = nil
	calls[2].Abort(0, 5)
	calls[2].End(0)
	r.do()
	freed := false
	for _, e := range r.events {
		freed = freed || e.Kind == Freed && e.Conn == a
	}
	if !freed {
		t.Errorf("effects: %v; want freed", r.events)
	}
	r.take()
	k := r.begin(a)
	r.write(k, 4, true)
	if p := r.only(wire.TypeData); p.Channel() != 2 || p.Call != 2 {
		t.Errorf("the next call begins with %v", &p.Header)
	}
	r.end()
}

// A call takes a channel whose last call has not failed, since the server may still be busy
// with one that has.
func TestCallsAvoidChannelsOfAbortedCalls(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, false)
	k.End(0)
	if p := r.take(); p[len(p)-1].Type != wire.TypeAbort || code(p[len(p)-1]) != int32(wire.UserAbort) {
		t.Errorf("sent: %v; want an abort", headers(p))
	}
	if k := r.begin(k.Conn()); k.Channel() != 1 {
		t.Errorf("the next call is on channel %d", k.Channel())
	}
}

// A channel is taken until its call has ended, though the whole reply was read.
func TestChannelsAreTakenUntilTheirCallsEnd(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, true)
	r.data(1, wire.FlagLast, "x")
	r.reads(k, "x", io.EOF)
	if next := r.begin(k.c); next.Channel() != 1 {
		t.Errorf("the next call is on channel %d", next.Channel())
	}
}

// Serial numbers begin at 1, and rise by one with each packet of the connection, whatever
// its call and type.
func TestSerialNumbersCountPackets(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	k := r.served()
	r.write(k, 4, true)
	r.pass(4 * time.Second) // retransmissions and pings
	r.data(1, wire.FlagLast, "abcd")
	for i, p := range r.take() {
		if p.Serial != uint32(i+1) {
			t.Fatalf("packet %d: %v", i+1, &p.Header)
		}
	}
}

// Call numbers rise, and may jump. One that is lower than the channel's is dropped in silence;
// one that equals a finished call is a duplicate.
func TestCallNumbersRise(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	h := r.header(wire.TypeData)
	h.Call, h.Seq, h.Flags = 7, 1, h.Flags|wire.FlagLast
	r.says(h, []byte("abcd"))
	k := r.calls[0]
	r.reads(k, "abcd", io.EOF)
	r.write(k, 1, true)
	k.End(0)
	r.take()
	low := h
	low.Call = 6
	r.says(low, []byte("abcd"))
	r.quiet()
	if r.stats.Drops.Call != 1 || len(r.calls) != 1 {
		t.Error("a lower call number is taken")
	}
	a := wire.Ack{First: 2, Trailer: trailer}
	ack := r.header(wire.TypeAck)
	ack.Call = 7
	r.says(ack, a.Append(nil))
	if r.stats.LiveCalls != 0 {
		t.Error("the call is not over")
	}
	r.says(h, []byte("abcd"))
	if a := r.onlyAck(wire.ReasonDuplicate); a.First != 2 || a.Serial != h.Serial || len(r.calls) != 1 {
		t.Errorf("a packet of a finished call: %v, %d calls", &a, len(r.calls))
	}
	h.Call = 1000
	r.says(h, []byte("abcd"))
	if len(r.calls) != 2 {
		t.Error("a call number that jumps is not taken")
	}
	r.end()
}

// A higher call number acknowledges the reply before it, though its program has not ended
// the call yet.
func TestNextCallAcknowledgesTheReply(t *testing.T) {
	for _, ended := range []bool{true, false} {
		r := newServer(t, Config{}, Service{})
		k := r.served()
		r.write(k, 4, true)
		if ended {
			k.End(0)
		}
		r.take()
		h := r.header(wire.TypeData)
		h.Call, h.Seq, h.Flags = 2, 1, h.Flags|wire.FlagLast
		r.says(h, []byte("efgh"))
		r.quiet()
		if len(r.calls) != 2 || k.Err() != nil {
			t.Fatalf("ended: %v: %d calls, the first has failed with %v", ended, len(r.calls), k.Err())
		}
		k.End(0)
		r.pass(500 * time.Millisecond)
		r.take()
		r.end()
	}
}

// A client that begins another call while one is being served is told BUSY, with the new
// number; the old call fails. What it sends again is taken.
func TestBusyChannel(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	old := r.served()
	h := r.header(wire.TypeData)
	h.Call, h.Seq, h.Flags = 2, 1, h.Flags|wire.FlagLast
	r.says(h, []byte("efgh"))
	p := r.only(wire.TypeBusy)
	if p.Call != 2 || p.Seq != 0 || p.CID != testCID || len(p.body) != 0 || p.Flags != 0 || p.Service != testService {
		t.Errorf("sent: %v", &p.Header)
	}
	fails(t, old.Err(), wire.CallDead, false)
	if r.stats.Busies != 1 || len(r.calls) != 1 {
		t.Error("the new call is offered at once")
	}
	r.says(h, []byte("efgh"))
	if len(r.calls) != 2 {
		t.Fatal("what the client sends again is not taken")
	}
	r.reads(r.calls[1], "efgh", io.EOF)
	r.end()
}

// A client takes BUSY for a sign of life, and sends its request again soon.
func TestClientSendsAgainAfterBusy(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, true)
	r.take()
	r.says(r.header(wire.TypeBusy), nil)
	r.quiet()
	r.pass(busyWait)
	if p := r.only(wire.TypeData); p.Seq != 1 || p.Flags != wire.FlagClient|wire.FlagLast|wire.FlagRequestAck {
		t.Errorf("sent: %v", &p.Header)
	}
	r.data(1, wire.FlagLast, "x")
	r.says(r.header(wire.TypeBusy), nil)
	if k.Err() != nil || r.stats.Drops.Type != 1 {
		t.Error("BUSY is taken after the reply has begun")
	}
}
