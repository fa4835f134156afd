package rds

import (
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"urnic/ulp/rds/machine"
)

// What Info tells of two nodes of which one does not read is what has happened.
func TestInfoTellsOfQueuesAndCongestion(t *testing.T) { overAll(t, infoOfQueues) }

func infoOfQueues(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(2, nil)
	ctx := within(t)
	a, err := ns[0].Bind(4000, SendBuffer(100_000))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ns[1].Bind(5000, ReceiveBuffer(3000))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := a.SendTo(ctx, make([]byte, 1000), b.Addr(), NoWait()); err != nil {
			break // it is congested; nobody will read, so do not wait
		}
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	got := ns[1].Info(2)
	if s := got.Sockets; len(s) != 1 || s[0].Port != 5000 || !s[0].Congested || s[0].Unread < 3 || s[0].UnreadBytes != 1000*s[0].Unread {
		t.Errorf("the sockets are %+v", s)
	}
	if !slices.Equal(got.Congested, []uint16{5000}) {
		t.Errorf("port 5000 is congested; Info says %v", got.Congested)
	}
	q := got.Receive
	if q.Total != got.Sockets[0].Unread || len(q.Messages) != 2 {
		t.Fatalf("of %d messages, 2 are to be described: %+v", got.Sockets[0].Unread, q)
	}
	// A pong may have a number in between.
	if m := q.Messages[0]; m.Bytes != 1000 || m.From.String() != ownAddr(1).String()+":4000" || m.To.String() != ownAddr(2).String()+":5000" ||
		q.Messages[1].Sequence <= m.Sequence || m.Transport != got.Transports[0] {
		t.Errorf("the messages are %+v", q.Messages)
	}
	if held := got.Connections[0].Held; held != got.Sockets[0].UnreadBytes || got.Memory.Received != held || got.Memory.PeerLimit != 16<<20 {
		t.Errorf("%d bytes are unread; the peer holds %d, all %+v", got.Sockets[0].UnreadBytes, held, got.Memory)
	}
	if iwarp := got.Transports[0] == "iwarp"; iwarp != (got.Memory.Receives > 4096) {
		t.Errorf("over %s, %d bytes are those of receives", got.Transports[0], got.Memory.Receives)
	}
	// The sender learns of the congestion.
	for {
		err := a.SendTo(ctx, make([]byte, 1000), b.Addr(), NoWait())
		if errors.Is(err, ErrCongested) {
			break
		}
		if err := errors.Join(ignore(err, ErrBufferFull), a.Flush(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	from := ns[0].Info(1)
	c := from.Connections[0]
	if c.Peer != ns[1].Addr() || c.Generation != got.Generation || !slices.Equal(c.Congested, []uint16{5000}) {
		t.Errorf("the sender's connection is %+v", c)
	}
	if i := slices.IndexFunc(c.Paths, func(p PathInfo) bool { return p.State == "up" && p.NextTX > q.Messages[1].Sequence }); i < 0 {
		t.Errorf("no path is up that has sent: %+v", c.Paths)
	}
	if _, err := json.Marshal(from); err != nil {
		t.Error(err)
	}
}

// Info of a node whose peer is not there shows what waits, and that it is tried again.
func TestInfoTellsOfAPeerThatIsNotThere(t *testing.T) {
	ns := nodes(t, 1, transports["iwarp"], func(c *Config) { c.ReconnectMin, c.ReconnectMax = 1<<62, 1<<62 })
	s, err := ns[0].Bind(4000)
	if err != nil {
		t.Fatal(err)
	}
	to, err := ParseAddr(ownAddr(9).String() + ":1")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.SendTo(within(t), make([]byte, 10), to); err != nil {
			t.Fatal(err)
		}
	}
	got := ns[0].Info(10)
	if got.Send.Total != 3 || len(got.Send.Messages) != 3 || got.Send.Messages[2].To.String() != to.String() || got.Send.Messages[0].Sequence != 0 {
		t.Errorf("three messages wait; the send queue is %+v", got.Send)
	}
	if got.Memory.Sent != got.Sockets[0].Unsent || got.Memory.Sent == 0 {
		t.Errorf("the memory of what is to be sent is %+v, that of the socket %+v", got.Memory, got.Sockets[0])
	}
	if p := got.Connections[0].Paths[0]; p.State == "up" || p.NextTX != p.Acked+1 || p.Unsent != 3 {
		t.Errorf("the path is %+v", p)
	}
	for ctx := within(t); !strings.Contains(got.Connections[0].Paths[0].Error, "refused"); {
		runtime.Gosched()
		if got = ns[0].Info(0); ctx.Err() != nil {
			t.Fatal("nobody listens there, and the path does not say so")
		}
	}
	if p := got.Connections[0].Paths[0]; p.State == "down" && (p.Tries == 0 || p.Retry == nil) {
		t.Errorf("it is tried again, and the path is %+v", p)
	}
}

// ignore returns an error unless it is another one.
func ignore(err, other error) error {
	if errors.Is(err, other) {
		return nil
	}
	return err
}

func TestInfoHasAllCounters(t *testing.T) {
	c := machine.Counters{Sent: 7, PingsDropped: 9}
	got := counters(&c)
	if len(got) != reflect.TypeFor[machine.Counters]().NumField() {
		t.Errorf("there are %d: %v", len(got), got)
	}
	for _, want := range []CounterInfo{{"sent", 7}, {"pings_dropped", 9}, {"no_socket", 0}} {
		if !slices.Contains(got, want) {
			t.Errorf("%v is not among %v", want, got)
		}
	}
}

// What a connection over iWARP has posted, and what peers may access, is gone when it is.
func TestInfoTellsOfMemoryForTheRNIC(t *testing.T) {
	ns := nodes(t, 2, transports["iwarp"], nil)
	ctx := within(t)
	a, b := bind(t, ns[0], 0), bind(t, ns[1], 0)
	if err := a.SendTo(ctx, nil, b.Addr()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	mr, err := a.GetMR(make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	if m := ns[0].Info(0).Memory; m.Regions != 1 || m.Receives < 4096 {
		t.Errorf("with a connection and an MR: %+v", m)
	}
	if err := mr.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ns[0].Close(); err != nil {
		t.Fatal(err)
	}
	if m := ns[0].Info(0).Memory; m.Regions != 0 || m.Receives != 0 {
		t.Errorf("without them: %+v", m)
	}
}
