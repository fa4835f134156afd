package machine

import (
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

// With the epoch's high bit, a connection is known by epoch and ID, whatever address a packet
// is from; answers go to the first address.
func TestEpochWithHighBitStandsForAnyAddress(t *testing.T) {
	other := netip.MustParseAddrPort("10.0.0.9:99")
	for _, high := range []bool{true, false} {
		r := newServer(t, Config{}, Service{})
		r.epoch = 0x01020304
		if high {
			r.epoch |= wire.HighBit
		}
		r.data(1, 0, "ab")
		r.from = other
		r.data(2, wire.FlagLast|wire.FlagRequestAck, "cd")
		sent := r.take()
		if high {
			if len(r.calls) != 1 || len(r.conns) != 1 || sent[0].to != there {
				t.Fatalf("%d calls, %d connections; answer to %v", len(r.calls), len(r.conns), sent[0].to)
			}
			r.reads(r.calls[0], "abcd", io.EOF)
		} else if len(r.conns) != 2 || sent[0].to != other {
			t.Fatalf("%d connections; answer to %v", len(r.conns), sent[0].to)
		}
	}
}

// A client whose own epoch has no high bit takes answers from the server's address only.
func TestClientWithoutHighBitIgnoresOtherAddresses(t *testing.T) {
	r, k := newClient(t, Config{Epoch: 5}, DialConfig{})
	r.write(k, 4, true)
	r.from = netip.MustParseAddrPort("10.0.0.9:99")
	r.data(1, wire.FlagLast, "forged")
	if k.Readable() || r.stats.Drops.NoConn != 1 {
		t.Error("a foreign address is heard")
	}
	r.from = there
	r.data(1, wire.FlagLast, "true")
	r.reads(k, "true", io.EOF)
}

// What is no client's makes no connection and gets no answer; neither does an acknowledgement,
// nor data beyond the window, of a call that a server before this one may have had.
func TestOnlyTheBeginningOfACallMakesAConnection(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	for _, h := range []wire.Header{
		{Type: wire.TypeData, Seq: 1},
		{Type: wire.TypeAck, Flags: wire.FlagClient},
		{Type: wire.TypeAck, Flags: wire.FlagClient | wire.FlagRequestAck},
		{Type: wire.TypeData, Flags: wire.FlagClient, Seq: 33},
		{Type: wire.TypeData, Flags: wire.FlagClient, Seq: 0},
		{Type: wire.TypeAbort, Flags: wire.FlagClient},
		{Type: wire.TypeResponse, Flags: wire.FlagClient},
		{Type: wire.TypeAck, Flags: wire.FlagClient, Seq: 1},
		{Type: wire.TypeData, Flags: wire.FlagClient, Seq: 1, UserStatus: 9},
	} {
		h.Epoch, h.CID, h.Call, h.Service = testEpoch, testCID, 1, testService
		if h.UserStatus == 9 {
			h.Call = 0
		}
		r.says(h, make([]byte, 40))
	}
	r.quiet()
	if len(r.conns) != 0 || r.stats.Drops.NoConn != 9 {
		t.Errorf("%d connections, %d dropped", len(r.conns), r.stats.Drops.NoConn)
	}
	r.data(32, 0, "")
	if len(r.conns) != 1 {
		t.Error("data inside the window makes no connection")
	}
}

// An unknown service or security index is answered with an abort -2 without a connection: the
// offending header turned round, serial 0, and the service ID where it belongs, as Linux
// wants it.
func TestUnknownServiceIsAborted(t *testing.T) {
	for _, what := range []string{"service", "security", "no null"} {
		r := newServer(t, Config{}, Service{NoNull: what == "no null"})
		h := r.header(wire.TypeData)
		h.Seq, h.Checksum, h.UserStatus = 1, 77, 3
		switch what {
		case "service":
			h.Service = 9
		case "security":
			h.Security = 2
		}
		r.says(h, []byte("abcd"))
		p := r.only(wire.TypeAbort)
		want := h
		want.Type, want.Flags, want.Serial, want.Seq, want.Checksum, want.UserStatus = wire.TypeAbort, 0, 0, 0, 0, 0
		if p.Header != want || code(p) != int32(wire.InvalidOperation) || p.to != there || len(r.conns) != 0 || len(p.body) != 4 {
			t.Errorf("%s: sent %v with code %d", what, &p.Header, code(p))
		}
	}
}

// The service ID of the first packet counts, and later ones are ignored; the security index
// is fixed, and a packet with another one is dropped in silence.
func TestFirstPacketDecidesServiceAndSecurity(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "ab")
	h := r.header(wire.TypeData)
	h.Seq, h.Security = 2, 2
	r.take()
	r.says(h, []byte("xx"))
	r.quiet()
	if r.stats.Drops.Index != 1 {
		t.Error("another security index is not dropped")
	}
	h = r.header(wire.TypeData)
	h.Seq, h.Service, h.Flags = 2, 9, h.Flags|wire.FlagLast
	r.says(h, []byte("cd"))
	r.reads(r.calls[0], "abcd", io.EOF)
}

// Connections of clients go when they were idle for long; what a program still serves stays.
func TestIdleConnectionsAreReaped(t *testing.T) {
	r := newServer(t, Config{IdleTime: 100 * time.Second, DeadTime: time.Hour}, Service{})
	k := r.served()
	r.pass(300 * time.Second)
	if len(r.conns) != 1 {
		t.Fatal("a connection goes with its call")
	}
	r.write(k, 1, true)
	k.End(r.at)
	r.acks(wire.ReasonDelay, 2, 0, "")
	r.pass(99 * time.Second)
	if len(r.conns) != 1 {
		t.Fatal("a connection goes too early")
	}
	r.pass(time.Second)
	if len(r.conns) != 0 || r.stats.ServerConns != 0 {
		t.Error("an idle connection stays")
	}
	r.end()
}

// A peer whose round-trip time is known is remembered for a minute without connections; one
// that never answered is forgotten at once.
func TestPeersAreForgotten(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, false)
	k.Flush(0) //nolint:errcheck // it has no error
	p := r.only(wire.TypeData)
	r.at += time.Millisecond
	r.acks(wire.ReasonRequested, 1, p.Serial, "+")
	k.Conn().Close(r.at)
	r.do()
	r.pass(peerMemory - 1)
	if len(r.peers) != 1 {
		t.Error("the peer is forgotten too early")
	}
	r.pass(1)
	if len(r.peers) != 0 || r.stats.Peers != 0 {
		t.Error("the peer stays")
	}
	r, k = newClient(t, Config{}, DialConfig{})
	k.Conn().Close(r.at)
	r.do()
	if len(r.peers) != 0 {
		t.Error("a peer that was never heard stays")
	}
}

// A closed connection has its calls aborted, tells the end of those that are complete, and
// leaves nothing.
func TestCloseEndsCalls(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, true)
	r.data(1, wire.FlagLast, "x")
	r.reads(k, "x", io.EOF)
	k.End(r.at)
	next := r.begin(k.Conn())
	r.take()
	k.Conn().Close(r.at)
	k.Conn().Close(r.at) // nothing more
	sent := r.take()
	if len(sent) != 2 || sent[0].Call != 1 || sent[1].Type != wire.TypeAbort || sent[1].Call != 2 {
		t.Fatalf("sent: %v", headers(sent))
	}
	if a := sent[0].ack(t); a.First != 2 || a.Reason != wire.ReasonIdle {
		t.Errorf("the reply is acknowledged by %v", &a)
	}
	fails(t, next.Err(), wire.UserAbort, false)
	if _, err := k.Conn().Begin(r.at); err == nil {
		t.Error("a closed connection begins a call")
	}
	if len(r.conns) != 0 {
		t.Error("the connection stays")
	}
	r.end()
}

// A program can't dial what is no host's address, nor service 0.
func TestDialRefusesWhatIsNoAddress(t *testing.T) {
	r := newRaw(t, Config{})
	for _, a := range []string{"0.0.0.0:1", "224.0.0.1:1", "10.0.0.1:0", "[::]:1", "[ff02::1]:7"} {
		if _, err := r.Dial(0, netip.MustParseAddrPort(a), 1, DialConfig{}); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v", a, err)
		}
	}
	if _, err := r.Dial(0, netip.AddrPort{}, 1, DialConfig{}); !errors.Is(err, ErrAddress) {
		t.Error(err)
	}
	if _, err := r.Dial(0, there, 0, DialConfig{}); !errors.Is(err, ErrService) {
		t.Error(err)
	}
	if err := r.Serve(Service{}); !errors.Is(err, ErrService) {
		t.Error(err)
	}
	if err := errors.Join(r.Serve(Service{ID: 1}), r.Serve(Service{ID: 2})); err != nil {
		t.Error(err)
	}
	if err := r.Serve(Service{ID: 1}); !errors.Is(err, ErrService) {
		t.Error(err)
	}
}

// User status 1 in the first packet asks for a better service. The replies name it, and the
// client's side of the connection is of it from then on.
func TestServiceUpgrade(t *testing.T) {
	const better = 2000
	r := newServer(t, Config{}, Service{Upgrade: better})
	if err := r.Serve(Service{ID: better}); err != nil {
		t.Fatal(err)
	}
	r.status = 1
	k := r.served()
	if k.Conn().Service() != better || r.stats.Upgrades != 1 {
		t.Errorf("the call is for service %d", k.Conn().Service())
	}
	r.take()
	r.write(k, 1, true)
	if p := r.only(wire.TypeData); p.Service != better {
		t.Errorf("the reply has %v", &p.Header)
	}
	plain := newServer(t, Config{}, Service{Upgrade: better})
	plain.status = 1
	if k := plain.served(); k.Conn().Service() != testService {
		t.Error("an upgrade to a service that there is not")
	}

	c, k := newClient(t, Config{}, DialConfig{Upgrade: true})
	c.write(k, 4, true)
	if p := c.only(wire.TypeData); p.UserStatus != 1 {
		t.Errorf("sent: %v", &p.Header)
	}
	h := c.header(wire.TypeData)
	h.Seq, h.Flags, h.Service = 1, wire.FlagLast, better
	c.says(h, nil)
	if k.Conn().Service() != better {
		t.Error("the upgrade is not noticed")
	}
	next := c.begin(k.Conn())
	c.write(next, 4, true)
	if p := c.only(wire.TypeData); p.UserStatus != 0 || p.Service != better {
		t.Errorf("sent after the upgrade: %v", &p.Header)
	}
}

// Calls to a port at which nobody is fail at once, unless something was heard.
func TestUnreachablePeer(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.Unreachable(r.at, there) // nothing was sent
	r.Unreachable(r.at, here)
	r.at += time.Millisecond
	r.write(k, 4, true)
	heard := r.begin(k.Conn())
	r.write(heard, 4, true)
	h := r.header(wire.TypeAck)
	h.CID |= 1
	r.at += time.Millisecond
	a := wire.Ack{First: 1, Acks: []byte{1}, Count: 1, Trailer: trailer}
	r.says(h, a.Append(nil))
	r.Unreachable(r.at, there)
	fails(t, k.Err(), wire.CallDead, false)
	if heard.Err() != nil || r.stats.Unreachable != 1 {
		t.Errorf("a call that was heard fails: %v", heard.Err())
	}
}
