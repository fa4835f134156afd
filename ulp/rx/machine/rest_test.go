package machine

import (
	"errors"
	"net/netip"
	"testing"

	"urnic/ulp/rx/wire"
)

// An error says who has ended what, with which code, and why.
func TestAbortErrors(t *testing.T) {
	for _, c := range []struct {
		err  AbortError
		want string
	}{
		{AbortError{Code: 13, Remote: true}, "the peer aborted the call: "},
		{AbortError{Code: -1, Conn: true, Cause: errSilent}, "the connection failed: RX_CALL_DEAD (-1): nothing was heard from the peer"},
		{AbortError{Code: -5}, "the call failed: RX_PROTOCOL_ERROR (-5)"},
	} {
		if got := c.err.Error(); len(got) < len(c.want) || got[:len(c.want)] != c.want {
			t.Errorf("%q; want %q", got, c.want)
		}
		if c.err.AbortCode() != int32(c.err.Code) || !errors.Is(&c.err, c.err.Cause) && c.err.Cause != nil {
			t.Errorf("%v has the code %d", &c.err, c.err.AbortCode())
		}
	}
	for k, want := range map[EffectKind]string{Incoming: "incoming", Changed: "changed", Freed: "freed", 9: "effect 9"} {
		if k.String() != want {
			t.Errorf("%v; want %s", k, want)
		}
	}
}

// Connections that have much to send take turns: none sends more than 64 datagrams while
// another one waits.
func TestConnectionsTakeTurns(t *testing.T) {
	r := newRaw(t, Config{})
	var conns []*Conn
	for range 3 {
		c, err := r.Dial(0, there, testService, DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		k := r.begin(c)
		k.out.cwnd, k.out.peerWindow = 250, 250
		if n, err := k.Write(0, pattern(200*1416)); n != 200*1416 || err != nil {
			t.Fatal(n, err)
		}
		conns = append(conns, c)
	}
	run, last, most := 0, uint32(0), 0
	for _, p := range r.take() {
		if p.ConnID() != last {
			run, last = 0, p.ConnID()
		}
		run++
		most = max(most, run)
	}
	if most != burst {
		t.Errorf("%d datagrams of one connection, then others", most)
	}
	if len(conns) != 3 {
		t.Error("a connection is missing")
	}
}

// Pull wants room for any datagram.
func TestPullWantsRoom(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	if _, err := k.Write(0, pattern(4)); err != nil || k.CloseWrite(0) != nil {
		t.Fatal(err)
	}
	if n, _, ok := r.Pull(0, make([]byte, MaxDatagram-1)); n != 0 || ok {
		t.Errorf("%d bytes", n)
	}
	r.only(wire.TypeData)
}

// Peers may have addresses of IPv6.
func TestIPv6(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.from = netip.MustParseAddrPort("[2001:db8::1]:7001")
	k := r.served()
	r.write(k, 1, true)
	for _, p := range r.take() {
		if p.to != r.from {
			t.Errorf("sent to %v", p.to)
		}
	}
	if d := r.DebugPeer(0); d.Host != 0 || d.Port != 7001 {
		t.Errorf("debug: %+v", d)
	}
	mapped := netip.MustParseAddrPort("[::ffff:10.0.0.2]:7001")
	if host, _ := debugAddr(mapped); host != 0x0a000002 {
		t.Errorf("a mapped address is %x", host)
	}
}
