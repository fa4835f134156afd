package machine

import (
	"errors"
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

// pings returns when pings were sent.
func pings(sent []packet) (at []Time) {
	for _, p := range sent {
		if a, err := wire.ParseAck(p.body); err == nil && p.Type == wire.TypeAck && a.Reason == wire.ReasonPing {
			at = append(at, p.at)
		}
	}
	return at
}

// A peer that is silent is asked for a sign of life every sixth of the dead time. When that is
// over, the call fails with -1, and nobody is told.
func TestKeepaliveAndDeadTime(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.at = time.Second // of which nothing is counted: nothing was sent
	r.write(k, 4, true)
	r.pass(12*time.Second - 1)
	sent := r.take()
	at := pings(sent)
	if len(at) != 5 {
		t.Errorf("pings at %v", at)
	}
	for i, a := range at {
		if a != time.Second+time.Duration(i+1)*2*time.Second {
			t.Errorf("pings at %v", at)
			break
		}
	}
	if p := sent[len(sent)-1]; p.Type == wire.TypeAck && p.Flags != wire.FlagClient|wire.FlagRequestAck|wire.FlagSlowStart {
		t.Errorf("a ping is %v", &p.Header)
	}
	if k.Err() != nil {
		t.Fatal(k.Err())
	}
	r.pass(1)
	r.quiet()
	fails(t, k.Err(), wire.CallDead, false)
	if !errors.Is(k.Err(), errSilent) {
		t.Error(k.Err())
	}
	r.data(1, wire.FlagLast, "late") // what comes now is told
	if p := r.only(wire.TypeAbort); code(p) != int32(wire.CallDead) || p.Call != 1 {
		t.Errorf("sent: %v", &p.Header)
	}
	r.end()
}

// Any packet of the call is a sign of life, and puts the next ping off.
func TestSignsOfLife(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{DeadTime: 6 * time.Second})
	r.write(k, 4, true)
	for range 10 {
		r.pass(5 * time.Second)
		if len(pings(r.take())) == 0 {
			t.Fatal("no ping")
		}
		r.acks(wire.ReasonPingResponse, 2, 0, "")
		r.pass(time.Second - 1)
		if at := pings(r.take()); len(at) != 0 {
			t.Fatalf("pings at %v, and now is %v", at, r.at)
		}
	}
	if k.Err() != nil {
		t.Error(k.Err())
	}
}

// A client's call that has sent nothing waits for nobody.
func TestCallThatHasNotBegun(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.pass(time.Hour)
	r.quiet()
	if k.Err() != nil {
		t.Error(k.Err())
	}
	if _, ok := r.Deadline(); ok {
		t.Error("there is a deadline")
	}
}

// A server whose client is silent gives up too.
func TestServerGivesUpASilentClient(t *testing.T) {
	r := newServer(t, Config{}, Service{DeadTime: 6 * time.Second})
	k := r.served()
	r.write(k, 4, true)
	k.End(r.at)
	r.pass(6 * time.Second)
	n := 0
	for _, p := range r.take() {
		if p.Type == wire.TypeData {
			n++
		}
	}
	if n != 3 || r.stats.LiveCalls != 0 { // at 0, 1, 3 s
		t.Errorf("%d times sent, %d calls are live", n, r.stats.LiveCalls)
	}
	r.end()
}

// The idle limit ends a call in which nothing moves, though the peer is alive; the hard limit
// ends any. The peer is told -3.
func TestIdleAndHardDead(t *testing.T) {
	for _, hard := range []bool{true, false} {
		d := DialConfig{IdleDead: 10 * time.Second}
		if hard {
			d = DialConfig{HardDead: 10 * time.Second}
		}
		r, k := newClient(t, Config{}, d)
		r.at = time.Second
		r.write(k, 4, false)
		k.Flush(r.at) //nolint:errcheck // it has no error
		r.take()
		r.at += time.Second
		r.acks(wire.ReasonPingResponse, 2, 0, "") // moves
		want := 12 * time.Second
		if hard {
			want = 10 * time.Second
		}
		for k.Err() == nil && r.at < time.Minute {
			r.take()
			r.pass(time.Second)
			if k.Err() == nil {
				r.acks(wire.ReasonPingResponse, 2, 0, "")
			}
		}
		if r.at != want {
			t.Errorf("hard: %v: it failed at %v; want %v", hard, r.at, want)
		}
		fails(t, k.Err(), wire.CallTimeout, false)
		sent := r.take()
		if p := sent[len(sent)-1]; p.Type != wire.TypeAbort || code(p) != int32(wire.CallTimeout) {
			t.Errorf("sent: %v", headers(sent))
		}
	}
}

// A server that has restarted answers a ping with less than it had acknowledged before: its
// call can't continue.
func TestPeerThatHasRestarted(t *testing.T) {
	r, k := steady(t, Config{})
	r.write(k, 1416, false)
	r.take()
	a := wire.Ack{Reason: wire.ReasonPing, First: 1, Trailer: trailer}
	r.acksWith(a, "-+", wire.FlagRequestAck) // may be old
	var ping packet
	sent := r.take()
	for _, p := range sent {
		if a, err := wire.ParseAck(p.body); err == nil && p.Type == wire.TypeAck && a.Reason == wire.ReasonPing {
			ping = p
		}
	}
	if ping.Serial == 0 || k.Err() != nil {
		t.Fatalf("sent: %v; want a ping", headers(sent))
	}
	r.acksWith(a, "-+", wire.FlagRequestAck)
	if at := pings(r.take()); len(at) != 0 {
		t.Error("it asks twice within a second")
	}
	a.Reason, a.Serial = wire.ReasonPingResponse, ping.Serial
	r.acksWith(a, "-+", 0)
	fails(t, k.Err(), wire.CallDead, false)
	if p := r.only(wire.TypeAbort); code(p) != int32(wire.CallDead) {
		t.Errorf("sent: %v", &p.Header)
	}
}

// The answer to a ping takes soft acknowledgements back though its serial number is low, as
// that of a server which has restarted is.
func TestAnswerToAPingIsNewerThanWhatWasThere(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	k.out.cwnd = 10
	r.write(k, 3*1416, false)
	r.take()
	r.serial = 1000
	r.acks(wire.ReasonIdle, 1, 0, "+++")
	r.pass(2 * time.Second)
	at := r.take()
	if len(pings(at)) != 1 {
		t.Fatalf("sent: %v", headers(at))
	}
	r.serial = 5
	r.acks(wire.ReasonPingResponse, 1, at[0].Serial, "--+")
	if k.out.packets.at(1).held || k.out.soft != 0 {
		t.Error("what the peer has lost counts as held")
	}
}
