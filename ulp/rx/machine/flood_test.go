package machine

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A flood of connections from forged addresses takes no more memory than it may, and gets no
// more answers than it may.
func TestFloodOfConnections(t *testing.T) {
	for _, class := range []string{"null", "fake"} {
		s := Service{Reach: true}
		if class == "fake" {
			s = Service{NoNull: true, Security: []secure.Server{fakeServer{}}}
		}
		r := newServer(t, Config{MaxConns: 100, Memory: 1 << 20, Unverified: 1 << 18, IdleTime: time.Minute}, s)
		body := make([]byte, 1400)
		for i := range 20_000 {
			h := r.header(wire.TypeData)
			h.Epoch, h.CID, h.Seq = uint32(i), uint32(i)<<2, uint32(i%20+1)
			if class == "fake" {
				h.Security = fakeIndex
			}
			from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), uint16(1+i))
			r.Receive(r.at, from, append(h.Append(nil), body...))
			if i%50 == 0 {
				r.at += time.Millisecond
				r.Advance(r.at)
				r.do()
				r.sent = r.sent[:0]
			}
			most := 1 << 20
			if class == "fake" {
				most = 1 << 18
			}
			if r.memory > most || len(r.conns) > 100 || len(r.peers) > 100 || len(r.list) > 100 || r.raw.Len() > 256 || len(r.timers) > 200 {
				t.Fatalf("%s: %d bytes, %d connections, %d peers, %d answers, %d timers", class, r.memory, len(r.conns), len(r.peers), r.raw.Len(), len(r.timers))
			}
		}
		if len(r.calls) != 0 {
			t.Errorf("%s: %d calls are served", class, len(r.calls))
		}
		if r.stats.Evicted == 0 {
			t.Errorf("%s: none makes room", class)
		}
		r.pass(3 * time.Minute)
		r.sent = nil
		r.end()
	}
}

// A connection whose call is being served is not thrown out for others; where all are, a new
// one is dropped.
func TestServedConnectionsStay(t *testing.T) {
	r := newServer(t, Config{MaxConns: 3}, Service{})
	for i := range uint32(5) {
		r.cid = testCID + 4*i
		r.data(1, 0, "abcd")
	}
	if len(r.calls) != 3 || len(r.conns) != 3 || r.stats.Drops.Full != 2 {
		t.Errorf("%d calls, %d connections, %d dropped", len(r.calls), len(r.conns), r.stats.Drops.Full)
	}
}

// Unauthenticated packets get at most Answers answers for each second: aborts, version and
// debug answers, and BUSY.
func TestAnswersAreBounded(t *testing.T) {
	r := newServer(t, Config{Answers: 10}, Service{})
	ask := func() int {
		for range 100 {
			h := r.header(wire.TypeVersion)
			r.says(h, nil)
			h = r.header(wire.TypeData)
			h.Service, h.Seq = 99, 1
			r.says(h, nil)
		}
		return len(r.take())
	}
	if n := ask(); n != 10 {
		t.Errorf("%d answers at first", n)
	}
	r.at += 500 * time.Millisecond
	if n := ask(); n != 5 {
		t.Errorf("%d answers after half a second", n)
	}
	r.at += time.Hour
	if n := ask(); n != 10 || r.stats.Drops.Answer != 3*200-25 {
		t.Errorf("%d answers after an hour, %d dropped", n, r.stats.Drops.Answer)
	}
	r = newServer(t, Config{Answers: -1}, Service{})
	if n := ask(); n != 0 {
		t.Errorf("%d answers where there are to be none", n)
	}
	r = newServer(t, Config{}, Service{})
	r.give(r.header(wire.TypeVersion), nil)
	for range 1000 {
		r.give(r.header(wire.TypeVersion), nil) // none is taken out
	}
	if r.raw.Len() != 256 {
		t.Errorf("%d answers wait", r.raw.Len())
	}
}

// Two servers that get each other's packets don't continue forever: nothing that a server
// sends is answered by one.
func TestServersDontAnswerEachOther(t *testing.T) {
	r := newServer(t, Config{}, Service{Security: []secure.Server{fakeServer{}}})
	for ty := range wire.Type(16) {
		for _, call := range []uint32{0, 1} {
			h := r.header(ty)
			h.Flags, h.Call, h.Seq = 0, call, 1
			r.says(h, make([]byte, 40))
		}
	}
	r.quiet()
	h := r.header(wire.TypeAbort) // to nothing that there is
	h.Service = 99
	r.says(h, wire.AppendAbort(nil, -1))
	r.quiet()
}

// The amplification of requests that anybody can forge: what a server sends for each byte that
// it is sent, until it gives up.
func TestAmplification(t *testing.T) {
	reply := func(s Service) func(r *raw) {
		return func(r *raw) {
			h := r.header(wire.TypeData)
			h.Seq, h.Flags = 1, h.Flags|wire.FlagLast
			if len(s.Security) > 0 {
				h.Security = fakeIndex
			}
			r.says(h, []byte{0, 0, 0, 1})
			for _, k := range r.calls { // a reply that is as long as it likes
				r.read(k)                     //nolint:errcheck // it is whole
				k.Write(r.at, pattern(1<<20)) //nolint:errcheck // as much as it takes
			}
		}
	}
	ask := func(ty wire.Type, body ...uint32) func(r *raw) {
		return func(r *raw) {
			var b []byte
			for _, w := range body {
				b = binary.BigEndian.AppendUint32(b, w)
			}
			h := r.header(ty)
			h.Seq = 1
			if ty == wire.TypeData {
				h.Service = 99
			}
			r.says(h, b)
		}
	}
	fake := Service{NoNull: true, Security: []secure.Server{fakeServer{}}}
	for _, step := range []struct {
		name   string
		s      Service
		attack func(*raw)
		most   float64
	}{
		{"version", Service{}, ask(wire.TypeVersion), 3.4},
		{"debug basic", Service{}, ask(wire.TypeDebug, 1, 0), 8.7},
		{"debug connection", Service{}, ask(wire.TypeDebug, 3, 0), 8.7},
		{"debug statistics", Service{}, ask(wire.TypeDebug, 4, 0), 8.7},
		{"debug peer", Service{}, ask(wire.TypeDebug, 5, 0), 8.7},
		{"abort", Service{}, ask(wire.TypeData), 1.2},
		{"challenge", fake, reply(fake), 9.1},
		{"reachability", Service{Reach: true}, reply(Service{}), 14.5},
		{"reply", Service{}, reply(Service{}), 191},
	} {
		r := newServer(t, Config{Version: "urnic"}, step.s)
		step.attack(r)
		in := int(r.serial) * (wire.HeaderLen + 4)
		if step.name == "version" || step.name == "abort" {
			in = wire.HeaderLen
		}
		if step.name[:5] == "debug" {
			in = wire.HeaderLen + wire.DebugRequestLen
		}
		r.pass(time.Minute)
		out := 0
		for _, p := range r.take() {
			out += p.size
		}
		got := float64(out) / float64(in)
		t.Logf("%-18s %d bytes for %d: %.1f", step.name, out, in, got)
		if got > step.most || got < step.most*0.5 && step.name[:5] != "debug" {
			t.Errorf("%s: %d bytes for %d: %.1f; want up to %.1f", step.name, out, in, got, step.most)
		}
	}
}
