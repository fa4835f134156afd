package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// take returns what the node has sent since the last call.
func (r *rawPeer) take() []Segment {
	sent := r.sent
	r.sent = nil
	return sent
}

// kinds returns the kinds of segments that begin a message.
func kinds(sent []Segment) (all []wire.Kind) {
	last := true
	for _, s := range sent {
		if last {
			all = append(all, s.Header.Kind())
		}
		last = s.Last
	}
	return all
}

// The map is the first message of each link.
func TestMapComesFirst(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	s := r.bind()
	r.send(s, "x")
	for range 2 {
		sent := r.take()
		if got := kinds(sent); len(got) != 2 || got[0] != wire.Map || got[1] != wire.Data {
			t.Fatalf("sent: %v", got)
		}
		n := 0
		for _, seg := range sent[:len(sent)-1] {
			if seg.Header.Sequence != 0 || seg.Header.Len != wire.MapLen || seg.Header.Flags != wire.CongestionBitmap {
				t.Errorf("the map has the header %v", &seg.Header)
			}
			n += len(seg.Data)
		}
		if n != wire.MapLen {
			t.Errorf("the map has %d bytes", n)
		}
		r.p.Down(r.now, r.link, nil)
		r.connect(Params{})
	}
}

// Numbers begin at 1 and count messages, not fragments. All fragments but the last are full, have the
// message's header, and stand together.
func TestNumbersCountMessages(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	s := r.bind()
	r.take()
	for _, n := range []int{0, 3000, 1024, 5} {
		r.send(s, string(make([]byte, n)))
	}
	want := []struct {
		sequence uint64
		n, len   int
		last     bool
	}{{1, 0, 0, true}, {2, 1024, 3000, false}, {2, 1024, 3000, false}, {2, 952, 3000, true}, {3, 1024, 1024, true}, {4, 5, 5, true}}
	sent := r.take()
	if len(sent) != len(want) {
		t.Fatalf("%d segments; want %d", len(sent), len(want))
	}
	for i, seg := range sent {
		w := want[i]
		if seg.Header.Sequence != w.sequence || len(seg.Data) != w.n || int(seg.Header.Len) != w.len || seg.Last != w.last {
			t.Errorf("segment %d: %v with %d bytes, last: %v; want %+v", i, &seg.Header, len(seg.Data), seg.Last, w)
		}
	}
}

// An acknowledgement rides on what is sent. With nothing to send, one alone follows
// ACK_REQUIRED; it has nothing else in it, has no number, and there is one at a time.
func TestAcknowledgements(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	r.bind() // has another port
	r.take()
	r.says(r.data(1), []byte{1})
	if sent := r.take(); len(sent) > 0 {
		t.Errorf("without ACK_REQUIRED: %v", &sent[0].Header)
	}
	for range 3 { // before the carrier can send
		h := r.data(1)
		h.Flags = wire.AckRequired
		if buf, v := r.p.Begin(r.now, r.link, &h, 1); v != Take || len(buf) != 1 {
			t.Fatal("a message is not taken")
		}
		r.p.Fill(r.now, r.link, 1)
	}
	r.do()
	if sent := r.take(); len(sent) != 1 || sent[0].Header != (wire.Header{Ack: 4}) || len(sent[0].Data) != 0 || !sent[0].Last {
		t.Errorf("sent after three messages: %+v", sent)
	}
	h := r.data(1)
	h.Flags = wire.AckRequired
	s := r.bind()
	if _, err := s.Send(r.now, Endpoint{there, 5000}, []byte("x"), Options{}); err != nil {
		t.Fatal(err)
	}
	r.says(h, []byte{1})
	if sent := r.take(); len(sent) != 1 || sent[0].Header.Kind() != wire.Data || sent[0].Header.Ack != 5 {
		t.Errorf("sent while there are data: %+v", sent)
	}
}

// A message is acknowledged when its last fragment has been sent, and not before.
func TestAcknowledgementOfHalfAMessage(t *testing.T) {
	for _, whole := range []bool{false, true} {
		r := newRawPeer(t, Params{}, nil)
		r.says(wire.Header{Sequence: 2, DestPort: wire.ProbePort}, nil) // it has answered the probe
		s := r.bind()
		r.take()
		if _, err := s.Send(r.now, Endpoint{there, 5000}, make([]byte, 3000), Options{}); err != nil {
			t.Fatal(err)
		}
		fragments := 1
		if whole {
			fragments = 3
		}
		for i := range fragments {
			var seg Segment
			if !r.p.Pull(r.now, r.link, &seg) || seg.Last != (i == 2) {
				t.Fatalf("fragment %d: %v", i, &seg.Header)
			}
		}
		r.says(wire.Header{Ack: 1}, nil)
		if rule, broken, _ := r.violation(); broken == whole || broken && rule != RuleAck {
			t.Errorf("%d of 3 fragments: broken %v, %v", fragments, broken, rule)
		}
	}
}

// A message that is of an earlier connection says that it is sent again; only the first of a
// connection may be of a peer that has begun anew.
func TestOldNumberInMidConnection(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	if _, err := r.m.Bind(4000, 0, 0); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.says(r.data(1), []byte{1})
	}
	r.p.Down(r.now, r.link, nil)
	r.connect(Params{})
	for i, h := range []wire.Header{{Sequence: 2, Flags: wire.Retransmitted}, {Sequence: 3}} {
		h.Len, h.SourcePort, h.DestPort = 1, 5000, 4000
		r.says(h, []byte{1})
		if rule, broken, _ := r.violation(); broken != (i > 0) || broken && rule != RuleSequence {
			t.Errorf("message %d: broken %v, %v", h.Sequence, broken, rule)
		}
	}
}

// Linux that learns in the midst of a connection that this node has restarted numbers from 1 again, whatever it
// has sent before on the connection. It does so once.
func TestNumbersBeginAnewInMidConnection(t *testing.T) {
	for before := 1; before <= 3; before++ {
		r := newRawPeer(t, Params{}, func(c *Config) {
			c.Addr, c.Carriers = there.Next(), []Carrier{carriers["tcp"]} // the peer dials
		})
		if _, err := r.m.Bind(4000, 0, 4000); err != nil {
			t.Fatal(err)
		}
		for i := range before {
			h := r.data(1)
			if i == 0 { // of a path that was not used before: an answer
				h = wire.Header{Sequence: h.Sequence, SourcePort: wire.PingPort, DestPort: 4000}
			}
			r.says(h, make([]byte, h.Len))
		}
		r.next = 0
		for range 2 {
			r.says(r.data(1), []byte{1})
		}
		if rule, broken, _ := r.violation(); broken {
			t.Errorf("after %d messages: %v is broken", before, rule)
		}
		if got := r.m.counters.Received; got != uint64(before)+1 {
			t.Errorf("%d of %d messages are received", got, before+1)
		}
		r.next = 0
		r.says(r.data(1), []byte{1})
		if rule, broken, _ := r.violation(); !broken || rule != RuleSequence {
			t.Errorf("after %d messages, the numbers begin anew twice: broken %v, %v", before, broken, rule)
		}
	}
}

// A port is congested from the size of its receive buffer on, and free again below half of
// it, or when it is closed. All peers are told.
func TestPeersAreToldOfCongestion(t *testing.T) {
	for _, closes := range []bool{false, true} {
		r := newRawPeer(t, Params{}, func(c *Config) { c.PeerMemory = 40_000 })
		s, err := r.m.Bind(4000, 0, 4000)
		if err != nil {
			t.Fatal(err)
		}
		// told returns what the last map that was sent says of the port, if there was one.
		told := func() (congested, ok bool) {
			var data []byte
			for _, seg := range r.take() {
				if seg.Header.Kind() == wire.Map {
					data, ok = append(data, seg.Data...), true
				}
			}
			return ok && data[4000/8]&1 != 0, ok
		}
		told()
		for _, n := range []int{1000, 1000, 1000, 999} {
			r.says(r.data(n), make([]byte, n))
		}
		if _, ok := told(); ok {
			t.Error("a map comes with 3999 of 4000 bytes unread")
		}
		r.says(r.data(1), []byte{1})
		if congested, ok := told(); !ok || !congested {
			t.Errorf("with 4000 of 4000 bytes unread: congested %v, a map %v", congested, ok)
		}
		if closes {
			s.Close(r.now)
			r.do()
		}
		for i := 0; !closes && i < 3; i++ { // 3000, 2000, 1000 are left
			if _, ok := told(); ok {
				t.Errorf("a map comes after %d reads", i)
			}
			s.Receive(r.now)
			r.do()
		}
		if congested, ok := told(); !ok || congested {
			t.Errorf("at the end: congested %v, a map %v", congested, ok)
		}
	}
}

// A ping is answered from port 0 to its port, without data.
func TestPingIsAnswered(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	r.take()
	h := r.data(4)
	h.DestPort = wire.PingPort
	r.says(h, []byte("ping"))
	want := wire.Header{Sequence: 1, Ack: 1, DestPort: 5000, Flags: wire.AckRequired}
	if sent := r.take(); len(sent) != 1 || sent[0].Header != want || len(sent[0].Data) > 0 {
		t.Errorf("sent: %+v; want %v", sent, &want)
	}
}

// The probe names the paths and the generation; so does its pong. Data of a node that can
// have several paths wait for the peer's.
func TestProbeComesBeforeData(t *testing.T) {
	r := newRawPeer(t, Params{}, func(c *Config) { c.Carriers = []Carrier{{Acks: true, Paths: 4}} })
	s := r.bind()
	r.send(s, "waits")
	sent := r.take()
	if got := kinds(sent); !slices.Equal(got, []wire.Kind{wire.Map, wire.Probe}) {
		t.Fatalf("sent: %v", got)
	}
	names := func(h *wire.Header) { // one path to a peer that tells no generation
		t.Helper()
		x, err := wire.ParseExtensions(h.Extensions)
		if err != nil || !x.With(wire.ExtUrnic) || !x.With(wire.ExtNPaths) || x.Paths != 1 || !x.With(wire.ExtGeneration) || x.Generation != 1 {
			t.Errorf("%v names %v, %v", h, &x, err)
		}
	}
	names(&sent[1].Header)
	if h := &sent[1].Header; h.SourcePort != wire.ProbePort || h.DestPort != wire.PingPort || h.Sequence != 1 {
		t.Errorf("the probe is %v", h)
	}
	r.says(wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: introduces(8, 0)}, nil)
	sent = r.take()
	if got := kinds(sent); !slices.Contains(got, wire.Data) || !slices.Contains(got, wire.Pong) || len(r.p.conn.paths) != 1 {
		t.Errorf("sent to a peer that tells no generation: %v, over %d paths", got, len(r.p.conn.paths))
	}
	for _, seg := range sent {
		if seg.Header.Kind() == wire.Pong {
			names(&seg.Header)
		}
	}
}

// A peer that is slow to say anything is not taken for one without a generation. One that
// has spoken, and told none in time, is.
func TestHandshakeWaitsForTheLink(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		r := newRawPeer(t, Params{}, func(c *Config) { c.Carriers = []Carrier{{Acks: true, Paths: 4}} })
		s := r.bind()
		r.send(s, "waits")
		r.says(wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, make([]byte, wire.MapLen))
		if speaks {
			r.says(wire.Header{Ack: 1}, nil)
		}
		r.now += 5 * time.Second
		r.m.Advance(r.now)
		r.do()
		if sent := slices.Contains(kinds(r.take()), wire.Data); sent != speaks {
			t.Errorf("the peer speaks: %v; data are sent: %v", speaks, sent)
		}
	}
}

// Send refuses messages for a port that the peer says is congested, unless it is to ignore
// that, and the socket is told when ports are free again.
func TestSendToACongestedPort(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	s, idle := r.bind(), r.bind()
	says := func(congested ...uint16) {
		t.Helper()
		var m wire.CongestionMap
		for _, port := range congested {
			m.Set(port)
		}
		for from := 0; from < wire.MapLen; from += 1024 {
			r.says(wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, m[from:from+1024])
		}
	}
	send := func(port uint16, o Options) error {
		_, err := s.Send(r.now, Endpoint{there, port}, []byte("x"), o)
		return err
	}
	says(5000, 6000)
	for _, tt := range []struct {
		port uint16
		o    Options
		want error
	}{{5000, Options{}, ErrCongested}, {5001, Options{}, nil}, {5000, Options{IgnoreCongestion: true}, nil}} {
		if err := send(tt.port, tt.o); !errors.Is(err, tt.want) {
			t.Errorf("port %d, %+v: %v", tt.port, tt.o, err)
		}
	}
	r.seen = nil
	says(5000, 6000)
	says(5000, 6000, 7000)
	for _, e := range r.seen {
		if e.Kind == Writable {
			t.Error("a socket may send again, and no port is free")
		}
	}
	says(6000)
	told := map[*Socket]int{}
	for _, e := range r.seen {
		if e.Kind == Writable {
			told[e.Socket]++
		}
	}
	if told[s] != 1 || told[idle] != 0 {
		t.Errorf("the socket that waits is told %d times, another one %d times", told[s], told[idle])
	}
	if err := send(5000, Options{}); err != nil {
		t.Error(err)
	}
}
