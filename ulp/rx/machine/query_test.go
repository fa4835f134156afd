package machine

import (
	"encoding/binary"
	"testing"
	"time"

	"urnic/ulp/rx/wire"
)

// debug asks for something, and returns the body of the answer.
func (r *raw) ask(kind wire.DebugType, index int32) []byte {
	r.t.Helper()
	h := wire.Header{Epoch: 9, CID: 8, Call: 7, Seq: 6, Serial: 5, Type: wire.TypeDebug, Flags: wire.FlagClient, Security: 4, Service: 3}
	r.take()
	r.says(h, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(kind)), uint32(index)))
	p := r.only(wire.TypeDebug)
	h.Flags = 0
	if p.Header != h || p.to != there {
		r.t.Errorf("the answer has the header %v", &p.Header)
	}
	return p.body
}

// A version request is answered with 65 bytes and the request's header but for its direction;
// an answer is not.
func TestVersion(t *testing.T) {
	r := newRaw(t, Config{Version: "urnic of today"})
	h := wire.Header{Epoch: 999, CID: 8, Serial: 5, Type: wire.TypeVersion, Flags: wire.FlagClient | wire.FlagLast, Service: 3}
	r.says(h, []byte("anything"))
	p := r.only(wire.TypeVersion)
	h.Flags = wire.FlagLast
	if p.Header != h || len(p.body) != wire.VersionLen || string(wire.ParseVersion(p.body)) != "urnic of today" {
		t.Errorf("sent: %v, %q", &p.Header, p.body)
	}
	r.says(h, []byte{0}) // a keepalive
	r.quiet()
	if r.stats.Drops.Answer != 1 {
		t.Error("it is not counted")
	}
}

// Debug requests are answered as rxdebug wants it; others are not.
func TestDebugAnswers(t *testing.T) {
	r := newServer(t, Config{Threads: func() Threads { return Threads{Idle: 3, Waiting: 2, Waited: 1} }}, Service{})
	k := r.served()
	out, err := r.Dial(r.at, there, 9, DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r.data(1, 0, "again")
	b, err := wire.ParseDebugBasic(r.ask(wire.DebugGetBasic, 0))
	if err != nil || b.Version != 'S' || b.CallsExecuted != 1 || b.IdleThreads != 3 || b.Waiting != 2 || b.Waited != 1 {
		t.Errorf("basic: %+v, %v", b, err)
	}
	c, err := wire.ParseDebugConn(r.ask(wire.DebugGetAllConns, 0), wire.DebugVersion)
	if err != nil || c.CID != testCID || c.Epoch != testEpoch || c.Host != 0x0a000002 || c.Port != 7001 || c.Type != wire.DebugServer ||
		c.Calls[0] != 1 || c.States[0] != wire.DebugActive || c.Modes[0] != wire.DebugReceiving {
		t.Errorf("connection 0: %+v, %v", c, err)
	}
	c, err = wire.ParseDebugConn(r.ask(wire.DebugGetAllConns, 1), wire.DebugVersion)
	if err != nil || c.CID != out.ID() || c.Type != wire.DebugClient {
		t.Errorf("connection 1: %+v, %v", c, err)
	}
	for _, end := range []struct {
		kind  wire.DebugType
		index int32
	}{{wire.DebugGetAllConns, 2}, {wire.DebugGetConn, 1}, {wire.DebugGetConn, -1}, {wire.DebugGetAllConns, -1}} {
		if c, err := wire.ParseDebugConn(r.ask(end.kind, end.index), wire.DebugVersion); err != nil || c.CID != wire.DebugEnd {
			t.Errorf("%v: %+v, %v", end, c, err)
		}
	}
	p, err := wire.ParseDebugPeer(r.ask(wire.DebugGetPeer, 0))
	if err != nil || p.Host != 0x0a000002 || p.Port != 7001 || p.References != 2 || p.MTU != 1444 || p.CongWindow != 1 {
		t.Errorf("peer: %+v, %v", p, err)
	}
	for _, index := range []int32{1, -1} {
		if p, err := wire.ParseDebugPeer(r.ask(wire.DebugGetPeer, index)); err != nil || p.Host != wire.DebugEnd {
			t.Errorf("peer %d: %+v, %v", index, p, err)
		}
	}
	s, err := wire.ParseDebugStats(r.ask(wire.DebugGetStats, 0))
	if err != nil || s.DataRead != 1 || s.DuplicatesRead != 1 || s.ServerConns != 1 || s.ClientConns != 1 || s.Peers != 1 || s.Calls != 1 {
		t.Errorf("statistics: %+v, %v", s, err)
	}
	if got := r.ask(99, 0); string(got) != "\xff\xff\xff\xf8\xff\xff\xff\xf8" {
		t.Errorf("an unknown type: %x", got)
	}
	r.says(wire.Header{Type: wire.TypeDebug, Flags: wire.FlagClient}, make([]byte, 7))
	r.says(wire.Header{Type: wire.TypeDebug}, make([]byte, 8))
	r.quiet()
	r.write(k, 1, true)
	r.take()
	if c := r.DebugConn(0, false); c.States[0] != wire.DebugHold || c.Other[0]&wire.DebugOutput == 0 {
		t.Errorf("a reply that waits: %+v", c)
	}
	k.End(r.at)
	r.at += 3 * time.Millisecond
	r.acks(wire.ReasonIdle, 2, 0, "")
	if c := r.DebugConn(0, true); c.States[0] != wire.DebugDally || c.Modes[0] != wire.DebugEOF {
		t.Errorf("a call that is over: %+v", c)
	}
	if c := r.DebugConn(0, false); c.CID != wire.DebugEnd {
		t.Errorf("a connection without a call is interesting: %+v", c)
	}
}
